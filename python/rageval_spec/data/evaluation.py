"""The result of an evaluation: aggregates, comparisons, gate outcomes, notes, values and the overall outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec.data.bands import BandScale
from rageval_spec.data.chat import ReplyCounts
from rageval_spec.data.datasets import CellDesign, DatasetOrigin, Design, DesignSummary, Fingerprints
from rageval_spec.data.findings import empty_findings, stream_findings
from rageval_spec.data.outcomes import (
    BaselineChange,
    Cell,
    Correction,
    Diagnosis,
    GateOutcome,
    Interval,
    Note,
    Overlap,
    RankCounts,
    Stopping,
    TakenOver,
    empty_base_answers,
    empty_base_values,
)
from rageval_spec.data.tables import VALUES, DocumentNumbers, SampleTable, empty_documents
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import pl

Overall = Literal["pass", "warn", "fail", "error"]
"""The outcome of an evaluation; "error" if a part of it failed or nothing could be scored."""


@dataclass(frozen=True, slots=True)
class TieRange:
    """The lowest and the highest mean over all orders of tied documents, and the number of queries that ties affect."""

    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One metric of one system on one dataset.

    Attributes:
        mean: of the scored queries; what `statistic` says for other statistics; None if no query could be scored.
        interval: None if fewer than two queries were scored, if they are too few for a percentile, or for a count.
        excused: the queries that are not expected to have a value, for example because the dataset has no reference for
            them; a gate's `min_scored` does not count them.
        statistic: what `mean` holds: "mean", "geometric mean", "sum", or a percentile like "p95".
        slice: the slice of the dataset's queries that the aggregate describes; None for all of them.
        design: what clusters and weights mean for this number, which is the weighted one; None without them.
        correction: what people's labels made of the judge's mean, if the metric has labels. `mean` is then the
            corrected one; None if they are too few.
        versions: the states of the application's code whose answers the number mixes; empty if it mixes none.
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
    slice: str | None = None
    design: CellDesign | None = None
    correction: Correction | None = None
    versions: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        """The cell that the aggregate describes."""
        return Cell(self.dataset, self.system, self.metric, self.slice)


@dataclass(frozen=True, slots=True)
class PairLimit:
    """The least that a paired test can come to, whatever its values are.

    Attributes:
        pairs: the pairs that the test exchanges: questions, or clusters of them. With `n` pairs, 2 of 2**n exchanges
            are as extreme as possible.
        p_value, p_adjusted: the smallest possible, the latter beside the other p-values of the family.
        family: the number of comparisons in the family.
    """

    pairs: int
    p_value: float
    p_adjusted: float
    family: int = 1

    def count_pairs(self, alpha: float) -> int:
        """The fewest pairs with which a difference can be significant in this family."""
        count = 1
        while self.family * 2.0 ** (1 - count) >= alpha:
            count += 1
        return count

    def count_permutations(self, alpha: float) -> int:
        """The fewest permutations with which a difference can be significant in this family."""
        return math.floor(self.family / alpha)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired test of `system` against `baseline` on the queries for which both have a value.

    `difference` is `system - baseline`. `p_value` comes from a permutation test, and `p_adjusted` from Holm's
    correction: on each dataset, the comparisons that gates request form one family for each baseline, and all others
    another. `changes` says what else than the system changed since an earlier evaluation, so that the two numbers are
    not comparable. `baseline_mean` is the baseline's number on these queries. `design` is what clusters and weights
    mean for the difference. If the metric has people's labels, `difference` and `p_value` are corrected by them (see
    `correction`), and wins and losses are still the judge's. `limit` is the least that the test can come to; None for
    tests without one. Results of earlier versions have no `baseline_mean` and no `limit`.
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
    slice: str | None = None
    changes: tuple[BaselineChange, ...] = ()
    baseline_mean: float | None = None
    design: CellDesign | None = None
    correction: Correction | None = None
    limit: PairLimit | None = None

    def is_resolvable(self, alpha: float) -> bool:
        """Whether the test could find a difference at the level `alpha`: it has enough pairs for its family."""
        return self.limit is None or self.limit.p_adjusted < alpha

    @property
    def pair(self) -> tuple[str, str | None, str, frozenset[str]]:
        """What is compared, whichever of the two is the baseline; the test is the same."""
        return self.dataset, self.slice, self.metric, frozenset((self.system, self.baseline))

    @property
    def is_comparable(self) -> bool:
        """Whether nothing but the systems changed in what gives the numbers their meaning."""
        return not self.changes

    @property
    def cell(self) -> Cell:
        """The cell that is compared with the baseline's."""
        return Cell(self.dataset, self.system, self.metric, self.slice)


