"""`rageval-spec run`: compute an evaluation, show its reports, return its exit code.

With `--annotations`, gates that did not pass and errors in the spec become workflow commands, which GitHub shows at
the lines of the spec. A runner obeys every line that begins with `::`, also where it is the text of a question or an
answer. So commands are switched off, with a word that no text can know, until the annotations are written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import PROGRAM, OutputCommand
from rageval_spec.diagnostics import Diagnostic, SpecError, make_visible
from rageval_spec.errors import GATE_FAILED, RagevalWarning, UsageError
from rageval_spec.wording import count_noun, find_format

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.outcomes import Counted
    from rageval_spec.plugin.budget import Budget
    from rageval_spec.plugin.plugin import SpecOrigin
    from rageval_spec.runner import Options, RunOutcome, ShardOutcome

    Made = TypeVar("Made", RunOutcome, ShardOutcome)


def _run(spec: Path, options: Options, sweep: Sequence[str] = ()) -> RunOutcome:
    from rageval_spec import runner
    from rageval_spec.sweep.combinations import Sweep, load_sweep

    warnings.simplefilter("always", RagevalWarning)
    loaded = spec if options.shards else load_sweep(spec, options, sweep)
    outcome = _sweep(loaded.run, options) if isinstance(loaded, Sweep) else runner.run(loaded, options)
    console.complain(outcome.warnings)
    if not options.quiet and not isinstance(loaded, Sweep):
        _show(outcome, options)
    is_told = bool(outcome.shown) and not options.quiet  # the report says what failed
    for failure in outcome.failures:
        if is_told:
            console.trace(failure.error)
        else:
            console.report(failure.error, str(failure))
    if outcome.unrecorded is not None:
        console.tell(f"{PROGRAM}: warning: {outcome.unrecorded}")
    for error in outcome.lost_reports:
        console.report(error, str(error))
    if outcome.complaint and (options.quiet or outcome.exit_code != GATE_FAILED):
        console.tell(f"{PROGRAM}: {outcome.complaint}")
    return outcome


def _sweep(sweep: Callable[..., tuple[Any, RunOutcome]], options: Options) -> RunOutcome:
    """Run, show and write a sweep, and return the evaluation of the best combination."""
    from rageval_spec.sweep.sweep_view import render_sweep

    if options.save_as is not None:
        raise UsageError("a sweep has no label; run the combination that you choose with --save-as")
    folder = options.output or Path()
    for name in ("sweep.json", "sweep.html"):  # those of an earlier sweep, if this one fails
        (folder / name).unlink(missing_ok=True)
    rmtree(folder / "combinations", ignore_errors=True)
    found, outcome = sweep(options, (lambda _: None) if options.quiet else console.tell)
    text, page = render_sweep(found, find_format(outcome.evaluation, found.metric))
    console.write(b"" if options.quiet else text)
    console.tell(console.write_file(folder / "sweep.json", found.dump()))
    console.tell(console.write_page(folder / "sweep.html", page))
    if outcome.spent.calls:
        console.tell(outcome.spent.describe())
    _advise(outcome.spent, options, is_finished=outcome.is_finished)
    return outcome


def _show(outcome: RunOutcome, options: Options) -> None:
    from rageval_spec.history.results_folder import ALL_FILES

    for shown in outcome.shown:
        console.write(shown)
    if outcome.folder is not None:
        console.tell(f"wrote the results to {outcome.folder}")
    for path in outcome.written:
        if path.parent != outcome.folder or path.name not in ALL_FILES:
            console.tell(f"wrote {path}")
    for timing in outcome.timings:
        if timing.stored:
            made = "" if timing.made is None else f", made {timing.made[:10]} {timing.made[11:16]} UTC"
            console.tell(f"{timing.system} on {timing.dataset}: its run is from the store{made}")
    if told := describe_seconds(outcome):
        console.tell(told)
    if outcome.spent.calls:
        console.tell(outcome.spent.describe())
    for asked in outcome.asked:
        console.tell(f"{asked.model}: {asked}")
    _advise(outcome.spent, options, is_finished=outcome.is_finished)


def _advise(spent: Budget, options: Options, *, is_finished: bool) -> None:
    advice = spent.advise(is_finished=is_finished)
    if advice and options.shards:
        advice = "to ask again only what failed, run the shards with --retry-failed, and merge them again"
    if advice and not options.no_store:
        console.tell(advice)


_SHORT = 1.0
_LEAST_SHOWN = 0.05
"""Seconds that would be shown as 0.0."""


def describe_seconds(outcome: RunOutcome) -> str:
    """`seconds: retrieval by bm25 1.2, 40 answers of app 3.1, faithfulness 12.0 (judge strict)`.

    The time of a metric includes that of its judge. What came from the store is left out. "" if all took less than a
    second.
    """
    usage = outcome.spent.usage
    nodes = zip(outcome.evaluation.metrics, outcome.evaluation.provenance.spec.get("metrics", ()), strict=False)
    judges = {name: f" (judge {node['judge']})" for name, node in nodes if isinstance(node.get("judge"), str)}
    retrieval: dict[str, float] = {}
    for one in outcome.timings:
        if not one.stored:
            retrieval[one.system] = retrieval.get(one.system, 0.0) + one.seconds
    parts = [(f"retrieval by {name}", seconds, "") for name, seconds in retrieval.items()]
    parts += [(f"{count_noun(n, 'answer')} of {name}", took, "") for name, (n, took) in usage.answer_times.items()]
    parts += [(name, took, judges.get(name, "")) for name, (_, took) in usage.metric_times.items()]
    if sum(seconds for _, seconds, _ in parts) < _SHORT:
        return ""
    shown = (f"{name} {seconds:.1f}{judge}" for name, seconds, judge in parts if seconds >= _LEAST_SHOWN)
    return f"seconds: {', '.join(map(make_visible, shown))}"


output_options = shared.together(
    click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("rageval-results"),
                 show_default=True, metavar="FOLDER", help="The folder for the results and for reports that are "
                 "files."),
    click.option("--save-as", metavar="LABEL", help="Save the results to the history as LABEL, a baseline for gates."),
    click.option("--no-history", is_flag=True, help="Do not record the evaluation in the history."),
)  # fmt: skip
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress and no report on the terminal.")
annotations_option = click.option(
    "--annotations", type=click.Choice(["github"]),
    help="Also print annotations, at most ten, that GitHub shows at the lines of the spec: gates that did not pass, "
    "and errors in the spec.",
)  # fmt: skip


@click.command(cls=OutputCommand)
@shared.spec_argument
@shared.selection_options
@shared.sweep_option
@shared.store_options
@output_options
@shared.answer_options
@shared.shard_option
@quiet_option
@annotations_option
def run(spec: Path, annotations: Any, shard: str | None, sweep: Sequence[str], **options: Any) -> int:
    """Run an evaluation and check its gates.

    With --shard, evaluate one part of the questions and write it to a folder. `rageval-spec merge` then reads the
    folders of all parts, computes the results, and checks the gates.

    \b
    rageval-spec run spec.yaml
    rageval-spec run spec.yaml --limit 20 --only bm25 --set ranking.ties=input -o results
    rageval-spec run spec.yaml --shard 3/8
    rageval-spec run spec.yaml --sweep systems.dense.depth=50,100 --sweep models.e5.precision=fp32,int8
    """
    from rageval_spec.runner import Options

    chosen = Options(**shared.read_answer_options(options))
    if shard is None:
        return evaluate(spec, chosen, annotations, sweep)
    if sweep:
        raise UsageError("a sweep cannot be sharded; leave out --shard or --sweep")
    if chosen.save_as is not None:
        raise UsageError("a shard has no numbers to save; leave out --save-as, and write it for `rageval-spec merge`")
    return _annotated(lambda: _run_shard(spec, shard, chosen), lambda _: "", annotations)


def evaluate(spec: Path, options: Options, annotations: Any, sweep: Sequence[str] = ()) -> int:
    """Evaluate, show what came of it, and return the exit code; `annotations` is as on the command line."""
    return _annotated(lambda: _run(spec, options, sweep), lambda one: annotate(one.evaluation, one.origin), annotations)


def _annotated(make: Callable[[], Made], write: Callable[[Made], str], annotations: Any) -> int:
    if annotations is None:
        return make().exit_code
    try:
        with stop_commands():
            outcome = make()
    except SpecError as error:
        console.write(annotate_diagnostics(error.diagnostics))
        raise
    console.write(write(outcome))
    return outcome.exit_code


def _run_shard(spec: Path, shard: str, options: Options) -> ShardOutcome:
    from rageval_spec import runner
    from rageval_spec.pipeline.execution.shards import count_questions
    from rageval_spec.pipeline.planning.question_shards import read_shard

    part = read_shard(shard)
    warnings.simplefilter("always", RagevalWarning)
    outcome = runner.run_shard(spec, part, options)
    console.complain(outcome.warnings)
    found = outcome.found
    if not options.quiet:
        console.tell(f"shard {part} of {outcome.name}: {count_questions(part, found.questions, found.total)}")
        for told in found.describe():
            console.tell(f"  {told}")
        if outcome.spent.calls:
            console.tell(outcome.spent.describe())
        _advise(outcome.spent, options, is_finished=outcome.spent.stopped is None)
        merge = f"{PROGRAM} merge {spec} {options.output}"
        console.tell(f"wrote {outcome.folder}; when all {part.total} are there, put them together with: {merge}")
    for failure in outcome.failures:
        console.tell(f"{PROGRAM}: {failure}")
    return outcome


MOST = 10
"""GitHub shows at most ten annotations of each level for a step."""
_LEVELS: dict[Counted, str] = {"fail": "error", "warn": "warning", "pass": "notice"}


@contextmanager
def stop_commands() -> Iterator[None]:
    """Let GitHub's runner obey nothing that is written until the end of the block."""
    from secrets import token_hex

    word = token_hex(16)
    console.write(f"::stop-commands::{word}\n")
    try:
        yield
    finally:
        console.write(f"::{word}::\n")


