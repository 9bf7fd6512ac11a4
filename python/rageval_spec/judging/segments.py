"""Cuts texts into the pieces that local judges compare: sentences as claims, windows of sentences as evidence.

For a model's own claims, it finds the sentences that they come from, and the places where their evidence occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.data import arithmetic
from rageval_spec.data.findings import Claim, Criterion, Finding, TextPart, Verdict, read_part
from rageval_spec.data.samples import Sample
from rageval_spec.libraries import compile_later

FRAGMENT = 5
"""A claim of fewer words says little by itself ("In 1999."), so judges read it after its question."""
_FIRST_WIDE = "\u2e80"
"""From this code point on, words have about two characters and no spaces between them."""
_OUTER_MARKS = ".,;:!…\"'“”‘’„«»‹›()[]{}。．，、；：！「」『』（）"
"""Characters around a word that do not change its meaning. A question mark changes it, and so do `-` and `%`."""


class Segment(NamedTuple):
    """A piece of a text, `text[start:end]`; `source` is the number of the text among several."""

    text: str
    start: int
    end: int
    source: int = 0

    def as_claim(
        self, score: float, verdict: Verdict, evidence: Segment | None = None, reason: str | None = None
    ) -> Claim:
        """The claim with its score and verdict; `evidence` is the segment of the compared texts that decided."""
        source, words = (None, None) if evidence is None else (evidence.source, evidence.text)
        return Claim(self.text, score, verdict, self.start, self.end, source, words, reason)


def split_segments(text: str, source: int = 0) -> list[Segment]:
    """The sentences of a text; empty for a blank text."""
    return [Segment(text[start:end], start, end, source) for start, end in kernels.split_sentences(text)]


def list_pieces(criterion: Criterion, sample: Sample) -> list[Segment]:
    """The texts that are judged one by one, such as contexts, with their offsets in `criterion.text_of`."""
    pieces: list[Segment] = []
    start = 0
    for source, text in enumerate(read_part(sample, criterion.text)):
        pieces.append(Segment(text, start, start + len(text), source))
        start += len(text) + len("\n\n")
    return pieces


def list_statements(criterion: Criterion, sample: Sample) -> list[Segment]:
    """What is judged one by one for support: the claims that a metric gives, or the sentences of a text."""
    if criterion.text == "claims":
        return list_pieces(criterion, sample)
    return split_segments(criterion.text_of(sample))


def slide_windows(texts: Sequence[str], width: int) -> list[Segment]:
    """All runs of one to `width` consecutive sentences of each text."""
    windows: list[Segment] = []
    for source, text in enumerate(texts):
        sentences = split_segments(text, source)
        for size in range(1, min(width, len(sentences)) + 1):
            windows += [join_segments(text, sentences[at : at + size]) for at in range(len(sentences) - size + 1)]
    return windows


class Ruler(NamedTuple):
    """A bound on windows other than characters.

    Attributes:
        limit: the most that the sentences of a window may measure together; at least one byte of UTF-8 measures 1.
        measure: what each of several sentences measures, such as its tokens.
    """

    limit: int
    measure: Callable[[Sequence[str]], Sequence[int]]


def fill_windows(
    texts: Sequence[str], characters: int | None, overlap: int, rulers: Sequence[Ruler] = ()
) -> list[Segment]:
    """Each text in windows of whole sentences: as many as fit into `characters` and all rulers, at least one.

    The next window begins with the last `overlap` sentences, or with fewer if there is no room for a new sentence.
    """
    return [window for source, text in enumerate(texts) for window in _fill(text, source, characters, overlap, rulers)]


def _fill(text: str, source: int, characters: int | None, overlap: int, rulers: Sequence[Ruler]) -> Iterator[Segment]:
    sentences = split_segments(text, source)
    size = len(text.encode("utf-8", "surrogatepass"))
    wanted = [ruler for ruler in rulers if size > ruler.limit]
    sums = [[0, *accumulate(ruler.measure([one.text for one in sentences]))] for ruler in wanted]

    def fits(first: int, last: int) -> bool:
        if characters is not None and sentences[last].end - sentences[first].start > characters:
            return False
        return all(sum_[last + 1] - sum_[first] <= ruler.limit for ruler, sum_ in zip(wanted, sums, strict=True))

    for first, end in list_runs(len(sentences), overlap, fits):
        yield join_segments(text, sentences[first:end])


def list_runs(count: int, overlap: int, fits: Callable[[int, int], bool]) -> Iterator[tuple[int, int]]:
    """The first sentence of each window and the one after its last: at least one sentence, and as many as fit.

    The next window goes back by `overlap` sentences, or as far as a new sentence still fits into it. `fits` says so of
    the sentences from one number to another.
    """
    first = end = 0
    while end < count:
        end = first + 1
        while end < count and fits(first, end):
            end += 1
        yield first, end
        first = max(first + 1, end - overlap)
        while first < end < count and not fits(first, end):
            first += 1


def join_segments(text: str, segments: Sequence[Segment]) -> Segment:
    """The segment from the beginning of the first segment to the end of the last one."""
    start, end = segments[0].start, segments[-1].end
    return Segment(text[start:end], start, end, segments[0].source)


def count_words(text: str) -> int:
    """The approximate number of words; in scripts without spaces two characters count as a word."""
    return len(text.split()) + sum(character >= _FIRST_WIDE for character in text) // 2


_APART = compile_later(
    r"\.{2,}|--|''|``|[][(){}<>;@#$%&?!*\"`«»“”‘’„\u2012-\u2015]"
    r"|[:,](?!\d)"
    r"|(?<=[^.])\.(?=[])}>\"'»”’\s]*$)"
    r"|(?i:(?<=[^'\s])n't(?![\w-])|(?<=[^'\s])'(?:ll|re|ve|[smd])?(?![\w-])|(?<!\w)'(?!(?:re|ve|ll|[mtsdn])\b)(?=\w))"
    r"|(?i:\b(?:can(?=not\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|wan(?=na\b)))"
)
"""What the Penn Treebank takes for a token of its own although no space is around it."""


def count_treebank_tokens(sentence: str) -> int:
    """The number of words and punctuation marks as the Penn Treebank counts them: `don't (now).` has 6.

    Within a thousandth of NLTK's `word_tokenize` on 23,362 sentences; words between spaces are a sixth fewer.
    """
    return len(_APART.sub(r" \g<0> ", sentence).split())


def complete_claim(claim: str, criterion: Criterion, sample: Sample) -> str:
    """The claim, after the sample's question where the claim is only a fragment of an answer."""
    is_answer = criterion.text in ("answer", "reference") and criterion.against != "question"
    if not is_answer or count_words(claim) >= FRAGMENT:
        return claim
    return f"{sample.question.strip()} {claim}".strip()


