"""`calibrate`: joins labels with the values of results, and shows how close the judge comes to people.

A spec is run for it: only what labels are about, and nothing that is stored is paid twice. For `calibrate --spec`, a
judge of several steps is gathered, and the answers that all of them are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rageval_spec import registry, runner
from rageval_spec.calibration import calibration_report, judge_reports
from rageval_spec.calibration.calibration_report import keep_calibration
from rageval_spec.calibration.judge_quality import Spending, find_spending, list_chat_models
from rageval_spec.calibration.judge_reports import (
    CalibrationValues,
    choose,
    choose_values,
    count_others,
    know_nodes,
    list_judges,
    measure_judges,
)
from rageval_spec.calibration.labelled_items import Answered, Joined, find_clusters, join_labels, read_samples
from rageval_spec.calibration.measures import WIDTH
from rageval_spec.calibration.thresholds import StepScores
from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.results_argument import is_spec, open_results
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.judge_calibration import CalibrationLabels, Figure, Guaranteed, JudgeCalibration, StepBounds
from rageval_spec.data.labels import Label, LabelScale
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import asdict, dataclass, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.history.metric_definitions import read_recorded_spec
from rageval_spec.judging.calibrated_judge import find_surroundings
from rageval_spec.judging.composition import assess_or_fail
from rageval_spec.judging.grade_scores import list_scores
from rageval_spec.libraries import pl
from rageval_spec.pipeline.cost_estimate import ExpectedCalls
from rageval_spec.pipeline.execution.sample_judging import AskedJudge, expect_calls
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.plugin import Judge, Node
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.judge_identity import digest_criterion, digest_identity, identify_judge
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reading.label_files import read_columns, read_labels
from rageval_spec.runner import Options, PlannedRun
from rageval_spec.spec import load
from rageval_spec.spec.blocks.gates import NamedMetric
from rageval_spec.spec.blocks.spec_node import Spec, default_block, default_blocks
from rageval_spec.wording import count_noun, list_choices


@dataclass(frozen=True, slots=True)
class Running:
    """How a spec is run for a calibration; without a store of its own, in the one next to the spec.

    With `everything`, all questions are scored, even if that costs something; else only the labelled ones are then.
    """

    overrides: Sequence[str] = ()
    store: Path | None = None
    no_store: bool = False
    everything: bool = False

    @property
    def options(self) -> Options:
        """Those of the evaluation. It writes no results and no record."""
        return runner.Options(output=None, store=self.store, no_store=self.no_store, no_history=True, quiet=False)


def calibrate_judges(
    results: str | None,
    labels: Sequence[Path],
    columns: Sequence[str],
    metrics: Sequence[str],
    scale: str | None,
    form: str,
    *,
    judges: Sequence[str] = (),
    threshold: str = "youden",
    width: float = WIDTH,
    guarantee: str | None = None,
    confidence: float = 0.95,
    details: bool = False,
    output: Path | None = None,
    freeze: Path | None = None,
    running: Running | None = None,
) -> bytes:
    """Compare a judge with people's labels, for each labelled metric, as text or JSON.

    `results` are a results folder, a label or a record of the history, or a spec; None for the last results. The other
    arguments are the options of the command.
    """
    if output is not None:
        calibration_report.check_place(output)
    if freeze is not None:
        calibration_report.check_place(freeze, "anchors")
    settings = judge_reports.CalibrationSettings(
        judge_reports.read_scale(scale),
        judge_reports.read_criterion(threshold),
        width,
        judge_reports.read_guarantee(guarantee),
        confidence,
        details=details,
    )
    if results is not None and is_spec(results):
        running = running or Running()
        spec = load(Path(results), overrides=running.overrides)
        told = read_labels(labels, read_columns(columns)) if labels else judge_reports.read_spec_labels(spec)
        evaluated = evaluate(spec, told, metrics, judges, running)
    elif running is not None and (running.overrides or running.everything):
        raise UsageError("--set and --all need a spec: rageval-spec calibrate spec.yaml")
    else:
        opened = open_results(results)
        if not labels:
            raise UsageError("name the labels: --labels labels.csv; or a spec with 'labels:' instead of results")
        told = read_labels(labels, read_columns(columns))
        evaluated = choose_values(opened.evaluation, told, metrics, judges)
    groups = measure_judges(evaluated, settings)
    evaluation, found = evaluated.evaluation, list_judges(groups)
    kept: list[str] = []
    if output is not None:
        entries = [keep_calibration(evaluation, one.joined, one.calibration, one.promise) for one in found]
        kept.append(calibration_report.write_calibrations(output, evaluation, entries))
    if freeze is not None:
        kept.append(
            calibration_report.write_anchors(freeze, evaluation, [(one.joined, one.calibration) for one in found])
        )
    if form == "json":
        return calibration_report.dump(groups, evaluated.others)
    return calibration_report.render(evaluated, groups, settings, kept)


def evaluate(
    spec: Spec, labels: Sequence[Label], metrics: Sequence[str], judges: Sequence[str], running: Running
) -> CalibrationValues:
    """Score what labels are about.

    All questions are scored if that makes no calls, because their replies are stored; else only those with labels,
    unless `running` wants everything. A judge that no labelled metric asks gets a metric of its own.
    """
    spec = replace(spec, samples="full", redact=())  # nothing is written, and labels are joined by the answers' texts
    # Values do not depend on labels, and a mean that lacks some is no reason to stop.
    plain = (NamedMetric(name, node.model_copy(update={"labels": None})) for name, node in spec.metrics)
    spec = _add_judges(replace(spec, metrics=tuple(plain), labels={}), labels, metrics, judges)
    known = know_nodes({metric.name: metric.node for metric in spec.metrics})
    chosen = choose(known, labels, metrics, judges)
    names = {name for one in chosen for name in (*one.shown, *one.compared)}
    narrow = _keep_metrics(spec, names)
    # Labels that name no dataset can be of any.
    labelled = {name: {one.query_id for one in labels if one.dataset in ("", name)} for name in spec.datasets}
    part = replace(running.options, queries=labelled)
    compared = [name for one in chosen for name in one.compared]
    planned = runner.plan(narrow, running.options)
    is_free = not _asks(planned)
    wanted = running.options if running.everything or is_free else part
    shown = planned if wanted is not part else runner.plan(narrow, part)
    if _asks(shown):
        console.tell(shown.expectation.render().rstrip())
    if wanted is part:
        console.tell(_explain_part(labelled, planned))
    spending = {} if running.no_store else {name: _rate(_keep_metrics(spec, {name}), name, part) for name in compared}
    outcome = _run(spec if _is_stored(spec, wanted) else narrow, wanted)
    return CalibrationValues(outcome, chosen, known, spending, count_others(known, labels, metrics))


def _add_judges(spec: Spec, labels: Sequence[Label], metrics: Sequence[str], judges: Sequence[str]) -> Spec:
    """The spec with a metric for each judge that no labelled metric asks: the first one, asked of this judge."""
    known = know_nodes({metric.name: metric.node for metric in spec.metrics})
    nodes = {metric.name: metric.node for metric in spec.metrics}
    added: list[NamedMetric] = []
    for criterion in dict.fromkeys(label.metric or next(iter(metrics), "") for label in labels):
        about = known.list_labelled(criterion)
        asking = [name for name in about if name in known.judges]
        there = {known.judges[name] for name in asking}
        missing = [judge for judge in judges if judge not in there] if asking else []
        for judge in missing:
            name = f"{asking[0]} ({judge})"
            added.append(NamedMetric(name, nodes[asking[0]].model_copy(update={"judge": judge, "as_": name})))
    new = (metric for metric in added if metric.name not in nodes)
    return replace(_declare(spec, judges), metrics=(*spec.metrics, *new))


def _declare(spec: Spec, judges: Sequence[str]) -> Spec:
    """The spec with the judges that it does not declare, and the models that these name by default."""
    declared: dict[str, Node] = {}
    for judge in judges:
        if judge in spec.judges:
            continue
        block = default_block("judges", judge)
        if block is None:
            known = [*spec.judges, *default_blocks("judges")]
            why = (
                f"the spec has no judge of this name; {suggest(judge, known) or f'write one of {list_choices(known)}'}"
            )
            if judge in registry.words("judges"):
                why = "it needs more keys; declare it under 'judges:' in the spec"
            raise UsageError(f"--judge {judge}: {why}")
        declared[judge] = registry.load("judges", judge).node_type.model_validate(block)
    models = {name for node in declared.values() for name in names_in(node, "models") if name not in spec.models}
    blocks = {name: default_block("models", name) or {} for name in sorted(models)}
    nodes = {
        name: registry.load("models", block["use"]).node_type.model_validate(block) for name, block in blocks.items()
    }
    return replace(spec, judges={**spec.judges, **declared}, models={**spec.models, **nodes})


def _keep_metrics(spec: Spec, names: set[str]) -> Spec:
    kept = tuple(metric for metric in spec.metrics if metric.name in names)
    return replace(spec, metrics=kept, gates=(), reports=(), stopping=None)


def _asks(planned: PlannedRun) -> bool:
    """Whether something is asked: a chat model or a system."""
    expected = planned.expectation
    return any(model.calls for model in expected.models) or any((expected.questions or {}).values())


def _explain_part(labelled: Mapping[str, set[str]], planned: PlannedRun) -> str:
    calls = sum(model.calls for model in planned.expectation.models)
    questions = count_noun(sum(map(len, labelled.values())), "labelled question")
    cost = planned.expectation.cost
    price = f", about ${cost:,.2f}" if cost else ""
    return (
        f"Only the {questions} are scored; all of them would take {count_noun(calls, 'call')}{price}. For a corrected "
        "mean of all questions, add --all."
    )


def _is_stored(spec: Spec, options: Options) -> bool:
    """Whether an earlier evaluation of the whole spec stored all values, so that none must be computed."""
    planned = runner.plan(replace(spec, stopping=None), options)
    steps = [step for step in planned.plan.steps if step.kind == "evaluate"]
    return bool(steps) and all(planned.store.has(step.key) for step in steps)


def _rate(spec: Spec, metric: str, options: Options) -> Spending:
    """What a judge takes, from asking it alone. Its replies are stored, so that none of them is paid again."""
    outcome = runner.run(spec, options)
    recorded = read_recorded_spec(outcome.evaluation)
    if recorded is None:
        return Spending()
    spent = find_spending(outcome.evaluation, recorded, metric)
    used = [outcome.evaluation.provenance.judging.get(name) for name in list_chat_models(recorded, metric)]
    replies = sum(one.calls for one in used if one is not None)
    is_new = not used or outcome.spent.calls >= replies > 0
    return replace(spent, seconds=outcome.spent.usage.time_of(metric) if is_new else None)


def _run(spec: Spec, options: Options) -> Evaluation:
    outcome = runner.run(replace(spec, gates=(), reports=(), stopping=None), options)
    for failure in outcome.failures:
        console.tell(f"{PROGRAM}: warning: {failure}")
    if outcome.spent.calls:
        console.tell(outcome.spent.describe())
    return outcome.evaluation


Read: TypeAlias = "tuple[Sequence[Label], LabelScale | None]"
"""Labels of all metrics, and their scale."""


def choose_metric(parts: SpecPlugins, metrics: Sequence[str], kinds: Sequence[str]) -> str:
    """The metric that is named, or the only one whose judge is of one of these kinds."""
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
    """A judge of several steps, and the answers that they are asked about, in the order of labels if there are any."""

    asked: AskedJudge
    parts: SpecPlugins
    display: ProgressDisplay
    items: Sequence[Answered]
    samples: Mapping[Answered, Sample]
    joined: Joined | None
    together: Mapping[tuple[str, str], tuple[str, int]]

    @property
    def kind(self) -> str:
        """The word of the judge: `cascade` or `waterfall`."""
        return str(self.asked.judge.node.use)

    @property
    def members(self) -> Sequence[Judge[Any]]:
        judge: Any = self.asked.judge
        members: Sequence[Judge[Any]] = judge.members
        return members

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(member.context.name for member in self.members)

    @property
    def texts(self) -> list[Sample]:
        """The texts, in the order of the answers."""
        return [self.samples[item] for item in self.items]

    def _prepare(self, judges: Sequence[Judge[Any]]) -> None:
        """Tell judges what they will be asked, and the user which calls they would make, if they make any."""
        for judge in judges:
            judge.expect([self.asked.criterion])
        if calls := expect_calls(self.parts, judges, self.asked.criterion, self.texts):
            self.display.tell(ExpectedCalls(calls).render().rstrip())

    def ask_steps(self) -> StepScores:
        """What each step of a cascade says of all answers."""
        self._prepare(self.members)
        scores = []
        for member in self.members:
            self.display.announce(f"ask {member.context.name}")
            findings = assess_or_fail(member, self.asked.criterion, self.texts).findings
            scores.append(list_scores(findings, self.asked.criterion))
        return StepScores(self.items, scores, self.together)

    def ask_stages(self) -> Mapping[str, Sequence[float | None]]:
        """The value of every answer at each stage of a waterfall."""
        judge: Any = self.asked.judge
        self._prepare([judge])
        self.display.announce(f"ask {judge.context.name}")
        values: Mapping[str, Sequence[float | None]] = judge.read_stages(self.asked.criterion, self.texts)
        return values

    def keep(
        self,
        labelled: CalibrationLabels,
        steps: tuple[StepBounds, ...],
        held_out: tuple[Figure, ...] = (),
        guarantee: Guaranteed | None = None,
    ) -> JudgeCalibration:
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
    evaluation: Evaluation, asked: AskedJudge, parts: SpecPlugins, display: ProgressDisplay, read: Read | None
) -> Gathered:
    """The labelled answers of the results; without labels, all answers with a value of the metric."""
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
            raise UsageError("labels of claims cannot show where steps are sure of an answer; label whole answers")
        items = [item[:3] for item in joined.items]
    else:
        items = [*values.select("dataset", "system", "query_id").iter_rows()]
    return Gathered(asked, parts, display, items, read_samples(evaluation, items), joined, find_clusters(evaluation))


def _list_values(evaluation: Evaluation, metric: str) -> pl.DataFrame:
    """The values of the answers that the judge was asked about. Those that it left to a person count as 0.

    A metric decides some answers itself, such as empty ones; they have no details of a judge.
    """
    asked = pl.col("value").is_not_null() | pl.col("details").is_not_null()
    known = asked & pl.col("status").is_in(["scored", "unscorable"])
    return evaluation.values.filter(known, metric=metric).with_columns(pl.col("value").fill_null(0.0))


def list_bounds(entry: JudgeCalibration) -> list[dict[str, Any]]:
    """The bounds of the steps in JSON types, without those that are not set."""
    return [{key: value for key, value in asdict(one).items() if value is not None} for one in entry.steps]