@dataclass(frozen=True, slots=True)
class SliceResult:
    """A slice, which is a part of a dataset's queries, with the numbers of every system on it.

    Attributes:
        name: its name in gates, reports and commands: `difficulty=hard`, or the name that the spec gives it.
        by: the column whose values make the slices of one group (`difficulty`); None for a slice with conditions.
        description: what its queries have in common, in words.
        aggregates, comparisons: of its queries only. The comparisons of all slices of a dataset are a Holm family.
    """

    dataset: str
    name: str
    by: str | None
    description: str
    queries: int
    aggregates: tuple[Aggregate, ...]
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class SliceGap:
    """A slice on which a system is significantly worse than on the dataset's other queries.

    `mean` is of the slice's scored queries, which `queries` counts, and `rest` of the others. `p_value` comes from a
    permutation test, `p_adjusted` from Holm's correction over all slices, systems and metrics of the dataset.
    """

    dataset: str
    system: str
    metric: str
    slice: str
    mean: float
    rest: float
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float
    queries: int


@dataclass(frozen=True, slots=True)
class JudgingCost:
    """What the replies of one chat model behind the values took, whenever they were paid.

    `calls` counts replies, each once; failed calls and retries are not in it. Tokens are None if the endpoint did not
    report them for every reply. `cost` is in US dollars at the prices that the spec or the list of prices has now; None
    without a price or without tokens.
    """

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class UsedCalibration:
    """The calibration of a judge: the sha256 of its file, what the judge took from it, and its labels by metric."""

    digest: str
    score: str
    labels: dict[str, int]


def no_values() -> pl.DataFrame:
    """The values of an evaluation whose results alone are known: no rows."""
    return pl.DataFrame(schema={name: pl.Float64 if name == "value" else pl.String for name in VALUES})


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of an evaluation come from. `Results` describes the fields."""

    spec_digest: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, str]] = field(default_factory=dict)
    digests: dict[str, dict[str, str]] = field(default_factory=dict)
    judging: dict[str, JudgingCost] = field(default_factory=dict)
    replies: dict[str, ReplyCounts] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    calibrations: dict[str, UsedCalibration] = field(default_factory=dict)
    implementations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    origins: dict[str, DatasetOrigin] = field(default_factory=dict)
    taken_over: tuple[TakenOver, ...] = ()


@dataclass(frozen=True, slots=True)
class Stability:
    """How far the values of one metric differ when a question is asked again.

    Of the `questions` with at least two values, those of `changing` are not all equal. `within` is the variance of a
    question's values, `between` that of the questions' expected values; None if there are too few values.
    """

    dataset: str
    system: str
    metric: str
    questions: int
    changing: int
    within: float | None
    between: float | None

    @staticmethod
    def drop_repeat() -> pl.Expr:
        """The ids of queries without the number that `repeat:` gives each time: `q1` of `q1#2`."""
        return pl.col("query_id").str.replace("#[0-9]+$", "")


@dataclass(frozen=True)
class Results:
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
        stability: with `repeat:`, how far each metric's values of the same question differ.
    """

    name: str
    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    aggregates: tuple[Aggregate, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    gates: tuple[GateOutcome, ...] = ()
    notes: tuple[Note, ...] = ()
    failures: tuple[str, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    """Its fields are keys of the JSON, beside these."""
    lower_is_better: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float | None]] = field(default_factory=dict)
    show_as: dict[str, Literal["percent"]] = field(default_factory=dict)
    baselines: tuple[Comparison, ...] = ()
    slices: tuple[SliceResult, ...] = ()
    weakest: tuple[SliceGap, ...] = ()
    diagnosis: Diagnosis | None = None
    bands: dict[str, BandScale] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()
    stopping: Stopping | None = None
    designs: dict[str, DesignSummary] = field(default_factory=dict)
    target_ranks: tuple[RankCounts, ...] = ()
    stability: tuple[Stability, ...] = ()


