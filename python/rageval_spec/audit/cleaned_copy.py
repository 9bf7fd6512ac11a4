"""Makes a cleaned copy of a test set: without the rows that are certainly too many. The original is never touched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.audit.audit_findings import DatasetContent
from rageval_spec.audit.question_set import AuditedQuestions
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.reading.formats.text_files import COMPRESSED, find_file, format_of, text_lines
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rageval_spec.plugin import Dataset

_LINES = ("jsonl", "ndjson", "csv", "tsv", "txt")
"""Formats whose rows begin on lines of their own, so that whole lines can be copied."""
_ANY = ("jsonl", "golden")
"""Datasets that read JSON Lines."""
_PLACE = compile_later(r"(?P<path>.*):(?P<line>\d+)", re.DOTALL)


@dataclass(frozen=True)
class Cleaned:
    """A cleaned copy, before it is written.

    Attributes:
        removed, kept: the numbers of questions that the copy leaves out and has.
        use: what to write in the spec in order to use it: `path: golden.clean.jsonl`.
        lacks: what the file says about itself and the copy does not: JSON Lines have no place for it.
    """

    files: Mapping[Path, bytes]
    removed: int
    kept: int
    use: str
    lacks: tuple[str, ...] = ()


def clean(dataset: Dataset[Any], questions: AuditedQuestions, audit: DatasetContent) -> Cleaned | None:
    """The cleaned copy of a dataset's files; None if no finding says that a row can go.

    Text files are copied line by line. Others become JSON Lines with the same values.
    """
    reasons = _list_reasons(audit)
    if not reasons:
        return None
    rows = _read_rows(dataset, questions)
    folder, node = dataset.context.resolve("."), dataset.node
    if node.use == "beir":
        qrels = find_file(dataset.context.resolve(node.path) / "qrels" / f"{node.split}.tsv")
        return _finish(
            qrels, {qrels: _drop_first(qrels, reasons)}, rows, reasons, f"split: {node.split}.clean", questions
        )
    source = _find_source(dataset, rows)
    files = {source: _drop_rows(source, rows, reasons)}
    for key in ("qrels", *(("path",) if getattr(node, "queries", None) else ())):
        name = getattr(node, key, None)
        if name is not None and (path := dataset.context.resolve(name)) != source:
            files[path] = _drop_judgements(path, reasons)
    changed = ["use: jsonl"] if node.use not in _ANY and _suffix_of(source) == "jsonl" else []
    keys = (f"{_find_key(dataset, path)}: {_show(_rename(path, _suffix_of(path)), folder)}" for path in files)
    use = ", ".join((*changed, *keys))
    return _finish(source, files, rows, reasons, use, questions)


def _list_reasons(audit: DatasetContent) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for check in audit.checks:
        for finding in check.findings:
            if finding.removes:
                reasons.setdefault(finding.rows[0].query_id, []).append(finding.message)
    return reasons


Rows = Mapping[str, tuple[str, Mapping[str, Any]]]
"""The place and the values of each row, by query id."""


def _read_rows(dataset: Dataset[Any], questions: AuditedQuestions) -> Rows:
    rows, queries = dataset.iterate_questions(), questions.collection.queries
    if rows is None or queries is None:
        raise UsageError(f"--fix cannot clean '{questions.name}': its questions are in no file")
    return dict(zip(queries["query_id"], rows, strict=False))


def _find_source(dataset: Dataset[Any], rows: Rows) -> Path:
    """The file of the questions: the one that their places begin with, before a line, or a sheet and a row."""
    place = next(iter(rows.values()))[0]
    named = [file.path for file in dataset.inputs() if place.startswith(str(file.path))]
    if not named:
        raise UsageError(f"--fix cannot clean '{dataset.context.name}': its questions are in no file")
    return max(named, key=lambda path: len(str(path)))


def _drop_rows(path: Path, rows: Rows, removed: Collection[str]) -> bytes:
    if _suffix_of(path) == "jsonl" and format_of(path) not in _LINES:
        kept = (row for query_id, (_, row) in rows.items() if query_id not in removed)
        return "".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in kept).encode()
    starts = {_line_of(place): query_id for query_id, (place, _) in rows.items()}
    return _copy_lines(path, lambda number, _: query in removed if (query := starts.get(number)) is not None else None)


def _line_of(place: str) -> int:
    found = _PLACE.fullmatch(place)
    return int(found["line"]) if found else 0


def _drop_first(path: Path, removed: Collection[str]) -> bytes:
    """The lines whose first field is not the id of a removed query."""
    return _copy_lines(path, lambda _, text: re.split(r"[\t ]", text.strip(), maxsplit=1)[0] in removed)


def _drop_judgements(path: Path, removed: Collection[str]) -> bytes:
    from rageval_spec.reading.column_names import QRELS
    from rageval_spec.reading.rows import read_rows

    if format_of(path) not in ("csv", "jsonl", "ndjson"):
        return _drop_first(path, removed)
    ids = {
        _line_of(place): next((str(row[name]) for name in QRELS[0].known if row.get(name) is not None), "")
        for place, row in read_rows(path)
    }
    return _copy_lines(path, lambda number, _: ids[number] in removed if number in ids else None)


def _copy_lines(path: Path, decide: Callable[[int, str], bool | None]) -> bytes:
    """The lines of a text file without those of removed rows.

    `decide` says whether the row that begins on a line is removed; None if the line belongs to the row before it.
    """
    kept, is_removed = [], False
    for number, text in text_lines(path):
        decided = decide(number, text)
        is_removed = is_removed if decided is None else decided
        if not is_removed:
            kept.append(text)
    return "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogatepass")


def _finish(
    source: Path,
    files: Mapping[Path, bytes],
    rows: Rows,
    reasons: Mapping[str, Sequence[str]],
    use: str,
    questions: AuditedQuestions,
) -> Cleaned:
    written = {_rename(path, _suffix_of(path)): content for path, content in files.items()}
    written[_rename(source, "jsonl", "removed")] = "".join(_write_removed(rows, reasons)).encode()
    lacks = () if format_of(source) in _LINES else tuple(questions.collection.about)
    return Cleaned(written, len(reasons), len(questions.questions) - len(reasons), use, lacks)


def _write_removed(rows: Rows, reasons: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The removed rows with their places and the reasons, one JSON object on a line."""
    for query_id, why in reasons.items():
        place, row = rows.get(query_id, ("", {}))
        content = {"query_id": query_id, "place": place, "why": list(why), "row": dict(row)}
        yield f"{json.dumps(content, ensure_ascii=False, default=str)}\n"


