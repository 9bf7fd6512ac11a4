"""What git tells about the code beside a spec: the commit, and what was changed since.

The digest of the changes tells two states of one commit apart. It is of the diff of all tracked files, and of files
that git neither tracks nor ignores. Of these, only files count whose ending some tracked file has, such as `.py`: a new
module changes an application, while the log or the cache that it writes does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Thread

_PATIENCE = 10.0
"""Seconds to wait for git, which can be slow in a large repository; after that, nothing is known."""
_DETACHED = "(detached)"
_UNBORN = "(initial)"
_READ_WHOLE = 2**20
"""Bytes up to which an untracked file is read; of a larger one, size and time count."""
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
    """The hash of the commit that is checked out at `path`, followed by `-dirty` if tracked files were changed.

    None outside a repository, before the repository's first commit, and if git is not installed.
    """
    found = find_checkout(path)
    return f"{found.commit}-dirty" if found.commit and found.is_dirty else found.commit


def find_checkout(path: Path) -> Checkout:
    """The commit and the branch that are checked out at `path`, or at the nearest folder above it that exists.

    Without a repository, or without git, all attributes are None.
    """
    told = _ask_git(_find_folder(path), "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    return Checkout() if told is None else _read_status(told.decode("utf-8", "replace"))


def find_code_state(path: Path, besides: Iterable[Path] = ()) -> CodeState:
    """The commit at `path`, as `find_checkout` finds it, and a digest of what was changed since.

    Args:
        path: a folder of the repository.
        besides: files and folders whose changes do not count, such as results.
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
    new = _list_new(_split(others), _split(tracked))
    if not diff and not new:
        return CodeState(checkout.commit, "")
    digest = hashlib.sha256(diff)
    for name in new:
        digest.update(f"\0{name}\0{_describe_file(root / name)}".encode("utf-8", "surrogateescape"))
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


def _list_new(others: Sequence[str], tracked: Sequence[str]) -> list[str]:
    """The untracked files that count: those with an ending that a tracked file has, unless they are results."""
    endings = {PurePosixPath(name).suffix for name in tracked} - {""}
    results = _find_results(others)
    return sorted(
        name
        for name in others
        if PurePosixPath(name).suffix in endings and not results.intersection(PurePosixPath(name).parents)
    )


def _find_results(names: Sequence[str]) -> set[PurePosixPath]:
    """The results folders of evaluations."""
    folders = [{path.parent for path in map(PurePosixPath, names) if path.name == one} for one in _RESULTS]
    return set.intersection(*folders)


def _describe_file(path: Path) -> str:
    try:
        status = path.lstat()
        if path.is_symlink():
            return str(path.readlink())
        if status.st_size > _READ_WHOLE:
            return f"{status.st_size} {status.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
