"""Looks into a user's files, with the plugins that will read them, for what a first spec can evaluate."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin import Context
from rageval_spec.reading.answer_columns import AnswerColumns
from rageval_spec.reading.files import format_of
from rageval_spec.reading.questions import QuestionColumns

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.plugin import Dataset, System

_WORDS = {
    "csv": "csv", "tsv": "csv", "xlsx": "xlsx", "parquet": "parquet",
    "json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
"""The dataset that reads a file, by its suffix."""
_OF_ANSWERS = ("answer", "contexts", "context_ids", "seconds", "input_tokens", "cost")
_MOST_VALUES = 8
"""The most different values of a column that makes slices."""
_LEAST_ROWS = 2
"""The fewest questions with each value, on average, of a column that makes slices."""


@dataclass(frozen=True)
class Findings:
    """What the files hold.

    Attributes:
        dataset, system: the blocks of a spec that read them, with paths relative to its folder; `system` is None if
            there are no answers.
        has: the parts that at least one question or answer has: of `Sample`, and "relevant" and "corpus".
        questions: the number of questions.
        slices: the columns of the questions that have few different values.
    """

    dataset: Mapping[str, Any]
    system: Mapping[str, Any] | None
    has: frozenset[str]
    questions: int
    slices: tuple[str, ...] = field(default=())


def inspect_files(golden: Path, answers: Path | None, folder: Path, columns: Mapping[str, str]) -> Findings:
    """Open a file of questions and a file of answers, which can be the same.

    Args:
        golden: the questions, with their gold answers if there are any; or a BEIR folder.
        answers: the file that may have a system's answers; None to look for none.
        folder: the folder of the spec.
        columns: the names of columns that are not recognised, by part.

    Raises:
        UsageError: a file cannot be read; the message shows its columns and how to name the right ones.
    """
    dataset = _write_dataset(golden, folder, columns)
    opened: Dataset[Any] = _build("datasets", "golden", dataset, golden)
    try:
        _refuse_faults(opened)
        collection = opened.open()
        has = {*_list_parts(collection)}
        system = None if answers is None else _write_system(answers, folder, columns)
        found = None if answers is None or system is None else _read_answers(system, collection, answers)
        count = collection.require("queries", "init").height
        slices = tuple(_list_slices(collection))
    except DataError as error:
        raise UsageError(f"{error}{_advise(str(error))}") from error
    has |= {name for name in _OF_ANSWERS if found is not None and found[name].null_count() < found.height}
    return Findings(dataset, system if found is not None else None, frozenset(has), count, slices)


def _write_dataset(golden: Path, folder: Path, columns: Mapping[str, str]) -> dict[str, Any]:
    path = _relative(golden, folder)
    if golden.is_dir():
        return {"use": "beir", "path": path, **_find_split(golden)}
    word = _WORDS.get(format_of(golden))
    if word is None:
        known = ", ".join(f".{suffix}" for suffix in _WORDS)
        raise UsageError(f"{golden}: it is not clear what this file holds; its name must end in one of {known}")
    named = {part: name for part, name in columns.items() if part in {**QuestionColumns.model_fields, "relevant": None}}
    return {"use": word, "path": path, **({"columns": named} if named else {})}


def _find_split(folder: Path) -> dict[str, str]:
    """The split to name, if there are no judgements for the usual one."""
    splits = sorted(path.name.partition(".")[0] for path in folder.glob("qrels/*.tsv*"))
    return {} if not splits or "test" in splits else {"split": splits[0]}


def _write_system(answers: Path, folder: Path, columns: Mapping[str, str]) -> dict[str, Any]:
    renamed = {"question": columns["text"]} if "text" in columns and "query_id" not in columns else {}
    named = {part: name for part, name in columns.items() if part in AnswerColumns.model_fields} | renamed
    return {"use": "file", "path": _relative(answers, folder), **({"columns": named} if named else {})}


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _build(section: registry.Section, name: str, block: Mapping[str, Any], path: Path) -> Any:
    """The plugin of a block, with the path as the user wrote it, because it is in messages."""
    plugin = registry.load(section, block["use"])
    return plugin(plugin.node_type(**{**block, "path": str(path)}), Context(name))


def _refuse_faults(plugin: Dataset[Any] | System[Any]) -> None:
    for file in plugin.inputs():
        if not file.path.exists():
            raise UsageError(f"there is no {file.path}{f'; {file.hint}' if file.hint else ''}")
    for fault in plugin.check_files():
        if fault.severity == "error":
            hint = f"; {fault.hint}" if fault.hint else ""
            raise UsageError(f"{fault.message}{hint}{_advise(fault.hint or '')}")


def _advise(told: str) -> str:
    """How to name columns on the command line, after a message that says how to name them in a spec."""
    import yaml

    found = re.search(r"columns: (\{[^{}]*\})", told)
    if found is None:
        return (
            "; here: --column PART=NAME, or --golden FILE if the questions are elsewhere" if "columns" in told else ""
        )
    names = yaml.safe_load(found[1])
    return f"; here: {' '.join(f'--column {part}={quote(str(name))}' for part, name in names.items())}"


def _list_parts(collection: Collection) -> Iterator[str]:
    if collection.qrels is not None and collection.qrels.height:
        yield "relevant"
    if collection.load_corpus is not None:
        yield "corpus"
    references = collection.references
    if references is None:
        return
    if references["references"].list.len().sum():
        yield "reference"
    yield from (
        name
        for name in ("reference_contexts", "answerable", "group", "condition")
        if references[name].null_count() < references.height
    )


def _read_answers(system: Mapping[str, Any], collection: Collection, path: Path) -> pl.DataFrame | None:
    """The answers; None if the file has none, so that it has only questions."""
    from rageval_spec.reading.answer_files import NoAnswersError

    plugin: System[Any] = _build("systems", "current", system, path)
    try:
        if not plugin.answers_on(collection.name):
            return None
    except DataError:
        return None
    try:
        answers = plugin.answer(collection).answers
    except NoAnswersError:
        return None
    return None if answers["error"].null_count() == 0 else answers


def _list_slices(collection: Collection) -> Iterator[str]:
    """The columns in which every question has one of a few words or numbers."""
    import json

    table = collection.columns
    if table is None or not table.height:
        return
    rows: Sequence[dict[str, Any]] = [json.loads(text) for text in table["columns"]]
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if not all(isinstance(value, (str, int)) and str(value).strip() for value in values):
            continue
        count = len({str(value) for value in values})
        if 2 <= count <= _MOST_VALUES and len(rows) >= _LEAST_ROWS * count:
            yield name
