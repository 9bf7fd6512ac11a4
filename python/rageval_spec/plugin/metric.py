"""The contracts of metrics: ranking metrics, table metrics and answer metrics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from rageval_spec.data.findings import Criterion, Estimate
from rageval_spec.data.outcomes import AnyNote, CorrectionMethod, Note, write_notes
from rageval_spec.dataclass import dataclass
from rageval_spec.plugin.block_names import LabelsName, list_references, names_in
from rageval_spec.plugin.plugin import Judge, N, Node, Plugin

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part, Sample
    from rageval_spec.data.tables import Collection, Status


LABEL_KEYS = ("labels", "correction")
"""Keys that say what a mean is made of; no query's value depends on them."""
REPORT_KEYS = (*LABEL_KEYS, "show_as")
"""Keys on which no query's value depends."""
ShowAs = Literal["percent"]
"""How reports show the values of a metric."""


class MetricNode(Node):
    """A block under `metrics:`; a metric without required keys can be a bare string such as `ndcg@10`."""

    as_: str | None = Field(
        default=None, alias="as", min_length=1, description="The name of this metric in tables and gates."
    )
    labels: LabelsName | None = Field(
        default=None,
        description="What people said of some answers, or for metrics of rankings of some pairs of a query and a "
        "document (`use: qrels`): a block under `labels:`. The mean is then what people would say: the judge's mean, "
        "corrected by how far it is from labels. Labels of answers name the metric, by `as` or `use`, or name none.",
    )
    correction: CorrectionMethod = Field(
        default="ppi",
        description="How the mean is corrected by `labels`. ppi: prediction-powered inference, valid for any judge; "
        "rogan_gladen: by the judge's sensitivity and specificity, for values and labels that are yes or no.",
    )
    show_as: ShowAs | None = Field(
        default=None,
        description="How reports, gates and comparisons show the values. percent: `72.5%`, and differences as "
        "percentage points, `+2.5 pp`; only for metrics whose values are from 0 to 1. Bounds of gates stay fractions "
        "(`min: 0.8`), and so do the numbers in results.json, CSV and Parquet.",
    )

    @model_serializer(mode="wrap")
    def _leave_out_labels(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The node without the keys that older specs lack, so that their digests stay."""
        content: dict[str, Any] = serialize(self)
        absent = (*(LABEL_KEYS if self.labels is None else ()), *(("show_as",) if self.show_as is None else ()))
        return {key: value for key, value in content.items() if key not in absent}


DataPart = Literal["references", "qrels"]
"""The data of a dataset, besides its questions, from which a value can be computed."""
_READ: Mapping[Part, DataPart] = {
    "reference": "references",
    "reference_contexts": "references",
    "answerable": "references",
    "group": "references",
    "condition": "references",
    "relevant": "qrels",
}
"""The data that holds a part of a sample; the other parts come from the system."""
MetricGroup = Literal["ranking", "answers", "text", "operation", "other"]
"""The group under which `rageval-spec list metrics` lists a metric."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What `rageval-spec explain` prints. `unit` is the unit of the values, None if they have none."""

    summary: str
    formula: str
    edge_cases: Sequence[str]
    source: str
    aliases: Sequence[str] = ()
    higher_is_better: bool | None = True
    bounds: tuple[float, float | None] = (0.0, 1.0)
    statistic: Literal["mean", "geometric mean", "sum"] = "mean"
    unit: str | None = None


class Metric(Plugin[N]):
    """Gives each query a value, or null with a status and a reason."""

    info: ClassVar[MetricInfo]
    always: ClassVar[Sequence[str]] = ()
    """The edge cases that all metrics of a base class have; they follow those of `info`."""
    group: ClassVar[MetricGroup] = "other"
    hidden: ClassVar[Sequence[str]] = ()
    """Keys of the node that are not part of the metric's name."""
    reads_answer_columns: ClassVar[bool] = False
    """Whether recorded answers can have the columns of `question_columns` instead of the questions."""
    excuses: ClassVar[bool] = False
    """Whether a gate's `min_scored` ignores queries that cannot have a value."""

    @classmethod
    def list_edge_cases(cls) -> list[str]:
        """The edge cases that `explain` prints: the metric's own, and those of its base class."""
        return [*cls.info.edge_cases, *cls.always]

    @property
    def statistic(self) -> str:
        """How values are aggregated: "mean", "geometric mean", "sum", or a percentile such as "p95"."""
        return self.info.statistic

    @property
    def higher_is_better(self) -> bool | None:
        """True if high values are good, False if low ones are; None if neither is better."""
        return self.info.higher_is_better

    @property
    def bounds(self) -> tuple[float, float | None]:
        """The lowest and the highest possible value; None for no upper bound."""
        return self.info.bounds

    @property
    def is_share(self) -> bool:
        """Whether a mean can be shown as a percentage: all values are from 0 to 1, without a unit."""
        return self.bounds == (0.0, 1.0) and self.info.unit is None and self.statistic != "sum"

    @property
    def is_percent(self) -> bool:
        """Whether reports show the values as percentages."""
        return isinstance(self.node, MetricNode) and self.node.show_as == "percent"

    @property
    def is_partial(self) -> bool:
        """Whether only some queries are meant to have a value, such as one query of each group.

        For every other metric a report warns where fewer than half of the queries have a value.
        """
        return False

    @property
    def reads(self) -> frozenset[DataPart]:
        """The data from which values are computed, besides questions and what the systems gave.

        If it was edited since an earlier evaluation, the values of the two are not comparable.
        """
        return frozenset({"references", "qrels"})

    @property
    def name(self) -> str:
        """The metric's name in tables: `as:` where given, else the name that `name_metric` makes."""
        return name_metric(self.node, hidden=self.hidden)

    def content(self) -> dict[str, Any]:
        """The metric's identity, without the keys that change no query's value."""
        content = super().content()
        content["node"] = {key: value for key, value in content["node"].items() if key not in REPORT_KEYS}
        return content

    def recorded(self) -> dict[str, Any]:
        """The node in JSON types as results record it.

        A metric that takes a setting from another block writes it out here: readers of the results have only the node.
        """
        return self.node.model_dump(mode="json", by_alias=True)

    def asked_models(self) -> Sequence[str]:
        """The names of the models that the metric itself asks: those that its node names."""
        return names_in(self.node, "models")

    def find_ranks(self, values: pl.DataFrame) -> pl.Series | None:  # noqa: ARG002 - for measures of one rank
        """The rank of each query's first relevant document, 0 where none was found.

        `values` has the columns `value, status, reason` of one system on one dataset. Queries of which the metric knows
        neither are left out. Returns None if the values do not tell ranks, as for most measures.
        """
        return None

    def question_columns(self) -> Sequence[tuple[tuple[str | int, ...], str]]:
        """The other columns of the questions' files that the metric reads: the node's key that names one, and its name.

        `validate` reports a column that no dataset has.
        """
        return ()


def name_metric(node: Node, *, hidden: Sequence[str] = (), behind_at: Sequence[str] = ()) -> str:
    """The metric's name: its word and the keys that differ from their defaults, such as `bleu(tokenize=char)`.

    The values of the keys in `behind_at` follow an `@`: `ndcg(gain=exp)@10`. The name leaves out the `hidden` keys and
    those that refer to other blocks, such as judges and models.
    """
    left_out = {"use", "as", *REPORT_KEYS, *hidden, *(found.path[0] for found in list_references(node))}
    fields = node.model_dump(exclude_defaults=True, by_alias=True)
    shown = {key: _show(value) for key, value in sorted(fields.items()) if key not in left_out}
    at = "".join(f"@{shown.pop(key)}" for key in behind_at if key in shown)
    parameters = ",".join(f"{key}={value}" for key, value in shown.items())
    return node.use + (f"({parameters})" if parameters else "") + at


def _show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    if isinstance(value, (list, tuple)):
        return "+".join(map(_show, value))
    return str(value)


class RankingMetric(Metric[N]):
    """A metric that the kernel computes from qrels and a run. One pass computes all measures of a run."""

    group: ClassVar[MetricGroup] = "ranking"

    @property
    def reads(self) -> frozenset[DataPart]:
        """The relevance judgements."""
        return frozenset({"qrels"})

    @abstractmethod
    def measure(self) -> str:
        """The kernel's name of this measure, with parameters and cutoff: `ndcg(gain=exp)@10`."""

    def companions(self) -> Sequence[str]:
        """The kernel's names of further measures that `unscorable` needs; the same pass computes them."""
        return ()

    def unscorable(self, numbers: pl.DataFrame) -> pl.Series | None:  # noqa: ARG002 - for measures whose 0 is not a value
        """Why queries have no value: a reason per row, null where the kernel's number is the value.

        `numbers` has one row per query and the columns `measure()` and `companions()`. Returns None if every number
        is a value, as for most measures.
        """
        return None

    def remark_on(self, values: pl.DataFrame) -> Note | None:  # noqa: ARG002 - as in `unscorable`
        """A note on one system's mean on one dataset; it need not name metric, system or dataset.

        `values` has the columns `query_id, value, status, reason, tie_low, tie_high`.
        """
        return None


class TableMetric(Metric[N]):
    """A metric in Python: a function from the tables of one dataset and system to values."""

    @abstractmethod
    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """A table `query_id, value, status, reason` with one row per query of the qrels.

        `value` is null unless `status` is "scored".
        """


@dataclass(frozen=True, slots=True)
class Measurement:
    """One query's value, or why it has none.

    Attributes:
        reason: why there is no value, or a remark on the value.
        details: what the value was computed from, in JSON types: claims with their verdicts, for instance.
        is_unfinished: the evaluation stopped before the value was known. The status is "error", but nothing failed.
    """

    value: float | None
    status: Status
    reason: str | None = None
    details: Mapping[str, Any] | None = None
    is_unfinished: bool = False

    @classmethod
    def scored(cls, value: float, reason: str | None = None, details: Mapping[str, Any] | None = None) -> Measurement:
        """A measurement with a value, which must be finite."""
        return cls(float(value), "scored", reason, details)

    @classmethod
    def unscorable(cls, reason: str, details: Mapping[str, Any] | None = None) -> Measurement:
        """A measurement of a query that cannot have a value."""
        return cls(None, "unscorable", reason, details)

    @classmethod
    def error(cls, reason: str, details: Mapping[str, Any] | None = None) -> Measurement:
        """A measurement of a query whose scoring failed."""
        return cls(None, "error", reason, details)

    @classmethod
    def unfinished(cls, reason: str) -> Measurement:
        """A measurement of a query that was not scored before the evaluation stopped."""
        return cls(None, "error", reason, is_unfinished=True)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements in the order of the samples, and notes, which need not name dataset, system or metric."""

    measurements: Sequence[Measurement]
    notes: tuple[AnyNote, ...] = ()

    @property
    def written_notes(self) -> tuple[Note, ...]:
        """The notes, also those that are not written before all parts of a step are together."""
        return write_notes(self.notes)


class AnswerMetric(Metric[N]):
    """A metric of answers: a function of samples. Safe to use from several threads."""

    group: ClassVar[MetricGroup] = "answers"
    excuses = True
    needs: frozenset[Part] = frozenset({"answer"})
    """The parts that a sample must have. A sample without one of them is unscorable, and the metric does not get it.

    A metric whose needs depend on its node makes this a property.
    """
    reads_contexts: ClassVar[bool] = True
    """Whether `compute` may read the texts of contexts. If no metric of a spec does, samples hold none of them, which
    saves as much memory as the texts take."""

    @property
    def is_separable(self) -> bool:
        """Whether a sample's value depends on no other sample, except those of its group.

        If not, `compute` gets all samples at once, however large the evaluation is.
        """
        return True

    counts_failures: ClassVar[bool] = False
    """Whether the metric gets samples whose system failed; otherwise their status is "error" without it."""

    @property
    def reads(self) -> frozenset[DataPart]:
        """The data that holds what the metric needs."""
        return frozenset(_READ[part] for part in self.needs if part in _READ)

    def criteria(self) -> Sequence[Criterion]:
        """The criteria that the metric asks its judge to assess; the judge gets them beforehand through `expect`."""
        return ()

    def judges(self) -> Sequence[Judge[Any]]:
        """The judges that the metric asks."""
        return ()

    def prepare(self) -> None:
        """Import, compile or open what `compute` needs; called in the main thread, before any metric computes.

        Metrics compute in threads. If two threads import modules of one package for the first time, and these modules
        import one another, the threads can deadlock; so a metric imports such packages here. Called once for each
        system and dataset. If it raises, every query has that error.
        """

    @abstractmethod
    def compute(self, samples: Sequence[Sample]) -> Measured:
        """One measurement per sample, in the order of the samples.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: no sample can have a value.
        """

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `compute` would make and whose replies are not stored yet. Makes no call."""
        estimate = Estimate()
        for judge in self.judges():
            for criterion in self.criteria():
                estimate |= judge.estimate(criterion, samples)
        return estimate
