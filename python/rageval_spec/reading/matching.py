"""Which query each answer of a file belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.errors import DataError
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.reading.answer_files import FileAnswer
    from rageval_spec.reading.answer_rows import AnswerRow

_MOST_NAMED = 3
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Matched:
    """Answers by the query that they belong to, and how many belong to no query.

    Attributes:
        differing: how many have a question that differs from the query with the same id.
        remark: how these differ, and which of the two is used; empty if none differ.
    """

    rows: list[tuple[str, AnswerRow]]
    unknown: int
    differing: int = 0
    remark: str = ""

    def take_rows(self) -> Iterator[tuple[str, AnswerRow]]:
        """The rows in their order. Each is dropped when it was taken, so that it need not stay in memory."""
        self.rows.reverse()
        while self.rows:
            yield self.rows.pop()


def match_answers(
    path: Path, answers: Sequence[FileAnswer], queries: pl.DataFrame, *, trusts_ids: bool = False
) -> Matched:
    """Match each answer to its query: by id, by the question's text, or by row number.

    Answers are matched by text if the file has no ids, if the dataset knows none of its ids, or if most questions
    contradict their ids. In the last case the ids number something else, such as rows, and each question must belong
    to exactly one query. A question agrees with a query if it contains the query's text, as a prompt does. If several
    queries have the same text, an answer to it belongs to all of them. With `trusts_ids`, ids are used whatever the
    questions say.

    Raises:
        DataError: no answer belongs to any query, a query has two answers, or ids and questions contradict each
            other; with `file:line`.
    """
    ids, texts = queries["query_id"].to_list(), queries["text"].to_list()
    differing = _find_differing(answers, dict(zip(ids, texts, strict=True)))
    if differing.is_most and not trusts_ids:
        return _settle_by_questions(answers, ids, texts, differing)
    if differing.places:
        matched = _settle(answers, _match_ids(answers, ids, texts) or (), ids)
        message = f"{differing.describe(answers)}; the ids are used"
        return replace(matched, differing=len(differing.places), remark=message)
    for match in (_match_ids, _match_questions, _match_numbers):
        found = match(answers, ids, texts)
        if found is not None and any(matched for matched in found):
            return _settle(answers, found, ids)
    raise DataError(f"{path}: {_explain_unmatched(answers, ids)}")


class _Differing(NamedTuple):
    """Answers whose question differs from the query with the same id."""

    places: Sequence[int]
    compared: int
    example: str

    @property
    def is_most(self) -> bool:
        return 2 * len(self.places) > self.compared

    def describe(self, answers: Sequence[FileAnswer]) -> str:
        first = answers[self.places[0]]
        is_of = "has" if len(self.places) == 1 else "have"
        return (
            f"{len(self.places)} of {count_noun(self.compared, 'answer')} {is_of} a question that differs from the "
            f"query with the same id, first at {first.place}: query {first.query_id!r} asks {_cut(self.example)}, but "
            f"the answer is to {_cut(str(first.question))}"
        )


def _find_differing(answers: Sequence[FileAnswer], texts: Mapping[str, str]) -> _Differing:
    compared = [
        (place, texts[str(answer.query_id)], answer.question)
        for place, answer in enumerate(answers)
        if answer.query_id in texts and answer.question is not None and answer.question.strip()
    ]
    places = [place for place, asked, said in compared if _fold(asked) not in _fold(said)]
    example = texts[str(answers[places[0]].query_id)] if places else ""
    return _Differing(places, len(compared), example)


def _settle_by_questions(
    answers: Sequence[FileAnswer], ids: Sequence[str], texts: Sequence[str], differing: _Differing
) -> Matched:
    """Match answers by their questions, if that is unambiguous."""
    known = set(ids)
    found = _match_questions(answers, ids, texts) or ()
    matched = [query_id for group in found for query_id in group]
    is_certain = len(set(matched)) == sum(map(bool, found)) == len(matched)
    if not is_certain or len(matched) < sum(answer.query_id in known for answer in answers):
        first = answers[differing.places[0]]
        raise DataError(
            f"{first.place}: {differing.describe(answers)}; the answers cannot be matched: correct the ids or the "
            "questions, name the columns of both in 'columns', or confirm the ids with 'columns.query_id'"
        )
    message = f"{differing.describe(answers)}; the questions are used instead of the ids"
    return replace(_settle(answers, found, ids), differing=len(differing.places), remark=message)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _cut(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")


def _settle(answers: Sequence[FileAnswer], found: Sequence[Sequence[str]], ids: Sequence[str]) -> Matched:
    first: dict[str, FileAnswer] = {}
    for answer, matched in zip(answers, found, strict=True):
        for query_id in matched:
            earlier = first.setdefault(query_id, answer)
            if earlier is not answer:
                message = f"the query {query_id!r} is answered twice, first at {earlier.place}"
                raise DataError(f"{answer.place}: {message}")
    rows = [(query_id, first[query_id].row) for query_id in ids if query_id in first]
    return Matched(rows, sum(not matched for matched in found))


def _match_ids(
    answers: Sequence[FileAnswer],
    ids: Sequence[str],
    texts: Sequence[str],  # noqa: ARG001 - as the others
) -> list[list[str]] | None:
    if all(answer.query_id is None for answer in answers):
        return None
    bare = next((answer for answer in answers if answer.query_id is None), None)
    if bare is not None:
        raise DataError(f"{bare.place}: no query_id, although other rows have one")
    known = set(ids)
    return [[str(answer.query_id)] if answer.query_id in known else [] for answer in answers]


def _match_questions(answers: Sequence[FileAnswer], ids: Sequence[str], texts: Sequence[str]) -> list[list[str]] | None:
    if all(answer.question is None for answer in answers):
        return None
    asked: dict[str, list[str]] = {}
    for query_id, text in zip(ids, texts, strict=True):
        asked.setdefault(text.strip(), []).append(query_id)
    wanted = [(answer.question or "").strip() for answer in answers]
    counts = Counter(wanted)
    taken: dict[str, int] = {}
    found = []
    for text in wanted:
        group = asked.get(text, [])
        if group and counts[text] == len(group):  # as many answers as queries: each its own, in order
            place = taken.setdefault(text, 0)
            taken[text] += 1
            group = group[place : place + 1] or group
        found.append(group)
    return found


def _match_numbers(
    answers: Sequence[FileAnswer],
    ids: Sequence[str],
    texts: Sequence[str],  # noqa: ARG001 - as the others
) -> list[list[str]] | None:
    numbers = [str(number) for number in range(1, len(answers) + 1)]
    is_named = any(answer.query_id is not None or answer.question is not None for answer in answers)
    if is_named or not set(ids) <= set(numbers):
        return None
    known = set(ids)
    return [[number] if number in known else [] for number in numbers]


def _explain_unmatched(answers: Sequence[FileAnswer], ids: Sequence[str]) -> str:
    theirs = [answer.query_id or answer.question for answer in answers]
    shown = ", ".join(repr(str(name)[:60]) for name in theirs[:_MOST_NAMED] if name is not None)
    own = ", ".join(map(repr, ids[:_MOST_NAMED]))
    if not shown:
        return (
            f"the file ({count_noun(len(answers), 'row')}) has neither ids nor questions, and the dataset's ids "
            f"({own}, ...) are not row numbers; name the columns in 'columns.query_id' or 'columns.question'"
        )
    return f"no row belongs to a query of the dataset: the file has {shown}, ..., but the dataset has {own}, ..."
