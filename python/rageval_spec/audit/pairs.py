"""Finds questions that ask the same: word for word, or with differences that do not change what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rageval_spec.audit.shingles import find_similar
from rageval_spec.audit.words import drop_fillers, find_numbers, find_overlap, is_yes_or_no, split_words, write_digits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Sameness = Literal["equal", "wording", "reference", "meaning"]
"""Why two questions are the same: equal words; the same words in the same order but for articles, endings and typing
errors; similar words and the same gold answer; or close vectors and the same gold answer."""
LEAST_SHARED = 0.6
"""The part of their character sequences that similar questions share at least."""
_LEAST_COSINE = 0.9
_NEIGHBOURS = 5
_TYPO_FROM = 6
"""Letters. In shorter words one letter makes another word."""
Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]


class Asked(NamedTuple):
    """What is compared of a question: its text, and its gold answers."""

    text: str
    references: Sequence[str] = ()


class Pair(NamedTuple):
    """Two questions by their numbers, the later one first.

    `share` is the part of their character sequences that they have in common, or the cosine of their vectors if their
    meaning is the same.
    """

    later: int
    earlier: int
    sameness: Sameness
    share: float = 1.0


def find_pairs(questions: Sequence[Asked], embed: Embed | None = None) -> list[Pair]:
    """Pairs of questions that ask the same. Each question is paired with the first one that it repeats, if any.

    Args:
        questions: the questions. Empty ones are not compared.
        embed: gives the vectors of texts; None to compare only words.
    """
    words = [split_words(question.text) for question in questions]
    first: dict[tuple[str, ...], int] = {}
    found: dict[int, Pair] = {}
    for number, own in enumerate(words):
        if own and first.setdefault(own, number) != number:
            found[number] = Pair(number, first[own], "equal")
    distinct = [number for number, own in enumerate(words) if own and number not in found]
    for pair in _find_near(questions, words, distinct):
        found.setdefault(pair.later, pair)
    if embed is not None:
        rest = [number for number in distinct if number not in found]
        for pair in _find_close(questions, words, rest, embed([questions[number].text for number in rest])):
            found.setdefault(pair.later, pair)
    return [found[number] for number in sorted(found)]


def _find_near(questions: Sequence[Asked], words: Sequence[Sequence[str]], numbers: Sequence[int]) -> Iterator[Pair]:
    texts = [" ".join(drop_fillers(words[number])) for number in numbers]
    for later, earlier, share in find_similar(texts, LEAST_SHARED, [find_numbers(words[number]) for number in numbers]):
        one, other = numbers[later], numbers[earlier]
        if (sameness := compare(questions[one], questions[other])) is not None:
            yield Pair(one, other, sameness, share)


def compare(one: Asked, other: Asked) -> Literal["wording", "reference"] | None:
    """Why two questions with similar words ask the same; None if they do not."""
    first, second = drop_fillers(split_words(one.text)), drop_fillers(split_words(other.text))
    if find_numbers(first) != find_numbers(second):
        return None
    if len(first) == len(second) and all(map(is_same_word, first, second)):
        return "wording"
    is_longer = set(first) <= set(second) or set(second) <= set(first)
    return "reference" if is_longer and not _negates(first, second) and share_reference(one, other) else None


def _find_close(
    questions: Sequence[Asked], words: Sequence[Sequence[str]], numbers: Sequence[int], vectors: NDArray[np.float32]
) -> Iterator[Pair]:
    """Pairs with close vectors, the same numbers and names, and the same gold answer."""
    from rageval_spec import kernels

    if len(numbers) < 2:
        return
    nearest = kernels.top_k(vectors, vectors, _NEIGHBOURS, metric="cosine")
    for at, (places, scores) in enumerate(zip(nearest.indices.tolist(), nearest.scores.tolist(), strict=True)):
        for place, score in zip(places, scores, strict=True):
            one, other = numbers[at], numbers[place]
            if place < at and score >= _LEAST_COSINE and _asks_the_same(questions, words, one, other):
                yield Pair(one, other, "meaning", score)


def _asks_the_same(questions: Sequence[Asked], words: Sequence[Sequence[str]], one: int, other: int) -> bool:
    from rageval_spec import kernels

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
    at = next((at for at, pair in enumerate(zip(shorter, longer, strict=False)) if pair[0] != pair[1]), len(shorter))
    if len(shorter) + 1 == len(longer):
        return shorter[at:] == longer[at + 1 :]
    swapped = shorter[:at] + shorter[at : at + 2][::-1] + shorter[at + 2 :]
    return len(shorter) == len(longer) and swapped == longer


_NEGATION_WORDS = (
    "no not never without none neither nor cannot isn't aren't wasn't weren't doesn't don't didn't can't won't except "
    "nicht kein keine keinen keiner nie ohne non pas jamais sans sin nunca sem não niet geen zonder не без нет"
)
_NEGATIONS = frozenset(_NEGATION_WORDS.split())


def _negates(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether only one of two questions has a negation."""
    return bool(_NEGATIONS & set(first)) != bool(_NEGATIONS & set(second))


def share_reference(one: Asked, other: Asked) -> bool:
    """Whether two questions have a gold answer in common that says more than yes or no, or a number."""
    mine, theirs = (
        {drop_fillers(split_words(text)) for text in asked.references if text.strip()} for asked in (one, other)
    )
    return any(
        not is_yes_or_no(words) and any(not word[0].isdigit() for word in words) for words in mine & theirs if words
    )


def contradicts(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the gold answers of two questions cannot mean the same: none of one is like any of the other."""
    first, second = ([write_digits(drop_fillers(split_words(text))) for text in side] for side in (one, other))
    pairs = [(a, b) for a in first for b in second if a and b]
    return bool(pairs) and all(_differs(a, b) for a, b in pairs)


def _differs(one: Sequence[str], other: Sequence[str]) -> bool:
    if is_yes_or_no(one) and is_yes_or_no(other):
        return one[0] != other[0]
    numbers = find_numbers(one), find_numbers(other)
    if all(numbers) and not numbers[0] & numbers[1]:
        return True
    joined = "".join(one), "".join(other)
    return find_overlap(one, other) < 0.3 and joined[0] not in joined[1] and joined[1] not in joined[0]