@dataclass(frozen=True)
class Evaluation(Results):
    """The result of one execution of a spec. It holds no clock time and no path, so equal input gives equal bytes.

    Attributes:
        values: the per-query table (`tables.VALUES`).
        sample_table: the samples, from a run or from files; `samples` is the whole table.
        load_fingerprints, load_base_values, load_base_answers, load_question_designs: return the attribute of that
            name, when it is first read.
    """

    values: pl.DataFrame = field(default_factory=no_values)
    sample_table: SampleTable = field(default_factory=SampleTable, repr=False, compare=False)
    load_fingerprints: Callable[[], Fingerprints] = field(default=Fingerprints, repr=False, compare=False)
    load_base_values: Callable[[], pl.DataFrame] = field(default=empty_base_values, repr=False, compare=False)
    load_base_answers: Callable[[], pl.DataFrame] = field(default=empty_base_answers, repr=False, compare=False)
    load_question_designs: Callable[[], dict[str, Design]] = field(default=dict, repr=False, compare=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field of the provenance, which reports of other packages read here: `evaluation.settings`."""
            if name in Provenance.__dataclass_fields__:
                return getattr(self.provenance, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def samples(self) -> pl.DataFrame:
        """Each system's answer to each query, next to the gold answer: columns `tables.SAMPLES`.

        A system that only retrieves has no answers; its contexts are the first `tables.SHOWN_DOCUMENTS` of its run.
        """
        return self.sample_table.whole

    def iterate_samples(self) -> Iterator[pl.DataFrame]:
        """The rows of `samples` in blocks. This takes less memory than the whole table."""
        return self.sample_table.blocks()

    def select_samples(self, *columns: str) -> pl.DataFrame:
        """Some columns of `samples`, as far as it has them. The others are never all in memory."""
        return self.sample_table.select(columns)

    def find_samples(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """The rows of `samples` that share the columns of `wanted`, such as `dataset, system, query_id`."""
        return self.sample_table.find(wanted)

    @cached_property
    def findings(self) -> pl.DataFrame:
        """What judges decided about each claim, in one row each: columns `findings.FINDINGS`."""
        return pl.concat([empty_findings(), *self.iterate_findings()])

    def iterate_findings(self) -> Iterator[pl.DataFrame]:
        """The rows of `findings` in blocks, in the order of the samples and the metrics."""
        return stream_findings(self.values, self.metrics, self.iterate_samples())

    @cached_property
    def documents(self) -> pl.DataFrame:
        """The texts of all contexts, each once: columns `documents.DOCUMENTS`, in the order of the samples."""
        return pl.concat([empty_documents(), *self.iterate_documents()])

    def iterate_documents(self) -> Iterator[pl.DataFrame]:
        """The rows of `documents` in blocks."""
        numbering = DocumentNumbers()
        return (numbering.take(block)[1] for block in self.iterate_samples())

    @cached_property
    def fingerprints(self) -> Fingerprints:
        """The fingerprints of each query's question, references and judgements; empty if they were not recorded."""
        return self.load_fingerprints()

    @cached_property
    def base_values(self) -> pl.DataFrame:
        """What each query's value was in the earlier evaluations that gates compare with: `outcomes.BASE_VALUES`."""
        return self.load_base_values()

    @cached_property
    def base_answers(self) -> pl.DataFrame:
        """The answers in the earlier evaluations that gates compare with, as far as they kept them: `BASE_ANSWERS`."""
        return self.load_base_answers()

    @cached_property
    def question_designs(self) -> dict[str, Design]:
        """The cluster and the weight of each question, by dataset; only of datasets that have any."""
        return self.load_question_designs()

    @property
    def verdict(self) -> Overall:
        """The outcome: error if something failed or nothing was scored, else the worst gate outcome, else pass.

        An inconclusive gate counts as what its `on_inconclusive` says.
        """
        if self.failures or self.scored_nothing:
            return "error"
        outcomes = {gate.counted for gate in self.gates}
        return "fail" if "fail" in outcomes else "warn" if "warn" in outcomes else "pass"

    @property
    def question_values(self) -> pl.DataFrame:
        """`dataset, system, metric, query_id, value` of values with a number; with `repeat:`, the means of repeats."""
        question = Stability.drop_repeat() if self.stability else pl.col("query_id")
        groups = self.values.drop_nulls("value").group_by("dataset", "system", "metric", question, maintain_order=True)
        return groups.agg(pl.col("value").mean())

    @property
    def scored_nothing(self) -> bool:
        """Whether no metric has a value for any query."""
        return all(aggregate.scored == 0 for aggregate in self.aggregates)

    def aggregate(self, dataset: str, system: str, metric: str, slice: str | None = None) -> Aggregate | None:
        """The aggregate of one cell, or None."""
        return self._aggregates.get(Cell(dataset, system, metric, slice))

    def comparison(self, dataset: str, system: str, metric: str, slice: str | None = None) -> Comparison | None:
        """The comparison of one cell with the first system that has the metric, or None."""
        return self._comparisons.get(Cell(dataset, system, metric, slice))

    @cached_property
    def every_comparison(self) -> tuple[Comparison, ...]:
        """The comparisons on all queries: those with the first system, then others that gates ask for, each once."""
        found = {one.pair: one for one in (*self.comparisons, *self.baselines)}
        return tuple({**found, **{one.pair: one for one in self.comparisons}}.values())

    def find_asked(self, gate: GateOutcome) -> Comparison | None:
        """The comparison that a gate with a baseline looked at; None if it is not among the results."""
        own = self._comparisons.get(gate.cell)
        known = (*self.baselines, *(() if own is None else (own,)))
        return next((one for one in known if (one.cell, one.baseline) == (gate.cell, gate.baseline)), None)

    def outcomes(self, dataset: str, system: str, metric: str, slice: str | None = None) -> tuple[GateOutcome, ...]:
        """The outcomes of all gates on one cell."""
        return self._outcomes.get(Cell(dataset, system, metric, slice), ())

    @cached_property
    def _aggregates(self) -> dict[Cell, Aggregate]:
        sliced = (aggregate for one in self.slices for aggregate in one.aggregates)
        return {a.cell: a for a in (*self.aggregates, *sliced)}

    @cached_property
    def _comparisons(self) -> dict[Cell, Comparison]:
        sliced = (comparison for one in self.slices for comparison in one.comparisons)
        return {c.cell: c for c in (*self.comparisons, *sliced)}

    @cached_property
    def _outcomes(self) -> dict[Cell, tuple[GateOutcome, ...]]:
        cells: dict[Cell, tuple[GateOutcome, ...]] = {}
        for gate in self.gates:
            cells[gate.cell] = (*cells.get(gate.cell, ()), gate)
        return cells
