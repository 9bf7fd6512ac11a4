"""`rageval-spec models list`: the models on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rageval_spec.commands.models.inspection import Inspected, inspect
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError

if TYPE_CHECKING:
    from rageval_spec.data.reply_counts import AskedModel

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
        """The list, in lines of at most `width` characters where words allow it."""
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
            blocks.append("\n".join([f"Chat models asked with the store {_shorten(self.store)}", *self._list_asked()]))
        hint = "To use one, write {use: onnx, model: NAME} under 'models:'. NAME can also be a folder or an .onnx file."
        return "\n\n".join([*blocks, "\n".join(wrap(hint, width))]) + "\n"

    def _list_asked(self) -> Iterator[str]:
        width = max(len(one.model) for one in self.asked)
        for one in self.asked:
            yield f"  {make_visible(one.model):<{width}}  {make_visible(one.url)}: {one}"

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
    from rageval_spec.inference.exports import find_cache, list_cached
    from rageval_spec.inference.sources import EMBEDDED
    from rageval_spec.inference.translation import find_hub_cache
    from rageval_spec.store.chat_models import list_asked

    return Listing(
        tuple(_look_at_embedded(name) for name in EMBEDDED),
        tuple(_look_at_fetched(name) for name in fetched_names()),
        tuple(Listed(model.name, Inspected(precision=model.precision), model.bytes) for model in list_cached()),
        find_hub_cache(),
        find_cache() / "models",
        store,
        tuple(list_asked(store)),
    )


def _look_at_embedded(name: str) -> Listed:
    from rageval_spec.inference.sources import locate

    try:
        location = locate(name, Path())
    except RagevalError as error:
        return Listed(name, Inspected(problem=str(error)))
    return Listed(name, inspect(location, name), _size(location.folder))


def _look_at_fetched(name: str) -> Listed:
    from rageval_spec.inference.sources import locate
    from rageval_spec.inference.translation import find_hub_cache

    location = locate(name, find_hub_cache())  # in the cache, no folder is named like a model
    return Listed(name, inspect(location, name), _size(location.folder), location.revision)


def find_width() -> int:
    """The width of the list: that of the terminal, but at most `WIDTH`."""
    return min(WIDTH, get_terminal_size((WIDTH, 24)).columns)


def fetched_names() -> list[str]:
    """The ids of the models in the Hugging Face cache, sorted, including incomplete ones."""
    from rageval_spec.inference.translation import find_hub_cache

    found = sorted(path.name for path in find_hub_cache().glob("models--*--*"))
    return [name.removeprefix("models--").replace("--", "/", 1) for name in found if name.count("--") == 2]


def _size(folder: Path | None) -> int | None:
    """The bytes of all files in a folder that can be reached; None without a folder."""
    if folder is None or not folder.is_dir():
        return None
    return sum(_count_bytes(path) for path in folder.rglob("*"))


def _count_bytes(path: Path) -> int:
    with suppress(OSError):  # a link to a blob that was deleted
        return path.stat().st_size if path.is_file() else 0
    return 0


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