def find_verbatim(claims: Sequence[Segment], windows: Sequence[Segment]) -> list[int | None]:
    """For each claim, the number of the first window that equals it, else of the first that contains it, else None.

    Case, white space and the punctuation around words make no difference. A fragment ("No.", "Mark Twain") must equal
    a whole window, because in a longer one it is part of another statement. So must claims in scripts without spaces.
    """
    candidates = [_join_words(window.text) for window in windows]
    return [_find_words(claim.text, candidates) for claim in claims]


def _find_words(claim: str, candidates: Sequence[str]) -> int | None:
    words = _join_words(claim)
    if words in candidates:
        return candidates.index(words)
    if count_words(claim) < FRAGMENT:
        return None
    return next((number for number, candidate in enumerate(candidates) if words in candidate), None)


def _join_words(text: str) -> str:
    """The words, each between spaces, so that one text contains another only by whole words."""
    words = (word.strip(_OUTER_MARKS) for word in text.casefold().split())
    return f" {' '.join(word for word in words if word) or text.strip()} "


def find_closest(wanted: Sequence[tuple[str, Sequence[Segment]]], threads: int | None) -> Iterator[Segment | None]:
    """For each text, the segment that shares most words with it; None if none shares any."""
    segments = [[segment.text for segment in each] for _, each in wanted]
    looked_up = kernels.word_support([text for text, _ in wanted], segments, threads=threads)
    for (_, each), shares in zip(wanted, looked_up, strict=True):
        best = find_best(shares)
        yield None if best is None else each[best]


