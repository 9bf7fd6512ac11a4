"""Files of answers, one per row, and the query that each answer belongs to.

The columns have the names of ragas, DeepEval, promptfoo and others, or those that a spec gives. An answer is matched
with its query by id, by the question's text, or by row number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rageval_spec.data.traces import Step, TraceLink
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.reading.column_meanings import find_answer_names, list_other_answer_columns, unwrap
from rageval_spec.reading.column_names import CONTEXT_IDS, AnswerColumns
from rageval_spec.reading.missing_columns import advise_answers, explain_ambiguity, refuse_absent
from rageval_spec.reading.row_sources import RowFile, open_text
from rageval_spec.reading.rows import parse_list, split_ids
from rageval_spec.recorded import answers_and_steps
from rageval_spec.recorded.cited_blocks import read_citations
from rageval_spec.recorded.http_replies import STEP_KEYS, as_contexts, find_contexts
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.recorded.messages import MESSAGES, find_last_answer, read_turns
from rageval_spec.recorded.questions_and_answers import find_cited, find_reply, find_unread
from rageval_spec.recorded.values import read_text
from rageval_spec.store.stored_tables import ROWS, BlockFile, StoredTable
from rageval_spec.wording import count_noun

_STEPS = (*STEP_KEYS, MESSAGES)
_Names: TypeAlias = dict[str, tuple[str, ...]]
"""The names of each part in a file, best name first."""


class NoAnswersError(DataError):
    """A table has a column for answers, and no answer in it."""


class FileAnswer(NamedTuple):
    """A row: its place, its query's id or question if it has them, and the answer."""

    place: str
    query_id: str | None
    question: str | None
    row: answers_and_steps.AnswerRow


class FileAnswers:
    """The answers of a file, in order. The first are held; if there are more, all lie in a temporary file."""

    def __init__(self, citations_from: int | None = None) -> None:
        """Start without answers; `citations_from` as in `table_of`."""
        self._citations_from = citations_from
        self._held: list[FileAnswer] = []
        self.stored: BlockFile | None = None

    def append(self, answer: FileAnswer) -> None:
        self._held.append(answer)
        if len(self._held) >= (MOST_HELD if self.stored is None else ROWS):
            self.flush()

    def flush(self) -> None:
        """Store what is held, if anything is stored or more is held than should be."""
        if self._held and (self.stored is not None or len(self._held) >= MOST_HELD):
            self.stored = self.stored or BlockFile()
            table = answers_and_steps.table_of(
                ((one.query_id or "", one.row) for one in self._held), self._citations_from
            )
            rows = [(one.place, one.query_id, one.question, one.row.version) for one in self._held]
            others = pl.DataFrame(rows, schema=dict.fromkeys(STORED_BESIDE, pl.String), orient="row")
            for block in table.hstack(others).iter_slices(ROWS):
                self.stored.append(block)
            self._held.clear()

    def __len__(self) -> int:
        return len(self._held) + (0 if self.stored is None else self.stored.height)

    def __iter__(self) -> Iterator[FileAnswer]:
        for block in () if self.stored is None else map(self.stored.read, range(len(self.stored))):
            for row in block.iter_rows(named=True):
                place, query_id, question, version = (row.pop(name) for name in STORED_BESIDE)
                yield FileAnswer(place, query_id, question, _restore_row(row | {"version": version}))
        yield from self._held


MOST_HELD = 4 * ROWS
"""How many answers of a file are held in memory before all of them are stored."""
STORED_BESIDE = ("file_place", "file_query_id", "file_question", "file_version")
"""The columns of stored answers that the answers' table does not have."""


def _restore_row(values: dict[str, Any]) -> answers_and_steps.AnswerRow:
    del values["query_id"]
    found: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return answers_and_steps.AnswerRow(**found)


