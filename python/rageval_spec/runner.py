"""The whole pipeline: spec -> plan -> values -> aggregates -> gates -> reports, history and exit code."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rageval_spec import registry, signals
from rageval_spec.data.chat import AskedModel
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.diagnostics import Diagnostic, make_visible
from rageval_spec.drawing.question_order import got_no_answer
from rageval_spec.drawing.verdict import describe_verdict
from rageval_spec.errors import BROKEN, GATE_FAILED, NOTHING_SCORED, PASSED, RagevalError, UsageError, no_exit
from rageval_spec.history.evaluation_lookup import check_label
from rageval_spec.history.evaluation_records import ASIDE, Recorder, find_ci_run
from rageval_spec.history.results_folder import is_small, write_results
from rageval_spec.history.results_manifest import write_manifest
from rageval_spec.history.saved_evaluations import FOLDER, save_evaluation
from rageval_spec.pipeline.execution.execution import execute
from rageval_spec.pipeline.execution.question_clusters import check_question_columns
from rageval_spec.pipeline.execution.runs import Timing, Work
from rageval_spec.pipeline.execution.stopping_decision import Stopper
from rageval_spec.pipeline.gating.gate_outcomes import find_baselines
from rageval_spec.pipeline.people_labels import LabelMatches, dump_matches, match_labels, render_matches
from rageval_spec.pipeline.planning import spec_plugins
from rageval_spec.pipeline.planning.default_model import ChosenModel, choose_default_model
from rageval_spec.pipeline.planning.plan import EvaluationPlan, SystemFailure, make_plan
from rageval_spec.pipeline.planning.preflight import check_wiring
from rageval_spec.pipeline.planning.question_selection import narrow_datasets, repeat_questions
from rageval_spec.pipeline.planning.question_shards import share_limits
from rageval_spec.pipeline.planning.resource_needs import ResourceNeeds, estimate_needs, may_be_tight
from rageval_spec.pipeline.planning.spec_selection import select
from rageval_spec.pipeline.results.provenance import list_asked_models
from rageval_spec.pipeline.results.sample_redaction import redact_failures
from rageval_spec.pipeline.results.sequence_intervals import describe_stopping
from rageval_spec.pipeline.results.summary import summarize_values
from rageval_spec.plugin import Context, Engine, Report, Shared, System
from rageval_spec.plugin.budget import WHOLE, Budget, Shard, Usage
from rageval_spec.plugin.plugin import ResumeRule, SpecOrigin
from rageval_spec.plugin.report import RESULTS_FOLDER
from rageval_spec.progress import ProgressDisplay
from rageval_spec.spec import load
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.spec_file import find_spec_origin
from rageval_spec.store.checkout import CodeState, find_code_state, start_finding_checkout
from rageval_spec.store.disk import TEMPORARY_FOLDER, sweep, write_or_explain
from rageval_spec.store.store import Store, hold_tables, open_store
from rageval_spec.threads import map_in_threads
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.pipeline.cost_estimate import ExpectedCalls
    from rageval_spec.pipeline.execution.shard_files import ShardManifest
    from rageval_spec.pipeline.execution.shards import ShardResults

STORE = Path(".rageval") / "store"
_REPORTS_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that the command line adds to the spec.

    Attributes:
        overrides: values that replace those of the spec: `systems.bm25.k1=0.9`.
        limit: use only the first `limit` queries of each dataset.
        only: names or patterns of the datasets, systems and metrics to keep.
        output: the results folder, where reports that are files go too; None to write no results and make no reports.
        store: the folder of the store; `.rageval/store` beside the spec by default.
        no_store: store nothing, and use nothing that is stored.
        save_as: the label in the history under which to save the results, unless something failed.
        quiet: show no progress.
        retry_failed: ask again only what failed in the last evaluation; take over all else from it.
        fresh: take over no answers from an unfinished evaluation, nor any others.
        no_history: do not record the evaluation in the history.
        one_at_a_time: run systems one after the other, so that their times can be compared.
        queries: for each dataset, the ids of the only queries to evaluate; datasets that it does not name are evaluated
            in full.
        shards: folders with the shards to put together, in place of computing anything. The selection (`limit`, `only`
            and `queries`) is then that of the shards.
    """

    overrides: Sequence[str] = ()
    limit: int | None = None
    only: Sequence[str] = ()
    output: Path | None = Path(RESULTS_FOLDER)
    store: Path | None = None
    no_store: bool = False
    save_as: str | None = None
    quiet: bool = True
    one_at_a_time: bool = False
    retry_failed: bool = False
    fresh: bool = False
    no_history: bool = False
    queries: Mapping[str, Collection[str]] = field(default_factory=dict)
    shards: Sequence[Path] = ()