def find_best(shares: Sequence[kernels.WordShare]) -> int | None:
    """The number of the first source with the largest share; None if every share is 0."""
    found = [share.found for share in shares[:-1]]
    return found.index(max(found)) if any(found) else None


def describe_blank(part: TextPart) -> str:
    """`the contexts have no text`."""
    return f"the {part.replace('_', ' ')} {'have' if part.endswith('s') else 'has'} no text"


def find_without_sources(criterion: Criterion, claims: Sequence[Segment]) -> Finding:
    """The finding if there is nothing to compare with.

    Without sources no claim is supported; without a question usefulness has no score.
    """
    reason = describe_blank(criterion.against)
    if criterion.kind == "usefulness":
        return Finding(None, reason=reason)
    return Finding(0.0, tuple(claim.as_claim(0.0, "not_enough_info") for claim in claims), reason)


def is_blank(texts: Sequence[str]) -> bool:
    """Whether there are no texts, or only white space in them."""
    return not any(text.strip() for text in texts)


def score_claims(claims: Sequence[Claim], threshold: float | None = None) -> float:
    """The mean of the claims' scores; with a `threshold`, the share of claims that are supported by it."""
    if threshold is None:
        return arithmetic.average(claim.score for claim in claims)
    return sum(claim.verdict == "supported" for claim in claims) / len(claims)


_WORD = compile_later(r"\w+")
_SHORTENED = compile_later(r"\.\.\.|…|\[\.\.\.\]|\[…\]")


def place_claim(text: str, cited: int | None, sentences: Sequence[Segment]) -> Segment:
    """A claim as a model wrote it with the offsets of the sentence that it comes from.

    That is the one whose number (from 1) it cites, else the most similar one. A claim that occurs in its sentence word
    for word gets the offsets of its own words instead.
    """
    if cited is not None and 1 <= cited <= len(sentences):
        sentence = sentences[cited - 1]
    else:
        words = {*_WORD.findall(text.casefold())}

        def share(one: Segment) -> float:
            others = {*_WORD.findall(one.text.casefold())}
            return len(words & others) / max(len(words | others), 1)

        sentence = max(sentences, key=share)
    for part in filter(None, (text, text.rstrip("."))):
        if (at := sentence.text.find(part)) >= 0:
            return Segment(text, sentence.start + at, sentence.start + at + len(part))
    return Segment(text, sentence.start, sentence.end)


def find_evidence(evidence: str, source: int, sources: Sequence[str]) -> int | None:
    """The number (from 0) of the source that holds these words, the cited one if several do; None if none does.

    White space, case and outer quotation marks do not matter; "..." can stand for an omission.
    """
    parts = [_fold(part) for part in _SHORTENED.split(evidence)]
    wanted = [part for part in parts if part]
    if not wanted:
        return None
    first = [source] if 0 <= source < len(sources) else []
    numbers: list[int] = [*first, *range(len(sources))]
    for number in numbers:
        if _holds(_fold(sources[number]), wanted):
            return number
    return None


def _holds(text: str, parts: Sequence[str]) -> bool:
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _fold(text: str) -> str:
    return " ".join(text.split()).strip(" \"'“”‘’«»").casefold()


SHINGLE = 4
"""Characters of a shingle."""


def list_shingles(text: str) -> frozenset[str]:
    """The sequences of four characters in a text; a short text is one itself."""
    padded = f" {text} "
    return frozenset(padded[at : at + SHINGLE] for at in range(max(1, len(padded) - SHINGLE + 1)))
