"""What git tells about the code beside a spec: the commit, and what was changed since.

The digest of the changes tells two states of one commit apart. It is of the diff of all tracked files, and of files
that git neither tracks nor ignores. Of these, files count whose ending some tracked file has, such as `.py`, and beside
the spec and the application all but those that programs write: a new module or prompt changes an application, while its
log or cache does not.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from threading import Thread

from rageval_spec.dataclass import dataclass

_PATIENCE = 10.0
"""Seconds to wait for git, which can be slow in a large repository; after that, nothing is known."""
_DETACHED = "(detached)"
_UNBORN = "(initial)"
_READ_WHOLE, _READ_IN_ALL = 2**20, 2**26
"""Bytes up to which an untracked file, and all of them, are read; of a larger one and the rest, size and time count."""
_WRITTEN = frozenset(
    (
        *("", ".bak", ".cache", ".db", ".db-journal", ".db-shm", ".db-wal", ".err", ".lock", ".log", ".out", ".pid"),
        *(".pyc", ".sqlite", ".sqlite3", ".sqlite3-journal", ".sqlite3-shm", ".sqlite3-wal", ".swp", ".tmp"),
    )
)
"""Endings of what programs write beside themselves."""
_RESULTS = ("results.json", "values.parquet")
"""Files that every results folder has."""
_SHOWN = 10
_SHOWN_OF_CHANGES = 6


@dataclass(frozen=True, slots=True)
class Checkout:
    """What is checked out.

    Attributes:
        commit: the hash of the commit; None outside a repository, and before its first commit.
        branch: the branch; None if a commit is checked out without one, as CI systems do.
        is_dirty: whether tracked files differ from the commit; None if that is not known.
    """

    commit: str | None = None
    branch: str | None = None
    is_dirty: bool | None = None


@dataclass(frozen=True, slots=True)
class CodeState:
    """The code that is checked out.

    Attributes:
        commit: the hash of the commit; None if git tells nothing.
        changes: the sha256 of what differs from the commit; "" if nothing does, None if git tells nothing.
    """

    commit: str | None = None
    changes: str | None = None

    @property
    def name(self) -> str | None:
        """`a1b2c3d4e5`, or `a1b2c3d4e5-dirty-f6a7b8` with changes; None if git tells nothing."""
        if self.commit is None:
            return None
        changes = "unknown" if self.changes is None else self.changes[:_SHOWN_OF_CHANGES]
        return self.commit[:_SHOWN] + (f"-dirty-{changes}" if changes else "")


def find_commit(path: Path) -> str | None:
    """The hash of the commit at `path`, followed by `-dirty` if tracked files were changed; None if there is none."""
    found = find_checkout(path)
    return f"{found.commit}-dirty" if found.commit and found.is_dirty else found.commit


def find_checkout(path: Path) -> Checkout:
    """The commit and the branch that are checked out at `path`, or at the nearest folder above it that exists.

    Without a repository, or without git, all attributes are None.
    """
    told = _ask_git(_find_folder(path), "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    return Checkout() if told is None else _read_status(told.decode("utf-8", "replace"))


def find_code_state(path: Path, besides: Iterable[Path] = (), folders: Iterable[Path] = ()) -> CodeState:
    """The commit at `path`, as `find_checkout` finds it, and a digest of what was changed since.

    Changes in the files and folders `besides`, such as results, do not count; `folders` are the application's.
    """
    checkout = find_checkout(path)
    top = _ask_git(_find_folder(path), "rev-parse", "--show-toplevel")
    if checkout.commit is None or top is None:
        return CodeState()
    root = Path(top.decode("utf-8", "surrogateescape").rstrip("\n"))
    paths = [":(top)", *_list_exceptions(root, besides)]
    as_text = ("--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "--submodule=diff")
    diff = _ask_git(root, "diff", *as_text, "HEAD", "--", *paths)
    others = _ask_git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *paths)
    tracked = _ask_git(root, "ls-files", "-z") if others else b""
    if diff is None or others is None or tracked is None:
        return CodeState(checkout.commit)
    beside = (each.resolve() for each in (path, *folders))
    near = [each.relative_to(root).as_posix() for each in beside if each.is_relative_to(root)]
    new = [name for name in _list_new(_split(others), _split(tracked), near) if not _is_output(root / name)]
    if not diff and not new:
        return CodeState(checkout.commit, "")
    digest, left = hashlib.sha256(diff), _READ_IN_ALL
    for name in new:
        told, read = _describe_file(root / name, min(left, _READ_WHOLE))
        left -= read
        digest.update(f"\0{name}\0{told}".encode("utf-8", "surrogateescape"))
    return CodeState(checkout.commit, digest.hexdigest())


def start_finding_checkout(path: Path) -> Callable[[], Checkout]:
    """Ask git in the background. The result is a function that waits for the answer and returns it."""
    found: list[Checkout] = []
    thread = Thread(target=lambda: found.append(find_checkout(path)), daemon=True)
    thread.start()

    def wait() -> Checkout:
        thread.join(_PATIENCE)
        return found[0] if found else Checkout()

    return wait


def _find_folder(path: Path) -> Path:
    return next((place for place in (path, *path.parents) if place.is_dir()), Path())


def _ask_git(folder: Path, *arguments: str) -> bytes | None:
    """What git writes; None if it fails, is absent or takes too long."""
    import subprocess

    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def _read_status(text: str) -> Checkout:
    lines = text.splitlines()
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch.") and line.count(" ") >= 2)
    commit, branch = heads.get("branch.oid"), heads.get("branch.head")
    if commit in (None, _UNBORN):
        return Checkout()
    return Checkout(commit, None if branch == _DETACHED else branch, any(not line.startswith("#") for line in lines))


def _list_exceptions(root: Path, besides: Iterable[Path]) -> Iterator[str]:
    """Pathspecs that leave out the files and folders that lie in the repository."""
    for path in dict.fromkeys(path.resolve() for path in besides):
        if path != root and path.is_relative_to(root):
            yield f":(top,exclude,literal){path.relative_to(root).as_posix()}"


def _split(listed: bytes) -> list[str]:
    return [name for name in listed.decode("utf-8", "surrogateescape").split("\0") if name]


def _list_new(others: Sequence[str], tracked: Sequence[str], near: Sequence[str]) -> list[str]:
    """The untracked files that count, unless they are results; `near` are the folders in which most endings do."""
    endings = {PurePosixPath(name).suffix for name in tracked} - {""}
    found = [{path.parent for path in map(PurePosixPath, others) if path.name == one} for one in _RESULTS]
    results = set.intersection(*found)

    def counts(path: PurePosixPath) -> bool:
        beside = any(path.is_relative_to(folder) for folder in near) and _WRITTEN.isdisjoint(path.suffixes or [""])
        return (beside or path.suffix in endings) and results.isdisjoint(path.parents)

    return sorted(name for name in others if counts(PurePosixPath(name)))


def _is_output(path: Path) -> bool:
    """Whether the shell writes what this process prints to the file."""
    for stream in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), path.stat()):
                return True
    return False


def _describe_file(path: Path, most: int) -> tuple[str, int]:
    """What tells the file from others, and how many bytes were read for it, at most `most`."""
    try:
        status = path.lstat()
        if path.is_symlink():
            return str(path.readlink()), 0
        if status.st_size > most:
            return f"{status.st_size} {status.st_mtime_ns}", 0
        return hashlib.sha256(path.read_bytes()).hexdigest(), status.st_size
    except OSError:
        return "unreadable", 0