@dataclass(frozen=True)
class RunOutcome:
    """The result of running a spec.

    Attributes:
        shown: the reports for standard output.
        written: the files and folders that were written.
        failures: the systems and metrics that gave no values.
        warnings: the warnings about the spec.
        unsaved: the label under which the results were not saved, because something failed.
        timings: the time that each system took to retrieve. It is not part of the evaluation, whose bytes must be
            the same each time.
        lost_reports: the errors of reports that could not be made or written; the others are complete.
        is_finished: whether the evaluation reached its outcome, whatever failed in it, so that the next one asks all
            questions again. One that a limit stopped, or whose results could not be written, is continued.
        spent: the calls to endpoints and their cost; not part of the evaluation either.
        asked: how readable and how fast the replies of each chat model were that was asked now, as for `timings`.
        folder: the results folder; None if it was not written.
        origin: where the spec is written; None if it was not read from a file.
        unrecorded: if the history could not be written, a sentence that says why and where the record is.
    """

    evaluation: Evaluation
    shown: tuple[bytes, ...]
    written: tuple[Path, ...]
    failures: tuple[SystemFailure, ...]
    warnings: tuple[Diagnostic, ...] = ()
    unsaved: str | None = None
    timings: tuple[Timing, ...] = ()
    spent: Budget = field(default_factory=Budget)
    asked: tuple[AskedModel, ...] = ()
    lost_reports: tuple[RagevalError, ...] = ()
    is_finished: bool = False
    folder: Path | None = None
    origin: SpecOrigin | None = None
    unrecorded: str | None = None

    @property
    def exit_code(self) -> int:
        """4 if nothing was scored, else 3 if something failed, else 1 if a gate failed, else 0."""
        if self.evaluation.scored_nothing:
            return NOTHING_SCORED
        if self.failures or self.lost_reports:
            return BROKEN
        return GATE_FAILED if self.evaluation.verdict == "fail" else PASSED

    @property
    def complaint(self) -> str | None:
        """A sentence that explains an exit code other than 0; None for 0."""
        lost = "" if self.unsaved is None else f"; the results were not saved as '{self.unsaved}'"
        if self.exit_code == NOTHING_SCORED:
            return f"no metric could be scored for any query{lost}"
        if self.exit_code == BROKEN and not self.failures:
            return f"{count_noun(len(self.lost_reports), 'report')} could not be made; the others are complete{lost}"
        if self.exit_code == BROKEN:
            others = "" if got_no_answer(self.evaluation) else "; the others are complete"
            return f"{count_noun(len(self.failures), 'evaluation')} of a system failed{others}{lost}"
        return describe_verdict(self.evaluation) if self.exit_code == GATE_FAILED else None


class EvaluationGroup(NamedTuple):
    """What evaluations share that are planned and paid for as one, such as those of a sweep: equal systems answer once.

    `unfinished` has the systems that answered, by dataset and key; whoever opens the group finishes them at its end.
    """

    store: Store
    budget: Budget
    resume: ResumeRule
    unfinished: dict[tuple[str, str], System[Any]]


def open_group(spec: Spec, options: Options) -> EvaluationGroup:
    """A group for a spec and its variants. The caller closes its store."""
    budget, rule = spec.limits.budget(retry_failed=options.retry_failed), _make_resume_rule(spec, options)
    return EvaluationGroup(open_store(_store_folder(spec, options)), budget, rule, {})


