"""`rageval-spec models export`: write a model to a folder that other programs can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Front, Later
from rageval_spec.commands.models.listing import find_models, find_width, format_bytes
from rageval_spec.commands.models.named import find_model
from rageval_spec.errors import PASSED, UsageError

Precision = Literal["fp32", "int8"]


def export_model(
    model: str, target: Path, precision: Precision, revision: str | None = None, file: str | None = None
) -> str:
    """Write a model to a folder that `use: onnx` and other programs can read. Returns the message for the user.

    Raises:
        UsageError: there is no such model, no graph can be built from it, or the folder is not empty.
        DataError: the model's files are damaged.
        RagevalError: the model cannot be downloaded, or the folder cannot be written.
    """
    from rageval_spec.inference import exports
    from rageval_spec.plugin import Context
    from rageval_spec.progress import ProgressDisplay

    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UsageError(f"{target} already exists; name a new folder")
    named = find_model(model, revision, file)
    with ProgressDisplay() as display:
        display.announce(f"export {model} as {precision}")
        graph = exports.export_model(named.source, named.configuration, target, precision, Context(model).fingerprint)
    size = sum(path.stat().st_size for path in graph.parent.iterdir() if path.is_file())
    node = f"{{use: onnx, model: {target}}}"
    return f"wrote {graph} ({precision}, {format_bytes(size)}); to use it in a spec, write {node}\n"


@click.group(cls=Front, invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> int:
    """List models, show the keys of a model block, export a model to ONNX, or measure one.

    \b
    rageval-spec models
    rageval-spec models export minilm --output models/minilm-int8 --precision int8
    rageval-spec models bench minilm --texts data/scifact
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)
    return PASSED


@models.command("list")
@shared.store_folder_option
@shared.form_option
def list_models(folder: Path = Path(".rageval", "store"), form: str = "text") -> int:
    """List the models on this machine, and how readable and fast the replies of the chat models of a store were.

    For each model: its architecture, what it gives and its labels, format and precision, size, license, and why it
    cannot be run if it cannot.

    \b
    rageval-spec models list
    rageval-spec models list --format json
    """
    listing = find_models(folder)
    console.write_form(listing.to_json() if form == "json" else listing.to_text(find_width()), form)
    return PASSED


@models.command("show")
@click.argument("word", required=False)
def show_model(word: str | None) -> int:
    """Show the keys of a block under `models:`, or list the words that `use:` accepts there.

    \b
    rageval-spec models show
    rageval-spec models show chat
    """
    from rageval_spec.commands.plugins import describe_plugin, list_plugins

    console.write(describe_plugin("models", word) if word else list_plugins("models"))
    return PASSED


@models.command()
@shared.model_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="A new folder.")
@click.option(
    "--precision", type=click.Choice(["fp32", "int8"]), default="fp32", show_default=True,
    help="The precision of the weights.",
)  # fmt: skip
def export(model: str, output: Path, precision: Any, revision: str | None, file: str | None) -> int:
    """Write a model to a folder, as an ONNX graph and a tokenizer.

    MODEL is minilm, a Hugging Face id, a folder or an .onnx file. The new folder works offline, both with `use: onnx`
    and in other programs.

    \b
    rageval-spec models export minilm --output models/minilm-int8 --precision int8
    rageval-spec models export intfloat/e5-small-v2 --output models/e5
    """
    console.show(export_model(model, output, precision, revision, file))
    return PASSED


models.add_command(
    Later(
        "bench",
        "rageval_spec.commands.models.bench:bench",
        "Measure a model: its speed, its memory, and what int8 changes.",
    )
)
