"""Splits questions into a validation and a test set so that no document is in both."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec.errors import UsageError
from rageval_spec.wording import count_noun, format_percent

SIDES = ("validation", "test")
_PASSES = 20
_SIZE_COUNTS = 5
"""How many times as much the size of a set counts as one kind of questions in it."""
_FAR = 0.05
"""A size that is off by more than this share of all questions, and by more than one question, is worth a word."""
_FAR_INSIDE = 0.1
"""The same for the share of a type or a difficulty inside a set."""


class Sourced(NamedTuple):
    """A question as a split sees it: the documents that it comes from, and what it is like, such as `type: cloze`."""

    documents: tuple[str, ...]
    kinds: tuple[str, ...] = ()


class Split(NamedTuple):
    """The set of each question, and a sentence for each thing that could not be as wanted."""

    sides: tuple[str, ...]
    remarks: tuple[str, ...]


def read_shares(text: str) -> Mapping[str, float]:
    """The shares of validation and test that `30:70` means; they add up to 1.

    Raises:
        UsageError: the text is not two positive numbers with a colon between them.
    """
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != len(SIDES) or not all(0 < number < float("inf") for number in numbers):
        raise UsageError(f"a split is the shares of validation and test, such as 30:70, not {text!r}")
    return dict(zip(SIDES, (number / sum(numbers) for number in numbers), strict=True))


def split_questions(questions: Sequence[Sourced], shares: Mapping[str, float]) -> Split:
    """Divide questions in these shares, with the same mix of kinds in each set.

    Questions that share a document, directly or through a third question, stay together. The largest such groups are
    placed first, each where it brings sizes and mixes closest to what is wanted; then groups move as long as that
    helps. The order of the questions does not matter.

    Args:
        questions: the questions.
        shares: the share of each set; they add up to 1.
    """
    groups = _join(questions)
    kinds = [Counter(kind for place in group for kind in ("", *questions[place].kinds)) for group in groups]
    wanted = sum(kinds, Counter[str]())
    balance = _Balance(
        {side: {kind: share * count for kind, count in wanted.items()} for side, share in shares.items()}
    )
    chosen = list[str]()
    for added in kinds:
        chosen.append(min(shares, key=lambda side, added=added: balance.weigh(side, added)))  # type: ignore[misc]
        balance.move(None, chosen[-1], added)
    for _ in range(_PASSES):
        if not _improve(chosen, kinds, balance, shares):
            break
    sides = [""] * len(questions)
    for group, side in zip(groups, chosen, strict=True):
        for place in group:
            sides[place] = side
    return Split(tuple(sides), tuple(_remark(balance, shares, groups)))


def divide_rows(rows: Sequence[Mapping[str, Any]], text: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of a test set with the column `split`, and a sentence for each thing that could not be as wanted.

    Types and difficulties are balanced. A row says in `sources` which documents it comes from.

    Raises:
        UsageError: the text is not two shares, such as `30:70`.
    """
    shares = read_shares(text)
    sourced = [
        Sourced(
            tuple(source["document"] for source in row["sources"]),
            tuple(f"{key}: {row[key]}" for key in ("type", "difficulty") if row.get(key)),
        )
        for row in rows
    ]
    found = split_questions(sourced, shares)
    return [{**row, "split": side} for row, side in zip(rows, found.sides, strict=True)], found.remarks


class _Balance:
    """How many questions of each kind are in each set, and how far that is from what is wanted. "" counts all."""

    def __init__(self, wanted: Mapping[str, Mapping[str, float]]) -> None:
        self.wanted = wanted
        self.found: dict[str, Counter[str]] = {side: Counter() for side in wanted}

    def weigh(self, side: str, added: Mapping[str, int], sign: int = 1) -> float:
        """How much further the set is from what is wanted with these questions, or without them."""
        return sum(
            (1 if kind else _SIZE_COUNTS) * ((found + sign * count - aim) ** 2 - (found - aim) ** 2) / max(aim, 0.5)
            for kind, count in added.items()
            for found, aim in ((self.found[side][kind], self.wanted[side][kind]),)
        )

    def move(self, before: str | None, after: str, kinds: Mapping[str, int]) -> None:
        if before is not None:
            self.found[before].subtract(kinds)
        self.found[after].update(kinds)


def _improve(chosen: list[str], kinds: Sequence[Counter[str]], balance: _Balance, shares: Iterable[str]) -> bool:
    """Move each group to the set where it fits better; whether any was moved."""
    moved = False
    for place, added in enumerate(kinds):
        here = chosen[place]
        leaving = balance.weigh(here, added, -1)
        for side in shares:
            if side != here and leaving + balance.weigh(side, added) < -1e-9:
                balance.move(here, side, added)
                chosen[place], moved = side, True
                break
    return moved


def _join(questions: Sequence[Sourced]) -> list[list[int]]:
    """The positions of questions that must stay together, the largest groups first."""
    above: dict[str, str] = {}

    def find(document: str) -> str:
        while above.setdefault(document, document) != document:
            above[document] = above[above[document]]
            document = above[document]
        return document

    for question in questions:
        for document in question.documents[1:]:
            first, second = sorted((find(question.documents[0]), find(document)))
            above[second] = first
    groups: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        # A question without a document belongs to no group; the space cannot begin a document's id of the others.
        groups[find(question.documents[0]) if question.documents else f"\0{place}"].append(place)
    return [groups[name] for name in sorted(groups, key=lambda name: (-len(groups[name]), name))]


def _remark(balance: _Balance, shares: Mapping[str, float], groups: Sequence[Sequence[int]]) -> Iterable[str]:
    total = sum(found[""] for found in balance.found.values())
    for side, share in shares.items():
        found, aim = balance.found[side][""], share * total
        if abs(found - aim) > max(1, _FAR * total):
            why = f"{len(groups[0]):,} questions share documents, and no document may be in both sets"
            yield f"{side} has {count_noun(found, 'question')} instead of {aim:.0f}: {why}"
    for side, counts in balance.found.items():
        size = counts[""]
        for kind, aim in sorted(balance.wanted[side].items()):
            wanted = aim / balance.wanted[side][""] if kind else 0
            if kind and abs(counts[kind] - wanted * size) > max(1, _FAR_INSIDE * size):
                shown = (format_percent(share, 0) for share in (counts[kind] / size, wanted))
                yield "{side} has {} {kind} instead of {}".format(*shown, side=side, kind=kind)