def run(source: Path | Spec, options: Options | None = None, group: EvaluationGroup | None = None) -> RunOutcome:
    """Execute a spec, write its reports, and save the results if `options` has a label.

    Args:
        source: the spec's file, or a loaded spec (to which overrides no longer apply).
        options: settings that add to the spec.
        group: what the evaluation shares with others.

    Raises:
        SpecError: the spec is wrong; it holds every diagnostic.
        UsageError: an option is wrong.
        RagevalError: a dataset cannot be read, or a report or the store cannot be written.
        KeyboardInterrupt: the evaluation was interrupted; it says what was spent until then, if anything.
    """
    options = options or Options()
    if options.save_as is not None:
        check_label(options.save_as)
    shards = []
    if options.shards:
        from rageval_spec.pipeline.execution.found_shards import find_shards, take_shards

        named = str(source if isinstance(source, Path) else source.path)
        shards = find_shards(options.shards, named, options.output)
        options = _select_as(options, shards[0].manifest)
    with ProgressDisplay(quiet=options.quiet) as display:
        display.announce("read the spec")
        spec, _, notes = _load(source, options)
        recorder = Recorder(spec, options.output, is_off=options.no_history)
        earlier = find_baselines(spec)
        shared = group or open_group(spec, options)
        with nullcontext() if group else closing(shared.store):
            work, warnings = _prepare(spec, options, shared, display, earlier)
            work = take_shards(work, shards) if shards else work
            parts, budget = work.parts, work.budget
            execution = _execute(work, execute, keeps_replies=not options.no_store)
            display.announce("compute intervals and tests")
            evaluation = summarize_values(spec, parts, execution, earlier, notes, _selection(options), work.plan)
            evaluation = describe_stopping(evaluation, execution, spec, parts.metrics, earlier)
            display.announce("write reports")
            reports = _report(parts, evaluation, options.output, with_samples=spec.samples != "none")
            is_finished = budget.stopped is None and not reports.has_lost_results
            if is_finished:
                (group.unfinished.update if group else finish)(_list_asked(parts))
    outcome = RunOutcome(
        evaluation,
        reports.shown,
        reports.written,
        redact_failures(execution.failures, spec.redact),
        warnings,
        timings=execution.timings,
        spent=budget,
        lost_reports=reports.errors,
        is_finished=is_finished,
        folder=reports.folder,
        origin=find_spec_origin(spec),
        asked=tuple(list_asked_models(parts)),
    )
    return _keep(outcome, options.save_as, spec.folder / FOLDER, recorder)


def run_shard(source: Path | Spec, shard: Shard, options: Options | None = None) -> ShardOutcome:
    """Compute one part of an evaluation, and write it to a folder in `options.output`, for `Options.shards`.

    Gates are not checked, no report is made, and neither history nor baselines are touched. Raises as `run` does, and
    `SpecError` if the spec's limits cannot be shared.
    """
    from rageval_spec.pipeline.execution.found_shards import describe_shard, name_folder
    from rageval_spec.pipeline.execution.shard_files import write_manifest, write_shard
    from rageval_spec.pipeline.execution.shards import compute_shard

    options = options or Options()
    began, started = datetime.now(UTC), time.monotonic()
    folder = (options.output or Path(RESULTS_FOLDER)) / name_folder(shard)
    with ProgressDisplay(quiet=options.quiet) as display:
        display.announce("read the spec")
        spec = share_limits(_load(source, options)[0], shard)
        group = open_group(spec, options)
        with closing(group.store) as store:
            work, warnings = _prepare(spec, options, group, display, {}, shard)
            log = work.budget.usage.log = []
            manifest = replace(
                describe_shard(work, shard),
                limit=options.limit,
                only=[*options.only],
                queries={dataset: sorted(ids) for dataset, ids in options.queries.items()},
                began=began.isoformat(timespec="seconds"),
                commit=start_finding_checkout(spec.folder)().commit,
                ci=find_ci_run(),
            )
            write_manifest(folder, manifest)
            work = replace(work, store=hold_tables(store))
            found = _execute(work, partial(compute_shard, shard=shard), keeps_replies=not options.no_store)
            display.announce("write the shard")
            stopped = work.budget.stopped
            manifest = replace(
                manifest,
                seconds=round(time.monotonic() - started, 3),
                questions=found.questions,
                spent=work.budget.spent,
                stopped=None if stopped is None else str(stopped),
            )
            write_shard(folder, manifest, found.results, log)
            if stopped is None:
                finish(_list_asked(work.parts))
    return ShardOutcome(folder, shard, spec.name, found, work.budget, warnings)


