"""Texts in the pieces that local judges compare: sentences as claims, and windows of sentences as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rageval_spec import kernels
from rageval_spec.data.assessment import Claim, Criterion, Finding, TextPart, Verdict, read_part
from rageval_spec.data.sample import Sample

FRAGMENT = 5
"""A claim of fewer words says little by itself ("In 1999."), and is read behind its question."""
_FIRST_WIDE = "\u2e80"
"""From here on, about two characters are a word, and no spaces are between words."""
_OUTER_MARKS = ".,;:!…\"'“”‘’„«»‹›()[]{}。．，、；：！「」『』（）"
"""What may be around a word without changing what is said; a question mark changes it, as `-` and `%` do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a text: `text[start:end]`, `source` being the text's number among several."""

    text: str
    start: int
    end: int
    source: int = 0

    def as_claim(
        self, score: float, verdict: Verdict, evidence: Segment | None = None, reason: str | None = None
    ) -> Claim:
        """What a judge says of it, decided by `evidence`, a segment of the texts that it was compared with."""
        source, words = (None, None) if evidence is None else (evidence.source, evidence.text)
        return Claim(self.text, score, verdict, self.start, self.end, source, words, reason)


def split_segments(text: str, source: int = 0) -> list[Segment]:
    """The sentences of a text; none of one that is blank."""
    return [Segment(text[start:end], start, end, source) for start, end in kernels.split_sentences(text)]


def list_pieces(criterion: Criterion, sample: Sample) -> list[Segment]:
    """The texts that are judged piece by piece, such as contexts; offsets are those in `criterion.text_of`."""
    pieces: list[Segment] = []
    start = 0
    for source, text in enumerate(read_part(sample, criterion.text)):
        pieces.append(Segment(text, start, start + len(text), source))
        start += len(text) + len("\n\n")
    return pieces


def slide_windows(texts: Sequence[str], width: int) -> list[Segment]:
    """All runs of one to `width` sentences that follow one another in one of the texts."""
    windows: list[Segment] = []
    for source, text in enumerate(texts):
        sentences = split_segments(text, source)
        for size in range(1, min(width, len(sentences)) + 1):
            windows += [join_segments(text, sentences[at : at + size]) for at in range(len(sentences) - size + 1)]
    return windows


def fill_windows(texts: Sequence[str], characters: int, overlap: int) -> list[Segment]:
    """Each text in windows of whole sentences, as many as fit into so many characters, at least one.

    The last `overlap` sentences of a window are the first of the next one, as far as there is room for a new one too.
    """
    return [window for source, text in enumerate(texts) for window in _fill(text, source, characters, overlap)]


def _fill(text: str, source: int, characters: int, overlap: int) -> Iterator[Segment]:
    sentences = split_segments(text, source)
    first = 0
    while first < len(sentences):
        last = first
        while last + 1 < len(sentences) and sentences[last + 1].end - sentences[first].start <= characters:
            last += 1
        yield join_segments(text, sentences[first : last + 1])
        if last + 1 == len(sentences):
            return
        first = _step_back(sentences, first, last, characters, overlap)


def _step_back(sentences: Sequence[Segment], first: int, last: int, characters: int, overlap: int) -> int:
    """Where the window after `first` to `last` begins, so that it has room for the sentence that comes next."""
    start, new = max(first + 1, last + 1 - overlap), last + 1
    while start < new and sentences[new].end - sentences[start].start > characters:
        start += 1
    return start


def join_segments(text: str, segments: Sequence[Segment]) -> Segment:
    """From the first segment's beginning to the last one's end."""
    start, end = segments[0].start, segments[-1].end
    return Segment(text[start:end], start, end, segments[0].source)


def count_words(text: str) -> int:
    """About how many words there are; two characters are one in scripts without spaces."""
    return len(text.split()) + sum(character >= _FIRST_WIDE for character in text) // 2


def complete_claim(claim: str, criterion: Criterion, sample: Sample) -> str:
    """The claim, behind the sample's question where it is a fragment of an answer to it."""
    is_answer = criterion.text in ("answer", "reference") and criterion.against != "question"
    if not is_answer or count_words(claim) >= FRAGMENT:
        return claim
    return f"{sample.question.strip()} {claim}".strip()


def find_verbatim(claims: Sequence[Segment], windows: Sequence[Segment]) -> list[int | None]:
    """For each claim the number of the first window that is the claim word for word, else of the first that has it.

    Case, white space and the punctuation around words make no difference. A fragment ("No.", "Mark Twain") must be a
    whole window: within a longer one it is a part of another statement. So must claims in scripts without spaces.
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
    """The words, each with a space before and after it, so that one text contains another by whole words only."""
    words = (word.strip(_OUTER_MARKS) for word in text.casefold().split())
    return f" {' '.join(word for word in words if word) or text.strip()} "


def describe_blank(part: TextPart) -> str:
    """`the contexts have no text`."""
    return f"the {part.replace('_', ' ')} {'have' if part.endswith('s') else 'has'} no text"


def find_without_sources(criterion: Criterion, claims: Sequence[Segment]) -> Finding:
    """What can be said where there is nothing to compare with: without contexts nothing is supported.

    Without a question, nothing can be said of what is useful for it.
    """
    reason = describe_blank(criterion.against)
    if criterion.kind == "usefulness":
        return Finding(None, reason=reason)
    return Finding(0.0, tuple(claim.as_claim(0.0, "not_enough_info") for claim in claims), reason)


def is_blank(texts: Sequence[str]) -> bool:
    """Whether there is no text, or nothing but white space in each."""
    return not any(text.strip() for text in texts)


def score_claims(claims: Sequence[Claim], threshold: float | None) -> float:
    """The mean of the claims' scores; with a threshold, the share of claims whose score reaches it."""
    if threshold is None:
        return sum(claim.score for claim in claims) / len(claims)
    return sum(claim.score >= threshold for claim in claims) / len(claims)
