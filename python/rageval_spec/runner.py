"""The whole pipeline: spec -> plan -> values -> aggregates -> gates -> reports, history, exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rageval_spec import registry, signals
from rageval_spec.data.evaluation import Evaluation, Note
from rageval_spec.diagnostics import Diagnostic
from rageval_spec.errors import BROKEN, GATE_FAILED, NOTHING_SCORED, PASSED, RagevalError, no_exit
from rageval_spec.history import folder as history
from rageval_spec.pipeline.estimate import Expectation, expect
from rageval_spec.pipeline.execute import Execution, execute
from rageval_spec.pipeline.plan import Parts, Plan, build_parts, make_plan
from rageval_spec.pipeline.preflight import check_wiring
from rageval_spec.pipeline.runs import Timing
from rageval_spec.pipeline.selection import select
from rageval_spec.pipeline.summary import find_baselines, judge
from rageval_spec.pipeline.task import Failure
from rageval_spec.pipeline.work import Work
from rageval_spec.plugin import ChatModel, Context, Engine
from rageval_spec.plugin.budget import Budget
from rageval_spec.progress import ProgressDisplay
from rageval_spec.reports.shared.outcomes import describe_verdict
from rageval_spec.spec import load
from rageval_spec.spec.nodes import Spec
from rageval_spec.store.disk import write_atomically
from rageval_spec.store.folder import Store, open_store
from rageval_spec.wording import count_noun

STORE = Path(".rageval") / "store"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line may say beside the spec.

    Attributes:
        overrides: values of the spec in another place: `systems.bm25.k1=0.9`.
        limit: look at the first so many queries of each dataset only.
        only: names or patterns of datasets, systems and metrics to keep.
        output: the folder of reports that are files.
        store: where costly tables are kept; `.rageval/store` beside the spec by default.
        no_store: keep nothing, and use nothing that was kept.
        save_as: the label in the history under which the results are kept, unless something failed.
        quiet: show no progress.
        retry_errors: ask again what models answered, in an earlier evaluation, in a way that could not be read.
        one_at_a_time: let no two systems share the cores, so that their seconds can be compared.
    """

    overrides: Sequence[str] = ()
    limit: int | None = None
    only: Sequence[str] = ()
    output: Path = Path("rageval-results")
    store: Path | None = None
    no_store: bool = False
    save_as: str | None = None
    quiet: bool = True
    one_at_a_time: bool = False
    retry_errors: bool = False


@dataclass(frozen=True)
class Outcome:
    """What an evaluation came to.

    Attributes:
        shown: reports for standard output.
        written: files that reports were written to.
        failures: systems and metrics that gave no values.
        warnings: what the spec is worth a word about.
        unsaved: the label under which the results were to be kept, and were not because something failed.
        timings: how long each system took to retrieve; no part of the evaluation, which is the same each time.
        lost_reports: why reports could not be made or written; the others are complete.
        is_finished: whether a system that answers came to the end of its evaluation: the next one asks it again.
        spent: what models behind endpoints were asked, and what that cost; no part of the evaluation either.
    """

    evaluation: Evaluation
    shown: tuple[bytes, ...]
    written: tuple[Path, ...]
    failures: tuple[Failure, ...]
    warnings: tuple[Diagnostic, ...] = ()
    unsaved: str | None = None
    timings: tuple[Timing, ...] = ()
    spent: Budget = field(default_factory=Budget)
    lost_reports: tuple[RagevalError, ...] = ()
    is_finished: bool = False

    @property
    def exit_code(self) -> int:
        """4 where nothing was scored, else 3 where something failed, else 1 where a gate did, else 0."""
        if self.evaluation.scored_nothing:
            return NOTHING_SCORED
        if self.failures or self.lost_reports:
            return BROKEN
        return GATE_FAILED if self.evaluation.verdict == "fail" else PASSED

    @property
    def complaint(self) -> str | None:
        """Why the exit code is not 0, in a sentence."""
        lost = "" if self.unsaved is None else f"; nothing is saved as '{self.unsaved}'"
        if self.exit_code == NOTHING_SCORED:
            return f"no metric could be scored for any query{lost}"
        if self.exit_code == BROKEN and not self.failures:
            return f"{count_noun(len(self.lost_reports), 'report')} could not be made; the others are complete{lost}"
        if self.exit_code == BROKEN:
            return f"{count_noun(len(self.failures), 'evaluation')} of a system failed; the others are complete{lost}"
        return describe_verdict(self.evaluation) if self.exit_code == GATE_FAILED else None