@dataclass(frozen=True)
class ShardOutcome:
    """What `run_shard` did: the folder that it wrote, and what was found and spent."""

    folder: Path
    shard: Shard
    name: str
    found: ShardResults
    spent: Budget
    warnings: tuple[Diagnostic, ...]

    @property
    def failures(self) -> list[str]:
        """What failed as a whole: a system, a metric, or the shard because of a limit."""
        failed = [*self.found.list_failures()]
        return failed if self.spent.stopped is None else [*failed, str(self.spent.stopped)]

    @property
    def exit_code(self) -> int:
        """3 if something failed, else 0; gates are checked where the shards are put together."""
        return BROKEN if self.failures else PASSED


def _prepare(
    spec: Spec,
    options: Options,
    group: EvaluationGroup,
    display: ProgressDisplay,
    earlier: Mapping[str, Evaluation],
    shard: Shard = WHOLE,
) -> tuple[Work, tuple[Diagnostic, ...]]:
    """Everything that an execution needs, and the warnings about the spec."""
    store, budget, resume, _ = group
    budget.usage = Usage()
    display.describe_spending = budget.describe_progress
    parts = spec_plugins.build_parts(
        spec,
        display.counting,
        store.answers,
        store.fingerprint,
        budget,
        display.tell,
        options.output,
        resume,
        shard,
        store=store.folder,
    )
    warnings = (*spec.warnings, *check_wiring(spec, parts))
    parts = narrow_datasets(parts, options.queries)
    spec_plugins.prepare_models(parts, display)
    spec_plugins.prepare_datasets(parts, display, budget, keeps_replies=not options.no_store)
    planned = make_plan(spec, parts, store.fingerprint, options.limit)
    if may_be_tight(planned, store.folder, options.output):
        estimate_needs(planned, parts, store.has, store.folder, options.output).refuse()
    if store.folder is not None:
        sweep((store.folder / TEMPORARY_FOLDER).glob("*"))
    stopper = None if spec.stopping is None else Stopper(spec, parts, earlier)
    engine = _engine(spec, options)
    shared = Shared(store.answers, budget, display.counting, display.tell)
    work = Work(spec, parts, planned, store, engine, options.limit, display.announce, budget, stopper, shared=shared)
    if spec.designs:
        check_question_columns(work)
    return work, warnings


def _select_as(options: Options, manifest: ShardManifest) -> Options:
    """The options with the selection with which a shard was made."""
    return replace(options, limit=manifest.limit, only=tuple(manifest.only), queries=manifest.queries)


T = TypeVar("T")


def _execute(work: Work, execute: Callable[[Work], T], *, keeps_replies: bool) -> T:
    explain = partial(spec_plugins.explain_interrupt, work.parts, work.budget, keeps_replies=keeps_replies)
    with ExitStack() as stack:
        stack.push(partial(_close, work.engine))
        stack.callback(_remember_asked, work)
        work.announce("start the engine")
        work.engine.open(work.shared)
        with spec_plugins.stop_calls(work.parts), signals.explained(explain):
            return execute(work)


def _remember_asked(work: Work) -> None:
    """Let the store remember how often replies could be read and how long they took, for `models show`."""
    asked = list_asked_models(work.parts)
    if asked and work.store.folder is not None:
        from rageval_spec.store.replies import add_asked

        add_asked(work.store.folder, asked)


def _list_asked(parts: spec_plugins.SpecPlugins) -> dict[tuple[str, str], System[Any]]:
    pairs = ((dataset, *item) for dataset in parts.datasets for item in parts.systems.items())
    asked = (pair for pair in pairs if pair[2].can_be_asked and pair[2].answers_on(pair[0]))
    return {(dataset, getattr(system, "key", name)): system for dataset, name, system in asked}


def finish(asked: Mapping[tuple[str, str], System[Any]]) -> None:
    """Mark the answers of systems as finished, so that the next evaluation asks them again."""
    for (dataset, _), system in asked.items():
        system.finish(dataset)


def _make_resume_rule(spec: Spec, options: Options) -> ResumeRule:
    return ResumeRule(spec.longest_resume, options.fresh, cache(partial(_find_code, spec, options)))