def read_answers(source: RowFile, columns: AnswerColumns, citations_from: int | None = None) -> FileAnswers:
    """The answers of a file, in order. Raises DataError: no column has answers or contexts, or a row is wrong."""
    columns = source.resolve(columns)
    is_text = source.form == "csv"
    present: dict[str, None] = {}
    names = find_answer_names(columns, (), _STEPS)
    answers: FileAnswers | None = FileAnswers(citations_from)
    for place, row in _unwrapped_rows(source, columns):
        if row.keys() - present.keys():
            present.update(dict.fromkeys(row))
            before, names = names, find_answer_names(columns, list(present), _STEPS)
            if names != before and answers is not None and len(answers):
                answers = None  # what was read before was read under other names
        if answers is not None:
            answers = _read_another(answers, place, row, names, is_text=is_text)
    names = _choose(source.path, columns, list(present))
    if answers is None:
        answers = FileAnswers(citations_from)
        for place, row in _unwrapped_rows(source, columns):
            answers.append(_read_row(place, row, names, is_text=is_text))
    answers.flush()
    rows = (answer.row for answer in answers)
    if is_text and names["answer"] and not any(r.answer or r.contexts or r.context_ids or r.error for r in rows):
        raise NoAnswersError(f"{source.path}: every answer in {' and '.join(map(repr, names['answer']))} is empty")
    return answers


def _unwrapped_rows(source: RowFile, columns: AnswerColumns) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows, with the ids of contexts in one cell of a table as a list, as relevant documents are."""
    is_table = source.form in ("csv", "xlsx")
    names = (columns.context_ids or "", *CONTEXT_IDS) if is_table else ()
    for place, row in source.rows(columns):
        cells = {name: split_ids(place, f"'{name}'", row[name]) for name in names if row.get(name)}
        yield place, unwrap({**row, **cells} if cells else row)


def _read_another(
    answers: FileAnswers, place: str, row: Mapping[str, Any], names: _Names, *, is_text: bool
) -> FileAnswers | None:
    """The answers with one more; None if it cannot be read, because columns in later rows can change its meaning."""
    try:
        answers.append(_read_row(place, row, names, is_text=is_text))
    except DataError:
        return None
    return answers


def _choose(path: Path, columns: AnswerColumns, present: Sequence[str]) -> _Names:
    """The names of the parts."""
    _refuse_absent(path, columns, present)
    if (unclear := explain_ambiguity(columns, present)) is not None:
        raise DataError(f"{path}: {'; '.join(unclear)}")
    names = find_answer_names(columns, present, _STEPS)
    if not (names["answer"] or names["contexts"] or names["error"]):
        advice = advise_answers(present)
        message = f"no column of answers or contexts; the columns are {list_keys(present)}; {advice}"
        raise DataError(f"{path}: {message}")
    return names


def _refuse_absent(path: Path, columns: AnswerColumns, present: Sequence[str]) -> None:
    """Refuse all names in the spec that no row has, except those of a run."""
    parts = {part: getattr(columns, part) for part in type(columns).model_fields if part not in ("doc_id", "score")}
    refuse_absent(path, parts, present, "columns", f"; the columns are {list_keys(present)}")


def _read_row(place: str, row: Mapping[str, Any], names: _Names, *, is_text: bool) -> FileAnswer:
    reader = _Reader(place, row)
    try:
        query_id = reader.read(names["query_id"], lambda value, what: answers_and_steps.read_id(_mend(value), what))
        question = reader.read(names["question"], lambda value, what: answers_and_steps.read_text(_mend(value), what))
        error = reader.read(names["error"], _read_error)
        try:
            answer = _read_answer(reader, names, error, is_text=is_text)
        except answers_and_steps.BrokenTextError as broken:
            answer = answers_and_steps.AnswerRow(error=error or str(broken))
    except answers_and_steps.UnusableReplyError as unusable:
        raise DataError(f"{place}: {unusable}") from unusable
    return FileAnswer(place, query_id, question, answer)


def _read_answer(reader: _Reader, names: _Names, error: str | None, *, is_text: bool) -> answers_and_steps.AnswerRow:
    steps = _read_steps(reader, names)
    contexts = reader.read(names["contexts"], answers_and_steps.read_contexts, is_list=True)
    if contexts is None and not names["contexts"]:
        contexts = as_contexts(find_cited(reader.row))
    ids = reader.read_ids(names["context_ids"], contexts)
    if contexts is None and ids is None and (contexts := find_contexts(steps)) is not None:
        ids = contexts.ids
    seconds = reader.read(names["seconds"], answers_and_steps.read_amount)
    if (
        seconds is None
        and (milliseconds := reader.read(names["milliseconds"], answers_and_steps.read_amount)) is not None
    ):
        seconds = milliseconds / 1000
    answer = None if error else reader.read_answer(names["answer"], is_text=is_text)
    if answer is None and error is None and names["answer"]:
        error = "the file has no answer to this query"
        if names["answer"] == (MESSAGES,):
            error = "the conversation ends without an answer to the user's last turn"
    link = _read_link(reader.row.get("trace"))
    return answers_and_steps.AnswerRow(
        answer=answer,
        contexts=None if contexts is None else contexts.texts,
        context_ids=ids,
        scores=reader.read_scores(names["scores"], contexts, ids),
        context_places=None if contexts is None else contexts.places,
        seconds=seconds,
        input_tokens=reader.read(names["input_tokens"], answers_and_steps.read_count),
        output_tokens=reader.read(names["output_tokens"], answers_and_steps.read_count),
        cost=reader.read(names["cost"], answers_and_steps.read_amount),
        error=error,
        trace=link,
        steps=answers_and_steps.dump_steps(steps),
        cache_read_tokens=reader.read(names["cache_read_tokens"], answers_and_steps.read_count),
        cache_write_tokens=reader.read(names["cache_write_tokens"], answers_and_steps.read_count),
        answer_columns=answers_and_steps.dump_answer_columns(
            [
                *(find_unread(reader.row) if contexts is None and ids is None and not names["contexts"] else ()),
                *(
                    (name, reader.row[name])
                    for name in list_other_answer_columns(names, reader.row)
                    if not (name in names["scores"] and _is_list_of_numbers(reader.row[name]))
                ),
            ]
        ),
        asked=None if link is None else answers_and_steps.read_asked(reader.row.get("started")),
        version=None if link is None else read_text(reader.row.get("version")),
        **answers_and_steps.read_details(reader.row),
        citations=read_citations(reader.row, answer, None if contexts is None else contexts.texts, ids),
    )


def _read_steps(reader: _Reader, names: _Names) -> tuple[Step, ...] | None:
    """What an agent did, in the column that the spec names or under a usual name; () if it says that it did nothing."""
    known = None
    for name in names["steps"]:
        try:
            if not answers_and_steps.is_missing(value := reader.row.get(name)):
                if steps := answers_and_steps.read_steps(value, f"'{name}'"):
                    return steps
                known = known if (turns := read_turns(value)) and find_last_answer(turns) is None else ()
        except answers_and_steps.UnusableReplyError:
            if name in names["named_steps"]:
                raise
    return known


def _read_link(found: Any) -> str | None:
    """Where an imported answer's trace is; None if the row has no such thing, or something else under this name."""
    link = TraceLink.load(found) if isinstance(found, str) else TraceLink.from_dict(found)
    return None if link is None else link.dump()


