"""Reads leaderboards: the values of systems for topics, and their means, in the forms that TREC's tools write.

| a line | written by |
|---|---|
| `measure topic value` | trec_eval -q, one file for each system |
| `topic measure value` | ir_measures -q, one file for each system |
| `system topic measure value`, `system measure topic value` | AutoJudge ("ir_measures" and "tot") |
| `topic Q0 system rank value measure` | AutoJudge ("ranking") |
| `{"run_id": ..., "topic_id": ..., "measure": ..., "value": ...}` | AutoJudge (JSON Lines) |
| columns after a line with their names: `run,topic,measure,value` | anything else, with commas, tabs or spaces |

Where no column names the system, its file does. The line `runid all NAME` does if there is only one file: the runs of a
group often have the same tag. Rows of the topic `all` are the systems' means. Which of two columns is the topic is seen
by these rows.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError
from rageval_spec.reading.formats.text_files import text_lines

ALL = "all"
"""The topic of a row that holds a mean."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "system": ("system", "run", "run_id", "runid", "run_tag"),
    "topic": ("topic", "topic_id", "query_id", "query", "qid", "request_id"),
    "measure": ("measure", "metric"),
    "value": ("value", "score"),
}
_RANKING = ("topic", "", "system", "", "value", "measure")
_WITH_SYSTEM = (("system", "topic", "measure", "value"), ("system", "measure", "topic", "value"))
_OF_ONE_SYSTEM = (("measure", "topic", "value"), ("topic", "measure", "value"))
_SYSTEM_ROW = "runid"
_FORMS = "write a first line with the columns' names: run topic measure value"

_Row = tuple[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """What one tool says of some systems.

    Attributes:
        values: by measure and system, the value of each topic.
        means: by measure and system, the mean that the file states (its row of the topic `all`).
    """

    name: str
    values: Mapping[str, Mapping[str, Mapping[str, float]]]
    means: Mapping[str, Mapping[str, float]]

    @property
    def measures(self) -> list[str]:
        """The measures, in the order in which they first appear."""
        return [*dict.fromkeys((*self.values, *self.means))]

    def rank(self, measure: str) -> dict[str, float]:
        """The value of each system: the mean that is stated, else that of its topics; by name."""
        stated, known = self.means.get(measure, {}), self.values.get(measure, {})
        means = {system: math.fsum(topics.values()) / len(topics) for system, topics in known.items()}
        return dict(sorted({**means, **stated}.items()))


def read_leaderboard(path: Path) -> Leaderboard:
    """Read a leaderboard from a file, or from all files of a folder.

    Raises DataError: a file cannot be read, a row is not of its file's form, a value is not a finite number, or a
    system's value for a topic is there twice.
    """
    in_folder = path.is_dir()
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".") if in_folder else [path]
    if not files:
        raise DataError(f"{path}: the folder has no files; put the output of trec_eval -q for each system there")
    values: dict[str, dict[str, dict[str, float]]] = {}
    means: dict[str, dict[str, float]] = {}
    for file in files:
        for number, row in _read_rows(file, in_folder=in_folder):
            place, (measure, system, topic) = f"{file}:{number}", (row["measure"], row["system"], row["topic"])
            value, is_mean = _read_value(row["value"], place), topic == ALL
            into = means.setdefault(measure, {}) if is_mean else values.setdefault(measure, {}).setdefault(system, {})
            key = system if is_mean else topic
            if key in into:
                raise DataError(f"{place}: {measure} of {system!r} for topic {topic!r} is there twice; remove one")
            into[key] = value
    if not values and not means:
        raise DataError(f"{path}: there is no row; {_FORMS}")
    return Leaderboard(path.stem, values, means)


def _read_value(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{place}: the value {text!r} is not a number; write a number, or leave the row out")
    return value


def _read_rows(path: Path, *, in_folder: bool) -> Iterator[tuple[int, Mapping[str, str]]]:
    lines = [(number, line) for number, line in text_lines(path) if line.strip()]
    if not lines:
        raise DataError(f"{path}: the file is empty; {_FORMS}")
    if lines[0][1].lstrip().startswith("{"):
        yield from ((number, _read_object(line, f"{path}:{number}")) for number, line in lines)
        return
    rows: list[_Row] = [*_split_lines(lines)]
    columns, rows, system = _find_columns(path, rows, in_folder=in_folder)
    for number, cells in rows:
        if len(cells) != len(columns):
            raise DataError(f"{path}:{number}: {len(cells)} columns, and the rows before have {len(columns)}")
        yield number, {"system": system, **dict(zip(columns, cells, strict=True))}


def _read_object(line: str, place: str) -> Mapping[str, str]:
    try:
        content = json.loads(line)
    except ValueError as error:
        raise DataError(f"{place}: this is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{place}: this is not an object with a run_id, topic_id, measure and value")
    found = {part: next((content[name] for name in names if name in content), None) for part, names in _NAMES.items()}
    for part, value in found.items():
        if value is None:
            name = _NAMES[part][-1 if part == "value" else 1]
            raise DataError(f"{place}: there is no {part}; write it as {name!r}")
    return {part: str(value) for part, value in found.items()}


def _split_lines(lines: Sequence[tuple[int, str]]) -> Iterator[_Row]:
    first = lines[0][1]
    separator = next((one for one in ("\t", ",") if one in first), None)
    for number, line in lines:
        cells = line.split() if separator is None else next(csv.reader([line], delimiter=separator))
        yield number, [cell.strip() for cell in cells]


def _find_columns(path: Path, rows: list[_Row], *, in_folder: bool) -> tuple[Sequence[str], list[_Row], str]:
    """What each column is, the rows without their heading, and the system that rows without one belong to."""
    heading = [next((part for part, names in _NAMES.items() if cell.lower() in names), "") for cell in rows[0][1]]
    if {"topic", "measure", "value"} <= {*heading}:
        return heading, rows[1:], path.name
    width, system = len(rows[0][1]), path.name if in_folder else path.stem
    if width == len(_RANKING):
        return _RANKING, rows, system
    forms = _OF_ONE_SYSTEM if width == 3 else _WITH_SYSTEM
    if width not in (3, 4):
        raise DataError(f"{path}:{rows[0][0]}: {width} columns are not a leaderboard's; {_FORMS}")
    totals = [cells for _, cells in rows if len(cells) == width]
    fitting = [form for form in forms if any(cells[form.index("topic")] == ALL for cells in totals)]
    if len(fitting) != 1:
        raise DataError(f"{path}: it does not show which column is the topic and which the measure; {_FORMS}")
    named = [cells[2] for _, cells in rows if width == 3 and len(cells) == 3 and cells[0] == _SYSTEM_ROW]
    kept = [(number, cells) for number, cells in rows if width != 3 or cells[0] != _SYSTEM_ROW]
    return fitting[0], kept, named[0] if named and not in_folder else system