def run(source: Path | Spec, options: Options | None = None) -> Outcome:
    """Execute a spec, write its reports, and keep the results where a label says so.

    Args:
        source: the spec's file, or the spec itself, whose overrides are done.
        options: beside the spec.

    Raises:
        SpecError: the spec is wrong; every diagnostic at once.
        UsageError: an option is wrong.
        RagevalError: a dataset cannot be read, or a report or the store cannot be written.
        KeyboardInterrupt: says what was spent until then, where anything was.
    """
    options = options or Options()
    with ProgressDisplay(quiet=options.quiet) as display:
        display.announce("read the spec")
        spec, notes = _load(source, options)
        earlier = find_baselines(spec)
        with closing(open_store(_store_folder(spec, options))) as store:
            budget = spec.limits.budget(retry_errors=options.retry_errors)
            parts = build_parts(spec, display.counting, store.answers, store.fingerprint, budget, display.tell)
            check_wiring(spec, parts)
            _prepare_models(parts, display)
            planned = make_plan(spec, parts, store.fingerprint, options.limit)
            work = Work(spec, parts, planned, store, _engine(spec, options), options.limit, display.announce, budget)
            execution = _execute(work, keeps_replies=not options.no_store)
            display.announce("compute intervals and tests")
            evaluation = judge(spec, parts, execution, earlier, notes, _selection(options))
            display.announce("write reports")
            reports = _report(parts, evaluation, options.output)
            is_finished = _finish(parts, execution, budget, reports)
    outcome = Outcome(
        evaluation,
        reports.shown,
        reports.written,
        execution.failures,
        spec.warnings,
        timings=execution.timings,
        spent=budget,
        lost_reports=reports.errors,
        is_finished=is_finished,
    )
    return outcome if options.save_as is None else _save(outcome, options.save_as, spec.folder / history.FOLDER)


def _execute(work: Work, *, keeps_replies: bool) -> Execution:
    try:
        with signals.explained(lambda: _explain_interrupt(work, keeps_replies=keeps_replies)):
            return execute(work)
    except BaseException:
        for model in work.parts.models.values():
            if isinstance(model, ChatModel):
                model.stop()
        raise


def _explain_interrupt(work: Work, *, keeps_replies: bool) -> str:
    """What was spent, and how to go on; empty where nothing is asked whose replies are worth keeping."""
    if not work.budget.calls and not work.parts.asked_models:
        return ""
    rest = "run again to continue from what is stored" if keeps_replies else "nothing is stored (--no-store)"
    return "; ".join(filter(None, (work.budget.describe(), rest)))


def _finish(parts: Parts, execution: Execution, budget: Budget, reports: _Reports) -> bool:
    """Let the answers of systems that came to their end be those of a finished evaluation; whether all of these are.

    A system came to its end where nothing of it failed on a dataset, no limit was reached, and all reports are written.
    """
    if budget.stopped is not None or reports.errors:
        return False
    failed = {(failure.dataset, failure.system) for failure in execution.failures}
    ended = [
        (system, dataset)
        for dataset in parts.datasets
        for name, system in parts.systems.items()
        if system.can_be_asked and system.answers_on(dataset) and (dataset, name) not in failed
    ]
    finished = [system.finish(dataset) for system, dataset in ended]
    return bool(finished) and all(finished)


