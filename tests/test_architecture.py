"""ARCHITECTURE.md describes the repository as it is, and the limits on file sizes hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "rageval_spec"
BLOCKS = re.findall(r"```\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)
MOST_LINES = {".py": 450, ".rs": 500}


def drawn_paths() -> Iterator[str]:
    """The paths in the first code block, where indentation marks the content of a folder."""
    above: list[tuple[int, str]] = []
    for line in BLOCKS[0].splitlines():
        indent, name = len(line) - len(line.lstrip()), line.split()[0]
        above = [(depth, folder) for depth, folder in above if depth < indent]
        yield "".join(folder for _, folder in above) + name
        above.append((indent, name))


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if "samples" not in path.parts]


def test_everything_on_the_map_is_there() -> None:
    assert [path for path in drawn_paths() if not (ROOT / path).exists()] == []


def test_every_folder_and_every_module_at_the_top_is_on_the_map() -> None:
    drawn = {path.rstrip("/") for path in drawn_paths()}
    folders = {path.parent for path in modules()} - {PACKAGE}
    top = {path for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert sorted(path for found in folders | top if (path := str(found.relative_to(ROOT))) not in drawn) == []


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    assert ["__main__", *BLOCKS[1].splitlines()] == layers


def test_few_modules_lie_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 12


@pytest.mark.parametrize("folder", ["python", "rust"])
def test_no_file_is_too_long(folder: str) -> None:
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in MOST_LINES and "target" not in path.parts]
    lengths = {path: len(path.read_text().splitlines()) for path in files}
    assert files
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MOST_LINES[path.suffix]} == {}


def test_every_module_has_tests_of_its_name() -> None:
    lacking = []
    for path in modules():
        if path.stem.startswith("__") and not _defines(path):
            continue
        place = path.relative_to(PACKAGE)
        name = f"test_{path.parent.name if path.stem == '__init__' else place.stem}.py"
        if not (ROOT / "tests" / place.parent / name).exists():
            lacking.append(str(place))
    assert sorted(lacking) == []


def _defines(path: Path) -> bool:
    """Whether a package's `__init__` or `__main__` contains more than a docstring and re-exports."""
    return path.stem != "__main__" and re.search(r"^(def|class) ", path.read_text(), re.MULTILINE) is not None
