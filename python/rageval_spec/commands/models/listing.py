"""`rageval-spec models`: `show` the models on this machine, or `export` one.

A model is described from its files, without loading its weights. A model that is named on the command line is
downloaded if it is not on this machine. `export` writes it to a folder that other programs can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rageval_spec import registry
from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front, Later
from rageval_spec.dataclass import asdict, dataclass
from rageval_spec.diagnostics import make_visible, suggest
from rageval_spec.errors import PASSED, RagevalError, UsageError

if TYPE_CHECKING:
    from onnx_from_checkpoints import Configuration, Task
    from rageval_spec.data.chat import AskedModel
    from rageval_spec.inference.model_files import Graph, Location, ModelFiles


HEADS: Mapping[Task, str] = {
    "embedding": "embedding",
    "classification": "classifier",
    "token_classification": "token classifier",
}
"""What a model gives, in the words of the list."""
T = TypeVar("T")

_PRECISIONS: Mapping[str, str] = {
    "F64": "fp64",
    "F32": "fp32",
    "F16": "fp16",
    "BF16": "bf16",
    "I8": "int8",
    "U8": "int8",
}
_MOST_FRONT_MATTER = 20_000
"""How many characters of a card are read; its front matter is at the beginning."""
_CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Inspected:
    """What a model's files say; empty where they do not.

    Attributes:
        format: `onnx`, `safetensors` or `e5s1`; empty if neither is there.
        architecture: transformers' `model_type`.
        head: what the model gives, as in `HEADS`.
        labels: a classifier's labels in the order of its logits.
        precision: that of the largest part of the weights, such as `fp16`; empty for `onnx`.
        license: as the model's card states it, or else the table of known verifiers.
        problem: why the model cannot be run, and what to do.
    """

    format: str = ""
    architecture: str = ""
    head: str = ""
    labels: tuple[str, ...] = ()
    precision: str = ""
    license: str = ""
    problem: str = ""


def inspect(location: Location, name: str) -> Inspected:
    """What the model at a place is. A damaged file is described in `problem`; the other files are read all the same."""
    from onnx_from_checkpoints import find_architecture, read_configuration
    from rageval_spec.inference.model_files import find_missing_packages, find_source, translated

    folder = location.folder
    facts: dict[str, Any] = {}
    problems: list[str] = []

    def attempt(read: Callable[[], T]) -> T | None:
        try:
            with translated():
                return read()
        except (RagevalError, OSError) as error:
            problems.append(str(error))
            return None

    source = attempt(lambda: find_source(location))
    if source is not None:
        facts |= {"format": source.format, "precision": attempt(lambda: _read_precision(source)) or ""}
    elif not problems:
        problems.append("incomplete, or not in a format that onnx can use")
    if folder is not None:
        configuration = attempt(source.read_configuration if source else lambda: read_configuration(folder))
        if configuration is not None:
            facts |= {"architecture": configuration.model_type, "labels": configuration.labels}
            facts |= {} if configuration.task is None else {"head": HEADS[configuration.task]}
            if source is not None and source.graph == "own":
                if missing := find_missing_packages(name):
                    problems.append(missing)
                else:
                    attempt(lambda: find_architecture(configuration.encoder))
        facts["license"] = read_license(folder / _CARD) or _list_known_licenses().get(name.casefold(), "")
    return Inspected(**facts, problem="; ".join(dict.fromkeys(problems)))


def _read_precision(source: ModelFiles) -> str:
    """The type of most weights according to the headers of their files; "" for an .onnx file."""
    from onnx_from_checkpoints import read_weights

    files = source.list_weights()[0] if source.graph == "own" else []
    kind = read_weights(files).find_commonest_kind()
    return _PRECISIONS.get(kind, kind.lower())


def read_license(card: Path) -> str:
    """The license in a model card's YAML front matter; "" without one, or if it cannot be read."""
    import yaml

    try:
        with card.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MOST_FRONT_MATTER)
        start, front, _ = text.split("---", 2)
        content = None if start.strip("\ufeff \n") else yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return ""
    if not isinstance(content, dict):
        return ""
    found = content.get("license")
    names = found if isinstance(found, list) else [found]
    named = content.get("license_name")
    told = [str(named) if name == "other" and named else str(name) for name in names if name]
    return ", ".join(told)


