"""Adds labels to a file of labels. What the file has stays: its columns, its rows, and their order."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from rageval_spec.reading.delimited import delimited_objects, header_of, separator_of
from rageval_spec.reading.labels import KNOWN_AS, read_label_file
from rageval_spec.review.checking import Problem, identify

COLUMNS = (
    "dataset", "system", "query_id", "metric", "claim", "value", "annotator", "comment", "time", "answer", "reason",
    "probability",
)  # fmt: skip
"""The parts of a label, in the order of a new file; `adjudicated` and `saw_judge` only if a label is so."""


@dataclass(frozen=True)
class Merged:
    """A file of labels with others added.

    Attributes:
        content: the file, as CSV in UTF-8.
        labels: the number of its labels; `added` of them are new, and `replaced` have another value than before.
        problems: the labels that the file has with another value, and that were not to be replaced.
    """

    content: bytes
    labels: int
    added: int
    replaced: int
    problems: tuple[Problem, ...]


def merge_labels(
    labels: Sequence[Label], written: Sequence[str], path: Path | None = None, *, replace: bool = False
) -> Merged:
    """Add labels to those of a file.

    A label that the file has with the same value is not added again; its comment is, if it is another.

    Args:
        labels: the labels, each once.
        written: their values as the file shows them.
        path: the file, in CSV or TSV; None for a new one.
        replace: whether a label takes the place of one that the same person gave the same thing with another value.

    Raises:
        DataError: the file is not CSV or TSV, or not a file of labels.
    """
    old = _Old() if path is None else _read_old(path)
    known = {identify(label): (label, row) for label, row in old.labels}
    problems, added, replaced = [], 0, 0
    for label, value in zip(labels, written, strict=True):
        found = known.get(identify(label))
        if found is None:
            old.add(label, value)
            added += 1
            continue
        before, row = found
        if before.value != label.value:
            if not replace:
                problems.append(_explain(label, before))
                continue
            row[old.name("value")] = value
            row[old.name("time")] = label.time
            replaced += 1
        row[old.name("comment")] = _join(row.get(old.name("comment"), ""), label.comment)
    return Merged(old.write(), len(old.labels) + added, added, replaced, tuple(problems))


def _explain(label: Label, before: Label) -> Problem:
    return Problem(
        label.place,
        label.metric,
        f"'{label.annotator}' judged the same thing differently at {before.place}; keep one of the two, or write "
        "the new value over the old: --replace",
    )


def _join(first: str, second: str) -> str:
    """Two comments as one; the second only if the first does not have it."""
    return "\n".join(filter(None, [first, second if second not in first else ""]))


class _Old:
    """A file of labels: its header, its rows, and the labels with their rows."""

    def __init__(
        self,
        header: Sequence[str] = (),
        rows: Sequence[dict[str, str]] = (),
        labels: Sequence[tuple[Label, dict[str, str]]] = (),
        separator: str = ",",
    ) -> None:
        self.labels = labels
        self._separator = separator
        self._rows = [*rows]
        self._names = {
            part: next((name for name in names if name in header), names[0]) for part, names in KNOWN_AS.items()
        }
        self._header = [*header]

    def name(self, part: str) -> str:
        """The column of a part; it is added to the header if it is new."""
        name = self._names[part]
        if name not in self._header:
            self._header.append(name)
        return name

    def add(self, label: Label, value: str) -> None:
        """Add a row for a label."""
        texts: Mapping[str, str] = {
            "dataset": label.dataset,
            "system": label.system,
            "query_id": label.query_id,
            "metric": label.metric,
            "claim": "" if label.claim is None else str(label.claim),
            "value": value,
            "annotator": label.annotator,
            "comment": label.comment,
            "time": label.time,
            "answer": label.answer,
            "reason": label.reason,
            "probability": "" if label.probability is None else repr(label.probability),
        }
        marks = {"adjudicated": label.adjudicated, "saw_judge": label.saw_judge}
        more = {part: "yes" for part, is_marked in marks.items() if is_marked}
        self._rows.append({self.name(part): text for part, text in {**texts, **more}.items()})

    def write(self) -> bytes:
        """The file."""
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=self._separator, lineterminator="\n")
        writer.writerow(self._header)
        writer.writerows([row.get(name, "") for name in self._header] for row in self._rows)
        return stream.getvalue().encode("utf-8", "backslashreplace")


def _read_old(path: Path) -> _Old:
    if path.suffix.lower() != ".csv":
        raise DataError(f"{path}: labels are added to a .csv file; name one, or write a new file: -o labels.csv")
    separator = separator_of(path)
    rows = {f"{path}:{line}": row for line, row in delimited_objects(path, separator)}
    labels = [(label, rows[label.place]) for label in read_label_file(path)]
    return _Old(header_of(path, separator), [*rows.values()], labels, separator)
