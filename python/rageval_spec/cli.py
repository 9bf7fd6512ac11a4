"""The command line: one short function per command.

Only click is imported here; each command imports what it needs, so that `--help` and `validate` answer at once.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

import click

from rageval_spec.errors import BROKEN, GATE_FAILED, INTERRUPTED, PASSED, SPEC_WRONG, RagevalError

if TYPE_CHECKING:
    from rageval_spec.runner import Options
    from rageval_spec.spec import Spec

F = TypeVar("F", bound=Callable[..., Any])

PROGRAM = "rageval-spec"
DEBUG = "RAGEVAL_DEBUG"
MOST_QUERIES = 2**31 - 1


class Front(click.Group):
    """Answers every error with a message and an exit code, never with a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and exit: 0 passed, 1 a gate failed, 2 wrong spec or command line, 3 broken, 4 no value."""
        kwargs["standalone_mode"] = False
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _answer(lambda: super(Front, self).main(*args, **kwargs))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """A reader that went away (`| head`) is no error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _forget(sys.stdout)
            return PASSED


@click.group(
    cls=Front,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="RAGEVAL_DEBUG=1 shows where an error comes from. NO_COLOR=1 turns colours off.",
)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
def cli() -> None:
    """Evaluate retrieval and RAG systems as a YAML spec says, and answer with a verdict.

    Exit codes: 0 passed, 1 a gate failed, 2 the spec or the command line is wrong, 3 the evaluation broke,
    4 nothing could be scored, 130 interrupted.

    \b
    Start here:
      rageval-spec init example
      rageval-spec run example/spec.yaml
    """


def _spec_argument(command: F) -> F:
    return click.argument("spec", type=click.Path(path_type=Path))(_set_option(command))


def _set_option(command: F) -> F:
    return click.option(
        "--set", "overrides", multiple=True, metavar="PATH=VALUE",
        help="Override a value of the spec, such as systems.bm25.k1=0.9. May be repeated.",
    )(command)  # fmt: skip


def _limit_option(command: F) -> F:
    return click.option(
        "--limit",
        type=click.IntRange(1, MOST_QUERIES),
        metavar="N",
        help="Evaluate the first N queries of each dataset alone.",
    )(command)


def _selection_options(command: F) -> F:
    only = click.option(
        "--only", multiple=True, metavar="PATTERN",
        help="Keep the datasets, systems or metrics whose names match: bm25, 'ndcg*'. A section in which nothing "
        "matches stays whole. May be repeated.",
    )  # fmt: skip
    return _limit_option(only(command))


def _store_options(command: F) -> F:
    folder = click.option(
        "--store", type=click.Path(path_type=Path, file_okay=False), envvar="RAGEVAL_STORE", metavar="FOLDER",
        help="Where costly tables are kept; .rageval/store by default, beside the spec where there is one.",
    )  # fmt: skip
    without = click.option("--no-store", is_flag=True, help="Keep nothing, and use nothing that was kept.")
    return folder(without(command))


def _retry_option(command: F) -> F:
    return click.option(
        "--retry-errors",
        is_flag=True,
        help="Ask models again what they answered, earlier on, in a way nobody can read.",
    )(command)


def _options(**options: Any) -> Options:
    from rageval_spec.runner import Options

    return Options(**options)


@cli.command()
@_spec_argument
@_selection_options
@_store_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("rageval-results"),
    show_default=True, metavar="FOLDER", help="Where reports that are files go.",
)  # fmt: skip
@click.option("--save-as", metavar="LABEL", help="Keep the results in the history, as a baseline for gates.")
@_retry_option
@click.option("-q", "--quiet", is_flag=True, help="No progress and no report on the terminal.")
def run(spec: Path, **options: Any) -> int:
    """Compute an evaluation and check its gates.

    \b
    rageval-spec run spec.yaml
    rageval-spec run spec.yaml --limit 20 --only bm25 --set ranking.ties=input -o results
    """
    from rageval_spec import runner
    from rageval_spec.errors import StoreWarning

    warnings.simplefilter("always", StoreWarning)
    outcome = runner.run(spec, _options(**options))
    _complain(outcome.warnings)
    for shown in () if options["quiet"] else outcome.shown:
        _write(shown)
    for path in () if options["quiet"] else outcome.written:
        _tell(f"wrote {path}")
    if outcome.spent.calls and not options["quiet"]:
        _tell(outcome.spent.describe())
    if (advice := outcome.spent.advise()) and not options["quiet"] and not options["no_store"]:
        _tell(advice)
    for failure in outcome.failures:
        _report(failure.error, str(failure))
    for error in outcome.lost_reports:
        _report(error, str(error))
    if outcome.complaint and (options["quiet"] or outcome.exit_code != GATE_FAILED):
        _tell(f"{PROGRAM}: {outcome.complaint}")
    return outcome.exit_code


