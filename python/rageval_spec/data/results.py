"""An evaluation as JSON: the report `json` writes it, and a saved evaluation is read from it.

Its schema is `schemas/results.schema.json`. The tables (values, samples) are separate files.

A saved evaluation also has the time, commit and label that an `Evaluation` itself must not hold. A `Trend` has the
numbers of many evaluations over time, ready to be drawn.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from copy import copy
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from rageval_spec.data.evaluation import Evaluation, Overall, Provenance, Results
from rageval_spec.data.json_documents import FORMAT_VERSION, build_document_schema, dump_document, parse_document
from rageval_spec.dataclass import dataclass, field

_REQUIRED = (
    "format_version", "name", "spec_digest", "verdict", "datasets", "systems", "metrics", "aggregates", "comparisons",
    "gates", "notes", "settings", "versions", "failures",
)  # fmt: skip
"""The keys that every file has."""
_ORDER = (
    *_REQUIRED,
    "models", "lower_is_better", "units", "ranges", "show_as", "baselines", "slices", "weakest", "diagnosis", "bands",
    "summaries", "digests", "judging", "replies", "prompts", "calibrations", "implementations", "overlaps", "spec",
    "stopping", "designs", "labels", "origins", "taken_over",
)  # fmt: skip
"""The order of these keys in the schema. Later keys follow them, and need no entry here."""
_OPTIONAL = {
    "counts_as", "baseline", "baseline_mean", "max_drop", "severity", "changes", "implementations", "overlaps",
    "stopping", "design", "designs", "calibrations", "correction", "labels", "replies",
    "origins", "taken_over", "versions", "limit", "show_as", "flips",
}  # fmt: skip
"""Keys that are left out if they are null or empty, so that results without them keep their bytes: these, and the keys
that follow `_ORDER`."""
_ABSENT: tuple[object, ...] = (None, (), {})


@dataclass(frozen=True)
class _Head:
    """What the file holds beside the results."""

    format_version: int
    verdict: Overall


@cache
def _build_shape() -> Any:
    """The dataclass of the file: the fields of its head, of `Results` and of its provenance, side by side."""
    keys: dict[str, tuple[str, Any, Any]] = {}
    for part in (_Head, Results, Provenance):
        types = get_type_hints(part)
        keys |= {
            one.name: (one.name, types[one.name], field() if one.name in _REQUIRED else copy(one))
            for one in dataclasses.fields(part)
        }
    del keys["provenance"]
    shape = dataclasses.make_dataclass("Results", [keys[name] for name in dict.fromkeys((*_ORDER, *keys))])
    shape.__doc__ = Results.__doc__
    return shape


def list_content(evaluation: Evaluation) -> dict[str, Any]:
    """The results in JSON types, without the keys that are optional and null."""
    parts = (_Head(FORMAT_VERSION, evaluation.verdict), evaluation, evaluation.provenance)
    shape = _build_shape()
    held = {key: value for part in parts for key, value in vars(part).items()}
    content = dataclasses.asdict(shape(**{one.name: held[one.name] for one in dataclasses.fields(shape)}))
    sliced = [one for part in content["slices"] for one in (*part["comparisons"], *part["aggregates"])]
    cells = (*content["aggregates"], *content["comparisons"], *content["baselines"], *sliced)
    for block in (content, *content["gates"], *cells):
        later = content.keys() - _ORDER if block is content else set()
        for key in (_OPTIONAL | later) & block.keys():
            if block[key] in _ABSENT:
                del block[key]
    return content


def dump_results(evaluation: Evaluation) -> bytes:
    """The results as JSON text, in UTF-8."""
    return dump_document(list_content(evaluation))


def parse_results(content: bytes, path: str) -> Evaluation:
    """Read a JSON report; `path` is its name in errors. The evaluation has none of its tables yet.

    Raises:
        DataError: the content is not JSON, not a report, or has another format version.
    """
    what, remedy = "a JSON report of rageval-spec", "evaluate again with this version"
    held = vars(parse_document(_build_shape(), content, path, what, remedy))
    results, provenance = (
        {one.name: held[one.name] for one in dataclasses.fields(part) if one.name in held}
        for part in (Results, Provenance)
    )
    return Evaluation(**results, provenance=Provenance(**provenance))


def build_schema() -> dict[str, Any]:
    """The JSON Schema of the report; every key is required, except those that only some blocks have."""
    shape = _build_shape()
    later = {one.name for one in dataclasses.fields(shape)} - {*_ORDER}
    return build_document_schema(shape, "Results of rageval-spec", _OPTIONAL | later)


@dataclass(frozen=True)
class Record:
    """An evaluation with its time, commit and label. What was not recorded is None.

    Attributes:
        time: when it was saved, in UTC.
        commit: of the repository that holds the spec, followed by `-dirty` if files differed from it.
        label: the name that finds it again; None for a results folder.
    """

    id: str
    time: datetime | None
    commit: str | None
    label: str | None
    evaluation: Evaluation


class TrendPoint(NamedTuple):
    """One number of one record with its interval, if it has one; `outcome` is what the evaluation came to."""

    record_id: str
    time: datetime
    mean: float
    low: float | None = None
    high: float | None = None
    commit: str | None = None
    outcome: str = "pass"


@dataclass(frozen=True, slots=True)
class Break:
    """A place between two points that cannot be compared: before the point `index`, for this `reason`."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of level that is not chance: from the point `index` on, the mean is `after` instead of `before`."""

    index: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one system on one dataset or slice over time, oldest point first.

    Attributes:
        dataset, system: "" for what belongs to the whole evaluation: its cost and its duration.
        bounds: the bounds of the newest record's gates on the metric: "min", "max" and "target".
    """

    metric: str
    dataset: str
    system: str
    slice: str | None
    points: tuple[TrendPoint, ...]
    breaks: tuple[Break, ...] = ()
    changes: tuple[LevelChange, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """`golden, bm25, difficulty=hard`; "" for the whole evaluation."""
        return ", ".join(filter(None, (self.dataset, self.system, self.slice)))


@dataclass(frozen=True, slots=True)
class Trend:
    """The series of one evaluation's records: those of metrics, then those of costs and durations.

    `false_alarms` is the probability that a stretch of points without a change gets a mark. `remarks` are sentences on
    what a reader must know that no series shows.
    """

    name: str
    series: tuple[Series, ...]
    false_alarms: float
    remarks: tuple[str, ...] = ()


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2))
