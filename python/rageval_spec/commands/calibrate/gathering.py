"""What `calibrate --spec` works with: a judge of several steps, and the answers that all of them are asked about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec.calibration.cascading import Asked
from rageval_spec.calibration.joining import find_clusters, join_labels
from rageval_spec.calibration.samples import read_samples
from rageval_spec.data.judge_calibration import Figure, Guaranteed, JudgeCalibration, Labelled, StepBounds
from rageval_spec.errors import UsageError
from rageval_spec.judging.calibrated import find_surroundings
from rageval_spec.judging.delegation import assess_or_fail
from rageval_spec.judging.grading import list_scores
from rageval_spec.pipeline.asking import AskedJudge, expect_calls
from rageval_spec.pipeline.estimate import Expectation
from rageval_spec.plugin.identity import digest_criterion, digest_identity, identify_judge

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.calibration.joining import Joined
    from rageval_spec.calibration.samples import Answered
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.labels import Label, Scale
    from rageval_spec.data.sample import Sample
    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.plugin import Judge
    from rageval_spec.progress import ProgressDisplay

Read: TypeAlias = "tuple[Sequence[Label], Scale | None]"
"""Labels of all metrics, and their scale."""


def choose_metric(parts: Parts, metrics: Sequence[str], kinds: Sequence[str]) -> str:
    """The metric that is named, or the only one whose judge is of one of these kinds.

    Raises:
        UsageError: several are named, or none is and the spec does not have exactly one.
    """
    if metrics:
        if len(metrics) > 1:
            raise UsageError("the steps of one judge at a time: name one metric")
        return metrics[0]
    found = [name for name, one in parts.answer_metrics.items() if {j.node.use for j in one.judges()} & {*kinds}]
    if len(found) != 1:
        told = f"{', '.join(found)} each ask one" if found else "no metric asks one"
        raise UsageError(f"name the metric whose judge is a {' or '.join(kinds)}, with --metric: {told}")
    return found[0]


@dataclass(frozen=True)
class Gathered:
    """A judge of several steps, and the answers that they are asked about.

    Attributes:
        asked: the judge, and what its metric asks.
        items: the answers, in the order of the labels if there are any.
        samples: the texts of each answer.
        joined: the labels; None if there are none.
        together: the cluster of each question that belongs together with others, by dataset and query.
    """

    asked: AskedJudge
    parts: Parts
    display: ProgressDisplay
    items: Sequence[Answered]
    samples: Mapping[Answered, Sample]
    joined: Joined | None
    together: Mapping[tuple[str, str], tuple[str, int]]

    @property
    def kind(self) -> str:
        """The word of the judge: `cascade` or `waterfall`."""
        return str(self.asked.judge.node.use)

    def list_steps(self) -> Sequence[Judge[Any]]:
        """The judges that it asks, in order."""
        judge: Any = self.asked.judge
        members: Sequence[Judge[Any]] = judge.members
        return members

    def list_samples(self) -> list[Sample]:
        """The texts, in the order of the answers."""
        return [self.samples[item] for item in self.items]

    def tell_cost(self, judges: Sequence[Judge[Any]]) -> None:
        """Say which calls these judges would make, if they make any."""
        if calls := expect_calls(self.parts, judges, self.asked.criterion, self.list_samples()):
            self.display.tell(Expectation(calls).render().rstrip())

    def ask_steps(self) -> Asked:
        """What each step of a cascade says of all answers."""
        members, criterion = self.list_steps(), self.asked.criterion
        for member in members:
            member.expect([criterion])
        self.tell_cost(members)
        scores = []
        for member in members:
            self.display.announce(f"ask {member.context.name}")
            findings, _ = assess_or_fail(member, criterion, self.list_samples())
            scores.append(list_scores(findings, criterion))
        return Asked(self.items, scores, self.together)

    def ask_stages(self) -> Mapping[str, Sequence[float | None]]:
        """The value of every answer at each stage of a waterfall."""
        judge: Any = self.asked.judge
        judge.expect([self.asked.criterion])
        self.tell_cost([judge])
        self.display.announce(f"ask {judge.context.name}")
        values: Mapping[str, Sequence[float | None]] = judge.read_stages(self.asked.criterion, self.list_samples())
        return values

    def keep(
        self,
        labelled: Labelled,
        steps: tuple[StepBounds, ...],
        held_out: tuple[Figure, ...] = (),
        guarantee: Guaranteed | None = None,
    ) -> JudgeCalibration:
        """The entry of the judge, as a calibration has it."""
        judge, criterion = self.asked.judge, self.asked.criterion
        identity = identify_judge(judge, find_surroundings(judge))
        return JudgeCalibration(
            judge=judge.context.name,
            metric=self.asked.metric.context.name,
            criterion=digest_criterion(criterion),
            of="answers",
            scale=criterion.scale or (0.0, 1.0),
            identity=identity,
            digest=digest_identity(identity),
            labelled=labelled,
            guarantee=guarantee,
            steps=steps,
            held_out=held_out,
        )


def gather(
    evaluation: Evaluation, asked: AskedJudge, parts: Parts, display: ProgressDisplay, read: Read | None
) -> Gathered:
    """The labelled answers of the results; without labels, all answers with a value of the metric.

    Raises:
        UsageError: the judge has no steps, or claims are labelled; the results lack the metric.
        DataError: the results lack the answers' texts.
    """
    judge, name = asked.judge, asked.metric.context.name
    if judge.node.use not in ("cascade", "waterfall"):
        raise UsageError(
            f"--spec is for a cascade or a waterfall, and the judge '{judge.context.name}' of {name} is neither; leave "
            "out --spec"
        )
    if name not in evaluation.metrics:
        raise UsageError(f"the results have no metric '{name}'; run the spec first, or name other results")
    joined, values = None, _list_values(evaluation, name)
    if read is not None:
        labels, scale = read
        labels = [one for one in labels if one.metric in ("", name)]
        joined = join_labels(replace(evaluation, values=values), labels, name, scale)
        if any(item[3] is not None for item in joined.items):
            raise UsageError("labels of claims cannot say where steps are sure of an answer; label whole answers")
        items = [item[:3] for item in joined.items]
    else:
        items = [*values.select("dataset", "system", "query_id").iter_rows()]
    return Gathered(asked, parts, display, items, read_samples(evaluation, items), joined, find_clusters(evaluation))


def _list_values(evaluation: Evaluation, metric: str) -> pl.DataFrame:
    """The values of the answers that the judge was asked about. Those that it left to a person count as 0.

    A metric decides some answers itself, such as empty ones; they have no details of a judge.
    """
    import polars as pl

    asked = pl.col("value").is_not_null() | pl.col("details").is_not_null()
    known = asked & pl.col("status").is_in(["scored", "unscorable"])
    return evaluation.values.filter(known, metric=metric).with_columns(pl.col("value").fill_null(0.0))


def list_bounds(entry: JudgeCalibration) -> list[dict[str, Any]]:
    """The bounds of the steps in JSON types, without those that are not set."""
    return [{key: value for key, value in asdict(one).items() if value is not None} for one in entry.steps]