@cli.command()
@_spec_argument
def validate(spec: Path, overrides: Sequence[str]) -> int:
    """Check a spec and the files that it names; compute nothing.

    \b
    rageval-spec validate spec.yaml
    """
    from rageval_spec.pipeline.preflight import validate
    from rageval_spec.wording import count_noun

    loaded = validate(spec, overrides)
    _complain(loaded.warnings)
    sections = {"dataset": loaded.datasets, "system": loaded.systems, "metric": loaded.metrics, "gate": loaded.gates}
    counts = ", ".join(count_noun(len(section), noun) for noun, section in sections.items())
    _write(f"{loaded.path}: valid, {counts}\n")
    return PASSED


@cli.command()
@click.argument("datasets", metavar="DATASET...", nargs=-1, required=True)
@click.option("--system", "systems", multiple=True, metavar="SYSTEM", help="What to evaluate. May be repeated.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="METRIC", help="ndcg@10 by default. May be repeated: a table each."
)
@click.option("--split", help="Which judgements: qrels/SPLIT.tsv; test by default.")
@_limit_option
@_set_option
@_store_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
    help="Write benchmark.md, .json and .csv, and the values of all queries, into a folder.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json", "csv"]), default="text", show_default=True
)
@click.option("--spec", "only_spec", is_flag=True, help="Print the spec that this is short for; compute nothing.")
def benchmark(only_spec: bool, form: Any, **options: Any) -> int:
    """Compare retrieval systems on BEIR folders.

    A DATASET is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv, or NAME=FOLDER. One table for each metric
    has a row a system, a column a dataset and their average, with intervals, and marks where a system differs
    significantly from the first; another has seconds and documents per second.

    \b
    A SYSTEM is
      bm25                          WORD: any system that a spec knows, with its defaults
      dense:minilm                  WORD:MODEL, the model being minilm, a hub id such as
                                    intfloat/e5-small-v2, a folder, or an .onnx file
      hybrid:bm25+dense:minilm      fuses the systems with a plus between; those that
                                    nobody lists are added to the table
      rerank:MODEL@bm25             reorders the best of the system after the @
      bm25,k1=0.9,stemmer=english   keys of the spec after commas, values in YAML
      NAME=dense:minilm,depth=100   has a name that others may use: hybrid:NAME+bm25
    Without any: bm25, dense:minilm and hybrid:bm25+dense:minilm.

    \b
    rageval-spec benchmark data/scifact
    rageval-spec benchmark data/* --system bm25 --system dense:minilm --metric recall@100
    rageval-spec benchmark data/scifact --system hybrid:bm25+dense --spec > spec.yaml
    """
    from rageval_spec.commands.benchmark import arguments as shorthand

    names = ("datasets", "systems", "metrics", "split", "overrides")
    reports = ("terminal",) if options["output"] is None else ("terminal", "csv")
    request = shorthand.Request(**{name: options.pop(name) for name in names}, reports=reports)
    if only_spec:
        _write(shorthand.write_spec(request))
        return PASSED
    return _benchmark(shorthand.load_spec(request), form, options)


def _benchmark(spec: Spec, form: Any, options: dict[str, Any]) -> int:
    from rageval_spec.commands.benchmark import evaluation as benchmarks
    from rageval_spec.commands.benchmark import table as scoreboard
    from rageval_spec.errors import StoreWarning

    warnings.simplefilter("always", StoreWarning)
    _complain(spec.warnings)
    folder = options.pop("output")
    done = benchmarks.run(spec, _options(**options, quiet=False, one_at_a_time=True, output=folder or Path()))
    _write(scoreboard.render(done, form))
    for path in () if folder is None else (*done.outcome.written, *scoreboard.save(done, folder)):
        _tell(f"wrote {path}")
    for failure in done.outcome.failures:
        if form in ("json", "csv"):
            _report(failure.error, str(failure))
        else:
            _trace(failure.error)
    if done.outcome.complaint:
        _tell(f"{PROGRAM}: {done.outcome.complaint}")
    return done.outcome.exit_code


