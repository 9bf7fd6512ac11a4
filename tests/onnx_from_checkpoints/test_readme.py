"""The package by itself: its README's example, its public names, and tests that need nothing of rageval-spec."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onnx_from_checkpoints
from onnx_from_checkpoints import list_architectures
from onnx_from_checkpoints.tokenizers.families import FAMILIES
from tests.onnx_from_checkpoints.folders import write_encoder

HERE = Path(__file__).parent
README = (Path(onnx_from_checkpoints.__file__).parent / "README.md").read_text("utf-8")
USERS = Path(__file__).parents[2] / "python" / "rageval_spec"
BLOCKED = """
import sys

class Blocked:
    def find_spec(name, *_):
        if name.partition(".")[0] == "rageval_spec":
            raise ImportError(name)

sys.meta_path.insert(0, Blocked)
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + program], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_example_runs_on_a_checkpoint(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    write_encoder(tmp_path / "all-MiniLM-L6-v2")
    found = run(example, tmp_path)
    assert (found.stdout, found.stderr) == ("model.onnx (2, 8)\nmodel-int8.onnx (2, 8)\n", "")


def test_the_readme_names_every_architecture_and_every_file_of_a_vocabulary() -> None:
    table = README[README.index("## Architectures") : README.index("## Exactness")]
    assert {*list_architectures()} <= {*re.findall(r"`([^`]+)`", table)}
    assert {name for family in FAMILIES for name in family.files} <= {*re.findall(r"`([^`]+)`", table)}


@pytest.mark.parametrize("name", onnx_from_checkpoints.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(onnx_from_checkpoints, name) is not None


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'build_grph'"):
        onnx_from_checkpoints.build_grph  # noqa: B018


def test_importing_the_package_imports_no_library(tmp_path: Path) -> None:
    found = run("import onnx_from_checkpoints\nprint({'numpy', 'onnx', 'tokenizers'} & {*sys.modules})", tmp_path)
    assert (found.stdout, found.stderr) == ("set()\n", "")


def test_rageval_spec_uses_only_public_names() -> None:
    used = set()
    for path in USERS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onnx_from_checkpoints"):
                used |= {(node.module, name.name) for name in node.names}
    assert len(used) > 20
    assert used <= {("onnx_from_checkpoints", name) for name in onnx_from_checkpoints.__all__}


def test_the_tests_import_nothing_of_rageval_spec() -> None:
    """Neither when they are collected nor inside of their functions."""
    collected = run(
        "import pytest\nsys.exit(pytest.main(['--collect-only', '-p', 'no:rageval_spec', '-p', 'no:cacheprovider', "
        f"{str(HERE)!r}]))",
        HERE.parents[1],
    )
    assert collected.returncode == 0, collected.stdout + collected.stderr
    for path in HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
                assert not module.startswith("rageval_spec"), path
                assert not module.startswith("tests.") or module.startswith("tests.onnx_from_checkpoints"), path
