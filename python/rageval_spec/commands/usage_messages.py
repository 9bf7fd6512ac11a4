"""What is wrong with a command line, in this program's words: what, and what to write instead."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from rageval_spec.diagnostics import suggest
from rageval_spec.wording import list_choices


def describe_usage(error: click.ClickException) -> str:
    """The message of an error that click raises; its own one if that is as good."""
    if isinstance(error, click.BadOptionUsage) and (found := re.search(r"requires (an|\d+) argument", error.message)):
        count = "its value" if found[1] == "an" else f"its {found[1]} values"
        return f"{error.option_name} lacks {count}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return error.format_message()
    match error:
        case click.MissingParameter(param=click.Parameter() as parameter):
            return f"{_name(parameter)} is missing{_show_example(context)}"
        case click.BadParameter(param=click.Parameter() as parameter):
            return _describe_value(error, parameter)
        case click.NoSuchOption():
            return _describe_option(error, context)
    if found := re.match(r"Got unexpected extra arguments? \((.*)\)", error.message):
        return f"'{found[1]}' is too much{_show_example(context)}"
    if found := re.match(r"No such command '(.*?)'", error.message):
        known = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
        return f"there is no command '{found[1]}'; {suggest(found[1], known) or f'write one of {list_choices(known)}'}"
    return error.format_message()


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.human_readable_name if parameter.metavar is None else parameter.metavar).strip("[].").upper()


def _show_example(context: click.Context) -> str:
    """The first call in the command's help, which shows what belongs to it."""
    lines = (line.strip() for line in (context.command.help or "").splitlines())
    example = next((line for line in lines if line.startswith(f"rageval-spec {context.info_name} ")), None)
    return "" if example is None else f": write, for example, {example}"


def _describe_value(error: click.BadParameter, parameter: click.Parameter) -> str:
    kinds = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
    found = re.match(r"'?(.*?)'? is not (?:in the range|one of|a valid)", error.message)
    value = found[1] if found else ""
    place = f"{_name(parameter)} {value}".strip()
    for kind in kinds:
        if found and isinstance(kind, click.Choice):
            known = [*map(str, kind.choices)]
            where = place if isinstance(parameter, click.Option) else f"'{value}'"
            return f"{where}: {suggest(value, known) or f'write one of {list_choices(known)}'}"
        if found and isinstance(kind, click.IntRange | click.FloatRange):
            return f"{place}: write {_describe_range(kind)}"
        lacking = re.match(
            r"(?P<kind>\w+) '(?P<path>.*)' (?P<fault>does not exist|is a file|is a directory)", error.message
        )
        if lacking and isinstance(kind, click.Path):
            wanted = "folder" if lacking["kind"] == "Directory" else "file"
            if lacking["fault"] == "does not exist":
                return f"there is no {wanted} '{lacking['path']}'{find_nearest(Path(lacking['path']))}"
            return f"'{lacking['path']}' is a {'file' if wanted == 'folder' else 'folder'}; name a {wanted}"
    return error.format_message()


def _describe_range(kind: click.IntRange | click.FloatRange) -> str:
    noun = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    low = None if kind.min is None else f"{'above' if kind.min_open else 'from'} {kind.min:,}"
    high = None if kind.max is None else f"{'below' if kind.max_open else 'to' if low else 'up to'} {kind.max:,}"
    return " ".join(
        filter(None, (noun, low, "and" if low and kind.max_open else None, high, "on" if not high else None))
    )


def find_nearest(path: Path) -> str:
    """`; did you mean ...` with the entry of the folder that a path may mean; "" if there is none."""
    try:
        known = sorted(one.name for one in path.parent.iterdir() if not one.name.startswith("."))
    except OSError:
        return ""
    same = next((name for name in known if name.partition(".")[0] == path.name), None)
    hint = f"did you mean '{same}'?" if same else suggest(path.name, known)
    return f"; {hint}" if hint else ""


def _describe_option(error: click.NoSuchOption, context: click.Context) -> str:
    known = [option[2:] for one in context.command.params for option in one.opts if option.startswith("--")]
    # click reads `-url` as `-u`.
    typed = next((word for word in sys.argv[1:] if word.startswith(error.option_name)), error.option_name)
    hint = suggest(typed.lstrip("-"), known)
    return f"there is no option '{typed}'" + (f"; {hint.replace(chr(39), chr(39) + '--', 1)}" if hint else "")