@cli.command()
@_spec_argument
@_selection_options
@_store_options
@_retry_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def plan(spec: Path, form: str, **options: Any) -> int:
    """Show the steps of an evaluation, what is stored, and the calls, tokens and cost of what would be asked.

    A step's key is the hash of all that its table depends on. Two plans can be compared with diff.

    \b
    rageval-spec plan spec.yaml
    rageval-spec plan spec.yaml --format json
    """
    from rageval_spec import runner
    from rageval_spec.progress import ProgressDisplay

    with ProgressDisplay() as display:
        display.announce("read the input files")
        planned = runner.plan(spec, _options(**options))
        text = planned.to_json() if form == "json" else planned.render()
    _write(text)
    return PASSED


@cli.command()
def schema() -> int:
    """Print the JSON Schema of a spec.

    Editors complete and check specs with it. It speaks of all installed plugins.

    \b
    rageval-spec schema > spec.schema.json
    """
    _write(_schema())
    return PASSED


@cli.group(invoke_without_command=True)
@click.pass_context
def metrics(ctx: click.Context) -> int:
    """List the metrics, or show one.

    \b
    rageval-spec metrics
    rageval-spec metrics show ndcg
    """
    if ctx.invoked_subcommand is None:
        from rageval_spec.commands.metrics import list_metrics

        _write(list_metrics())
    return PASSED


@metrics.command()
@click.argument("name")
def show(name: str) -> int:
    """Show a metric's formula, edge cases, keys and source.

    \b
    rageval-spec metrics show ndcg
    rageval-spec metrics show recip_rank
    """
    from rageval_spec.commands.metrics import describe_metric

    _write(describe_metric(name))
    return PASSED


