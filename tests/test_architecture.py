"""ARCHITECTURE.md describes the repository as it is, and its modules keep to the limits of size."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from rageval_spec import registry
from rageval_spec.exchange.shared import contracts

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "python"
PACKAGE = SOURCE / "rageval_spec"
BLOCKS = re.findall(r"```\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)
MOST_LINES = {"python": 700, "rust": 500}
MOST_MODULES, MOST_MODULES_IN_A_FOLDER = 570, 15
FEWEST_LINES, LEAST_MEDIAN, MOST_IMPORTS = 40, 180, 0.10


def drawn_paths() -> Iterator[str]:
    """The paths in the first code block, where indentation marks the content of a folder."""
    above: list[tuple[int, str]] = []
    for line in BLOCKS[0].splitlines():
        indent, name = len(line) - len(line.lstrip()), line.split()[0]
        above = [(depth, folder) for depth, folder in above if depth < indent]
        yield "".join(folder for _, folder in above) + name
        above.append((indent, name))


def files() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if "samples" not in path.parts]


def modules() -> list[Path]:
    return [path for path in files() if path.stem != "__init__"]


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def is_free(path: Path) -> bool:
    """Whether a module is as long or short as it is: a word of the spec, a family of models, or a file at the top."""
    package, *folders, _ = path.relative_to(SOURCE).parts
    is_word = package == "rageval_spec" and len(folders) == 1 and folders[0] in registry.SECTIONS
    is_family = package == "onnx_from_checkpoints" and len(folders) > 0 and folders[-1] == "architectures"
    return is_word or is_family or not folders or path.stem == "__main__"


def test_everything_on_the_map_is_there() -> None:
    assert [path for path in drawn_paths() if not (ROOT / path).exists()] == []


def test_every_folder_and_every_module_at_the_top_is_on_the_map() -> None:
    """Words of plugins and tools need no line."""
    drawn = {path.rstrip("/") for path in drawn_paths()}
    tools = {PACKAGE / "exchange" / word for word in contracts.words()}
    folders = {path.parent for path in files()} - {PACKAGE, *tools}
    top = {path for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert sorted(path for found in folders | top if (path := str(found.relative_to(ROOT))) not in drawn) == []


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    assert ["__main__", *BLOCKS[1].splitlines()] == layers


def test_no_imports_form_a_circle() -> None:
    """Imports for types and inside functions count. The package itself imports a function when it is asked for it."""
    graph = grimp.build_graph("rageval_spec", "onnx_from_checkpoints", cache_dir=None)
    modules = graph.modules - {"rageval_spec"}
    imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
    TopologicalSorter(imports).prepare()


@pytest.mark.parametrize("folder", MOST_LINES)
def test_no_file_is_too_long(folder: str) -> None:
    found = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".rs")]
    sources = [path for path in found if "target" not in path.parts]
    assert sources
    assert [str(path.relative_to(ROOT)) for path in sources if count_lines(path) > MOST_LINES[folder]] == []


def test_no_module_is_too_short_to_be_a_concept() -> None:
    short = [path for path in modules() if count_lines(path) < FEWEST_LINES and not is_free(path)]
    assert [str(path.relative_to(SOURCE)) for path in short] == []


def test_most_modules_hold_a_whole_concept() -> None:
    lengths = sorted(count_lines(path) for path in modules())
    assert lengths[len(lengths) // 2] >= LEAST_MEDIAN


def test_the_house_has_not_too_many_rooms() -> None:
    assert sum(PACKAGE in path.parents for path in modules()) <= MOST_MODULES


def test_no_folder_is_a_hallway() -> None:
    counts = Counter(path.parent for path in modules() if not is_free(path) or path.parent.parent == SOURCE)
    assert {str(p.relative_to(SOURCE)): n for p, n in counts.items() if n > MOST_MODULES_IN_A_FOLDER} == {}


def test_few_lines_are_imports() -> None:
    imports = code = 0
    for path in files():
        text = path.read_text(encoding="utf-8")
        nodes = [*statements(ast.parse(text))]
        texts = (n for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
        strings = _lines(n for n in texts if isinstance(n.value, ast.Constant) and isinstance(n.value.value, str))
        lines = enumerate(text.splitlines(), 1)
        of_code = {n for n, line in lines if line.strip() and not line.lstrip().startswith("#") and n not in strings}
        code += len(of_code)
        imports += len(of_code & _lines(n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)))
    assert imports / code <= MOST_IMPORTS


def statements(parent: ast.AST) -> Iterator[ast.AST]:
    """All statements inside a part of a program; walking through expressions too takes ten times as long."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from statements(node)


def _lines(nodes: Iterator[ast.stmt]) -> set[int]:
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def test_defining_is_cheap() -> None:
    """What a module defines and a command may not need is made when it is first used."""
    dear = {"dataclasses.dataclass": "rageval_spec.dataclass", "re.compile": "compile_later of rageval_spec.libraries"}
    makers = {PACKAGE / "dataclass.py", PACKAGE / "libraries.py"}
    found = [
        f"{path.relative_to(SOURCE)}: {name}: use {dear[name]}"
        for path in {path for path in files() if PACKAGE in path.parents} - makers
        for node in _walk_definitions(ast.parse(path.read_text(encoding="utf-8")))
        for name in _list_names(node)
        if name in dear
    ]
    assert sorted(found) == []


def _walk_definitions(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: everything but the bodies of functions."""
    yield node
    children = ast.iter_child_nodes(node)
    for child in node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else children:
        if not isinstance(child, ast.Lambda):
            yield from _walk_definitions(child)


def _list_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{one.name}" for one in node.names)
    elif isinstance(node, ast.Attribute):
        yield ast.unparse(node)


def test_every_package_has_tests_in_a_folder_of_its_name() -> None:
    folders = {path.parent for path in modules()} - {PACKAGE}
    starts = {folder: PACKAGE if PACKAGE in folder.parents else SOURCE for folder in folders}
    places = [ROOT / "tests" / folder.relative_to(start) for folder, start in starts.items()]
    assert sorted(str(place.relative_to(ROOT)) for place in places if not any(place.glob("test_*.py"))) == []


def test_every_file_of_tests_is_named_after_a_module_or_says_what_it_tests() -> None:
    """A test file of a module has its name and lies in the folder of its name; the others begin with a docstring."""
    tests = ROOT / "tests"
    tops = {path.parent: PACKAGE if path.is_relative_to(PACKAGE) else SOURCE for path in files()}
    known = {tests / path.relative_to(tops[path.parent]).with_name(f"test_{path.stem}.py") for path in modules()}
    known |= {tests / folder.relative_to(top) / f"test_{folder.name}.py" for folder, top in tops.items()}
    found = [path for path in tests.rglob("test_*.py") if path not in known]
    strays = [path for path in found if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None]
    assert sorted(str(path.relative_to(ROOT)) for path in strays) == []