def annotate(evaluation: Evaluation, origin: SpecOrigin | None) -> str:
    """Workflow commands, one line each: failures, then gates that did not pass, worst first; at most ten.

    Without the `origin` of the spec, the annotations belong to no file.
    """
    from rageval_spec.drawing.verdict import worst_first

    lines = [_write("error", evaluation.name, failure, origin, 1) for failure in evaluation.failures]
    places = () if origin is None else origin.gate_lines
    for gate in worst_first(evaluation.gates):
        if gate.outcome != "pass":
            line = places[gate.gate] if gate.gate < len(places) else 1
            lines.append(_write(_LEVELS[gate.counted], f"{gate.metric} {gate.bound}", gate.reason, origin, line))
    return "".join(f"{line}\n" for line in lines[:MOST])


def annotate_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands for what is wrong with a spec, one line each; at most ten."""
    from rageval_spec.spec.spec_file import name_in_repository

    lines = []
    for one in diagnostics:
        level = "error" if one.severity == "error" else "warning"
        path = Path(one.path)
        place = f"file={_escape(name_in_repository(path))},line={one.position.line}," if path.is_file() else ""
        told = one.message + (f"; {one.hint}" if one.hint else "")
        lines.append(f"::{level} {place}title=spec::{_escape_message(told)}")
    return "".join(f"{line}\n" for line in lines[:MOST])


def _write(level: str, title: str, told: str, origin: SpecOrigin | None, line: int) -> str:
    place = "" if origin is None else f"file={_escape(origin.path)},line={line},"
    return f"::{level} {place}title={_escape(title)}::{_escape_message(told)}"


def _escape_message(text: str) -> str:
    return make_visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
