"""What an evaluation answers: aggregates, comparisons, gate outcomes, notes, values and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec.data.cell import Cell
from rageval_spec.data.fingerprints import Fingerprints

if TYPE_CHECKING:
    import polars as pl

Verdict = Literal["pass", "warn", "fail"]
"""How a gate came out."""
Overall = Literal["pass", "warn", "fail", "error"]
"""How an evaluation came out; "error" where a part of it failed or nothing could be scored."""
NoteLevel = Literal["note", "warning"]
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean or a percentile: `low <= high`, at `confidence` (0.95), by `method`."""

    low: float
    high: float
    confidence: float = 0.95
    method: str = "bootstrap-bca"


@dataclass(frozen=True, slots=True)
class TieRange:
    """Lowest and highest mean over all orders of tied documents, and how many queries' values ties decide."""

    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One metric of one system on one dataset.

    Attributes:
        mean: the mean over the scored queries (the geometric mean for `gm_map`, the sum for counts such as
            `num_ret`, the percentile for `latency@p95`), or None where nothing could be scored.
        interval: None where fewer than two queries were scored, or too few for a percentile, or the metric is a count.
        scored, total: n scored of n.
        excused: queries that cannot have a value and are none the worse for it, such as those without a reference; a
            gate's `min_scored` leaves them out.
        statistic: what `mean` is: "mean", "geometric mean", "sum", or a percentile such as "p95".
    """

    dataset: str
    system: str
    metric: str
    mean: float | None
    interval: Interval | None
    scored: int
    total: int
    statistic: str = "mean"
    ties: TieRange | None = None
    excused: int = 0

    @property
    def cell(self) -> Cell:
        """Where it stands."""
        return Cell(self.dataset, self.system, self.metric)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired test of `system` against `baseline` on the queries that both have a value for.

    `p_value` is the permutation test's, `p_adjusted` after Holm's correction over the family. On each dataset, what
    gates ask for is a family for each baseline; all other comparisons of the table are another one. `difference` is
    `system - baseline`, with its bootstrap `interval`.
    """

    dataset: str
    metric: str
    system: str
    baseline: str
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float
    queries: int
    wins: int
    losses: int

    @property
    def cell(self) -> Cell:
        """Where it stands: the cell that is compared with the baseline's."""
        return Cell(self.dataset, self.system, self.metric)


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """A gate on one dataset and system: what was asked (`bound`), what was seen, and why it came out so."""

    gate: int
    dataset: str
    system: str
    metric: str
    outcome: Verdict
    bound: str
    observed: float | None
    reason: str

    @property
    def cell(self) -> Cell:
        """Where it stands: what the gate looked at."""
        return Cell(self.dataset, self.system, self.metric)


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the numbers must know, such as missing queries that score 0.

    Attributes:
        code: what kind of note it is, for programs.
        dataset, system: what it is about; None where it is about all of them, or about none.
        count: the number that the message is about, where there is one.
        level: "warning" where the numbers may mislead whoever does not read the note. Reports show warnings first.
    """

    code: str
    message: str
    dataset: str | None = None
    system: str | None = None
    count: int | None = None
    level: NoteLevel = "note"


def no_samples() -> pl.DataFrame:
    """The samples of an evaluation in which no system answered: a table without rows."""
    from rageval_spec.data.tables import empty_samples

    return empty_samples()


@dataclass(frozen=True)
class Evaluation:
    """One execution of a spec. Holds no clock time and no path: equal input gives equal bytes.

    Attributes:
        values: the per-query table (`tables.VALUES`).
        versions: of this package and of what computed the numbers.
        spec_digest: sha256 of the validated spec, defaults filled in.
        failures: what gave no values, and why, a sentence each.
        models: what the spec's models are, by name: what another person needs to have the same ones.
        lower_is_better: the metrics whose low values are good.
        units: of the metrics whose values have one, by name: "seconds".
        load_samples: gives the table `samples`, which is made or read when somebody first asks for it.
        load_fingerprints: gives `fingerprints` in the same way.
    """

    name: str
    spec_digest: str
    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    comparisons: tuple[Comparison, ...]
    gates: tuple[GateOutcome, ...]
    notes: tuple[Note, ...]
    values: pl.DataFrame
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    models: dict[str, dict[str, str]] = field(default_factory=dict)
    lower_is_better: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    load_samples: Callable[[], pl.DataFrame] = field(default=no_samples, repr=False, compare=False)
    load_fingerprints: Callable[[], Fingerprints] = field(default=Fingerprints, repr=False, compare=False)

    @cached_property
    def samples(self) -> pl.DataFrame:
        """What each system answered to each query, and what would have been right: columns `tables.SAMPLES`.

        A row a query of each system that answers, datasets, systems and queries in their order. Systems that only
        retrieve have no rows.
        """
        return self.load_samples()

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """What each query was evaluated with; empty where nobody recorded it."""
        return self.load_fingerprints()

    @property
    def verdict(self) -> Overall:
        """error where something failed or nothing was scored; else the worst gate outcome; pass without any gate."""
        if self.failures or self.scored_nothing:
            return "error"
        outcomes = {gate.outcome for gate in self.gates}
        return "fail" if "fail" in outcomes else "warn" if "warn" in outcomes else "pass"

    @property
    def scored_nothing(self) -> bool:
        """Whether no metric has a value for any query."""
        return all(aggregate.scored == 0 for aggregate in self.aggregates)

    def aggregate(self, dataset: str, system: str, metric: str) -> Aggregate | None:
        """The aggregate of one cell of the table, or None."""
        return self._aggregates.get(Cell(dataset, system, metric))

    def comparison(self, dataset: str, system: str, metric: str) -> Comparison | None:
        """The comparison of one cell of the table with the first system that has the metric, or None."""
        return self._comparisons.get(Cell(dataset, system, metric))

    def outcomes(self, dataset: str, system: str, metric: str) -> tuple[GateOutcome, ...]:
        """The gate outcomes of one cell of the table."""
        return self._outcomes.get(Cell(dataset, system, metric), ())

    @cached_property
    def _aggregates(self) -> dict[Cell, Aggregate]:
        return {a.cell: a for a in self.aggregates}

    @cached_property
    def _comparisons(self) -> dict[Cell, Comparison]:
        return {c.cell: c for c in self.comparisons}

    @cached_property
    def _outcomes(self) -> dict[Cell, tuple[GateOutcome, ...]]:
        cells: dict[Cell, tuple[GateOutcome, ...]] = {}
        for gate in self.gates:
            cells[gate.cell] = (*cells.get(gate.cell, ()), gate)
        return cells