def _find_code(spec: Spec, options: Options) -> CodeState:
    """The code that is checked out. What an evaluation writes, and files that only its numbers depend on, do not count.

    The files of systems are part of their keys, whether they are tracked or not.
    """
    parts = spec_plugins.build_parts(spec)
    others = (*parts.datasets.values(), *parts.models.values(), *parts.judges.values(), *parts.labels.values())
    read = [file.path for part in (*others, *parts.metrics.values()) for file in part.inputs()]
    mixes = [spec.folder / node.weights for node in spec.designs.values() if node.weights]
    output = [] if options.output is None else [options.output]
    output += [folder / report.node.path for folder in output for report in parts.reports if report.node.path]
    kept = [] if spec.history.path is None else [spec.folder / spec.history.path]
    store = _store_folder(spec, options)
    kept += [spec.folder / ASIDE, *([] if store is None else [store])]
    asked = [file.path.parent for one in parts.systems.values() if one.can_be_asked for file in one.inputs()]
    return find_code_state(spec.folder, [Path(spec.path), *read, *mixes, *output, *kept], asked)


@dataclass(frozen=True)
class PlannedRun:
    """What an evaluation would do.

    Attributes:
        plan: its steps.
        store: the store, which can already have some of their tables.
        expectation: the calls to models and systems that it would make.
        labels: where the labelled answers of each metric with labels are.
        known: for each judge whose model is known by its name, what it takes from what is known.
        warnings: the warnings about the spec.
        needs: the memory and disk that it needs, and what there is.
        shard, share: the shard, and how many of how many questions it has; None for the whole evaluation.
    """

    plan: EvaluationPlan
    store: Store
    expectation: ExpectedCalls
    labels: tuple[LabelMatches, ...] = ()
    known: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    needs: ResourceNeeds | None = None
    shard: Shard = WHOLE
    share: tuple[int, int] | None = None

    def render(self) -> str:
        head = ""
        if self.share is not None:
            from rageval_spec.pipeline.execution.shards import count_questions

            head = f"shard {self.shard} of {self.plan.name}: {count_questions(self.shard, *self.share)}\n"
        known = "".join(f"{make_visible(line)}\n" for line in self.known)
        needs = "" if self.needs is None else self.needs.render()
        steps, calls = self.plan.render(self.store.has), self.expectation.render()
        return "".join((head, steps, calls, needs, known, render_matches(self.labels)))

    def to_json(self) -> str:
        needs = None if self.needs is None else self.needs.to_json()
        asked = self.expectation.to_json() | dump_matches(self.labels)
        share = None if self.share is None else (*self.shard, *self.share)
        return self.plan.to_json(self.store.has, asked, needs, share)


def plan(
    source: Path | Spec, options: Options | None = None, shard: Shard = WHOLE, variants: Sequence[Spec] = ()
) -> PlannedRun:
    """The steps of a spec's evaluation, and the calls that it or a shard would make. Computes and calls nothing.

    With `variants` of the spec, which share its store, everything that two of them need counts once.
    """
    options = options or Options()
    spec, reason, _ = _load(source, options)
    spec = spec if shard == WHOLE else share_limits(spec, shard)
    store = open_store(_store_folder(spec, options))
    budget = spec.limits.budget(retry_failed=options.retry_failed)
    resume = _make_resume_rule(spec, options)
    build = partial(
        spec_plugins.build_parts, answers=store.answers, fingerprint=store.fingerprint, budget=budget, resume=resume
    )
    parts = build(spec)
    warnings = (*spec.warnings, *check_wiring(spec, parts))
    parts = narrow_datasets(parts, options.queries)
    planned, asked, share = make_plan(spec, parts, store.fingerprint, options.limit), parts, None
    if shard != WHOLE:
        from rageval_spec.pipeline.execution.shards import narrow_to_shard

        asked, share = narrow_to_shard(Work(spec, parts, planned, store, _engine(spec, options), options.limit), shard)
    others = []
    for place, one in enumerate((_load(variant, options)[0] for variant in variants), start=2):
        others.append(narrow_datasets(build(one), options.queries))
        counted = {step.key for step in planned.steps}
        steps = make_plan(one, others[-1], store.fingerprint, options.limit).steps
        more = [replace(step, title=f"{step.title} ({place})") for step in steps if step.key not in counted]
        planned = replace(planned, steps=(*planned.steps, *more))
    expected = _expect(spec, asked, options.limit, others)
    known = [f"models: {reason}"] if reason else []
    known += [f"judges.{name}: {one}" for name, judge in parts.judges.items() for one in judge.describe_files()]
    needs = estimate_needs(planned, parts, store.has, _store_folder(spec, options), options.output)
    labels = match_labels(parts, options.limit, spec.repeat)
    return PlannedRun(planned, store, expected, labels, tuple(known), warnings, needs, shard, share)


