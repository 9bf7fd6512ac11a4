"""Files of answers, one per row, with the column names of ragas, DeepEval, promptfoo and others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec.data.conversation import MESSAGES, find_answer, read_turns
from rageval_spec.data.trace import Step, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.reading.agent_steps import dump_steps, read_steps
from rageval_spec.reading.answer_columns import (
    CONTEXT_IDS,
    AnswerColumns,
    AnswerNames,
    advise_answers,
    find_answer_names,
    unwrap,
)
from rageval_spec.reading.answer_rows import (
    AnswerRow,
    BrokenTextError,
    Contexts,
    UnusableReplyError,
    is_missing,
    read_amount,
    read_contexts,
    read_count,
    read_id,
    read_ids,
    read_text,
)
from rageval_spec.reading.column_names import refuse_absent
from rageval_spec.reading.id_cells import split_ids
from rageval_spec.reading.mapping import list_names
from rageval_spec.reading.reply_layout import USUAL, find_contexts
from rageval_spec.reading.row_sources import RowSource
from rageval_spec.reading.rows import parse_list
from rageval_spec.wording import make_visible

_STEPS = (*(path.text for path in USUAL["steps"]), MESSAGES)


class NoAnswersError(DataError):
    """A table has a column for answers, and no answer in it."""


class FileAnswer(NamedTuple):
    """A row: its place, its query's id or question if it has them, and the answer."""

    place: str
    query_id: str | None
    question: str | None
    row: AnswerRow


def read_answers(source: RowSource, columns: AnswerColumns) -> list[FileAnswer]:
    """The answers of a file, in order.

    Raises:
        DataError: there is no column of answers or contexts; every answer is empty, as in the table of a test set
            without answers; a row cannot be read (the message gives `file:line`).
    """
    columns = source.resolve(columns)
    is_text = source.form == "csv"
    present: dict[str, None] = {}
    names = find_answer_names(columns, (), _STEPS)
    answers: list[FileAnswer] | None = []
    for place, row in _unwrapped_rows(source, columns):
        if row.keys() - present.keys():
            present.update(dict.fromkeys(row))
            before, names = names, find_answer_names(columns, list(present), _STEPS)
            if names != before and answers:
                answers = None  # what was read before was read under other names
        if answers is not None:
            answers = _read_another(answers, place, row, names, is_text=is_text)
    names = _choose(source.path, columns, list(present))
    if answers is None:
        answers = [_read_row(place, row, names, is_text=is_text) for place, row in _unwrapped_rows(source, columns)]
    if is_text and names.answer and all(_is_blank(answer.row) for answer in answers):
        raise NoAnswersError(f"{source.path}: every answer in {' and '.join(map(repr, names.answer))} is empty")
    return answers


def _is_blank(row: AnswerRow) -> bool:
    return not (row.answer or row.contexts or row.context_ids or row.error)


