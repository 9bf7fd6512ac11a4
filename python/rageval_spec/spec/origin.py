"""Finds where the gates of a spec are written, as code hosts name files: by their path in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.plugin.context import Origin
from rageval_spec.spec.places import KeyPath, nearest_place

if TYPE_CHECKING:
    from rageval_spec.spec.nodes import Spec


def find_origin(spec: Spec) -> Origin | None:
    """The spec's path and the line of each gate; None for a spec that was not read from a file.

    The path starts at the top of the Git repository that holds the spec. Outside a repository, it is the path that the
    user gave.
    """
    path = Path(spec.path)
    if not path.is_file():
        return None
    return Origin(
        name_in_repository(path), tuple(_find_line(spec, ("gates", index)) for index in range(len(spec.gates)))
    )


def _find_line(spec: Spec, key_path: KeyPath) -> int:
    """The line of a gate; the first line for a gate that `--set` added."""
    place = nearest_place(spec.places, key_path)
    return 1 if place is None or place.path != spec.path else max(1, place.position.line)


def name_in_repository(path: Path) -> str:
    """The path from the top of the Git repository that holds a file; outside a repository, the path as it is."""
    whole = path.resolve()
    top = next((folder for folder in whole.parents if (folder / ".git").exists()), None)
    return (path if top is None else whole.relative_to(top)).as_posix()
