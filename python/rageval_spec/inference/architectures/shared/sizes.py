"""Reads sizes from config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rageval_spec.inference.checkpoint_errors import DamagedFile


def read_size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number above 0.

    Raises:
        DamagedFile: it is missing and has no default, or is something else.
    """
    size = config.get(key, default)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        found = "is missing" if size is None else f"must be a whole number above 0, but is {size!r}"
        raise DamagedFile(f"config.json: '{key}' {found}")
    return size