@dataclass(frozen=True)
class Planned:
    """What an evaluation would do.

    Attributes:
        plan: its steps.
        store: may have some of their tables.
        expectation: what would be asked of models and systems.
    """

    plan: Plan
    store: Store
    expectation: Expectation

    def render(self) -> str:
        """The plan as text."""
        return self.plan.render(self.store.has) + self.expectation.render()

    def to_json(self) -> str:
        """The plan as JSON."""
        return self.plan.to_json(self.store.has, self.expectation.to_json())


def plan(path: Path, options: Options | None = None) -> Planned:
    """The steps of a spec's evaluation and what it would ask. Computes nothing, and asks nobody."""
    options = options or Options()
    spec, _ = _load(path, options)
    store = open_store(_store_folder(spec, options))
    budget = spec.limits.budget(retry_errors=options.retry_errors)
    parts = build_parts(spec, answers=store.answers, fingerprint=store.fingerprint, budget=budget)
    check_wiring(spec, parts)
    return Planned(make_plan(spec, parts, store.fingerprint, options.limit), store, expect(parts, options.limit))


def _prepare_models(parts: Parts, display: ProgressDisplay) -> None:
    """Fetch what is not here before anything is planned: a model's files are part of the keys."""
    for name, model in parts.asked_models.items():
        display.announce(f"find the model {name}")
        model.prepare()


def _load(source: Path | Spec, options: Options) -> tuple[Spec, tuple[Note, ...]]:
    spec = source if isinstance(source, Spec) else load(source, overrides=options.overrides)
    return select(spec, options.only)


def _store_folder(spec: Spec, options: Options) -> Path | None:
    if options.no_store:
        return None
    return options.store if options.store is not None else spec.folder / STORE


def _selection(options: Options) -> dict[str, Any]:
    """What the command line left out of the spec: numbers of another selection are other numbers."""
    return {"limit": options.limit, "only": list(options.only)}


def _engine(spec: Spec, options: Options) -> Engine[Any]:
    plugin = registry.load("engines", "local")
    node = plugin.node_type(use="local", workers=1 if options.one_at_a_time else None)
    engine: Engine[Any] = plugin(node, Context("local", spec.folder, spec.limits.threads))
    return engine


@dataclass(frozen=True)
class _Reports:
    """What was rendered for standard output, what was written, and what could not be made."""

    shown: tuple[bytes, ...]
    written: tuple[Path, ...]
    errors: tuple[RagevalError, ...]


def _report(parts: Parts, evaluation: Evaluation, output: Path) -> _Reports:
    """Render every report; those without a file name are for standard output, the others are written.

    One that cannot be made takes none of the others with it.
    """
    shown: list[bytes] = []
    written: list[Path] = []
    errors: list[RagevalError] = []
    for report in parts.reports:
        name = report.node.path or report.filename
        try:
            with no_exit():
                content = report.render(evaluation)
            if name is None:
                shown.append(content)
            else:
                written.append(write_report(output / name, content))
        except RagevalError as error:
            errors.append(error)
        except Exception as error:
            broken = RagevalError(f"the report '{report.node.use}' cannot be made: {type(error).__name__}: {error}")
            broken.__cause__ = error
            errors.append(broken)
    return _Reports(tuple(shown), tuple(written), tuple(errors))


def _save(outcome: Outcome, label: str, folder: Path) -> Outcome:
    """Keep the results as a baseline; what is not whole is none."""
    if outcome.exit_code in (BROKEN, NOTHING_SCORED):
        return replace(outcome, unsaved=label)
    saved = history.save_evaluation(outcome.evaluation, label, folder)
    return replace(outcome, written=(*outcome.written, saved))


def write_report(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all; its path.

    Raises:
        RagevalError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise RagevalError(f"{path}: the report cannot be written: {error.strerror or error}") from error
    return path
