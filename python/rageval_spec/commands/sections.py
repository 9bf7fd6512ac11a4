"""The commands `datasets`, `systems`, `judges`, `labels` and `reports`, which show the words of a section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.plugins import (
    describe_known_model,
    describe_plugin,
    describe_plugin_as_json,
    list_plugins,
    list_plugins_as_json,
)
from rageval_spec.errors import PASSED

if TYPE_CHECKING:
    from collections.abc import Callable


def _make_group(section: Any, noun: str, word: str) -> click.Group:
    """The commands of a section; a block of it is called `noun`, and `word` is for the examples."""

    @click.group(
        section,
        invoke_without_command=True,
        help=_write_help(f"List the {section}, or show one.", f"{section}", f"{section} show {word}"),
    )
    @click.pass_context
    def group(ctx: click.Context) -> int:
        return _list(section, "text") if ctx.invoked_subcommand is None else PASSED

    @group.command("list", help=_write_help(f"List the {section}.", f"{section} list --format json"))
    @shared.form_option
    def list_all(form: str) -> int:
        return _list(section, form)

    group.add_command(_make_show(section, noun, word))
    return group


def _make_show(section: Any, noun: str, word: str) -> click.Command:
    more = (f"{section} show nli --model lytang/MiniCheck-Flan-T5-Large",) if section == "judges" else ()
    summary = f"Show what a {noun} does, its keys and their defaults."
    if more:
        summary += " For a judge that knows models by their names, also what it knows about them."

    @click.command("show", help=_write_help(summary, f"{section} show {word}", *more))
    @click.argument("word")
    @_model_option(section)
    @shared.form_option
    def show_one(word: str, form: str, model: str | None = None) -> int:
        if model is not None:
            text = describe_known_model(section, word, model, form)
        else:
            text = describe_plugin_as_json(section, word) if form == "json" else describe_plugin(section, word)
        console.write(text)
        return PASSED

    return show_one


def _model_option(section: str) -> Callable[[Any], Any]:
    """Add `--model` to the command of a section whose plugins know models by their names."""
    if section != "judges":
        return lambda command: command
    return click.option("--model", metavar="NAME", help="Show what the judge knows about one published model.")


def _list(section: Any, form: str) -> int:
    console.write(list_plugins_as_json(section) if form == "json" else list_plugins(section))
    return PASSED


def _write_help(summary: str, *examples: str) -> str:
    return "\n".join([f"{summary}\n\n\b", *(f"rageval-spec {example}" for example in examples)])


datasets = _make_group("datasets", "dataset", "jsonl")
systems = _make_group("systems", "system", "http")
judges = _make_group("judges", "judge", "claims")
labels = _make_group("labels", "source of labels", "csv")
reports = _make_group("reports", "report", "markdown")