def _mend(value: Any) -> Any:
    """Escape halves of surrogate pairs in an id or a question: it matches no query, but the file stays readable."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _read_error(value: Any, what: str) -> str | None:  # noqa: ARG001 - as the others
    """Why there is no answer: any text, or any other value that is true."""
    return make_visible(str(value).strip()) or None if value else None


@dataclass(frozen=True, slots=True)
class _Reader:
    place: str
    row: Mapping[str, Any]

    def read(self, names: Iterable[str], read: Callable[[Any, str], Any], *, is_list: bool = False) -> Any:
        """The first value among these names that is neither null nor an empty text."""
        for name, value in self._values(names):
            if answers_and_steps.is_missing(value):
                continue
            return read(parse_list(self.place, f"'{name}'", value) if is_list else value, f"'{name}'")
        return None

    def read_answer(self, names: Iterable[str], *, is_text: bool) -> str | None:
        """The answer. An empty one counts, unless it is a CSV field and another name has an answer."""
        found = [
            (name, value)
            for name, value in self._values(names)
            if value == "" or not answers_and_steps.is_missing(value)
        ]
        filled = [(name, value) for name, value in found if value != ""] if is_text else found
        for name, value in filled or found:
            if name == MESSAGES and (turns := read_turns(value)) is not None:
                return find_last_answer(turns)
            text = find_reply(value) if isinstance(value, Mapping | list) else None
            return answers_and_steps.read_text(value if text is None else text, f"'{name}'")
        return None

    def read_ids(self, names: Iterable[str], contexts: answers_and_steps.Contexts | None) -> tuple[str, ...] | None:
        ids: tuple[str, ...] | None = self.read(names, answers_and_steps.read_ids, is_list=True)
        if ids is None:
            return None if contexts is None else contexts.ids
        if contexts is not None and len(ids) != len(contexts.texts):
            message = f"the row has {len(contexts.texts)} contexts and {len(ids)} ids of contexts"
            raise DataError(f"{self.place}: {message}")
        return ids

    def read_scores(
        self, names: Iterable[str], contexts: answers_and_steps.Contexts | None, ids: tuple[str, ...] | None
    ) -> tuple[float | None, ...] | None:
        """The scores beside the contexts, else those in them."""
        count = len(ids or () if contexts is None else contexts.texts)
        for name in names:
            listed = open_text(self.row.get(name))
            if name == "scores" and not _is_list_of_numbers(listed):
                continue
            scores = _Reader(self.place, {name: listed}).read((name,), answers_and_steps.read_scores)
            if scores is not None and len(scores) != count:
                message = (
                    f"the row has {count_noun(count, 'context')} and {count_noun(len(scores), 'score')} in '{name}'"
                )
                raise DataError(f"{self.place}: {message}; write a score for each context, null where it has none")
            if scores is not None:
                return tuple(scores)
        return None if contexts is None else contexts.scores

    def _values(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        return ((name, self.row.get(name)) for name in names)


def _is_list_of_numbers(value: Any) -> bool:
    """Whether a value can be the scores of contexts: `scores` may also be an object, or a list of named scores."""
    return isinstance(value, list) and not any(isinstance(one, (Mapping, list)) for one in value)


def number_repeats(answers: Iterable[FileAnswer], repeat: int) -> Iterator[FileAnswer]:
    """The answers with the ids of repeats: the second one of `q1` is that of `q1#2`.

    Raises DataError: a row has no id, or a question has more answers than repeats; with `file:line`.
    """
    counts: Counter[str] = Counter()
    for one in answers:
        if one.query_id is None:
            raise DataError(f"{one.place}: 'repeat' needs the id of each answer's question; add a column 'query_id'")
        counts[one.query_id] += 1
        if counts[one.query_id] > repeat:
            raise DataError(
                f"{one.place}: the question {one.query_id!r} has more answers than 'repeat: {repeat}' allows"
            )
        yield one._replace(query_id=f"{one.query_id}#{counts[one.query_id]}")


_MOST_NAMED = 3
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Matched:
    """Answers by the query that they belong to, and how many belong to no query.

    `differing` have a question that differs from the query with the same id; the `remark` says how, and which is used.
    """

    rows: list[tuple[str, answers_and_steps.AnswerRow]]
    unknown: int
    differing: int = 0
    remark: str = ""
    stored: StoredTable | None = None

    def list_asked(self) -> list[tuple[str | None, str | None]]:
        """When each answer was asked, and of which version of the application, as far as that is known."""
        if self.stored is None:
            return [(row.asked, row.version) for _, row in self.rows if row.error is None]
        told = self.stored.select("error", "asked", "file_version")
        return told.filter(pl.col("error").is_null()).select("asked", "file_version").rows()

    def take_rows(self) -> Iterator[tuple[str, answers_and_steps.AnswerRow]]:
        """The rows in their order. Each is dropped when it was taken, so that it need not stay in memory."""
        self.rows.reverse()
        while self.rows:
            yield self.rows.pop()


def match_answers(
    path: Path, answers: Sequence[FileAnswer] | FileAnswers, queries: pl.DataFrame, *, trusts_ids: bool = False
) -> Matched:
    """Match each answer to its query: by id, by the question's text, or by row number.

    Answers are matched by text if the file has no ids, if the dataset knows none of its ids, or if most questions
    contradict their ids. In the last case the ids number something else, such as rows, and each question must belong
    to exactly one query. A question agrees with a query if it contains the query's text, as a prompt does. If several
    queries have the same text, an answer to it belongs to all of them. With `trusts_ids`, ids are used whatever the
    questions say.

    Raises DataError: no answer belongs to any query, a query has two answers, or ids and questions contradict each
    other; with `file:line`.
    """
    if isinstance(answers, FileAnswers):
        if answers.stored is not None and (easily := _match_stored(answers.stored, queries)) is not None:
            return easily
        answers = [*answers]
    ids, texts = queries["query_id"].to_list(), queries["text"].to_list()
    differing = _find_differing(answers, dict(zip(ids, texts, strict=True)))
    if 2 * len(differing.pairs) > differing.compared and not trusts_ids:
        return _settle_by_questions(answers, ids, texts, differing)
    if differing.pairs:
        matched = _settle(answers, _match_ids(answers, ids) or (), ids)
        return replace(matched, differing=len(differing.pairs), remark=f"{differing}; the ids are used")
    by_ids, by_texts = partial(_match_ids, answers, ids), partial(_match_questions, answers, ids, texts)
    for match in (by_ids, by_texts, partial(_match_numbers, answers, ids)):
        found = match()
        if found is not None and any(matched for matched in found):
            return _settle(answers, found, ids)
    raise DataError(f"{path}: {_explain_unmatched(answers, ids)}")


def _match_stored(answers: BlockFile, queries: pl.DataFrame) -> Matched | None:
    """The match by id of stored answers whose ids and questions leave nothing to settle; else None."""
    whole = StoredTable(answers, pl.int_range(answers.height, dtype=pl.UInt32, eager=True), tuple(answers.schema))
    told = whole.select("file_query_id").with_row_index("row")
    if told["file_query_id"].has_nulls():
        return None
    asked = queries.select("query_id").with_row_index("place")
    found = asked.join(told, left_on="query_id", right_on="file_query_id", how="inner", maintain_order="left")
    if found.is_empty() or found["query_id"].is_duplicated().any() or _differ(whole, queries["text"], found):
        return None
    return Matched([], answers.height - found.height, stored=whole.take(found["row"]).in_order())


def _differ(answers: StoredTable, texts: pl.Series, found: pl.DataFrame) -> bool:
    """Whether an answer has another question than its query. Questions are compared a block at a time."""
    for number, (first, last) in enumerate(pairwise(answers.blocks.starts)):
        block = found.filter(pl.col("row").is_between(first, last, closed="left"))
        questions = answers.blocks.read(number, ["file_question"])["file_question"].gather(block["row"] - first)
        if (questions != texts.gather(block["place"])).any():
            return True
    return False


class _Differing(NamedTuple):
    """Answers whose question differs from the query with the same id, whose text is beside them."""

    pairs: Sequence[tuple[FileAnswer, str]]
    compared: int

    def __str__(self) -> str:
        first, asked = self.pairs[0]
        is_of = "has" if len(self.pairs) == 1 else "have"
        return (
            f"{len(self.pairs)} of {count_noun(self.compared, 'answer')} {is_of} a question that differs from the "
            f"query with the same id, first at {first.place}: query {first.query_id!r} asks {_cut(asked)}, but "
            f"the answer is to {_cut(str(first.question))}"
        )


def _find_differing(answers: Sequence[FileAnswer], texts: Mapping[str, str]) -> _Differing:
    known = [(one, texts[one.query_id]) for one in answers if one.query_id is not None and one.query_id in texts]
    compared = [(answer, asked) for answer, asked in known if answer.question is not None and answer.question.strip()]
    pairs = [(answer, asked) for answer, asked in compared if _fold(asked) not in _fold(str(answer.question))]
    return _Differing(pairs, len(compared))


def _settle_by_questions(
    answers: Sequence[FileAnswer], ids: Sequence[str], texts: Sequence[str], differing: _Differing
) -> Matched:
    """Match answers by their questions, if that is unambiguous."""
    known = set(ids)
    found = _match_questions(answers, ids, texts) or ()
    matched = [query_id for group in found for query_id in group]
    is_certain = len(set(matched)) == sum(map(bool, found)) == len(matched)
    if not is_certain or len(matched) < sum(answer.query_id in known for answer in answers):
        first, _ = differing.pairs[0]
        raise DataError(
            f"{first.place}: {differing}; the answers cannot be matched: correct the ids or the "
            "questions, name the columns of both in 'columns', or confirm the ids with 'columns.query_id'"
        )
    message = f"{differing}; the questions are used instead of the ids"
    return replace(_settle(answers, found, ids), differing=len(differing.pairs), remark=message)


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
                message = f"the query {query_id!r} is answered twice, first at {earlier.place}; a file has one run"
                raise DataError(f"{answer.place}: {message}; if questions were asked again, write 'repeat: 2'")
    rows = [(query_id, first[query_id].row) for query_id in ids if query_id in first]
    return Matched(rows, sum(not matched for matched in found))


def _match_ids(answers: Sequence[FileAnswer], ids: Sequence[str]) -> list[list[str]] | None:
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


def _match_numbers(answers: Sequence[FileAnswer], ids: Sequence[str]) -> list[list[str]] | None:
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
