"""`rageval-spec import` and `rageval-spec export`: exchange data with other tools.

Each tool has a subcommand, with the fields of its node as options. `import` writes what a tool has as rows of a JSON
Lines file. `export` sends the values of an evaluation to a tool, or writes them to a file in its layout.
"""

from __future__ import annotations

import json
import os
import re
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import click

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM, Front, OutputCommand
from rageval_spec.data.tables import SampleTable
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import PASSED, RagevalError, UsageError, expand_home
from rageval_spec.progress import ProgressDisplay
from rageval_spec.store.disk import flush_folder, sweep, write_or_explain
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.traces import Trace
    from rageval_spec.exchange.shared.contracts import Exporter, FileTarget, TraceCheck, TraceSource

    M = TypeVar("M", bound=BaseModel)


_ARGUMENT = "path"
"""The field that is an argument of the command instead of an option."""


class Tools(Front):
    """A group of commands that has one for each tool of exchange, made when it is asked for."""

    def __init__(self, *given: Any, part: Literal["source", "target"], **options: Any) -> None:
        super().__init__(*given, **options)
        self.part = part

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The words of all tools that can be read from, or written to."""
        from rageval_spec.exchange.shared.contracts import load, words

        return [word for word in words() if getattr(load(word), self.part) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """The command of a tool."""
        from rageval_spec.exchange.shared.contracts import load, words

        kind = getattr(load(cmd_name), self.part) if cmd_name in words() else None
        return None if kind is None else _make_command(self.part, cmd_name, kind)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            known = self.list_commands(ctx)
            what = "import from" if self.part == "source" else "export to"
            hint = suggest(args[0], known) or f"the tools are {', '.join(known)}"
            raise click.UsageError(f"there is no tool {args[0]!r} to {what}; {hint}", ctx) from error


@click.group("import", cls=Tools, part="source")
def import_() -> None:
    """Read questions, answers and traces from another tool.

    Writes one row for each question to a JSON Lines file, which can be a dataset and a system of a spec.

    \b
    rageval-spec import phoenix --project support --since 7d -o traces.jsonl
    rageval-spec import otel spans.jsonl -o traces.jsonl
    """


@click.group("export", cls=Tools, part="target")
def export() -> None:
    """Send the values of an evaluation to another tool.

    Some tools are sent values over their API; for others, a file is written in their layout.

    \b
    rageval-spec export phoenix
    rageval-spec export ragas rageval-results -o ragas.jsonl
    """


def _make_command(part: str, word: str, kind: Any) -> click.Command:
    """The command of one tool, with its options and help."""
    examples = "".join(f"\nrageval-spec {example}" for example in kind.examples)
    help = f"{kind.summary}\n\n\b{examples}" if examples else kind.summary
    fields = [*_make_parameters(kind.node_type.model_fields)]
    own = _import_parameters(word) if part == "source" else _export_parameters(getattr(kind, "filename", ""))
    work: Callable[..., str] = import_traces if part == "source" else export_values

    def run(**given: Any) -> int:
        options = {str(parameter.name): given.pop(str(parameter.name)) for parameter in own}
        settings = {key: value for key, value in given.items() if value not in (None, ())}
        console.write(work(word, kind, settings, **options))
        return PASSED

    short = kind.summary.partition(". ")[0].rstrip(".")
    return OutputCommand(word, callback=run, params=[*fields, *own], help=help, short_help=short)


def _name_file(help: str, **kind: bool) -> click.Option:
    return click.Option(["-o", "--output"], type=click.Path(path_type=Path, **kind), metavar="FILE", help=help)


def _import_parameters(word: str) -> list[click.Parameter]:
    return [
        _name_file(f"The file to write, ending in .jsonl or .jsonl.gz.  [default: {word}.jsonl]", dir_okay=False),
        click.Option(["--force"], is_flag=True, help="Overwrite the file if it exists."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show no progress."),
    ]


def _export_parameters(filename: str) -> list[click.Parameter]:
    """The options of a target that sends, or of one that writes files, which has the name of one."""
    results = click.Argument(["results"], required=False)
    if filename:
        help = "Write only this system's answers. A file of several has each question several times."
        return [
            results,
            _name_file(f"The file to write.  [default: {filename}]"),
            click.Option(["--system"], metavar="SYSTEM", help=help),
            click.Option(["--force"], is_flag=True, help="Overwrite the file if it exists."),
        ]
    return [
        results,
        click.Option(["--dry-run"], is_flag=True, help="Show what would be sent, and send nothing."),
        click.Option(["--again"], is_flag=True, help="Also send what was sent before."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show no progress."),
    ]


def _make_parameters(fields: dict[str, FieldInfo]) -> Iterator[click.Parameter]:
    """An option for each field, except secrets, which other users of the machine could see."""
    from rageval_spec.plugin.secrets import Secret

    for name, field in fields.items():
        kind = _without_none(field.annotation)
        if kind is Secret or get_origin(kind) is dict:
            continue
        if name == _ARGUMENT:
            many = get_origin(kind) in (list, tuple)
            shown = "PATH..." if many else "PATH" if field.is_required() else "[PATH]"
            required = field.is_required()
            yield click.Argument([name], type=str, required=required, nargs=-1 if many else 1, metavar=shown)
        else:
            yield _make_option(name, field, kind)


def _make_option(name: str, field: FieldInfo, kind: Any) -> click.Option:
    flag = f"--{name.replace('_', '-')}"
    help = (field.description or "").replace("`", "'")
    if kind is bool:
        return click.Option(
            [f"{flag}/--no-{flag[2:]}" if field.default else flag], is_flag=True, default=None, help=help
        )
    if get_origin(kind) is Literal:
        return click.Option([flag], type=click.Choice([str(one) for one in get_args(kind)]), help=help)
    many = get_origin(kind) in (list, tuple)
    inner = get_args(kind)[0] if many else kind
    return click.Option(
        [flag], type=inner if inner in (int, float) else str, multiple=many, required=field.is_required(), help=help,
        metavar=name.upper(),
    )  # fmt: skip


def _without_none(annotation: Any) -> Any:
    """The type of a field without `| None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [one for one in get_args(annotation) if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else str
    return annotation


def export_values(
    word: str,
    kind: type[Exporter[Any]],
    settings: Mapping[str, Any],
    results: str | None,
    *,
    output: Path | None = None,
    system: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    again: bool = False,
    quiet: bool = False,
) -> str:
    """Export the values of some results; returns what was sent or written."""
    from rageval_spec.commands.results_argument import open_results
    from rageval_spec.exchange.shared.contracts import FileTarget, Target
    from rageval_spec.exchange.shared.delivery import send_parcels
    from rageval_spec.plugin.plugin import Context

    node = read_settings(kind.node_type, settings)
    evaluation = open_results(results).evaluation
    if system is not None:
        evaluation = _select(evaluation, system)
    with ProgressDisplay(quiet=quiet) as display:
        display.announce(f"export {word}")
        folder = _folder(results)
        context = Context(word, Path(), progress=display.counting(word), tell=display.tell, output=folder)
        exporter = kind(node, context)
        try:
            if isinstance(exporter, FileTarget):
                return _write_export(exporter, evaluation, output, force=force)
            assert isinstance(exporter, Target), "the two kinds of targets"
            receipt = send_parcels(
                exporter, evaluation, folder, tool=word, dry_run=dry_run, anew=again, progress=context.progress,
                show=lambda line: console.write(f"{line}\n"),
            )  # fmt: skip
        finally:
            exporter.close()
    return receipt.render()


def _select(evaluation: Evaluation, system: str) -> Evaluation:
    """The evaluation as if it had only this system."""
    if system not in evaluation.systems:
        hint = suggest(system, evaluation.systems) or f"the systems are {', '.join(evaluation.systems)}"
        raise UsageError(f"--system: there is no system '{system}' in these results; {hint}")
    return replace(
        evaluation,
        systems=(system,),
        values=evaluation.values.filter(evaluation.values["system"] == system),
        sample_table=SampleTable(
            lambda: (block.filter(block["system"] == system) for block in evaluation.iterate_samples())
        ),
    )


def _folder(results: str | None) -> Path | None:
    """The results folder; None for a record of the history, which has none."""
    from rageval_spec.commands.results_argument import is_results
    from rageval_spec.plugin.report import RESULTS_FOLDER

    name = RESULTS_FOLDER if results is None else results
    if not is_results(name):
        return None
    path = expand_home(name)
    return path.parent if path.is_file() else path


def _write_export(exporter: FileTarget[Any], evaluation: Evaluation, output: Path | None, *, force: bool) -> str:
    usual = Path(exporter.filename)
    path = usual if output is None else output
    endings = exporter.suffixes or (usual.suffix,)
    told = f"-o {path}: name a file that ends in {' or '.join(endings)}"
    if not path.name or not path.name.endswith(exporter.suffixes or ""):
        raise UsageError(told)
    folder = path.with_suffix("") if path.suffix in endings else path  # other names can have a dot: `answers-1.2`
    rendered = exporter.render_files(evaluation, path.name)
    files = {folder / name if name else path: content for name, content in rendered}
    if path in files and any(place.parent == path for place in files):
        raise UsageError(told)
    for place in files:
        if place.is_dir():
            raise UsageError(f"{place} is a folder; name a file with -o")
        if place.exists() and not force:
            raise UsageError(f"{place} already exists; name another file with -o, or overwrite it with --force")
    for place, content in files.items():
        write_or_explain(place, content, f"{place}: cannot be written")
    return "".join(f"{line}\n" for line in (*(f"wrote {place}" for place in files), *exporter.remarks()))


_SUFFIXES = (".jsonl", ".jsonl.gz")
_SHOWN_EVERY = 100


def import_traces(
    word: str,
    kind: type[TraceSource[Any]],
    settings: Mapping[str, Any],
    output: Path | None,
    *,
    force: bool,
    quiet: bool,
) -> str:
    """Read the traces of a tool and write them. Returns what was written and how to go on."""
    from rageval_spec.plugin.plugin import Context

    output = _choose_file(word, output, force=force)
    node = read_settings(kind.node_type, settings)
    with ProgressDisplay(quiet=quiet) as display:
        display.announce(f"import {word}")
        source = kind(node, Context(word, Path(), progress=display.counting(word), tell=display.tell))
        try:
            check, answers, repeated = _write_import(source, output, display)
            remarks = [*source.remarks()]
        finally:
            source.close()
    if repeated:
        remarks.append(f"{count_noun(repeated, 'row')} with the id of an earlier one left out")
    said = (*_describe(word, check.rows, answers, output), *remarks, *check.render())
    return "".join(f"{line}\n" for line in said)


def _choose_file(word: str, output: Path | None, *, force: bool) -> Path:
    output = Path(f"{word}.jsonl") if output is None else output
    if not output.name.endswith(_SUFFIXES):
        raise UsageError(f"-o {output}: name a file that ends in {' or '.join(_SUFFIXES)}")
    if output.exists() and not force:
        raise UsageError(f"{output} already exists; name another file with -o, or overwrite it with --force")
    return output


def _write_import(source: TraceSource[Any], output: Path, display: ProgressDisplay) -> tuple[TraceCheck, int, int]:
    """What was written, how many rows have an answer, and how many repeated an id and were left out.

    A failure leaves no file.
    """
    from rageval_spec.exchange.shared.contracts import TraceCheck

    check, answers, repeated = TraceCheck(), 0, 0
    seen: set[str] = set()
    with _open_new(output) as stream:
        for trace in source.read():
            if trace.id in seen:
                repeated += 1
                continue
            seen.add(trace.id)
            stream.write(_dump(trace))
            check.add(trace)
            answers += trace.answer is not None
            if check.rows % _SHOWN_EVERY == 0:
                display.announce(f"import {source.context.name}: {count_noun(check.rows, 'question')}")
        if not check.rows:
            nothing = f"{source.context.name}: there is nothing to import in what the options name"
            raise RagevalError("; ".join((nothing, *source.remarks())))
    return check, answers, repeated


def _dump(trace: Trace) -> bytes:
    """The trace as a line of JSON."""
    from pydantic_core import PydanticSerializationError, to_json

    row = trace.to_row()
    with suppress(PydanticSerializationError, ValueError):  # halves of surrogate pairs, and what nests too deeply
        line = to_json(row, inf_nan_mode="constants")
        if b"NaN" not in line and b"Infinity" not in line:  # in a text they are harmless, so the next line decides
            return line + b"\n"
    return json.dumps(trace.to_row(), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n"


@contextmanager
def _open_new(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a file that appears under its name once everything is written."""
    import gzip

    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent.glob(f".{path.name}.*.part"))
        with temporary.open("wb") as file:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream:
                    yield cast("IO[bytes]", stream)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        raise RagevalError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _describe(word: str, count: int, answers: int, output: Path) -> Iterator[str]:
    rows = count_noun(count, "question")
    if answers:
        yield f"wrote {rows} with {count_noun(answers, 'answer')} to {output}"
        yield f"evaluate them with: {PROGRAM} init --answers {output}"
    else:
        yield f"wrote {rows} to {output}"
        yield f"use them as a dataset: {word}: {{use: jsonl, path: {output}}}"


def read_settings(kind: type[M], settings: Mapping[str, Any]) -> M:
    """The node with these settings.

    Raises:
        UsageError: a setting is wrong or missing; the message names the option.
    """
    from pydantic import ValidationError

    try:
        return kind(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(part for part in first["loc"] if isinstance(part, str))  # not the places in a list
        spell = _BOUNDS.get(first["type"])
        told = first["msg"].removeprefix("Value error, ") if spell is None else spell(first)
        keys = "|".join(kind.model_fields)
        message = re.sub(f"`({keys})`", lambda found: _spell(found[1]), told)
        raise UsageError(f"{_spell(name)}: {message}" if name else message) from None


def _spell(name: str) -> str:
    """A field as it is given on the command line."""
    return name.upper() if name == "path" else f"--{name.replace('_', '-')}"


_BOUNDS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: "is missing",
    "literal_error": lambda error: f"must be {error['ctx']['expected']}, not {error['input']!r}",
    "greater_than": lambda error: f"must be above {error['ctx']['gt']}, not {error['input']}",
    "greater_than_equal": lambda error: f"must be at least {error['ctx']['ge']}, not {error['input']}",
    "string_too_short": lambda _: "must not be empty",
}
"""What is wrong with a value, in the words that a spec's messages have."""
