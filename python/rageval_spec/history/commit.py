"""Which commit an evaluation was made at."""

from __future__ import annotations

from pathlib import Path

_PATIENCE = 10.0
"""Seconds that git may take in a large repository; without an answer, no commit is named."""


def find_commit(path: Path) -> str | None:
    """The hash of the commit that is checked out where `path` is, with `-dirty` after it where tracked files differ.

    None outside of a repository, before its first commit, and where there is no git.
    """
    import subprocess

    folder = next((place for place in (path, *path.parents) if place.is_dir()), Path())
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