@cache
def _list_known_licenses() -> Mapping[str, str]:
    """The licenses of the embedded models and of the verifiers that people use, by the model's id in lower case."""
    from rageval_spec.inference.embedded_models import EMBEDDED
    from rageval_spec.inference.verifiers import VERIFIERS

    embedded = {name: model.license.lower() for name, model in EMBEDDED.items()}
    return embedded | {verifier.name.casefold(): verifier.license for verifier in VERIFIERS.values()}


STORE = Path(".rageval", "store")
WIDTH = 100
"""Longer lines are wrapped, unless they are of words that cannot be."""
MOST_LABELS = 20
"""More labels of a classifier are only counted; JSON has them all."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A model in the list; `bytes` is None if it is not installed."""

    name: str
    about: Inspected
    bytes: int | None = None
    revision: str | None = None

    def list_facts(self) -> Iterator[str]:
        """What is known of the model, without its problem: `bert`, `classifier: entailment, neutral`, `91.0 MB`."""
        about = self.about
        yield about.architecture
        yield f"{about.head}: {_name_some(about.labels)}" if about.labels else about.head
        yield f"{about.format} {about.precision}".strip()
        yield "" if self.bytes is None else format_bytes(self.bytes)
        yield make_visible(about.license)
        yield f"revision {self.revision[:12]}" if self.revision else ""

    def to_json(self) -> dict[str, Any]:
        """The model for other programs; what is unknown is null."""
        about = {key: value or None for key, value in asdict(self.about).items()}
        form = self.about.problem or self.about.format or self.about.precision
        return {"name": self.name, "form": form, **about, "bytes": self.bytes, "revision": self.revision}


def _name_some(labels: Sequence[str]) -> str:
    """The first labels, and how many there are besides."""
    rest = len(labels) - MOST_LABELS
    named = [*map(make_visible, labels[:MOST_LABELS]), *[f"and {rest:,} more"] * (rest > 0)]
    return ", ".join(named)


@dataclass(frozen=True)
class Listing:
    """All models, grouped by where they are."""

    embedded: tuple[Listed, ...]
    hub: tuple[Listed, ...]
    built: tuple[Listed, ...]
    hub_folder: Path
    built_folder: Path
    store: Path
    asked: tuple[AskedModel, ...] = ()

    def to_text(self, width: int = WIDTH) -> str:
        sections = (
            ("Embedded", self.embedded, ""),
            (f"Downloaded from the Hugging Face Hub: {_shorten(self.hub_folder)}", self.hub, "none yet; a run "
             "downloads the models that its spec names"),
            (f"Built here: {_shorten(self.built_folder)}", self.built, "none yet; a run builds "
             "the graphs that it needs"),
        )  # fmt: skip
        blocks = []
        for title, entries, otherwise in sections:
            lines = [line for entry in entries for line in _list_entry(entry, width)] or [f"  {otherwise}"]
            blocks.append("\n".join([title, *lines]))
        if self.asked:
            wide = max(len(one.model) for one in self.asked)
            lines = [f"  {make_visible(one.model):<{wide}}  {make_visible(one.url)}: {one}" for one in self.asked]
            blocks.append("\n".join([f"Chat models asked with the store {_shorten(self.store)}", *lines]))
        hint = "To use one, write {use: onnx, model: NAME} under 'models:'. NAME can also be a folder or an .onnx file."
        return "\n\n".join([*blocks, "\n".join(wrap(hint, width))]) + "\n"

    def choose(self, name: str) -> Listed:
        known = {one.name.casefold(): one for one in (*self.built, *self.hub, *self.embedded)}
        if name.casefold() in known:
            return known[name.casefold()]
        if name in registry.words("models"):
            raise UsageError(f"'{name}' is a word of a spec, not a model; run: rageval-spec explain models.{name}")
        hint = suggest(name, [one.name for one in known.values()]) or "to list them, run: rageval-spec models show"
        raise UsageError(f"the model '{name}' is not on this machine; {hint}")

    def to_json(self) -> str:
        """The list as JSON, for other programs."""
        sections = {"embedded": self.embedded, "hub": self.hub, "built": self.built}
        content: dict[str, Any] = {name: [entry.to_json() for entry in found] for name, found in sections.items()}
        content["chat"] = [asdict(one) for one in self.asked]
        folders = {"hub_folder": str(self.hub_folder), "built_folder": str(self.built_folder), "store": str(self.store)}
        return json.dumps({**content, **folders}, indent=2, ensure_ascii=False) + "\n"


