"""Builds plugins as a spec does, and writes input files for them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from rageval_spec import registry
from rageval_spec.data.tables import Collection
from rageval_spec.plugin import Context, Dataset, Progress, Retrieval, System, ignore_progress

COMPRESSIONS = {"": lambda content: content, ".gz": gzip.compress, ".zst": zstandard.compress}


def build_dataset(word: str, folder: Path, **keys: Any) -> Dataset[Any]:
    plugin = registry.load("datasets", word)
    built: Dataset[Any] = plugin(plugin.node_type(use=word, **keys), Context("golden", folder))
    return built


def build_system(word: str, folder: Path = Path(), *, progress: Progress = ignore_progress, **keys: Any) -> System[Any]:
    plugin = registry.load("systems", word)
    built: System[Any] = plugin(plugin.node_type(use=word, **keys), Context("tested", folder, progress=progress))
    return built


def run_of(system: System[Any], collection: Collection, runs: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """The run that a system retrieves, with or without notes."""
    found = system.retrieve(collection, runs or {})
    return found.run if isinstance(found, Retrieval) else found


def write(path: Path, content: str | bytes, compression: str = "") -> Path:
    """Write a file, compressed if `compression` gives a suffix, and return its path."""
    target = path.with_name(path.name + compression)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(COMPRESSIONS[compression](content.encode() if isinstance(content, str) else content))
    return target
