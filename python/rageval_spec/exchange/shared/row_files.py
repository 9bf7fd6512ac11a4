"""The base class of sources that read rows of files: one question a row, in the layout of a tool."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from rageval_spec.data.traces import Document, Feedback, Trace, TraceLink
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import SourceNode, TraceSource
from rageval_spec.reading.column_meanings import answers_in, contexts_in, find_spellings
from rageval_spec.reading.column_names import (
    NUMBERS,
    QUESTION_IDS,
    QUESTIONS,
    REFERENCE_CONTEXTS,
    REFERENCES,
    normalise,
)
from rageval_spec.reading.formats.row_shapes import ask_last_turn
from rageval_spec.reading.rows import parse_list, read_rows, row_format_of
from rageval_spec.recorded import answers_and_steps
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.recorded.log_fields import is_feedback, read_feedback, read_fields
from rageval_spec.recorded.messages import MESSAGES, find_last_answer, find_question, read_turns
from rageval_spec.recorded.values import clean, find_version
from rageval_spec.store.disk import InputFile
from rageval_spec.wording import count_noun

_TEXTS = ("answer", "error", "session", "user", "model", "started")
_NUMBERS = ("seconds", "cost")
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class RowsNode(SourceNode):
    """A file in the layout of a tool."""

    path: str = Field(description="The file: JSON Lines, a JSON list, CSV or Parquet. Plain, `.gz` or `.zst`.")


class RowFileSource(TraceSource[RowsNode]):
    """Reads a file row by row. A subclass says in `translate` what the tool's columns are called here."""

    node_type = RowsNode
    tool: str = ""
    questions: ClassVar[Sequence[str]] = QUESTIONS
    """What the tool calls a question, for the message where there is none."""
    doubtful = 0
    """How many rows have a value of their log fields that could not be read, or may be in another unit."""
    last_doubt = ""
    """The place and the reason of the last of them."""

    def inputs(self) -> Sequence[InputFile]:
        return (InputFile(self._path, ("path",)),)

    @abstractmethod
    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row with the names of `data/traces.py`: `id`, `question`, `answer`, `contexts`, `context_ids`, and so on.

        Names that the row lacks can be absent or None. `link` can be a `TraceLink`. Other names are ignored.
        """

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The place and the values of each row."""
        yield from read_rows(self._path)

    def read(self) -> Iterator[Trace]:
        if self._path.is_dir():
            raise UsageError(f"{self.node.path}: this is a folder; name a file in it")
        if not self._path.is_file():
            raise UsageError(f"{self.node.path}: no such file")
        yield from self.read_all()

    def read_all(self) -> Iterator[Trace]:
        """A trace for each of `rows`."""
        is_table = row_format_of(self._path) == "csv"
        for number, (place, row) in enumerate(self.rows(), 1):
            yield self.read_row(place, str(number), row, is_table=is_table)

    def read_row(
        self,
        place: str,
        number: str,
        row: Mapping[str, Any],
        named: Mapping[str, Any] | None = None,
        *,
        is_table: bool = False,
    ) -> Trace:
        """The trace of a row; `number` is its id if it has none, and `named` are parts that are known already.

        Raises:
            DataError: the row has no question, or a value that cannot be what its name says.
        """
        spelled = find_spellings(row, ())
        known = {spelled.get(name, name): value for name, value in row.items()}
        filled = _fill(place, known) if is_table else known
        try:
            translated = self.translate(ask_last_turn(filled))
            logged = self._read_log_fields(place, row, translated, named or {})
            return build_trace(self.tool, place, number, {**translated, **(named or {}), **logged})
        except NoQuestionError as error:
            called = " or ".join(map(repr, self.questions))
            raise DataError(f"{place}: {error} ({called}); it has {list_keys(list(row))}") from error
        except answers_and_steps.UnusableReplyError as error:
            raise DataError(f"{place}: {error}") from error

    def remarks(self) -> Sequence[str]:
        if not self.doubtful:
            return ()
        rows = count_noun(self.doubtful, "row has a doubtful value", "rows have doubtful values")
        return (f"{rows}; the last: {self.last_doubt}",)

    def _read_log_fields(
        self, place: str, row: Mapping[str, Any], translated: Mapping[str, Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """When a row's answer began, how long it took, what users said of it, and so on.

        What the tool's layout or `named` says counts first.
        """
        parts, doubts = read_fields(row, normalise)
        feedback, unclear = read_feedback({"feedback": named["feedback"]} if "feedback" in named else row, normalise)
        if doubts := [*doubts, *unclear]:
            self.doubtful += 1
            self.last_doubt = f"{place}: {'; '.join(doubts)}"
        elsewhere = {name for name, value in translated.items() if value is not None and value is not row.get(name)}
        if parts.get("seconds") is None:
            parts.pop("seconds", None)  # under its own name, it makes the row unreadable
        parts["feedback"] = feedback
        if feedback and not unclear:
            rest = (translated.get("metadata") or {}).items()
            parts["metadata"] = {name: value for name, value in rest if name not in row or not is_feedback(name)}
            elsewhere.discard("metadata")
        elsewhere |= named.keys() - {"feedback"}
        return {name: value for name, value in parts.items() if name not in elsewhere}

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.path)


class NoQuestionError(answers_and_steps.UnusableReplyError):
    """A row has nothing under any name of a question."""


def _fill(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table: empty cells are absent, and a conversation that is printed in a question's cell is a list."""
    filled = {name: value for name, value in row.items() if value != ""}
    for name in QUESTIONS:
        if str(filled.get(name, "")).startswith("[{"):
            with suppress(DataError):
                found = parse_list(place, f"'{name}'", filled[name])
                filled[name] = filled[name] if read_turns(found) is None else found
    return filled


_KNOWN: Mapping[str, tuple[str, ...]] = {
    "id": QUESTION_IDS,
    "question": QUESTIONS,
    "context_ids": ("context_ids", "retrieved_context_ids"),
    "relevant": ("relevant", "relevant_doc_ids", "reference_context_ids"),
    "reference_contexts": REFERENCE_CONTEXTS,
    **{name: (name,) for name in (*_TEXTS[1:], *_NUMBERS)},
    **{name: NUMBERS[name] for name in _COUNTS},
}


def translate_known(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the column names that question answering sets and evaluation tools usually have."""
    answers, contexts = answers_in(row), contexts_in(row)
    references = (*REFERENCES, *(() if "answer" in answers else ("answer",)))
    known = {**_KNOWN, "answer": answers, "contexts": contexts, "reference": references}
    if "context" not in contexts:
        known["reference_contexts"] = (*REFERENCE_CONTEXTS, "context")
    found, read = pick_columns(row, known)
    if read_turns(row.get(MESSAGES)) is not None:
        found[MESSAGES] = row[MESSAGES]
        read.add(MESSAGES)
    return {**found, "metadata": add_metadata(row, read, "metadata")}


def pick_columns(row: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> tuple[dict[str, Any], set[str]]:
    """Each part from the first of its columns that the row has, and the names of all such columns."""
    found = {part: next((row[name] for name in known if name in row), None) for part, known in names.items()}
    return found, {name for known in names.values() for name in known}


def add_metadata(row: Mapping[str, Any], read: Collection[str], *nested: str) -> dict[str, Any]:
    """The columns that no part is read from; those called as one of `nested` are objects whose content is added."""
    found: dict[str, Any] = {}
    for name in nested:
        value = row.get(name)
        with suppress(ValueError, RecursionError):
            value = json.loads(value) if isinstance(value, str) else value
        if isinstance(value, Mapping):
            found |= value
            read = {*read, name}
    return found | {
        name: value for name, value in row.items() if name not in read and not answers_and_steps.is_missing(value)
    }


def build_trace(tool: str, place: str, number: str, row: Mapping[str, Any]) -> Trace:
    """The trace of a translated row; `number` is its id if it has none."""

    def listed(name: str) -> Any:
        value = row.get(name)
        return None if answers_and_steps.is_missing(value) else parse_list(place, f"'{name}'", value)

    question, turns = row.get("question"), read_turns(row.get(MESSAGES)) or ()
    if answers_and_steps.is_missing(question) and (place_of := find_question(turns)) is not None:
        question = turns[place_of]["content"]
    if answers_and_steps.is_missing(question):
        raise NoQuestionError("the row has no question")
    query_id = number if answers_and_steps.is_missing(row.get("id")) else answers_and_steps.read_id(row["id"], "'id'")
    readers: Sequence[tuple[Sequence[str], Callable[[Any, str], Any]]] = (
        (_TEXTS, answers_and_steps.read_text),
        (_NUMBERS, answers_and_steps.read_amount),
        (_COUNTS, answers_and_steps.read_count),
    )
    plain: dict[str, Any] = {
        name: read(row[name], f"'{name}'")
        for names, read in readers
        for name in names
        if not answers_and_steps.is_missing(row.get(name)) or (name == "answer" and row.get(name) == "")
    }
    if plain.get("answer") is None and (said := find_last_answer(turns)) is not None:
        plain["answer"] = said
    reference, contexts = listed("reference"), listed("reference_contexts")
    relevant = listed("relevant")
    return Trace(
        row.get("link") or TraceLink(tool, query_id),
        answers_and_steps.read_text(question, "'question'"),
        query_id,
        documents=_read_documents(listed("contexts"), listed("context_ids")),
        references=() if reference is None else tuple(_read_texts(reference, "'reference'")),
        reference_contexts=None
        if contexts is None
        else answers_and_steps.read_contexts(contexts, "'reference_contexts'").texts,
        relevant=None if relevant is None else answers_and_steps.read_ids(relevant, "'relevant'"),
        messages=turns if len(turns) > 1 else (),
        steps=tuple(row.get("steps") or (answers_and_steps.read_steps(turns) if turns else ())),
        feedback=tuple(one for one in row.get("feedback") or () if isinstance(one, Feedback)),
        metadata={
            key: clean(value)
            for key, value in (row.get("metadata") or {}).items()
            if not answers_and_steps.is_missing(value)
        },
        version=find_version(row.get("metadata")),
        **plain,
    )


def _read_texts(value: Any, what: str) -> list[str]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [answers_and_steps.read_text(item, what) for item in items if not answers_and_steps.is_missing(item)]


def _read_documents(contexts: Any, ids: Any) -> tuple[Document, ...] | None:
    if contexts is None and ids is None:
        return None
    named = None if ids is None else answers_and_steps.read_ids(ids, "'context_ids'")
    if contexts is None:
        return tuple(Document(doc_id=one) for one in named or ())
    found = answers_and_steps.read_contexts(contexts, "'contexts'")
    named = found.ids if named is None else named
    for what, other in (("ids", named), ("scores", found.scores)):
        if other is not None and len(other) != len(found.texts):
            raise answers_and_steps.UnusableReplyError(
                f"the row has {len(found.texts)} contexts and {len(other)} {what} of contexts"
            )
    none: Sequence[None] = [None] * len(found.texts)
    return tuple(map(Document, found.texts, named or none, found.scores or none))