def _expect(
    spec: Spec, parts: spec_plugins.SpecPlugins, limit: int | None, others: Sequence[spec_plugins.SpecPlugins] = ()
) -> ExpectedCalls:
    from rageval_spec.pipeline.cost_estimate import expect

    repeat = partial(repeat_questions, repeat=spec.repeat)
    expected = replace(expect(parts, limit, repeat, others=others), limits=spec.limits.call_limits)
    if spec.stopping is None:
        return expected
    stopper = Stopper(spec, parts, {})
    asking = [name for name in parts.datasets if any(system.answers_on(name) for system in parts.systems.values())]
    reasons = {name: reason for name in asking if (reason := stopper.explain_all(name)) is not None}
    return replace(expected, least=expect(parts, limit, stopper.take_first), asked_completely=reasons)


def _load(source: Path | Spec, options: Options) -> ChosenModel:
    """What is evaluated, notes on that, and why blocks that name no embedding model have theirs."""
    spec = source if isinstance(source, Spec) else load(source, overrides=options.overrides)
    if not spec.datasets:
        hint = "add 'datasets:', or watch production: rageval-spec monitor run"
        raise UsageError(f"{spec.path}: the spec has no datasets to evaluate on; {hint}")
    if spec.axes:
        fixed = " ".join(f"--set {path}=VALUE" for path in spec.axes)
        raise UsageError(f"{spec.path}: only `rageval-spec run` and `plan` sweep axes, without --shard; add {fixed}")
    selected, notes = select(spec, options.only)
    chosen = choose_default_model(selected, spec.models)
    used = selected if chosen.spec is selected else select(chosen.spec, ())[0]
    return ChosenModel(used, chosen.reason, (*notes, *chosen.notes))


def _store_folder(spec: Spec, options: Options) -> Path | None:
    if options.no_store:
        return None
    return options.store if options.store is not None else spec.folder / STORE


def _selection(options: Options) -> dict[str, Any]:
    """The parts that the command line excluded; numbers of different selections must not be compared."""
    return {"limit": options.limit, "only": list(options.only)}


def _close(engine: Engine[Any], kind: type[BaseException] | None, *_: object) -> None:
    engine.close(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))


def _engine(spec: Spec, options: Options) -> Engine[Any]:
    """The spec's engine. Systems whose times are compared, and shards that are put together, need only this machine."""
    node = spec.engine
    if node is None or options.one_at_a_time or options.shards:
        node = registry.load("engines", "local").node_type(use="local", workers=1 if options.one_at_a_time else None)
    engine: Engine[Any] = registry.load("engines", node.use)(node, Context(node.use, spec.folder, spec.limits.threads))
    return engine


@dataclass(frozen=True)
class _Reports:
    """The reports for standard output, the files that were written, and the errors of the reports that failed.

    `folder` is the results folder, if it was written; `has_lost_results` is true if it could not be. `written` has the
    file of each report that a reader opens, `files` all of them.
    """

    shown: tuple[bytes, ...] = ()
    written: tuple[Path, ...] = ()
    errors: tuple[RagevalError, ...] = ()
    folder: Path | None = None
    has_lost_results: bool = False
    files: tuple[Path, ...] = ()

    def __add__(self, other: _Reports) -> _Reports:
        """Both, in this order."""
        return _Reports(
            self.shown + other.shown,
            self.written + other.written,
            self.errors + other.errors,
            self.folder or other.folder,
            self.has_lost_results or other.has_lost_results,
            self.files + other.files,
        )