def find_models(store: Path = STORE) -> Listing:
    """The embedded models, those in the Hugging Face cache, the graphs in this program's cache, and what a store knows.

    `store` is the folder of a store, which remembers the chat models that were asked.
    """
    from rageval_spec.inference.embedded_models import EMBEDDED
    from rageval_spec.inference.exports import list_cached
    from rageval_spec.inference.model_files import find_hub_cache
    from rageval_spec.store.disk import find_cache
    from rageval_spec.store.replies import list_asked

    return Listing(
        tuple(_look_at(name, Path()) for name in EMBEDDED),
        # In the cache, no folder is named like a model.
        tuple(_look_at(name, find_hub_cache()) for name in fetched_names()),
        tuple(Listed(model.name, Inspected(precision=model.precision), model.bytes) for model in list_cached()),
        find_hub_cache(),
        find_cache() / "models",
        store,
        tuple(list_asked(store)),
    )


def _look_at(name: str, folder: Path) -> Listed:
    from rageval_spec.inference.embedded_models import EMBEDDED
    from rageval_spec.inference.model_files import locate

    try:
        location = locate(name, folder)
    except RagevalError as error:
        return Listed(name, Inspected(problem=str(error)))
    size = EMBEDDED[name].count_bytes() if location.kind == "embedded" else _size(location.folder)
    return Listed(name, inspect(location, name), size, location.revision)


def fetched_names() -> list[str]:
    """The ids of the models in the Hugging Face cache, sorted, including incomplete ones."""
    from rageval_spec.inference.model_files import find_hub_cache

    found = sorted(path.name for path in find_hub_cache().glob("models--*--*"))
    return [name.removeprefix("models--").replace("--", "/", 1) for name in found if name.count("--") == 2]


def _size(folder: Path | None) -> int | None:
    """The bytes of all files in a folder that can be reached; None without a folder."""
    if folder is None or not folder.is_dir():
        return None
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # a link to a blob that was deleted
            size += path.stat().st_size if path.is_file() else 0
    return size


def _list_entry(entry: Listed, width: int) -> Iterator[str]:
    yield f"  {make_visible(entry.name)}"
    yield from _wrap(", ".join(filter(None, entry.list_facts())), width, "    ")
    if entry.about.problem:
        yield from _wrap(f"cannot be run: {make_visible(entry.about.problem)}", width, "    ! ")