def _unwrapped_rows(source: RowSource, columns: AnswerColumns) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows, with the ids of contexts in one cell of a table as a list, as relevant documents are."""
    is_table = source.form in ("csv", "xlsx")
    names = (columns.context_ids or "", *CONTEXT_IDS) if is_table else ()
    for place, row in source.rows(columns):
        cells = {name: split_ids(place, f"'{name}'", row[name]) for name in names if row.get(name)}
        yield place, unwrap({**row, **cells} if cells else row)


def _read_another(
    answers: list[FileAnswer], place: str, row: Mapping[str, Any], names: AnswerNames, *, is_text: bool
) -> list[FileAnswer] | None:
    """The answers with one more; None if it cannot be read, because columns in later rows can change its meaning."""
    try:
        answers.append(_read_row(place, row, names, is_text=is_text))
    except DataError:
        return None
    return answers


def _choose(path: Path, columns: AnswerColumns, present: Sequence[str]) -> AnswerNames:
    """The names of the parts.

    Raises:
        DataError: no row has a name that the spec sets, or there is no column of answers or contexts.
    """
    _refuse_absent(path, columns, present)
    names = find_answer_names(columns, present, _STEPS)
    if not (names.answer or names.contexts or names.error):
        advice = advise_answers(present)
        message = f"no column of answers or contexts; the columns are {list_names(present)}; {advice}"
        raise DataError(f"{path}: {message}")
    return names


def _refuse_absent(path: Path, columns: AnswerColumns, present: Sequence[str]) -> None:
    """Refuse all names in the spec that no row has, except those of a run."""
    parts = {part: getattr(columns, part) for part in type(columns).model_fields if part not in ("doc_id", "score")}
    refuse_absent(path, parts, present, "columns", f"; the columns are {list_names(present)}")


def _read_row(place: str, row: Mapping[str, Any], names: AnswerNames, *, is_text: bool) -> FileAnswer:
    reader = _Reader(place, row)
    query_id = reader.read(names.query_id, lambda value, what: read_id(_mend(value), what))
    question = reader.read(names.question, lambda value, what: read_text(_mend(value), what))
    error = reader.read(names.error, _read_error)
    try:
        answer = _read_answer(reader, names, error, is_text=is_text)
    except BrokenTextError as broken:
        answer = AnswerRow(error=error or str(broken))
    return FileAnswer(place, query_id, question, answer)


def _read_answer(reader: _Reader, names: AnswerNames, error: str | None, *, is_text: bool) -> AnswerRow:
    steps = _read_steps(reader, names)
    contexts = reader.read(names.contexts, read_contexts, is_list=True)
    ids = reader.read_ids(names.context_ids, contexts)
    if contexts is None and ids is None and (contexts := find_contexts(steps)) is not None:
        ids = contexts.ids
    seconds = reader.read(names.numbers["seconds"], read_amount)
    if seconds is None and (milliseconds := reader.read(names.milliseconds, read_amount)) is not None:
        seconds = milliseconds / 1000
    answer = None if error else reader.read_answer(names.answer, is_text=is_text)
    if answer is None and error is None and names.answer:
        error = "the file has no answer to this query"
        if names.answer == (MESSAGES,):
            error = "the conversation ends without an answer to the user's last turn"
    return AnswerRow(
        answer=answer,
        contexts=None if contexts is None else contexts.texts,
        context_ids=ids,
        scores=None if contexts is None else contexts.scores,
        seconds=seconds,
        input_tokens=reader.read(names.numbers["input_tokens"], read_count),
        output_tokens=reader.read(names.numbers["output_tokens"], read_count),
        cost=reader.read(names.numbers["cost"], read_amount),
        error=error,
        trace=_read_link(reader.row.get("trace")),
        steps=dump_steps(steps),
    )


def _read_steps(reader: _Reader, names: AnswerNames) -> tuple[Step, ...]:
    """What an agent did: in the column that the spec names, or under a usual name if it is a list of steps there."""
    for name in names.steps:
        try:
            if not is_missing(value := reader.row.get(name)) and (steps := read_steps(value, f"'{name}'")):
                return steps
        except UnusableReplyError as error:
            if name not in _STEPS:
                raise DataError(f"{reader.place}: {error}") from error
    return ()


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
            if is_missing(value):
                continue
            try:
                return read(parse_list(self.place, f"'{name}'", value) if is_list else value, f"'{name}'")
            except BrokenTextError:
                raise
            except UnusableReplyError as error:
                raise DataError(f"{self.place}: {error}") from error
        return None

    def read_answer(self, names: Iterable[str], *, is_text: bool) -> str | None:
        """The answer. An empty one counts, unless it is a CSV field and another name has an answer."""
        found = [(name, value) for name, value in self._values(names) if value == "" or not is_missing(value)]
        filled = [(name, value) for name, value in found if value != ""] if is_text else found
        for name, value in filled or found:
            try:
                if name == MESSAGES and (turns := read_turns(value)) is not None:
                    return find_answer(turns)
                return read_text(value, f"'{name}'")
            except BrokenTextError:
                raise
            except UnusableReplyError as error:
                raise DataError(f"{self.place}: {error}") from error
        return None

    def read_ids(self, names: Iterable[str], contexts: Contexts | None) -> tuple[str, ...] | None:
        ids: tuple[str, ...] | None = self.read(names, read_ids, is_list=True)
        if ids is None:
            return None if contexts is None else contexts.ids
        if contexts is not None and len(ids) != len(contexts.texts):
            message = f"the row has {len(contexts.texts)} contexts and {len(ids)} ids of contexts"
            raise DataError(f"{self.place}: {message}")
        return ids

    def _values(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        return ((name, self.row.get(name)) for name in names)
