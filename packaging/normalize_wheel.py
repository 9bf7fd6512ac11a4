"""Makes a built wheel independent of the folder that it was built in, in place.

    python packaging/normalize_wheel.py dist/*.whl

The bill of materials that maturin writes names the crates of this repository by their folders on the machine that built
it: `path+file:///home/runner/...`. They become `path+file:///src/...`, and the wheel's RECORD gets the new digest. All
other bytes stay. With SOURCE_DATE_EPOCH and `--remap-path-prefix`, two builds of one commit then have one hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

_FOLDER = re.compile(rb"path\+file://[^\"#]*?/(rust/[^\"#]*)")


def normalize(path: Path) -> None:
    """Rewrite the wheel if its bill of materials names a folder.

    Raises:
        SystemExit: there is no bill of materials, or it is no JSON.
    """
    with zipfile.ZipFile(path) as wheel:
        entries = [(entry, wheel.read(entry)) for entry in wheel.infolist()]
    contents = {entry.filename: content for entry, content in entries}
    bills = [name for name in contents if name.endswith(".cyclonedx.json")]
    if not bills:
        raise SystemExit(f"{path}: has no bill of materials (*.cyclonedx.json); build it with maturin 1.16 or later")
    for name in bills:
        contents[name] = _FOLDER.sub(rb"path+file:///src/\1", contents[name])
        json.loads(contents[name])
    record = next(name for name in contents if name.endswith(".dist-info/RECORD"))
    contents[record] = b"".join(_list_again(line, contents) for line in contents[record].splitlines(keepends=True))
    part = path.with_name(f".{path.name}.part")
    with zipfile.ZipFile(part, "w") as wheel:
        for entry, _ in entries:
            wheel.writestr(entry, contents[entry.filename], entry.compress_type, 9)
    part.replace(path)


def _list_again(line: bytes, contents: dict[str, bytes]) -> bytes:
    """A line of RECORD, with the new digest if it is about a bill of materials."""
    name = line.decode().split(",")[0]
    if not name.endswith(".cyclonedx.json"):
        return line
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(contents[name])}".encode() + line[len(line.rstrip()) :]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        normalize(Path(argument))
