"""Files that a spec names by URL. Each is copied beside the spec when the spec is checked, and when it has changed."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from rageval_spec.errors import DataError, UsageError
from rageval_spec.store.disk import prepare, write_atomically

INPUTS = Path(".rageval") / "inputs"
_SCHEMES = ("s3://", "gs://")
_URLS: dict[Path, str] = {}


def locate(written: str | Path, folder: Path) -> Path | None:
    """Where the file is that a URL names, or where its copy will be; None for what is no such URL. Reads nothing."""
    url = str(written)
    if url.startswith("file://"):
        from urllib.request import url2pathname

        return Path(url2pathname(urlsplit(url).path))
    if not url.startswith(_SCHEMES):
        return None
    name = PurePosixPath(urlsplit(url).path).name or "file"
    path = folder / INPUTS / hashlib.sha256(url.encode()).hexdigest()[:16] / name
    _URLS[path] = url
    return path


def fetch(path: Path) -> None:
    """Copy the file of a URL to the place that `locate` gave, unless the copy is as new. Others are left alone.

    Raises:
        UsageError: pyarrow is not installed.
        DataError: the URL cannot be read.
    """
    if (url := _URLS.get(path)) is None:
        return
    try:
        from pyarrow.fs import FileSystem
    except ImportError as error:
        raise UsageError(f"{url}: needs pyarrow; install it with: pip install 'rageval-spec[s3]'") from error
    try:
        system, place = FileSystem.from_uri(url)
        found = system.get_file_info(place)
        version = json.dumps([found.size, found.mtime_ns])
        mark = path.with_name(f"{path.name}.version")
        with suppress(OSError):
            if mark.read_text() == version and path.is_file():
                return
        with system.open_input_stream(place) as stream:
            content = stream.readall()
        prepare(path.parents[1], path.parent.name)
        write_atomically(path, content)
        write_atomically(mark, version.encode())
    except (OSError, ValueError) as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise DataError(f"{url}: cannot be read: {reason}") from error