def _wrap(text: str, width: int, start: str) -> list[str]:
    """The text in lines that begin at the same column. Names and paths stay whole."""
    indent = " " * len(start)
    return wrap(
        text, width, initial_indent=start, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def format_bytes(count: int) -> str:
    """A size in powers of 1000 with at least three digits: `90.9 MB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size * 0.9995:
            return f"{count / size:.1f} {unit}" if count < 100 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"


def _shorten(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


@dataclass(frozen=True)
class Named:
    """A model named on the command line, with its files and its configuration."""

    name: str
    source: ModelFiles
    configuration: Configuration


def find_model(name: str, revision: str | None = None, file: str | None = None, graph: Graph | None = None) -> Named:
    """The model with this name, with the graph that `graph` chooses. It is downloaded if it is not on this machine."""
    from rageval_spec.inference import hub
    from rageval_spec.inference.embedded_models import EMBEDDED
    from rageval_spec.inference.model_files import find_source, locate
    from rageval_spec.progress import ProgressDisplay

    location = locate(name, Path(), revision)
    source = find_source(location, file, graph)
    if source is None:
        try:
            with ProgressDisplay() as display:
                display.announce(f"download {name}")
                source = find_source(hub.fetch(name, revision, file, graph), file, graph)
        except RagevalError as error:
            near = suggest(name, [other for other in (*fetched_names(), *EMBEDDED) if other != name])
            raise type(error)(f"{error}; {near}" if near else str(error)) from error
    if source is None:
        raise RagevalError(f"'{name}' was downloaded, but some of its files are missing; run the command again")
    return Named(name, source, source.read_configuration())


@click.group(cls=Front, invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> int:
    """Show, fetch, export and measure models.

    \b
    rageval-spec models
    rageval-spec models export minilm --output models/minilm-int8 --precision int8
    rageval-spec models bench minilm --texts data/scifact
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show_models)
    return PASSED


@models.command("show")
@click.argument("model", required=False)
@shared.store_folder_option
@shared.form_option
def show_models(model: str | None = None, folder: Path = STORE, form: str = "text") -> int:
    """Show the models on this machine, or one of them.

    For each model: its architecture, what it gives and its labels, format and precision, size, license, and why it
    cannot be run if it cannot. For the chat models of a store: how readable and fast their replies were.

    \b
    rageval-spec models show
    rageval-spec models show minilm
    rageval-spec models show --format json
    """
    listing, width = find_models(folder), min(WIDTH, get_terminal_size((WIDTH, 24)).columns)
    if model is None:
        console.write_form(listing.to_json() if form == "json" else listing.to_text(width), form)
        return PASSED
    chosen = listing.choose(model)
    lines = "\n".join(_list_entry(chosen, width)) + "\n"
    facts = json.dumps(chosen.to_json(), indent=2, ensure_ascii=False) + "\n"
    console.write_form(facts if form == "json" else lines, form)
    return PASSED


@models.command()
@shared.model_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="A new folder.")
@click.option(
    "--precision", type=click.Choice(["fp32", "int8"]), default="fp32", show_default=True,
    help="The precision of the weights.",
)  # fmt: skip
def export(model: str, output: Path, precision: Any, **files: Any) -> int:
    """Write a model to a folder, as an ONNX graph and a tokenizer.

    MODEL is minilm, a Hugging Face id, a folder or an .onnx file. The new folder works offline, both with `use: onnx`
    and in other programs.

    \b
    rageval-spec models export minilm --output models/minilm-int8 --precision int8
    rageval-spec models export intfloat/e5-small-v2 --output models/e5
    """
    from rageval_spec.inference import exports
    from rageval_spec.plugin import Context
    from rageval_spec.progress import ProgressDisplay

    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        raise UsageError(f"{output} already exists; name a new folder")
    named = find_model(model, **files)
    with ProgressDisplay() as display:
        display.announce(f"export {model} as {precision}")
        path = exports.export_model(named.source, named.configuration, output, precision, Context(model).fingerprint)
    size = sum(part.stat().st_size for part in path.parent.iterdir() if part.is_file())
    node = f"{{use: onnx, model: {output}}}"
    console.show(f"wrote {path} ({precision}, {format_bytes(size)}); to use it in a spec, write {node}\n")
    return PASSED


for _name, _help in (
    ("bench", "Measure a model: its speed, its memory, and what int8 changes."),
    ("fetch", "Copy an embedded model to the cache, without installing a package."),
):
    models.add_command(Later(_name, f"rageval_spec.commands.models.{_name}:{_name}", _help))
