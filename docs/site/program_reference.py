"""The reference of the program: its commands, its Python interface, its schemas, exit codes and variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import click
import griffe
from markdown_text import code, escape, fence, join, table
from staging import ROOT, Page

from rageval_spec import errors
from rageval_spec.cli import cli
from rageval_spec.commands.console import PROGRAM, Later

_MODULES = ("rageval_spec", "rageval_spec.plugin", "rageval_spec.compat.pytrec_eval", "rageval_spec.compat.ir_measures")


def write_command_pages() -> Iterator[Page]:
    """A page that lists the commands, and one for each of them with its options and its own commands."""
    context = click.Context(cli, info_name=PROGRAM)
    commands = {name: _get(cli, context, name) for name in cli.list_commands(context)}
    summaries = {name: (command.help or "").partition("\n\n")[0] for name, command in commands.items()}
    rows = [(f"[`{name}`]({name}.md)", escape(summary)) for name, summary in summaries.items()]
    listed = join(["# Commands", "`rageval-spec COMMAND --help` prints what these pages say.",
                   table(["command", "what it does"], rows)])  # fmt: skip
    yield Page("reference/commands/index.md", listed)
    for name, command in commands.items():
        parts = _describe_command(command, click.Context(command, info_name=name, parent=context), 1)
        yield Page(f"reference/commands/{name}.md", join(parts))


def _get(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    assert command is not None
    return command.find() if isinstance(command, Later) else command


def _describe_command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{context.command_path}`"
    yield from _render_help(command.help or "")
    yield fence(" ".join([context.command_path, *command.collect_usage_pieces(context)]))
    records = [record for one in command.get_params(context) if (record := one.get_help_record(context))]
    if records := [(name, told) for name, told in records if told]:
        yield table(["option", "meaning"], [(code(name), escape(told)) for name, told in records])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = _get(command, context, name)
            yield from _describe_command(inner, click.Context(inner, info_name=name, parent=context), level + 1)


def _render_help(text: str) -> Iterator[str]:
    """Paragraphs of click's help; one that begins with `\\b` is shown as it is."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = paragraph.strip("\n").splitlines()
        if lines and lines[0].strip() == "\b":
            yield fence("\n".join(line.strip() for line in lines[1:]), "sh")
        elif lines:
            yield escape(paragraph)


def write_python_pages() -> Iterator[Page]:
    """A page for each public module, from its signatures and docstrings."""
    for path in _MODULES:
        module = _read_package()[path.removeprefix("rageval_spec.")] if "." in path else _read_package()
        parts = [f"# `{path}`", *_render_docstring(module)]
        names = [str(name) for name in module.exports or _list_own_classes(module)]
        for name in names:
            member = module.members.get(name)
            if member is not None and name != "__version__":
                parts += _describe_member(member.final_target if member.is_alias else member, name, 2)
        yield Page(f"reference/python/{path}.md", join(parts))


@cache
def _read_package() -> Any:
    return griffe.load("rageval_spec", search_paths=[ROOT / "python"], docstring_parser="google", submodules=True,
                       docstring_options={"warn_unknown_params": False, "warn_missing_types": False})  # fmt: skip


def _list_own_classes(module: Any) -> list[str]:
    return [name for name, member in module.members.items() if not member.is_alias and member.is_class]


def _describe_member(member: Any, name: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{name}`"
    if member.is_function:
        yield fence(member.signature(), "python")
    elif member.is_class:
        yield fence(f"class {name}({', '.join(map(str, member.bases))})" if member.bases else f"class {name}", "python")
    yield from _render_docstring(member)
    if member.is_class:
        for inner_name, inner in member.members.items():
            if not inner.is_alias and inner.docstring and not inner_name.startswith("_"):
                yield from _describe_member(inner, f"{name}.{inner_name}", level + 1)


def _render_docstring(member: Any) -> Iterator[str]:
    for section in member.docstring.parsed if member.docstring else ():
        if section.kind is griffe.DocstringSectionKind.text:
            yield from _render_paragraphs(section.value)
        elif section.kind is griffe.DocstringSectionKind.examples:
            yield from (fence(text, "python") if "example" in kind.value else text for kind, text in section.value)
        elif isinstance(section.value, list):
            rows = [(code(one.name if getattr(one, "name", "") else one.annotation), escape(one.description))
                    for one in section.value]  # fmt: skip
            yield table([section.kind.value, "meaning"], rows)


def _render_paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.startswith((" ", ">>>")):
            yield fence("\n".join(line.removeprefix("    ") for line in paragraph.splitlines()), "python")
        elif paragraph.lstrip().startswith("- "):
            yield "\n".join(f"- {escape(item)}" for item in re.split(r"(?:^|\n)\s*- ", paragraph) if item)
        else:
            yield escape(paragraph)


def write_schema_pages() -> Iterator[Page]:
    """A page for each published JSON Schema, with its keys at the top."""
    for path in sorted((ROOT / "schemas").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        rows = [(code(key), escape(value.get("description", ""))) for key, value in schema["properties"].items()]
        link = f"[{path.name}](../../schemas/{path.name})"
        yield Page(f"reference/schemas/{path.stem}.md",
                   join([f"# `{path.name}`", escape(schema.get("description", schema.get("title", ""))),
                         f"The schema itself: {link}.", table(["key", "meaning"], rows)]))  # fmt: skip


def write_process_page() -> Page:
    """Exit codes and environment variables."""
    told = re.search(r"Exit codes: (.*?)\n\s*\n", cli.help or "", re.DOTALL)
    assert told
    codes = re.findall(r"(\d+) ([^,(.)]+)", " ".join(told[1].split()))
    raised: dict[int, list[str]] = {}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.RagevalError):
            raised.setdefault(kind.exit_code, []).append(code(name))
    rows = [(number, escape(meaning), ", ".join(raised.get(int(number), []))) for number, meaning in codes]
    return Page("reference/exit_codes.md", join(["# Exit codes", "What a command tells the program that called it.",
                table(["code", "meaning", "exceptions in Python"], rows)]))  # fmt: skip
