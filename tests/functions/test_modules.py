from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.functions.modules import find_beside, find_installed, import_module, is_installed


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_a_module_next_to_the_spec_is_a_file_or_a_package(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    (tmp_path / "many" / "inner").mkdir(parents=True)
    (tmp_path / "many" / "inner" / "__init__.py").touch()
    assert find_beside(tmp_path, "one") == tmp_path / "one.py"
    assert find_beside(tmp_path, "many.inner") == tmp_path / "many" / "inner" / "__init__.py"
    assert find_beside(tmp_path, "none") is None


def test_installed_modules_are_found_without_an_import(tmp_path: Path) -> None:
    (tmp_path / "package_that_raises").mkdir()
    (tmp_path / "package_that_raises" / "__init__.py").write_text("raise RuntimeError")
    (tmp_path / "package_that_raises" / "inner.py").touch()
    sys.path.insert(0, str(tmp_path))
    assert is_installed("package_that_raises.inner")
    assert find_installed("package_that_raises.inner") == tmp_path / "package_that_raises" / "inner.py"
    assert find_installed("json") == Path(str(json.__file__))
    assert is_installed("sys")
    assert find_installed("sys") is None
    assert not is_installed("a_module.that_nobody_has")


def test_the_module_next_to_the_spec_wins_over_an_imported_one_of_the_same_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module_of_two.py").write_text(f"NAME = {folder!r}")
    found = [import_module(tmp_path / folder, "module_of_two").NAME for folder in ("a", "b", "a")]
    assert found == ["a", "b", "a"]