def _suffix_of(path: Path) -> str:
    """The format of the copy: that of the file, if its rows are lines; else JSON Lines."""
    found = format_of(path)
    return found if found in _LINES or found in ("qrels", "") else "jsonl"


def _rename(path: Path, suffix: str, kind: str = "clean") -> Path:
    """`golden.jsonl.gz` becomes `golden.clean.jsonl`."""
    name = path.name
    for ending in (*COMPRESSED, f".{format_of(path)}"):
        name = name.removesuffix(ending)
    return path.with_name(f"{name}.{kind}.{suffix}" if suffix else f"{name}.{kind}")


def _find_key(dataset: Dataset[Any], path: Path) -> str:
    return next((".".join(map(str, file.key)) for file in dataset.inputs() if file.path == path), "path")


def _show(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def describe(cleaned: Cleaned) -> str:
    """`wrote a.clean.jsonl and a.removed.jsonl: 10 questions, 2 removed; to use it, write ...`."""
    names = " and ".join(str(path) for path in cleaned.files)
    counts = f"{count_noun(cleaned.kept, 'question')}, {cleaned.removed:,} removed"
    lost = f". The copy lacks these keys of the file: {list_names(cleaned.lacks)}" if cleaned.lacks else ""
    return f"wrote {names}: {counts}; to use it, write {cleaned.use}{lost}"
