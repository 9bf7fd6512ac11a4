"""The data wheels of the embedded models, and the workflow that builds them."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from rageval_spec.dataclass import replace
from rageval_spec.errors import DataError
from rageval_spec.inference.embedded_models import EmbeddedModel
from tests.docs.test_ci import check, find_program

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
WEIGHTS = b"weights" * 1000
MODEL = EmbeddedModel(
    name="small",
    weights="model.safetensors",
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    folders=("rageval_small/model",),
    source="small-weights==1.0",
    published_as="owner/small",
    license="Apache-2.0",
    authors="Ada and Grace",
)


def load_script() -> ModuleType:
    """The script; its folder is no package, because one of the same name is on the package index."""
    spec = importlib.util.spec_from_file_location("data_wheel", ROOT / "packaging" / "data_wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


data_wheel = load_script()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source" / "package"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "program.py").write_text("raise RuntimeError")
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    return folder.parent


def test_a_wheel_has_the_model_and_its_license_and_no_code(source: Path, tmp_path: Path) -> None:
    path = data_wheel.write_wheel(MODEL, source, tmp_path / "dist")
    assert path.name == "rageval_small-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        content = {name: wheel.read(name) for name in wheel.namelist()}
    assert {name: text for name, text in content.items() if name.endswith(".py")} == {"rageval_small/__init__.py": b""}
    assert content["rageval_small/model/model.safetensors"] == WEIGHTS
    assert "rageval_small/model/1_Pooling/config.json" in content
    info = "rageval_small-1.0.0.dist-info"
    assert content[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    notice = content[f"{info}/licenses/NOTICE.txt"].decode()
    assert all(part in notice for part in ("Ada and Grace", "Apache-2.0", "small-weights==1.0", MODEL.sha256))
    metadata = content[f"{info}/METADATA"].decode()
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert "Requires-Dist" not in metadata


def test_the_same_weights_give_the_same_bytes(source: Path, tmp_path: Path) -> None:
    first = data_wheel.write_wheel(MODEL, source, tmp_path / "first").read_bytes()
    (source / "package" / "tokenizer.json").touch()
    assert data_wheel.write_wheel(MODEL, source, tmp_path / "second").read_bytes() == first


def test_other_weights_make_no_wheel(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no model\.safetensors with the sha256"):
        data_wheel.write_wheel(replace(MODEL, sha256="0" * 64), source, tmp_path / "dist")
    assert not (tmp_path / "dist").exists()


def test_a_wheel_that_indexes_do_not_take(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_wheel, "MOST_BYTES", 1000)
    with pytest.raises(SystemExit, match="rageval-small: would be larger than"):
        data_wheel.write_wheel(MODEL, source, tmp_path / "dist")


def test_an_installed_wheel_is_found(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    path, target = data_wheel.write_wheel(MODEL, source, tmp_path / "dist"), tmp_path / "site"
    command = [uv, "pip", "install", "--quiet", "--no-index", "--python", sys.executable, "--target", target, path]
    subprocess.run(command, check=True)
    monkeypatch.syspath_prepend(str(target))
    assert MODEL.find_folder() == target / "rageval_small" / "model"


def test_the_release_workflow_keeps_to_githubs_schema() -> None:
    check([find_program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", WORKFLOW])


def test_the_release_workflow_is_right_in_the_eyes_of_actionlint() -> None:
    check([find_program("actionlint"), "-shellcheck=", "-pyflakes=", WORKFLOW], cwd=ROOT)
