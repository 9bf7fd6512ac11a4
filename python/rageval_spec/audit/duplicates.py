"""Checks for questions that are there twice, leak their answer, or stand in a training file.

Repeats ask the same word for word, or with differences that do not change what is asked. Their gold answers can
contradict each other. A leak is a gold answer that stands in its own question. Overlap is with a file that a system
was trained or tuned on.

Texts that share most of their character sequences are found without comparing every text with every other one, by
MinHash (Broder, 1997): of each of `_HASHES` hash functions, a text keeps the smallest hash of its shingles, which are
the sequences of `SHINGLE` characters. Two texts keep the same one with a probability that is the share of shingles that
they have in common (Jaccard). Texts that agree on a whole band of hashes are candidates, and candidates are compared
exactly. A pair with a share of 0.7 is a candidate with a probability of 0.988, and one with 0.8 with 0.9998.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rageval_spec import kernels
from rageval_spec.audit.audit_findings import AuditFinding, CheckContent, Found, NotCheckedError, check, make_finding
from rageval_spec.audit.question_set import (
    AuditedQuestion,
    AuditedQuestions,
    contains,
    drop_fillers,
    find_numbers,
    find_overlap,
    is_yes_or_no,
    shorten,
    split_compared_words,
    write_digits,
)
from rageval_spec.judging.quantities import find_missing, find_quantities, have_same, spell_fractions
from rageval_spec.judging.segments import SHINGLE, list_shingles
from rageval_spec.libraries import compile_later, np
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    from numpy.typing import NDArray


_HOW = {
    "equal": "the same question as {other}",
    "wording": "nearly the same question as {other}: only articles, endings or typing differ",
    "reference": "nearly the same question as {other}, with the same gold answer",
    "meaning": "means nearly the same as {other} (cosine {share:.2f}), with the same gold answer",
}


def check_repeats(
    questions: AuditedQuestions, meaning: Meaning | None, remark: str = ""
) -> tuple[CheckContent, CheckContent]:
    """The checks `duplicates` and `contradictions`; `remark` says how questions were compared.

    Variants of one question under several conditions, which have the same group, may be equal.
    """
    every = questions.questions
    repeated: list[QuestionPair] = []
    apart: list[QuestionPair] = []
    for pair in find_pairs(every, meaning):
        later, earlier = every[pair.later], every[pair.earlier]
        if later.group is None or later.group != earlier.group:
            (apart if contradicts(later.references, earlier.references) else repeated).append(pair)
    return check_duplicates(questions, repeated, remark), check_contradictions(questions, apart)


@check("duplicates", "Duplicates")
def check_duplicates(questions: AuditedQuestions, repeated: Sequence[QuestionPair], remark: str) -> Found:
    if not any(question.text for question in questions.questions):
        raise NotCheckedError("the dataset has judgements but no texts of questions")
    if remark:
        yield remark
    yield from (_describe_repeat(pair, questions.questions) for pair in repeated)


@check("contradictions", "Contradictory references")
def check_contradictions(questions: AuditedQuestions, apart: Sequence[QuestionPair]) -> Found:
    if not questions.has_references:
        raise NotCheckedError("the dataset has no references")
    yield from (_describe_conflict(pair, questions.questions) for pair in apart)


def _describe_repeat(pair: QuestionPair, every: Sequence[AuditedQuestion]) -> AuditFinding:
    later, earlier = every[pair.later], every[pair.earlier]
    is_equal = pair.sameness == "equal"
    differs = is_equal and _norm(later.references) != _norm(earlier.references)
    split = later.relevant_ids != earlier.relevant_ids and bool(later.relevant_ids or earlier.relevant_ids)
    if split:
        advice = "remove one, and give the other all relevant documents: each is judged by a part of them now"
    elif differs:
        advice = "remove one, and give the other both references, as alternatives"
    else:
        advice = "remove one: the question counts twice in every mean, and intervals take it for independent"
    message = _HOW[pair.sameness].format(other=earlier.row, share=pair.share)
    message += _say_worded(later, earlier) if differs else ""
    found: dict[str, Any] = {"sameness": pair.sameness, "share": round(pair.share, 4)}
    code, removes = "duplicate" if is_equal else "near_duplicate", is_equal and not split and not differs
    return make_finding(code, message, later.row, earlier.row, advice=advice, removes=removes, **found)


def _say_worded(later: AuditedQuestion, earlier: AuditedQuestion) -> str:
    if not (later.references and earlier.references):
        return ", and only one has a reference"
    return f", with another wording of the reference: {_quote(later)} here, {_quote(earlier)} there"


def _describe_conflict(pair: QuestionPair, every: Sequence[AuditedQuestion]) -> AuditFinding:
    later, earlier = every[pair.later], every[pair.earlier]
    is_equal = pair.sameness == "equal"
    differ = f"but the references differ: {_quote(later)} here, {_quote(earlier)} there"
    message = f"{'' if is_equal else 'nearly '}the same question as {earlier.row}, {differ}"
    both, severity = [list(later.references), list(earlier.references)], "error" if is_equal else "warning"
    found: dict[str, Any] = {"severity": severity, "references": both, "sameness": pair.sameness}
    return make_finding("contradiction", message, later.row, earlier.row, **found)


def _quote(question: AuditedQuestion) -> str:
    return f"'{shorten(question.references[0])}'"


def _norm(references: Sequence[str]) -> frozenset[str]:
    return frozenset(" ".join(text.casefold().split()) for text in references)


_LEAST_SHARED_WITH_TRAINING = 0.6


@check("train_overlap", "Overlap with the training data")
def check_overlap(questions: AuditedQuestions, train: AuditedQuestions | None, name: str) -> Found:
    """Questions that are also in the file `name` that a system was trained on."""
    if train is None:
        raise NotCheckedError("no training questions are named; name a file with --train FILE")
    yield f"Compared with {count_noun(len(train.questions), 'question')} of {name}."
    if documents := _describe_documents(questions, train):
        yield documents
    yield from (_describe_overlap(*found) for found in _find_repeats(questions, train))


def _find_repeats(
    questions: AuditedQuestions, train: AuditedQuestions
) -> Iterator[tuple[AuditedQuestion, AuditedQuestion, bool]]:
    """The questions that are also in the training data, the row there, and whether the words are equal."""
    known: dict[tuple[str, ...], AuditedQuestion] = {}
    for question in train.questions:
        known.setdefault(split_compared_words(question.text), question)
    rest = []
    for question in questions.questions:
        words = split_compared_words(question.text)
        if words and words in known:
            yield question, known[words], True
        elif words:
            rest.append(question)
    trained = [question for words, question in known.items() if words]
    split = [split_compared_words(question.text) for question in (*trained, *rest)]
    texts = [" ".join(drop_fillers(own)) for own in split]
    seen: set[int] = set()
    for later, earlier, _ in find_similar(texts, _LEAST_SHARED_WITH_TRAINING, [find_numbers(own) for own in split]):
        if earlier < len(trained) <= later and later not in seen:
            question, other = rest[later - len(trained)], trained[earlier]
            if compare_questions(question, other):
                seen.add(later)
                yield question, other, False


def _describe_overlap(question: AuditedQuestion, other: AuditedQuestion, is_equal: bool) -> AuditFinding:
    code = "train_overlap" if is_equal else "train_near_overlap"
    message = f"{'' if is_equal else 'nearly '}the same question is in the training data: {other.row}"
    train = {"query_id": other.query_id, "place": other.place, "question": other.row.question}
    return make_finding(code, message, question.row, removes=is_equal, train=train)


def _describe_documents(questions: AuditedQuestions, train: AuditedQuestions) -> str:
    """How many questions have relevant documents that are also relevant in the training data; "" without judgements."""
    if not (questions.has_judgements and train.has_judgements):
        return ""
    trained = {doc_id for question in train.questions for doc_id in question.relevant_ids}
    judged = [question for question in questions.questions if question.relevant_ids]
    known = sum(bool(question.relevant_ids & trained) for question in judged)
    if not known:
        return "No relevant document is also relevant there."
    share = format_percent(known / len(judged))
    has = "has" if known == 1 else "have"
    return f"{count_noun(known, 'question')} ({share}) {has} a relevant document that is also relevant there."


_CHOICE = compile_later(
    r"\b(or|oder|ou|ode|o|u|lub|czy|eller|или|або|veya|mı|mi|nebo|sau|hoặc)\b|还是|それとも|أم|या", re.IGNORECASE
)
_DUTCH_CHOICE = compile_later(r"\bof\b", re.IGNORECASE)
_DUTCH = compile_later(r"\b(wie|wat|welke?|waar|wanneer|hoe|waarom|het|een|zijn|heeft|niet)\b", re.IGNORECASE)
"""Words of Dutch questions, because "of" is "or" in Dutch and another word in English."""
_AND = r"\s(?:and|und|et|y|e|en|i|och|ve|и|та|a|și|và|&)\s"
_SHORTEST = 4
"""Letters. Shorter answers, such as a single sign, stand in a question by chance."""


@check("leaks", "Answers in their question")
def check_leaks(questions: AuditedQuestions) -> Found:
    """A question that offers its answers ("A or B?") does not leak one, and small numbers stand there by chance."""
    if not questions.has_references:
        raise NotCheckedError("the dataset has no references")
    for one in questions.questions:
        if (leak := find_leak(one)) is not None:
            yield make_finding("leak", f"the reference '{shorten(leak)}' is in the question", one.row, reference=leak)


def find_leak(question: AuditedQuestion) -> str | None:
    """The gold answer that stands in its question; None if there is none, or if the question offers answers."""
    text = question.text
    if _CHOICE.search(text) or (_DUTCH_CHOICE.search(text) and _DUTCH.search(text)):
        return None
    asked = drop_fillers(split_compared_words(question.text))
    leaks = (one for one in question.references if _stands_in(asked, one) and not _is_listed(question, one))
    return next(leaks, None)


def _is_listed(question: AuditedQuestion, reference: str) -> bool:
    """Whether the question names it next to others: "between A and B", "A, B and C"."""
    named = re.escape(reference.strip())
    return bool(re.search(rf"{named}\s*(,|{_AND})|(,|{_AND})\s*(the\s+)?{named}", question.text, re.IGNORECASE))


def _stands_in(asked: tuple[str, ...], reference: str) -> bool:
    words = drop_fillers(split_compared_words(reference))
    if not words or is_yes_or_no(words) or len("".join(words)) < _SHORTEST:
        return False
    return find_numbers(words) != set(words) and contains(asked, words)


Sameness = Literal["equal", "wording", "reference", "meaning"]
"""Why two questions are the same: equal words; the same words in the same order but for articles, endings and typing
errors; similar words and the same gold answer; or close vectors and the same gold answer."""
LEAST_SHARED = 0.6
"""The part of their character sequences that similar questions share at least."""
_LEAST_COSINE = 0.9
"""On the scale of MiniLM."""
_NEIGHBOURS = 5
_TYPO_FROM = 6
"""Letters. In shorter words one letter makes another word."""
Meaning = tuple[Callable[[Sequence[str]], "NDArray[np.float32]"], Callable[[float], float]]
"""What gives the vectors of questions, and the model's cosine that stands for one of MiniLM's."""


class QuestionPair(NamedTuple):
    """Two questions by their numbers, the later one first.

    `share` is the part of their character sequences that they have in common, or the cosine of their vectors if their
    meaning is the same.
    """

    later: int
    earlier: int
    sameness: Sameness
    share: float = 1.0


def find_pairs(questions: Sequence[AuditedQuestion], meaning: Meaning | None = None) -> list[QuestionPair]:
    """Pairs of questions that ask the same: each with the first one that it repeats. Empty ones are not compared."""
    words = [split_compared_words(question.text) for question in questions]
    first: dict[tuple[object, ...], int] = {}
    found: dict[int, QuestionPair] = {}
    for number, own in enumerate(words):
        key = (own, *(one.values for one in find_quantities(questions[number].text)))
        if own and first.setdefault(key, number) != number:
            found[number] = QuestionPair(number, first[key], "equal")
    distinct = [number for number, own in enumerate(words) if own and number not in found]
    for pair in _find_near(questions, words, distinct):
        found.setdefault(pair.later, pair)
    if meaning is not None:
        rest = [number for number in distinct if number not in found]
        for pair in _find_close(questions, words, rest, meaning):
            found.setdefault(pair.later, pair)
    return [found[number] for number in sorted(found)]


def _find_near(
    questions: Sequence[AuditedQuestion], words: Sequence[Sequence[str]], numbers: Sequence[int]
) -> Iterator[QuestionPair]:
    texts = [" ".join(drop_fillers(words[number])) for number in numbers]
    for later, earlier, share in find_similar(texts, LEAST_SHARED, [find_numbers(words[number]) for number in numbers]):
        one, other = numbers[later], numbers[earlier]
        if (sameness := compare_questions(questions[one], questions[other])) is not None:
            yield QuestionPair(one, other, sameness, share)


def compare_questions(one: AuditedQuestion, other: AuditedQuestion) -> Literal["wording", "reference"] | None:
    """Why two questions with similar words ask the same; None if they do not."""
    first, second = (drop_fillers(split_compared_words(asked.text)) for asked in (one, other))
    if not have_same(one.text, other.text):
        return None
    if len(first) == len(second) and all(map(is_same_word, first, second)):
        return "wording"
    is_longer = set(first) <= set(second) or set(second) <= set(first)
    return "reference" if is_longer and not _negates(first, second) and share_reference(one, other) else None


def _find_close(
    questions: Sequence[AuditedQuestion],
    words: Sequence[Sequence[str]],
    numbers: Sequence[int],
    meaning: Meaning,
) -> Iterator[QuestionPair]:
    """Pairs with close vectors, the same numbers and names, and the same gold answer."""
    if len(numbers) < 2:
        return
    embed, find_cosine = meaning
    vectors, least = embed([questions[number].text for number in numbers]), find_cosine(_LEAST_COSINE)
    nearest = kernels.top_k(vectors, vectors, _NEIGHBOURS, metric="cosine")
    for at, (places, scores) in enumerate(zip(nearest.indices.tolist(), nearest.scores.tolist(), strict=True)):
        for place, score in zip(places, scores, strict=True):
            one, other = numbers[at], numbers[place]
            if place < at and score >= least and _asks_the_same(questions, words, one, other):
                yield QuestionPair(one, other, "meaning", score)


def _asks_the_same(questions: Sequence[AuditedQuestion], words: Sequence[Sequence[str]], one: int, other: int) -> bool:
    if find_numbers(words[one]) != find_numbers(words[other]) or _negates(words[one], words[other]):
        return False
    first, second = ({name.casefold() for name in kernels.names(questions[number].text)} for number in (one, other))
    return first == second and share_reference(questions[one], questions[other])


def is_same_word(one: str, other: str) -> bool:
    """Whether two words differ at most in a plural ending or in one mistyped letter.

    Numbers must be equal, and so must words with fewer than six letters, in which one letter makes another word.
    """
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    if not (one.isalpha() and other.isalpha()) or shorter[0] != longer[0]:
        return False
    if longer in (f"{shorter}s", f"{shorter}es") and len(shorter) >= 3:
        return True
    return len(shorter) >= _TYPO_FROM and _is_one_edit(shorter, longer)


def _is_one_edit(shorter: str, longer: str) -> bool:
    """Whether one letter was left out, or two neighbours were swapped. A replaced letter can make another word."""
    from rapidfuzz.distance import OSA, Indel

    has_swapped = sorted(shorter) == sorted(longer) and OSA.distance(shorter, longer) == 1
    return has_swapped or Indel.distance(shorter, longer) == 1


_NEGATION_WORDS = (
    "no not never without none neither nor cannot isn't aren't wasn't weren't doesn't don't didn't can't won't except "
    "nicht kein keine keinen keiner nie ohne non pas jamais sans sin nunca sem não niet geen zonder не без нет"
)
_NEGATIONS = frozenset(_NEGATION_WORDS.split())


def _negates(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether only one of two questions has a negation."""
    return bool(_NEGATIONS & set(first)) != bool(_NEGATIONS & set(second))


