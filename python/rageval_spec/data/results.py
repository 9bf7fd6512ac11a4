"""An evaluation as JSON: the report `json` writes it, and a saved evaluation is read from it.

Its schema is `schemas/results.schema.json`. Within a `format_version`, keys are only added. Numbers have all their
digits and are never NaN, keys are sorted, and the same evaluation gives the same bytes. The tables (values, samples)
are separate files.

A saved evaluation also has the time, commit and label that an `Evaluation` itself must not hold. A `Trend` has the
numbers of many evaluations over time, ready to be drawn.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from pydantic import TypeAdapter, ValidationError

from rageval_spec.data.bands import BandScale
from rageval_spec.data.chat import ReplyCounts
from rageval_spec.data.datasets import DatasetOrigin, Design, DesignSummary, Fingerprints
from rageval_spec.data.evaluation import (
    FORMAT_VERSION,
    Aggregate,
    Comparison,
    Evaluation,
    JudgingCost,
    Overall,
    SliceGap,
    SliceResult,
    UsedCalibration,
    no_samples,
)
from rageval_spec.data.outcomes import (
    Diagnosis,
    GateOutcome,
    Note,
    Overlap,
    RankCounts,
    Stopping,
    TakenOver,
    empty_base_values,
)
from rageval_spec.diagnostics import describe_invalid, dump_visible
from rageval_spec.errors import DataError

if TYPE_CHECKING:
    import polars as pl


_OPTIONAL = {
    "counts_as", "baseline", "baseline_mean", "max_drop", "severity", "changes", "implementations", "overlaps",
    "stopping", "design", "designs", "calibrations", "correction", "labels", "replies",
    "origins", "taken_over", "versions", "limit", "show_as", "target_ranks",
}  # fmt: skip
"""Keys that are left out if they are null or empty, so that results without them keep their bytes."""
_ABSENT: tuple[object, ...] = (None, (), {})
_TABLES = (
    "values", "load_samples", "stream_samples", "stored_samples", "load_fingerprints", "load_base_values",
    "load_base_answers", "load_question_designs",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class StoredResults:
    """The result of one execution of a rageval-spec evaluation.

    Attributes:
        format_version: of this shape; keys are added without raising it.
        spec_digest: sha256 of the validated spec, defaults filled in.
        verdict: error where something failed or nothing was scored; else the worst gate outcome; pass without a gate.
        failures: what gave no values, and why.
        aggregates: one for each dataset, system and metric.
        comparisons: every system against the first one.
        gates: one for each gate, dataset and system that it concerns.
        settings: how the numbers were computed.
        versions: of rageval-spec and of what computed the numbers.
        models: the spec's models by name: their ids, revisions and digests.
        lower_is_better: the metrics whose low values are good.
        units: of the metrics whose values have one, by name.
        ranges: the lowest and the highest possible value of metrics, by name; null for no highest one. Metrics without
            a lowest one are left out.
        show_as: how reports show the values of a metric, by name; the numbers here are fractions all the same.
        baselines: every system against each baseline that a gate names.
        slices: each slice of the queries, with its aggregates and comparisons.
        weakest: the slices on which a system is significantly worse than on the other queries.
        diagnosis: why questions went wrong, counted; null without the metrics that tell.
        bands: words for values, by metric.
        summaries: what each metric measures, in a sentence, by name.
        digests: sha256 of each dataset's questions, references, corpus and qrels.
        judging: for each chat model that judges asked, the calls, tokens and US dollars behind the values, whenever
            they were paid; equal requests count once; tokens or cost that are not known are null.
        replies: for each of these models, the questions whose first reply could be read (`first`), those that were
            asked again (`later`) and those without a readable reply (`never`); `repeats` counts the further replies.
        prompts: sha256 of the prompts of the judges that metrics ask, by judge and prompt: `strict.verify`.
        calibrations: of the judges that have one: sha256 of the file, what the judge took from it, labels by metric.
        implementations: sha256 of the version and the files of each metric, by name.
        overlaps: how many queries of each dataset are the same as in each earlier evaluation that gates compare with.
        spec: the validated spec with its defaults; secrets by name.
        stopping: with `stopping:` in the spec, how many questions of each dataset were asked, and why no more.
        designs: with `cluster:`, `weight:` or `weights:` in the spec, which questions of each dataset belong together,
            and what they stand for.
        labels: with `labels:` in a metric, sha256 of the files of people's labels, by name.
        origins: what datasets say about themselves: version, creation, how they were made, questions that people
            reviewed, versions of source documents; without those that say nothing.
        taken_over: the answers that were not asked now, for each dataset and system: how many, when they were asked,
            and of which commits all answers are.
        target_ranks: with a metric that knows (`rr`, `target_rank`), how many queries have their first relevant
            document at which rank: 1, 2 to 3, 4 to 10, from 11 on (`11-`), or at none that the metric looks at.
    """

    format_version: int
    name: str
    spec_digest: str
    verdict: Overall
    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    comparisons: tuple[Comparison, ...]
    gates: tuple[GateOutcome, ...]
    notes: tuple[Note, ...]
    settings: dict[str, Any]
    versions: dict[str, str]
    failures: tuple[str, ...]
    models: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    lower_is_better: tuple[str, ...] = ()
    units: dict[str, str] = dataclasses.field(default_factory=dict)
    ranges: dict[str, tuple[float, float | None]] = dataclasses.field(default_factory=dict)
    show_as: dict[str, Literal["percent"]] = dataclasses.field(default_factory=dict)
    baselines: tuple[Comparison, ...] = ()
    slices: tuple[SliceResult, ...] = ()
    weakest: tuple[SliceGap, ...] = ()
    diagnosis: Diagnosis | None = None
    bands: dict[str, BandScale] = dataclasses.field(default_factory=dict)
    summaries: dict[str, str] = dataclasses.field(default_factory=dict)
    digests: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    judging: dict[str, JudgingCost] = dataclasses.field(default_factory=dict)
    replies: dict[str, ReplyCounts] = dataclasses.field(default_factory=dict)
    prompts: dict[str, str] = dataclasses.field(default_factory=dict)
    calibrations: dict[str, UsedCalibration] = dataclasses.field(default_factory=dict)
    implementations: dict[str, str] = dataclasses.field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()
    spec: dict[str, Any] = dataclasses.field(default_factory=dict)
    stopping: Stopping | None = None
    designs: dict[str, DesignSummary] = dataclasses.field(default_factory=dict)
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    origins: dict[str, DatasetOrigin] = dataclasses.field(default_factory=dict)
    taken_over: tuple[TakenOver, ...] = ()
    target_ranks: tuple[RankCounts, ...] = ()

    @classmethod
    def of(cls, evaluation: Evaluation) -> StoredResults:
        """The results of an evaluation."""
        shared = {name: getattr(evaluation, name) for name in _shared_fields()}
        return cls(format_version=FORMAT_VERSION, verdict=evaluation.verdict, **shared)

    def evaluation(
        self,
        values: pl.DataFrame,
        load_samples: Callable[[], pl.DataFrame] = no_samples,
        load_fingerprints: Callable[[], Fingerprints] = Fingerprints,
        load_base_values: Callable[[], pl.DataFrame] = empty_base_values,
        load_question_designs: Callable[[], dict[str, Design]] = dict,
    ) -> Evaluation:
        """The evaluation of these results, completed with its values, samples, fingerprints and base values."""
        return Evaluation(
            **{name: getattr(self, name) for name in _shared_fields()},
            values=values,
            load_samples=load_samples,
            load_fingerprints=load_fingerprints,
            load_base_values=load_base_values,
            load_question_designs=load_question_designs,
        )

    @classmethod
    def parse(cls, content: bytes, path: str) -> StoredResults:
        """Read a JSON report; `path` is its name in errors.

        Raises:
            DataError: the content is not JSON, not a report, or has another format version.
        """
        try:
            data = json.loads(content, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not a JSON report: {error}") from error
        version = data.get("format_version") if isinstance(data, dict) else None
        if version != FORMAT_VERSION:
            raise DataError(
                f"{path}: format_version is {version!r} where {FORMAT_VERSION} was expected; "
                "it was written by another version of rageval-spec; evaluate again with this one"
            )
        try:
            return TypeAdapter(cls).validate_python(data)
        except ValidationError as error:
            raise DataError(f"{path}: not a JSON report of rageval-spec: {describe_invalid(error)}") from error

    def content(self) -> dict[str, Any]:
        """The results in JSON types, without the keys that are optional and null."""
        content = dataclasses.asdict(self)
        sliced = [one for part in content["slices"] for one in (*part["comparisons"], *part["aggregates"])]
        cells = (*content["aggregates"], *content["comparisons"], *content["baselines"], *sliced)
        for block in (content, *content["gates"], *cells):
            for key in _OPTIONAL & block.keys():
                if block[key] in _ABSENT:
                    del block[key]
        return content

    def dump(self) -> bytes:
        """The results as JSON text, in UTF-8."""
        return dump_visible(self.content(), sort_keys=True).encode("utf-8", "backslashreplace")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that a report holds")


def _shared_fields() -> Iterator[str]:
    return (field.name for field in dataclasses.fields(Evaluation) if field.name not in _TABLES)


def build_schema() -> dict[str, Any]:
    """The JSON Schema of the report; every key is required, except those that only some blocks have."""
    schema = TypeAdapter(StoredResults).json_schema(mode="serialization")
    for shape in (schema, *schema["$defs"].values()):
        shape["required"] = sorted(shape["properties"].keys() - _OPTIONAL)
        for key in shape["properties"].values():
            key.pop("title", None)
            key.pop("default", None)
    schema["properties"]["format_version"] = {"const": FORMAT_VERSION}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Results of rageval-spec"}
    return schema | head


@dataclass(frozen=True)
class Record:
    """An evaluation with its time, commit and label.

    Attributes:
        id: the unique id of this record.
        time: when it was saved, in UTC; None if that was not recorded.
        commit: the commit of the repository that holds the spec, followed by `-dirty` if files differed from it; None
            outside a repository, or if it was not recorded.
        label: the name that finds it again; None for a results folder.
    """

    id: str
    time: datetime | None
    commit: str | None
    label: str | None
    evaluation: Evaluation


class TrendPoint(NamedTuple):
    """One number of one record.

    Attributes:
        mean: the number; `low` and `high` are its interval, None if it has none.
        commit: the commit of the record; None if it is not known.
        outcome: what the evaluation came to.
    """

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
    """The series of one evaluation's records.

    Attributes:
        name: the evaluation's name.
        series: those of metrics, then those of costs and durations.
        false_alarms: the probability that a stretch of points without a change gets a mark.
        remarks: what a reader must know that no series shows, in sentences.
    """

    name: str
    series: tuple[Series, ...]
    false_alarms: float
    remarks: tuple[str, ...] = ()


if __name__ == "__main__":
    print(json.dumps(build_schema(), indent=2))