@cli.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> int:
    """List models, export one as ONNX, or measure one.

    \b
    rageval-spec models
    rageval-spec models export minilm --output models/minilm-int8 --precision int8
    rageval-spec models bench minilm --texts data/scifact
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)
    return PASSED


_form_option = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


def _model_argument(command: F) -> F:
    revision = click.option("--revision", help="Branch, tag or commit of a hub model; main by default.")
    file = click.option("--file", metavar="NAME", help="Which .onnx file of the model: onnx/model_O3.onnx.")
    return click.argument("model")(revision(file(command)))


@models.command("list")
@_form_option
def list_models(form: str = "text") -> int:
    """List the models on this machine.

    Those that are embedded, those in the Hugging Face hub's cache, and the graphs that were built of them.

    \b
    rageval-spec models list
    rageval-spec models list --format json
    """
    from rageval_spec.commands.models import workbench

    listing = workbench.list_models()
    _write(listing.to_json() if form == "json" else listing.to_text())
    return PASSED


@models.command()
@_model_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="A new folder.")
@click.option("--precision", type=click.Choice(["fp32", "int8"]), default="fp32", show_default=True)
def export(model: str, output: Path, precision: Any, revision: str | None, file: str | None) -> int:
    """Write a model as a folder with an ONNX graph and a tokenizer.

    MODEL is minilm, a Hugging Face id, a folder or an .onnx file. The folder can be carried to a machine without
    network, and is read by `use: onnx` and by other programs.

    \b
    rageval-spec models export minilm --output models/minilm-int8 --precision int8
    rageval-spec models export intfloat/e5-small-v2 --output models/e5
    """
    from rageval_spec.commands.models import workbench

    _write(workbench.export(model, output, precision, revision, file))
    return PASSED


@models.command()
@_model_argument
@click.option(
    "--texts", type=click.Path(path_type=Path), metavar="PATH",
    help="A text a line, a .jsonl file with 'text', or a BEIR folder, on which fp32 and int8 then retrieve as well; "
    "texts of our own by default.",
)  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=500, show_default=True, metavar="N", help="The first N texts.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, metavar="N")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="All cores by default.")
@_form_option
def bench(form: str, **request: Any) -> int:
    """Measure an embedding model: speed, memory, and what int8 changes.

    fp32 and int8 in ONNX Runtime, and sentence-transformers on the CPU where it is installed, each in a process of
    its own and in turns.

    \b
    rageval-spec models bench minilm
    rageval-spec models bench intfloat/e5-small-v2 --texts data/scifact --count 2000
    """
    from rageval_spec.commands.models import workbench

    measured = workbench.bench(workbench.Request(**request))
    _write(measured.to_json() if form == "json" else measured.to_text())
    return PASSED


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def init(folder: Path, force: bool) -> int:
    """Write a commented spec with sample data that run at once.

    \b
    rageval-spec init example
    """
    from rageval_spec.commands.init import write_sample

    path = write_sample(folder, _schema(), force=force)
    _write(f"wrote {path}, its schema and sample data; now try: {PROGRAM} run {path}\n")
    return PASSED


@cli.command()
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("run_file", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("measures", metavar="[MEASURE]...", nargs=-1)
@click.option("-q", "--per-query", is_flag=True, help="Each query's values too.")
@click.option(
    "-c", "--complete", is_flag=True, help="A query that is not in the run counts 0 instead of being skipped."
)
@click.option(
    "-l", "--level", "relevance_level", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="From which relevance on a document counts as relevant.",
)  # fmt: skip
@click.option("-J", "--judged-only", is_flag=True, help="Remove unjudged documents from the rankings first.")
@click.option(
    "-M", "--depth", type=click.IntRange(min=1), metavar="N", help="The first N documents of a ranking alone."
)
@click.option(
    "--ties", type=click.Choice(["trec_eval", "input", "float64", "ranx", "range"]), default="trec_eval",
    show_default=True, help="The order of equal scores; range adds the lowest and highest value over all orders.",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def score(qrels: Path, run_file: Path, measures: Sequence[str], form: str, **settings: Any) -> int:
    """Score one run as trec_eval does, in trec_eval's layout.

    MEASURES are named as in ir_measures, trec_eval or BEIR; without any, trec_eval's short list is printed.

    \b
    rageval-spec score qrels.txt run.txt ndcg@10 map recall@100
    rageval-spec score qrels.tsv run.txt.gz P_5 recip_rank -q
    """
    from rageval_spec.commands.score import Settings, score_run
    from rageval_spec.progress import ProgressDisplay

    with ProgressDisplay() as display:
        display.announce(f"score {run_file.name}")
        scores = score_run(qrels, run_file, measures, Settings(**settings))
    _write(scores.to_json() if form == "json" else scores.to_text())
    return PASSED


def main() -> NoReturn:
    """The program `rageval-spec`."""
    gc.set_threshold(100_000, 20, 20)  # looking for cycles after every 700 objects takes a tenth of a short run
    try:
        cli.main(prog_name=PROGRAM)
    except SystemExit as ending:
        if ending.code == INTERRUPTED:
            os._exit(INTERRUPTED)  # threads that still compute would keep the process; what they make is not wanted
        raise


def _schema() -> str:
    import json

    from rageval_spec.spec import schema

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _answer(command: Callable[[], Any]) -> int:
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else PASSED
    except (click.Abort, KeyboardInterrupt) as error:
        # Click puts an error of its own in the place of the interrupt.
        spent = str(error.__cause__ or error) if isinstance(error.__cause__ or error, KeyboardInterrupt) else ""
        _tell(f"{PROGRAM}: interrupted{spent and f'; {spent}'}")
        return INTERRUPTED
    except click.ClickException as error:
        return _explain_usage(error)
    except BrokenPipeError:
        _forget(sys.stdout)
        return PASSED
    except RagevalError as error:
        _report(error, str(error))
        return error.exit_code
    except Exception as error:
        _report(error, f"internal error: {type(error).__name__}: {error}; {DEBUG}=1 shows where")
        return BROKEN


def _explain_usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        _tell(error.format_message())
        return SPEC_WRONG
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"\nTry '{context.command_path} --help'." if context else ""
    _tell(f"{PROGRAM}: {error.format_message()}{hint}")
    return SPEC_WRONG


def _report(error: Exception, message: str) -> None:
    from rageval_spec.diagnostics import SpecError

    _trace(error)
    _tell(message if isinstance(error, SpecError) else f"{PROGRAM}: {message}")


def _trace(error: Exception) -> None:
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        traceback.print_exception(error)


def _complain(diagnostics: Sequence[object]) -> None:
    for diagnostic in diagnostics:
        _tell(str(diagnostic))


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:  # noqa: ARG001
    _tell(f"{PROGRAM}: warning: {message}")


def _write(content: str | bytes) -> None:
    """Write to standard output; that its reader went away changes neither the work nor the exit code."""
    if sys.stdout is None:
        raise RagevalError("standard output is closed")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _forget(sys.stdout)
    except OSError as error:
        _forget(sys.stdout)
        raise RagevalError(f"standard output cannot be written: {error.strerror or error}") from error


def _tell(message: str) -> None:
    """Write a line to standard error; that nobody reads it changes nothing either."""
    try:
        click.echo(message, err=True)
    except BrokenPipeError:
        _forget(sys.stderr)


def _forget(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    main()
