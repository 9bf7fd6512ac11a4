"""Checks that the files that a spec names exist."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice, product, takewhile
from pathlib import Path
from typing import Any

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import (
    DataError,
    RagevalError,
    UnusablePathError,
    UsageError,
    check_path,
    describe_os_error,
    expand_home,
)
from rageval_spec.kernels.inputs import name_special
from rageval_spec.plugin import Context, Dataset, Report, System
from rageval_spec.plugin.report import MANIFEST, RESULTS_FILES, STATEMENT
from rageval_spec.spec.blocks.plugin_blocks import PluginBlock
from rageval_spec.spec.blocks.spec_node import NAMED_SECTIONS, HistoryNode, HistoryWord, Spec
from rageval_spec.spec.text.places import KeyPath, Places, TextPlace, quote, walk_values
from rageval_spec.store.disk import InputFile
from rageval_spec.store.remote_files import fetch

_MOST_SIBLINGS = 10_000


def check_inputs(spec: Spec) -> list[Diagnostic]:
    """A diagnostic for every missing file that the spec names, at the key that names it."""
    return find_missing(_build_blocks(spec), spec.places, spec.folder, list(spec.datasets))


def find_missing(blocks: Iterable[PluginBlock], places: Places, folder: Path, datasets: list[str]) -> list[Diagnostic]:
    """As `check_inputs`, for the given blocks of a spec that can have errors elsewhere."""
    diagnostics: dict[Diagnostic, None] = {}
    for block in blocks:
        plugin, listings = block.plugin, [block.plugin.inputs]
        if isinstance(plugin, System):
            listings = [partial(plugin.inputs_for, dataset) for dataset in datasets]
        for list_files in listings:
            try:
                for file in list_files():
                    if found := check_file(file, folder):
                        diagnostics[places.diagnose((*block.path, *file.key), *found)] = None
            except (RagevalError, OSError, ValueError) as error:
                message = describe_os_error(error) if isinstance(error, OSError) else str(error)
                diagnostics[places.diagnose((*block.path, *_find_key(block, error)), message, "unusable-path")] = None
    return list(diagnostics)


def _find_key(block: PluginBlock, error: Exception) -> KeyPath:
    """The key that names the file of an error, if known: for a model, its key `model`."""
    path = getattr(error, "path", None) or getattr(error, "filename", None)
    values = () if path is None else walk_values(block.node.model_dump(by_alias=True))
    named = {len(value): key for key, value in values if isinstance(value, str) and str(path).endswith(value)}
    return named[max(named)] if named else ("model",) if block.section == "models" else ()


def find_lacking_parts(blocks: Iterable[PluginBlock]) -> Iterator[Diagnostic]:
    """A diagnostic for every system that needs a part that a dataset does not have."""
    known = list(blocks)
    datasets = [(block, block.plugin) for block in known if isinstance(block.plugin, Dataset)]
    systems = [(block, block.plugin) for block in known if isinstance(block.plugin, System)]
    for (block, system), (dataset, plugin) in product(systems, datasets):
        try:
            lacking = sorted(system.needs - plugin.parts)
        except (RagevalError, OSError):
            continue  # `find_missing` says what is wrong with the dataset's files
        for part in lacking:
            message = f"{block.node.use} needs a dataset's {part}, but the dataset {quote(dataset.name)} has none"
            has_key = part in type(dataset.node).model_fields
            hint = f"add '{part}:' to the dataset" if has_key else f"add {part}.jsonl to the dataset's folder"
            yield block.place.diagnose(message, "missing-part", hint)


def find_shared_files(blocks: Iterable[PluginBlock]) -> Iterator[Diagnostic]:
    """A diagnostic for every report that would overwrite an earlier one, or another file of the results."""
    first: dict[str, TextPlace] = {}
    for block in blocks:
        if not isinstance(block.plugin, Report):
            continue
        name = block.node.path or block.plugin.filename
        if name is None:
            continue
        try:
            check_path(Path("/", name), name)
        except UnusablePathError as error:
            yield block.place.diagnose(str(error), "wrong-value")
            continue
        path = os.path.normpath(name)
        is_own = block.plugin.is_part_of_results and path == block.plugin.filename
        if path in (*RESULTS_FILES, MANIFEST, STATEMENT) and not is_own:
            message = f"{quote(name)} is a file that every evaluation writes to the folder of its results"
            yield block.place.diagnose(message, "duplicate-path", "give this report another 'path:'")
        earlier = first.setdefault(path, block.place)
        if earlier is not block.place:
            message = f"this report and the one {earlier.where} both write {quote(name)}"
            yield block.place.diagnose(message, "duplicate-path", "give this one another 'path:', or remove it")


def check_history(written: HistoryWord | HistoryNode, places: Places, folder: Path) -> Iterator[Diagnostic]:
    """The keys of `history:` must suit its `use`, and its file must have a path that can be followed."""
    if isinstance(written, str):
        return
    mistake = written.find_mistake()
    if written.path is not None and mistake is None:
        try:
            check_path(folder / expand_home(written.path), written.path)
        except UnusablePathError as error:
            mistake = "path", str(error), None
    if mistake is not None:
        key, message, hint = mistake
        yield places.diagnose(("history", key), message, "wrong-history", hint)


def _build_blocks(spec: Spec) -> Iterator[PluginBlock]:
    nodes: dict[KeyPath, Any] = {}
    for section in NAMED_SECTIONS:
        named = {**getattr(spec, section), **(spec.sources if section == "systems" else {})}
        nodes |= {(section, name): node for name, node in named.items()}
    nodes |= {("metrics", index): metric.node for index, metric in enumerate(spec.metrics)}
    nodes |= {("reports", index): node for index, node in enumerate(spec.reports)}
    for path, node in nodes.items():
        kind: Any = path[0]
        name = path[1] if isinstance(path[1], str) else node.use
        plugin = registry.load(kind, node.use)(node, Context(name, spec.folder))
        yield PluginBlock(kind, path, name, spec.places.nearest(path), node, plugin)


def check_file(file: InputFile, folder: Path) -> tuple[str, str, str | None] | None:
    """The message, the code and the hint for a missing file; None if the file exists."""
    shown = quote(_show(file.path, folder))
    try:
        check_path(file.path)
        fetch(file.path)
    except (UnusablePathError, DataError, UsageError) as error:
        return str(error), "missing-file", file.hint
    if file.path.is_dir() if file.kind == "folder" else file.path.is_file():
        return None
    if file.path.is_dir():
        return f"{shown} is a folder, but a file is needed", "missing-file", file.hint
    if file.path.is_file():
        return f"{shown} is a file, but a folder is needed", "missing-file", file.hint
    if (kind := name_special(file.path)) is not None:
        return f"{shown} is {kind}, but a {file.kind} is needed", "missing-file", "write its content to a regular file"
    if file.path.exists():
        return None
    if file.path.is_symlink():
        return f"{shown} is a broken link", "missing-file", file.hint
    missing = [file.path, *takewhile(lambda parent: not parent.exists(), file.path.parents)][-1]
    if missing.parent.is_file():
        message = f"there is no {shown}, because {quote(_show(missing.parent, folder))} is a file, not a folder"
        return message, "missing-file", file.hint
    if missing != file.path:
        message = f"there is no {shown}, because there is no folder {quote(_show(missing, folder))}"
        return message, "missing-file", _suggest_sibling(missing) or file.hint
    return f"there is no {file.kind} {shown}", "missing-file", file.hint or _suggest_sibling(file.path)


def _suggest_sibling(path: Path) -> str | None:
    """The most similar name in the folder of a missing path."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_SIBLINGS)]
    except OSError:
        return None
    return suggest(path.name, sorted(names))


def _show(path: Path, folder: Path) -> str:
    """The path as it is written in a spec in `folder`."""
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
