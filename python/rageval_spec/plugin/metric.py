"""The contracts of metrics: of rankings, of tables, and of answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from rageval_spec.data.assessment import Criterion, Estimate
from rageval_spec.plugin.names import list_references, names_in
from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.evaluation import Note
    from rageval_spec.data.sample import Part, Sample
    from rageval_spec.data.tables import Collection, Status
    from rageval_spec.plugin.judge import Judge


class MetricNode(Node):
    """A block under `metrics:`; a metric that needs nothing may be a bare string such as `ndcg@10`."""

    as_: str | None = Field(
        default=None, alias="as", min_length=1, description="The name of this metric in tables and gates."
    )


MetricGroup = Literal["ranking", "answers", "text", "operation", "other"]
"""Where `rageval-spec metrics` lists a metric."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What `rageval-spec metrics show` prints; `unit` is that of the values, None where they have none."""

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
    group: ClassVar[MetricGroup] = "other"
    hidden: ClassVar[Sequence[str]] = ()
    """Keys of its node that are not part of its name."""
    excuses: ClassVar[bool] = False
    """Whether a query that cannot have a value is left out of the share that a gate's `min_scored` looks at."""

    @property
    def statistic(self) -> str:
        """What its aggregate is: "mean", "geometric mean", "sum", or a percentile such as "p95"."""
        return self.info.statistic

    @property
    def higher_is_better(self) -> bool | None:
        """False where low values are good; None where neither is."""
        return self.info.higher_is_better

    @property
    def bounds(self) -> tuple[float, float | None]:
        """The lowest and the highest value there can be; None for no highest."""
        return self.info.bounds

    @property
    def is_partial(self) -> bool:
        """Whether it is meant for some of the queries only, such as one of each group.

        Of any other metric a report warns where fewer than half of the queries have a value.
        """
        return False

    @property
    def name(self) -> str:
        """The name in tables, unless `as:` gives another: see `name_metric`."""
        return name_metric(self.node, hidden=self.hidden)

    def asked_models(self) -> Sequence[str]:
        """The names of the models that it asks: those that its node names."""
        return names_in(self.node, "models")


def name_metric(node: Node, *, hidden: Sequence[str] = (), behind_at: Sequence[str] = ()) -> str:
    """A node as a metric's name: its word and the keys that differ from their defaults, such as `bleu(tokenize=char)`.

    The values of the keys `behind_at` follow an `@`: `ndcg(gain=exp)@10`. Left out are `hidden` keys and those that
    name other blocks, such as judges and models.
    """
    left_out = {"use", "as", *hidden, *(found.path[0] for found in list_references(node))}
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
    """A metric that the kernel computes from qrels and a run; all of a run's measures come out of one pass."""

    group: ClassVar[MetricGroup] = "ranking"

    @abstractmethod
    def measure(self) -> str:
        """The kernel's name of this measure, parameters and cutoff included: `ndcg(gain=exp)@10`."""

    def companions(self) -> Sequence[str]:
        """Further measures that `unscorable` must see, by the kernel's names; they are computed in the same pass."""
        return ()

    def unscorable(self, numbers: pl.DataFrame) -> pl.Series | None:  # noqa: ARG002 - for measures whose 0 is no value
        """Why queries have no value: a reason a row, null where the kernel's number is the value.

        `numbers` has a row a query and the columns `measure()` and `companions()`. None says that every number is a
        value, as it is for most measures.
        """
        return None

    def remark_on(self, values: pl.DataFrame) -> Note | None:  # noqa: ARG002 - as in `unscorable`
        """What must be known beside the mean of one system on one dataset; the note need not name the three.

        `values` has the columns `query_id, value, status, reason, tie_low, tie_high`.
        """
        return None


class TableMetric(Metric[N]):
    """A metric in Python: a function from the tables of one dataset and system to values."""

    @abstractmethod
    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """`query_id, value, status, reason`: a row a query of the qrels; value is null unless status is "scored"."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One query's value, or why it has none, and what it was computed from.

    Attributes:
        reason: why there is no value, or what must be said of the one that there is.
        details: in JSON's types: claims with their verdicts, for instance.
        is_unfinished: the evaluation stopped before it was known. Its status is "error", and nothing has failed.
    """

    value: float | None
    status: Status
    reason: str | None = None
    details: Mapping[str, Any] | None = None
    is_unfinished: bool = False

    @classmethod
    def scored(cls, value: float, reason: str | None = None, details: Mapping[str, Any] | None = None) -> Measurement:
        """A value; it must be finite."""
        return cls(float(value), "scored", reason, details)

    @classmethod
    def unscorable(cls, reason: str, details: Mapping[str, Any] | None = None) -> Measurement:
        """This query cannot have a value."""
        return cls(None, "unscorable", reason, details)

    @classmethod
    def error(cls, reason: str, details: Mapping[str, Any] | None = None) -> Measurement:
        """It failed."""
        return cls(None, "error", reason, details)

    @classmethod
    def unfinished(cls, reason: str) -> Measurement:
        """The evaluation stopped before the value was known."""
        return cls(None, "error", reason, is_unfinished=True)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements in the order of the samples, and remarks that need name neither dataset nor system nor metric."""

    measurements: Sequence[Measurement]
    notes: tuple[Note, ...] = ()


class AnswerMetric(Metric[N]):
    """A metric of answers: a function of samples. Safe to use from several threads."""

    group: ClassVar[MetricGroup] = "answers"
    excuses = True
    needs: frozenset[Part] = frozenset({"answer"})
    """What a sample must have; one that lacks a part is unscorable, and the metric does not see it.

    A metric whose needs depend on its node makes it a property.
    """
    counts_failures: ClassVar[bool] = False
    """Whether it sees samples whose system failed; otherwise their status is "error" and the metric does not see them.
    """

    def criteria(self) -> Sequence[Criterion]:
        """What it asks its judge, who is told of it before."""
        return ()

    def judges(self) -> Sequence[Judge[Any]]:
        """Whom it asks."""
        return ()

    def prepare(self) -> None:
        """Import, compile or open what `compute` needs: called in the main thread, before any metric computes.

        Metrics compute in threads. Two threads that import modules of one package for the first time can block each
        other for ever where these modules import one another, so a metric imports such packages here. Called once for
        each system and dataset; what it raises is the error of every query.
        """

    @abstractmethod
    def compute(self, samples: Sequence[Sample]) -> Measured:
        """A measurement a sample, in their order.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: no sample can have a value at all.
        """

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `compute` would make and that are not answered yet; makes none."""
        estimate = Estimate()
        for judge in self.judges():
            for criterion in self.criteria():
                estimate |= judge.estimate(criterion, samples)
        return estimate
