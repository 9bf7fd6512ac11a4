"""`rageval-spec models list`: the models on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rageval_spec.data.reply_counts import AskedModel
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError

STORE = Path(".rageval", "store")


@dataclass(frozen=True, slots=True)
class Listed:
    """A model in the list. `form` is its format or what is wrong with it; `bytes` is None if it is not installed."""

    name: str
    form: str
    bytes: int | None = None
    revision: str | None = None


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

    def to_text(self) -> str:
        sections = (
            ("Embedded", self.embedded, ""),
            (f"Downloaded from the Hugging Face Hub: {_shorten(self.hub_folder)}", self.hub, "none yet; a run "
             "downloads the models that its spec names"),
            (f"Built here: {_shorten(self.built_folder)}", self.built, "none yet; a run builds "
             "the graphs that it needs"),
        )  # fmt: skip
        rows = [entry for _, entries, _ in sections for entry in entries]
        widths = max((len(row.name) for row in rows), default=0), max((len(row.form) for row in rows), default=0)
        blocks = []
        for title, entries, otherwise in sections:
            lines = [_list_entry(entry, *widths) for entry in entries] or [f"  {otherwise}"]
            blocks.append("\n".join([title, *lines]))
        if self.asked:
            blocks.append("\n".join([f"Chat models asked with the store {_shorten(self.store)}", *self._list_asked()]))
        hint = "To use one, write {use: onnx, model: NAME} under 'models:'. NAME can also be a folder or an .onnx file."
        return "\n\n".join([*blocks, hint]) + "\n"

    def _list_asked(self) -> Iterator[str]:
        width = max(len(one.model) for one in self.asked)
        for one in self.asked:
            yield f"  {make_visible(one.model):<{width}}  {make_visible(one.url)}: {one}"

    def to_json(self) -> str:
        """The list as JSON, for other programs."""
        sections = {"embedded": self.embedded, "hub": self.hub, "built": self.built}
        content: dict[str, Any] = {
            name: [
                {"name": entry.name, "form": entry.form, "bytes": entry.bytes, "revision": entry.revision}
                for entry in entries
            ]
            for name, entries in sections.items()
        }
        content["chat"] = [asdict(one) for one in self.asked]
        folders = {"hub_folder": str(self.hub_folder), "built_folder": str(self.built_folder), "store": str(self.store)}
        return json.dumps({**content, **folders}, indent=2, ensure_ascii=False) + "\n"


def list_models(store: Path = STORE) -> Listing:
    """The embedded models, those in the Hugging Face cache, the graphs in this program's cache, and what a store knows.

    `store` is the folder of a store, which remembers the chat models that were asked.
    """
    from rageval_spec.inference.exports import find_cache, list_cached
    from rageval_spec.inference.sources import EMBEDDED, find_hub_cache
    from rageval_spec.store.chat_models import list_asked

    return Listing(
        tuple(_look_at_embedded(name) for name in EMBEDDED),
        tuple(_look_at_fetched(name) for name in fetched_names()),
        tuple(Listed(model.name, model.precision, model.bytes) for model in list_cached()),
        find_hub_cache(),
        find_cache() / "models",
        store,
        tuple(list_asked(store)),
    )


def _look_at_embedded(name: str) -> Listed:
    from rageval_spec.inference.sources import find_source, locate

    try:
        source = find_source(locate(name, Path()))
    except RagevalError as error:
        return Listed(name, str(error))
    return Listed(name, source.format if source else "", _size(source.folder) if source else None)


def _look_at_fetched(name: str) -> Listed:
    from rageval_spec.inference.sources import find_hub_cache, find_source, locate

    location = locate(name, find_hub_cache())  # in the cache, no folder is named like a model
    size = _size(location.folder) if location.folder else None
    try:
        source = find_source(location)
    except RagevalError as error:
        return Listed(name, str(error))
    form = source.format if source else "incomplete, or not in a format that onnx can use"
    return Listed(name, form, size, location.revision)


def fetched_names() -> list[str]:
    """The ids of the models in the Hugging Face cache, sorted, including incomplete ones."""
    from rageval_spec.inference.sources import find_hub_cache

    found = sorted(path.name for path in find_hub_cache().glob("models--*--*"))
    return [name.removeprefix("models--").replace("--", "/", 1) for name in found if name.count("--") == 2]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _list_entry(entry: Listed, name_width: int, form_width: int) -> str:
    size = "" if entry.bytes is None else format_bytes(entry.bytes)
    revision = f"  {entry.revision[:12]}" if entry.revision else ""
    if entry.bytes is None:
        return f"  {entry.name:<{name_width}}  {entry.form}"
    return f"  {entry.name:<{name_width}}  {entry.form:<{form_width}}  {size:>9}{revision}"


def format_bytes(count: int) -> str:
    """A size in powers of 1000 with at least three digits: `90.9 MB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size * 0.9995:
            return f"{count / size:.1f} {unit}" if count < 100 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"


def _shorten(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
