from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.python_source import find_parameters, list_names


def write(folder: Path, source: str) -> Path:
    path = folder / "rag.py"
    path.write_text(dedent(source), "utf-8")
    return path


def test_names_are_those_that_an_import_would_give(tmp_path: Path) -> None:
    source = """
        import os.path, json as j
        from re import compile as build
        a, (b, *c) = d, (e, *_f) = 1, (2, 3)
        typed: int = 1
        for item in (1,):
            inner = item
        with open(os.devnull) as stream:
            pass
        try:
            chain = 1 / 0
        except ZeroDivisionError:
            answer = late = lambda question: question
        if (found := 1) > 0:
            def conditional(): hidden = 1
        class Chain:
            inside = 1
        def set_client():
            global client
            client = 1
        async def ask(): ...
        match {"x": 1, "y": 2}:
            case {"x": x, **rest}: ...
        set_client()
    """
    path = write(tmp_path, source)
    names: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    own = {name for name in names if not name.startswith("__")}
    listed = list_names(path)
    assert listed is not None and own | {"chain"} == set(listed)
    assert listed[:4] == ["os", "j", "build", "a"]


@pytest.mark.parametrize(
    "source",
    [
        "from rag_chain import *",
        "globals()['answer'] = 1",
        "exec('answer = 1')",
        "def __getattr__(name): return 1",
        "import sys\nsetattr(sys.modules[__name__], 'answer', 1)",
    ],
)
def test_names_that_the_text_does_not_show_are_unknown(tmp_path: Path, source: str) -> None:
    assert list_names(write(tmp_path, source)) is None


def test_invalid_python_says_where(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^{re.escape(str(tmp_path / 'rag.py'))}:2: "):
        list_names(write(tmp_path, "x = 1\ndef f(: ..."))
    with pytest.raises(DataError, match=r"rag\.py"):
        list_names(write(tmp_path, "x = '\0'"))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(a, b=1, *, c): ...", {"a", "b", "c"}),
        ("async def f(): ...", set()),
        ("def f(a, /, b): ...", {"b"}),
        ("def f(**told): ...", None),
        ("@cache\ndef f(): ...", None),
        ("f = g", None),
        ("def f(a): ...\ndef f(b): ...", None),
    ],
)
def test_parameters_are_those_that_accept_a_name(tmp_path: Path, source: str, names: set[str] | None) -> None:
    assert find_parameters(write(tmp_path, source), "f") == names
