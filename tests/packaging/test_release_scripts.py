"""What a built wheel is checked for; `make release-check` builds one and does all of it."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BILL = "small-1.0.dist-info/sboms/small.cyclonedx.json"
RECORD = "small-1.0.dist-info/RECORD"


def load_script(name: str) -> ModuleType:
    """A script of the folder, which is no package, because one of the same name is on the package index."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # release_check imports normalize_wheel
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def normalize_wheel() -> ModuleType:
    return load_script("normalize_wheel")


@pytest.fixture
def release_check(normalize_wheel: ModuleType) -> ModuleType:
    return load_script("release_check")


def describe(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(path: Path, folder: str, code: bytes = b"x = 1\n", *, with_bill: bool = True) -> Path:
    """A wheel as maturin builds it in a folder."""
    files = {"small/__init__.py": code}
    if with_bill:
        crate = {"bom-ref": f"path+file://{folder}/rust/small#0.1.0", "name": "small", "version": "0.1.0"}
        bill = {"bomFormat": "CycloneDX", "metadata": {"component": crate}, "components": []}
        files[BILL] = json.dumps(bill).encode()
    record = "".join(describe(name, content) for name, content in files.items()) + f"{RECORD},,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in {**files, RECORD: record.encode()}.items():
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return path


def read(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def test_wheels_of_two_folders_become_equal(normalize_wheel: ModuleType, tmp_path: Path) -> None:
    paths = [write_wheel(tmp_path / f"{name}.whl", f"/home/{name}/src") for name in ("ada", "grace")]
    before = read(paths[0])
    for path in paths:
        normalize_wheel.normalize(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    after = read(paths[0])
    assert list(after) == list(before)
    crate = json.loads(after[BILL])["metadata"]["component"]
    assert crate["bom-ref"] == "path+file:///src/rust/small#0.1.0"
    assert after["small/__init__.py"] == before["small/__init__.py"]
    lines = [describe(name, after[name]) for name in ("small/__init__.py", BILL)]
    assert after[RECORD].decode() == "".join(lines) + f"{RECORD},,\n"
    normalize_wheel.normalize(paths[0])
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_wheel_without_a_bill_of_materials_is_refused(normalize_wheel: ModuleType, tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "small.whl", "", with_bill=False)
    with pytest.raises(SystemExit, match="has no bill of materials"):
        normalize_wheel.normalize(path)


def test_the_files_that_differ_between_two_builds_are_named(
    release_check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_wheel(tmp_path / "one.whl", "/a")
    release_check.report_difference(first, write_wheel(tmp_path / "same.whl", "/a"))
    assert capsys.readouterr().out.startswith("reproducible: one.whl, sha256 ")
    other = write_wheel(tmp_path / "two.whl", "/a", b"x = 2\n")
    with pytest.raises(SystemExit, match=r"differ: small-1.0.dist-info/RECORD, small/__init__.py$"):
        release_check.report_difference(first, other)


@pytest.mark.parametrize(
    ("changelog", "address", "tag", "faults"),
    [
        ("## [1.0.0] - 2026-03-01", "ann/x", "v1.0.0", []),
        ("## [1.0.0] - 2026-03-01", "ann/x", None, []),
        (
            "## [1.0.0] - 2026-02-01",
            "ann/x",
            "v1.0.0",
            ["CHANGELOG.md: has 2026-02-01 as the day of 1.0.0, and its tag 2026-03-01"],
        ),
        ("## [Unreleased]", "ann/x", "v1.0.0", ["CHANGELOG.md: has no line '## [1.0.0] - 2026-03-01'"]),
        ("## [Unreleased]", "ann/x", None, ["CHANGELOG.md: has no line '## [1.0.0] - YYYY-MM-DD'"]),
        ("## [1.0.0] - 2026-03-01", "ann/x", "v2.0.0", ["tag v2.0.0: the version is 1.0.0"]),
        (
            "## [1.0.0] - 2026-03-01",
            "your-org/x",
            None,
            ["a.json:1: write the owner of the repository in place of your-org"],
        ),
    ],
)
def test_what_is_published_has_an_address_and_its_day(
    release_check: ModuleType, tmp_path: Path, changelog: str, address: str, tag: str | None, faults: list[str]
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(f"{changelog}\n")
    (tmp_path / "a.json").write_text(f'{{"url": "https://example.org/{address}"}}\n')
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "1.0.0"\n')
    day = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-03-01T12:00:00Z")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    calls = [["init", "-q"], ["add", "."], ["commit", "-qm", "x"], *([["tag", tag]] if tag else [])]
    for call in calls:
        subprocess.run([*git, *call], cwd=tmp_path, check=True, env={**os.environ, **day})
    assert release_check.find_unfinished(tmp_path) == faults
