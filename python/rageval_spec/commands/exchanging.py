"""The commands `import` and `export`: a subcommand for each tool, with the fields of its node as options."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click

from rageval_spec.commands import console
from rageval_spec.commands.exchange.exporting import export_values
from rageval_spec.commands.exchange.importing import import_traces
from rageval_spec.commands.front import Command, Front
from rageval_spec.errors import PASSED

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_ARGUMENT = "path"
"""The field that is an argument of the command instead of an option."""


class Tools(Front):
    """A group of commands that has one for each tool of exchange, made when it is asked for."""

    part: Literal["source", "target"]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The words of all tools that can be read from, or written to."""
        from rageval_spec.exchange.shared.finding import load, words

        return [word for word in words() if getattr(load(word), self.part) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """The command of a tool."""
        from rageval_spec.exchange.shared.finding import load, words

        if cmd_name not in words():
            return None
        kind = getattr(load(cmd_name), self.part)
        return None if kind is None else _make_command(self.part, cmd_name, kind)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with.

        Raises:
            UsageError: there is no such tool for this command; the message names the most similar one.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            from rageval_spec.diagnostics import suggest

            known = self.list_commands(ctx)
            what = "import from" if self.part == "source" else "export to"
            hint = suggest(args[0], known) or f"the tools are {', '.join(known)}"
            raise click.UsageError(f"there is no tool {args[0]!r} to {what}; {hint}", ctx) from error


class Import(Tools):
    """The tools that can be read from."""

    part = "source"


class Export(Tools):
    """The tools that can be written to."""

    part = "target"


@click.group("import", cls=Import)
def import_() -> None:
    """Read questions, answers and traces from another tool.

    Writes one row for each question to a JSON Lines file, which can be a dataset and a system of a spec.

    \b
    rageval-spec import phoenix --project support --since 7d -o traces.jsonl
    rageval-spec import otel spans.jsonl -o traces.jsonl
    """


@click.group("export", cls=Export)
def export() -> None:
    """Send the values of an evaluation to another tool, or write them in its layout.

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

    def run(**given: Any) -> int:
        named = {parameter.name for parameter in own}
        settings = {key: value for key, value in given.items() if key not in named and value not in (None, ())}
        options = {key: value for key, value in given.items() if key in named}
        if part == "source":
            console.write(import_traces(word, settings, **options))
        else:
            console.write(export_values(word, settings, **options))
        return PASSED

    short = kind.summary.partition(". ")[0].rstrip(".")
    return Command(word, callback=run, params=[*fields, *own], help=help, short_help=short)


def _import_parameters(word: str) -> list[click.Parameter]:
    return [
        click.Option(
            ["-o", "--output"], type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
            help=f"The file to write, ending in .jsonl or .jsonl.gz.  [default: {word}.jsonl]",
        ),
        click.Option(["--force"], is_flag=True, help="Overwrite the file if it exists."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show no progress."),
    ]  # fmt: skip


def _export_parameters(filename: str) -> list[click.Parameter]:
    """The options of a target that sends, or of one that writes files, which has the name of one."""
    results = click.Argument(["results"], required=False)
    if filename:
        output = click.Option(
            ["-o", "--output"], type=click.Path(path_type=Path), metavar="FILE",
            help=f"The file to write.  [default: {filename}]",
        )  # fmt: skip
        system = click.Option(
            ["--system"], metavar="SYSTEM",
            help="Write only this system's answers. A file of several has each question several times.",
        )  # fmt: skip
        force = click.Option(["--force"], is_flag=True, help="Overwrite the file if it exists.")
        return [results, output, system, force]
    return [
        results,
        click.Option(["--dry-run"], is_flag=True, help="Show what would be sent, and send nothing."),
        click.Option(["--again"], is_flag=True, help="Also send what was sent before."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Show no progress."),
    ]


def _make_parameters(fields: dict[str, FieldInfo]) -> Iterator[click.Parameter]:
    """An option for each field, except secrets, which other users of the machine could see."""
    from rageval_spec.plugin.secret import Secret

    for name, field in fields.items():
        kind = _without_none(field.annotation)
        if kind is Secret or get_origin(kind) is dict:
            continue
        if name == _ARGUMENT:
            many = get_origin(kind) in (list, tuple)
            yield click.Argument(
                [name],
                type=str,
                required=field.is_required(),
                nargs=-1 if many else 1,
                metavar="PATH..." if many else "PATH" if field.is_required() else "[PATH]",
            )
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
