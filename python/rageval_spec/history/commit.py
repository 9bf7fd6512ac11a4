"""Finds the commit at which an evaluation was made."""

from __future__ import annotations

from pathlib import Path

_PATIENCE = 10.0
"""Seconds to wait for git, which can be slow in a large repository; after that, no commit is recorded."""


def find_commit(path: Path) -> str | None:
    """The hash of the commit that is checked out at `path`, followed by `-dirty` if tracked files were changed.

    None outside a repository, before the repository's first commit, and if git is not installed.
    """
    import subprocess

    folder = next((place for place in (path, *path.parents) if place.is_dir()), Path())
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