def _report(
    parts: spec_plugins.SpecPlugins, evaluation: Evaluation, output: Path | None, *, with_samples: bool
) -> _Reports:
    """Write the results folder and render every report.

    Reports without a file name go to standard output; the others are written to files, unless the results folder has
    the same file already. If one report fails, the others are still made. Without an output folder, none is made.
    """
    if output is None:
        return _Reports()
    wanted = [report for report in parts.reports if not _is_written(report, output)]
    makers = [partial(_write_folder, evaluation, output, with_samples=with_samples)]
    makers += [partial(_make_report, report, evaluation, output) for report in wanted if not report.comes_last]
    last = [partial(_make_report, report, evaluation, output) for report in wanted if report.comes_last]
    at_once = 1  # because each pass over a large table of samples needs memory of its own
    if is_small(evaluation):
        at_once = _REPORTS_AT_ONCE
        _ = with_samples and evaluation.samples  # held for all of them, before they begin
    made = sum(map_in_threads(lambda make: make(), makers, at_once), _Reports())
    made += sum((make() for make in last), _Reports())
    return made if made.has_lost_results else made + _list_files(made.files, evaluation, output)


def _list_files(files: tuple[Path, ...], evaluation: Evaluation, output: Path) -> _Reports:
    """Write the manifest of everything that was written."""
    try:
        write_manifest(output, files, evaluation)
    except RagevalError as error:
        return _Reports(errors=(error,))
    return _Reports()


def _is_written(report: Report[Any], output: Path) -> bool:
    """Whether the results folder already has the file of a report."""
    name = report.node.path or report.filename
    return name is not None and report.is_part_of_results and output / name == output / (report.filename or "")


def _make_report(report: Report[Any], evaluation: Evaluation, output: Path) -> _Reports:
    """What a report shows, the path of what it wrote, or why it could not be made."""
    name = report.node.path or report.filename
    try:
        with no_exit():
            if name is None:
                return _Reports(shown=(_check_content(report.render(evaluation)),))
            files = _write_files(output / name, report.render_files(evaluation))
            return _Reports(written=files[-1:], files=files)
    except RagevalError as error:
        return _Reports(errors=(error,))
    except Exception as error:
        broken = RagevalError(f"the report '{report.node.use}' could not be made: {type(error).__name__}: {error}")
        broken.__cause__ = error
        return _Reports(errors=(broken,))


def _check_content(content: object) -> bytes:
    if not isinstance(content, bytes):
        raise TypeError(f"render() returned {type(content).__name__}, and must return bytes")
    return content


def _write_folder(evaluation: Evaluation, output: Path, *, with_samples: bool) -> _Reports:
    """Write the results folder: its files, or the error that prevented it."""
    try:
        files = write_results(evaluation, output, with_samples=with_samples)
        return _Reports(written=files, folder=output, files=files)
    except RagevalError as error:
        return _Reports(errors=(error,), has_lost_results=True)


def _write_files(path: Path, files: Iterable[tuple[str, bytes]]) -> tuple[Path, ...]:
    """Write a report's files as they come, and return their paths; a reader opens the last one.

    A report of several files is a folder beside `path`; a file that an earlier evaluation left at `path` is removed.
    """
    folder = path.with_suffix("") if path.suffix else path.with_name(f"{path.name}_files")
    written = tuple(write_report(folder / name if name else path, _check_content(part)) for name, part in files)
    if path not in written[-1:]:
        path.unlink(missing_ok=True)
    return written or (path,)


def _keep(outcome: RunOutcome, label: str | None, folder: Path, recorder: Recorder) -> RunOutcome:
    """Record the evaluation, and save it as a baseline if there is a label and nothing failed."""
    is_complete = outcome.exit_code not in (BROKEN, NOTHING_SCORED)
    unrecorded = recorder.record(outcome.evaluation, outcome.spent.total_cost, label if is_complete else None)
    outcome = replace(outcome, unrecorded=unrecorded)
    if label is None or not is_complete:
        return replace(outcome, unsaved=label)
    saved = save_evaluation(outcome.evaluation, label, folder, recorder.id)
    return replace(outcome, written=(*outcome.written, saved))


def write_report(path: Path, content: bytes) -> Path:
    """Write a file completely or not at all, and return its path."""
    return write_or_explain(path, content, f"{path}: the report could not be written")