def share_reference(one: AuditedQuestion, other: AuditedQuestion) -> bool:
    """Whether two questions have a gold answer in common that says more than yes or no, or a number."""
    mine, theirs = (
        {drop_fillers(split_compared_words(text)) for text in asked.references if text.strip()}
        for asked in (one, other)
    )
    return any(
        not is_yes_or_no(words) and any(not word[0].isdigit() for word in words) for words in mine & theirs if words
    )


def contradicts(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the gold answers of two questions cannot mean the same: none of one is like any of the other."""
    pairs = [(a, b) for a in one for b in other if _split(a) and _split(b)]
    return bool(pairs) and all(_differs(a, b) for a, b in pairs)


def _split(text: str) -> tuple[str, ...]:
    return write_digits(drop_fillers(split_compared_words(text)))


def _differs(text: str, another: str) -> bool:
    one, other = _split(text), _split(another)
    if is_yes_or_no(one) and is_yes_or_no(other):
        return one[0] != other[0]
    numbers = tuple([found for found in find_quantities(side) if not found.may_be_word] for side in (text, another))
    unlike = find_missing(text, another), find_missing(another, text)
    if all(numbers) and len(unlike[0]) == len(numbers[0]):
        return True
    if all(numbers) and not any(unlike):
        rest = tuple(_drop_quantities(side) for side in (text, another))
        return all(rest) and find_overlap(*rest) == 0 and find_overlap(one, other) < 0.3
    lacking = ([word for found in side for word in split_compared_words(found.text)] for side in unlike)
    if _differ_in_a_number(one, other, *map(find_numbers, lacking)):
        return True
    joined = "".join(one), "".join(other)
    return find_overlap(one, other) < 0.3 and joined[0] not in joined[1] and joined[1] not in joined[0]


def _drop_quantities(text: str) -> tuple[str, ...]:
    rest = spell_fractions(text)
    for found in reversed(find_quantities(text)):
        rest = f"{rest[: found.start]} {rest[found.end :]}"
    return drop_fillers(split_compared_words(rest))


def _differ_in_a_number(one: Sequence[str], other: Sequence[str], mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether both say a number of the same thing, and each says one that the other does not: 14 days and 30 days.

    `mine` and `theirs` are the numbers that only one of them says.
    """
    units = [
        [_find_unit(side, at) for at, word in enumerate(side) if word in lacking]
        for side, lacking in ((one, mine), (other, theirs))
    ]
    return any(unit & another for unit in units[0] for another in units[1])


def _find_unit(words: Sequence[str], at: int) -> frozenset[str]:
    """What a number counts or belongs to: the words after it, and the one before; a year without others is one."""
    after = [word for word in words[at + 1 : at + 3] if not word[0].isdigit()]
    near = [*after, *(word for word in words[max(at - 1, 0) : at] if len(word) > 3)]
    unit = {word.removesuffix("s") for word in near if word.isalpha() and len(word) > 1 and word not in _LINKS}
    is_year = len(words[at]) == 4 and words[at].isdigit() and words[at][:2] in ("17", "18", "19", "20")
    return frozenset({*unit, *({"year"} if is_year else ())})


_LINK_WORDS = "in on at of by to and or from for since until im am und en et du au al del dal il"
_LINKS = frozenset(_LINK_WORDS.split())
_BANDS, _ROWS = 16, 4
_HASHES = _BANDS * _ROWS
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
_BLOCK = 20_000
"""How many texts are hashed at once."""
_CROWD = 20
"""In a larger group of candidates, each text is compared with that many others only: those most like it by their other
hashes. A template that thousands of questions share would make the comparison quadratic."""


def find_similar(
    texts: Sequence[str], least: float, groups: Sequence[Hashable] | None = None
) -> Iterator[tuple[int, int, float]]:
    """Pairs of texts of the same group, the later one first, and the part of shingles that they share.

    They share at least `least`, and each pair comes once. Equal texts are pairs too.
    """
    sets: dict[int, frozenset[str]] = {}
    for later, earlier in sorted(_find_candidates(texts, groups)):
        for number in (later, earlier):
            if number not in sets:
                sets[number] = list_shingles(texts[number])
        share = compare_shingles(sets[later], sets[earlier])
        if share >= least:
            yield later, earlier, share


def compare_shingles(first: frozenset[str], second: frozenset[str]) -> float:
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


def _find_candidates(texts: Sequence[str], groups: Sequence[Hashable] | None = None) -> set[tuple[int, int]]:
    if len(texts) < 2:
        return set()
    signatures = np.concatenate([_sign(texts[start : start + _BLOCK]) for start in range(0, len(texts), _BLOCK)])
    numbered: dict[Hashable, int] = {}
    own = np.array([numbered.setdefault(group, len(numbered)) for group in groups or [None] * len(texts)], np.uint32)
    pairs: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        part = np.column_stack([own, signatures[:, band * _ROWS : (band + 1) * _ROWS]])
        keys = part.view(np.dtype((np.void, part.dtype.itemsize * part.shape[1]))).ravel()
        order = np.argsort(keys, kind="stable")
        ends = np.flatnonzero(np.r_[keys[order][1:] != keys[order][:-1], True]) + 1
        for group in np.split(order, ends[:-1]):
            if len(group) > 1:
                pairs.update(_pair(group, signatures))
    return pairs


def _pair(group: NDArray[np.int64], signatures: NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """The pairs of a group, the later text first; in a crowd, those of texts that are neighbours by their hashes."""
    if len(group) > _CROWD:
        group = group[sorted(range(len(group)), key=lambda at: signatures[group[at]].tobytes())]
    members = [int(one) for one in group]
    for at, one in enumerate(members):
        for other in members[at + 1 : at + _CROWD]:
            yield max(one, other), min(one, other)


def _sign(texts: Sequence[str]) -> NDArray[np.uint32]:
    """The smallest hash of each text's shingles by each hash function: shape (texts, _HASHES)."""
    padded = [f" {text} ".ljust(SHINGLE) for text in texts]
    points = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    lengths = np.array([len(text) for text in padded])
    starts = np.r_[0, np.cumsum(lengths)[:-1]]
    hashes = np.zeros(len(points), dtype=np.uint64)
    for at in range(SHINGLE):
        hashes[: len(points) - at] += points[at:] * np.uint64(_FACTORS[at])
    hashes = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(32)
    inside = np.ones(len(points), dtype=bool)
    for back in range(1, SHINGLE):
        inside[starts + lengths - back] = False
    kept = np.cumsum(lengths - SHINGLE + 1)
    own = hashes[inside]
    signs = np.empty((len(texts), _HASHES), dtype=np.uint32)
    # Odd factors and shifts, the same in every process.
    drawn = np.random.default_rng(20240229).integers(0, 2**63, size=(_HASHES, 2), dtype=np.uint64)
    for number, (factor, shift) in enumerate(drawn):
        mixed = ((own * (factor | np.uint64(1)) + shift) >> np.uint64(32)).astype(np.uint32)
        signs[:, number] = np.minimum.reduceat(mixed, np.r_[0, kept[:-1]])
    return signs
