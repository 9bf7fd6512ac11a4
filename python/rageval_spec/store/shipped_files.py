"""The files that a spec names, for processes that may have no disk in common with the command.

A process that finds each file where the command has it, with the same size and time, uses it there. Otherwise it
fetches the files, each once for its machine, into a folder that is named by their content.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.store.disk import InputFile, write_atomically

_SPEC, _ELSEWHERE = "spec", "elsewhere"


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """A file, by the path that the command uses; `changed` is the time of its last change in nanoseconds."""

    path: Path
    size: int
    changed: int
    digest: str

    def is_at(self, path: Path) -> bool:
        try:
            found = path.stat()
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) == (self.size, self.changed)


@dataclass(frozen=True)
class Shipment:
    """The files that a spec names.

    Attributes:
        current: the command's current folder, where relative paths start.
        folder: the spec's folder, as the command names it.
        folders: folders outside the spec's folder that the spec names.
    """

    current: Path
    folder: Path
    files: tuple[ShippedFile, ...]
    folders: tuple[Path, ...] = ()

    def unpack(self, fetch: Callable[[Path], bytes]) -> tuple[Path, Mapping[Path, Path]]:
        """Make the files available here. `fetch` gives the content of a file of the command.

        Returns the spec's folder here, and where other files and folders are that have moved. If the spec's folder is
        relative, this process changes into the folder where it starts, so that messages name the same paths.

        Raises:
            DataError: a file has changed since the evaluation began.
            RagevalError: the files cannot be written here.
        """
        if all(file.is_at(self.current / file.path) for file in self.files):
            os.chdir(self.current if self.current.is_dir() else Path.cwd())
            return self.folder, {}
        names = "\0".join(f"{self._place(file.path)}\0{file.digest}" for file in self.files)
        root = _make_root() / hashlib.sha256(names.encode()).hexdigest()[:32]
        try:
            for file in self.files:
                target = root / self._place(file.path)
                if not target.is_file():
                    _write(target, fetch(file.path), file)
            (root / self.folder if self._is_relative else root).mkdir(parents=True, exist_ok=True)
            os.chdir(root)
        except OSError as error:
            raise RagevalError(f"{root}: the spec's files cannot be written here: {error.strerror or error}") from error
        outside = [path for path in (*self.folders, *(file.path for file in self.files)) if self._is_outside(path)]
        return self.folder if self._is_relative else root / _SPEC, {path: root / self._place(path) for path in outside}

    @property
    def _is_relative(self) -> bool:
        return not self.folder.is_absolute() and ".." not in self.folder.parts

    def _is_outside(self, path: Path) -> bool:
        return self._place(path).parts[0] == _ELSEWHERE

    def _place(self, path: Path) -> Path:
        """Where a file is below the root."""
        if self._is_relative and not path.is_absolute() and ".." not in path.parts:
            return path
        if not self._is_relative and path.is_relative_to(self.folder):
            return Path(_SPEC) / path.relative_to(self.folder)
        above = next((folder for folder in self.folders if path.is_relative_to(folder)), path)
        name = hashlib.sha256(str(above).encode()).hexdigest()[:16]
        return Path(_ELSEWHERE) / name / above.name / path.relative_to(above)


def pack(folder: Path, inputs: Iterable[InputFile], fingerprint: Callable[[InputFile], str]) -> Shipment:
    """What must travel with a spec in `folder`. Files that do not exist are left out: who needs them says so."""
    paths: dict[Path, None] = {}
    folders = []
    for one in inputs:
        if one.path.is_dir():
            folders.append(one.path)
            paths.update(dict.fromkeys(sorted(path for path in one.path.rglob("*") if path.is_file())))
        elif one.path.is_file():
            paths[one.path] = None
    files = []
    for path in paths:
        stat = path.stat()
        files.append(ShippedFile(path, stat.st_size, stat.st_mtime_ns, fingerprint(InputFile(path, ()))))
    return Shipment(Path.cwd(), folder, tuple(files), tuple(folders))


def _write(target: Path, content: bytes, file: ShippedFile) -> None:
    if hashlib.sha256(content).hexdigest() != file.digest:
        raise DataError(f"{file.path}: has changed since the evaluation began")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)


def _make_root() -> Path:
    """The folder for files from elsewhere, which only this user can write."""
    root = Path(tempfile.gettempdir()) / f"rageval-spec-{os.getuid() if hasattr(os, 'getuid') else 'files'}"
    root.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and (root.stat().st_uid != os.getuid() or root.is_symlink()):
        raise RagevalError(f"{root}: belongs to another user; remove it, or set TMPDIR to another folder")
    return root
