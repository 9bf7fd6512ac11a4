""""""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from textwrap import dedent

import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.user_functions import (
    ExitCallError,
    NamedFunction,
    Workers,
    call_async,
    check_name,
    describe_error,
    find_beside,
    find_installed,
    find_parameters,
    finish,
    import_module,
    is_async,
    is_installed,
    list_imports,
    list_names,
)


@pytest.fixture
def clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(folder: Path, source: str, name: str = "named_checks") -> Path:
    path = folder / f"{name}.py"
    path.write_text(source)
    return path


@pytest.mark.usefixtures("clean_imports")
def test_a_name_is_a_module_and_a_function() -> None:
    assert check_name("rag.answers:Bot.answer", "'a:b'") == "rag.answers:Bot.answer"
    for wrong in ("rag", "rag:", ":answer", "a-b:c", "a:b:c"):
        with pytest.raises(ValueError, match="write 'module:function', for example 'a:b'"):
            check_name(wrong, "'a:b'")


@pytest.mark.usefixtures("clean_imports")
def test_the_file_is_beside_the_spec_or_installed_or_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    assert NamedFunction("named_checks:f", tmp_path, "x").inputs()[0].path == path
    assert NamedFunction("json:loads", tmp_path, "x").inputs()[0].path.name == "__init__.py"
    assert NamedFunction("sys:exit", tmp_path, "x").inputs() == ()
    missing = NamedFunction("nowhere.at_all:f", tmp_path, "x").inputs()[0]
    assert missing.path == tmp_path / "nowhere" / "at_all.py"
    assert missing.hint == "nor is a module 'nowhere.at_all' installed"


@pytest.mark.usefixtures("clean_imports")
def test_the_text_shows_what_is_missing_without_an_import(tmp_path: Path) -> None:
    write(tmp_path, "raise SystemExit\ndef cites(sample, other): ...\ndef _hidden(): ...\n")
    assert NamedFunction("named_checks:cites", tmp_path, "x").explain_absence() is None
    assert NamedFunction("named_checks:cites", tmp_path, "x").find_parameters() == frozenset({"sample", "other"})
    assert NamedFunction("named_checks:cite", tmp_path, "x").explain_absence() == (
        "there is no 'cite' in named_checks.py; did you mean 'cites'?"
    )
    assert NamedFunction("json:nothing", tmp_path, "x").explain_absence() is None
    write(tmp_path, "def (:")
    with pytest.raises(DataError, match=r"named_checks\.py:1: "):
        NamedFunction("named_checks:cites", tmp_path, "x").explain_absence()


@pytest.mark.usefixtures("clean_imports")
@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("1 / 0", "f", "the import of named_checks failed: named_checks raised ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(2)", "f", "named_checks called sys.exit(2); it must return or raise an exception"),
        ("def g(): ...", "f", "there is no 'f' in named_checks; it has g"),
        ("f = 3", "f", "named_checks:f is not a function; its type is int"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_an_error_at_its_key(
    tmp_path: Path, source: str, name: str, message: str
) -> None:
    write(tmp_path, source)
    with pytest.raises(UsageError) as caught:
        NamedFunction(f"named_checks:{name}", tmp_path, "metrics.cites.function").load()
    assert str(caught.value).startswith("metrics.cites.function: ")
    assert message in str(caught.value)


@pytest.mark.usefixtures("clean_imports")
def test_a_function_is_loaded_from_beside_the_spec(tmp_path: Path) -> None:
    write(tmp_path, "class Checks:\n    @staticmethod\n    def cites(): return 7\n")
    assert NamedFunction("named_checks:Checks.cites", tmp_path, "x").load()() == 7


@pytest.mark.usefixtures("clean_imports")
def test_an_error_of_a_users_code_is_one_visible_line() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_error("checks:cites", KeyError("a")) == "checks:cites raised KeyError: 'a'"
    assert describe_error("f", ValueError("a\x1b[31m\n")) == "f raised ValueError: a\\x1b[31m\\n"
    assert describe_error("f", UnreadableError()) == "f raised UnreadableError: (its message cannot be read)"
    assert describe_error("f", AssertionError()) == "f raised AssertionError"


@pytest.mark.usefixtures("clean_imports")
def test_a_module_next_to_the_spec_is_a_file_or_a_package(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    (tmp_path / "many" / "inner").mkdir(parents=True)
    (tmp_path / "many" / "inner" / "__init__.py").touch()
    assert find_beside(tmp_path, "one") == tmp_path / "one.py"
    assert find_beside(tmp_path, "many.inner") == tmp_path / "many" / "inner" / "__init__.py"
    assert find_beside(tmp_path, "none") is None


@pytest.mark.usefixtures("clean_imports")
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


@pytest.mark.usefixtures("clean_imports")
def test_the_module_next_to_the_spec_wins_over_an_imported_one_of_the_same_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module_of_two.py").write_text(f"NAME = {folder!r}")
    found = [import_module(tmp_path / folder, "module_of_two").NAME for folder in ("a", "b", "a")]
    assert found == ["a", "b", "a"]


async def leave(code: int) -> None:
    sys.exit(code)


async def double(number: int) -> int:
    return 2 * number


def test_sequential_calls_are_made_in_one_thread() -> None:
    workers = Workers()
    threads = {workers.submit(threading.get_ident).result() for _ in range(5)}
    assert len(threads) == 1


def test_concurrent_calls_do_not_wait_for_one_another() -> None:
    workers, barrier = Workers(), threading.Barrier(3)
    futures = [workers.submit(lambda: barrier.wait(timeout=30)) for _ in range(3)]
    assert not wait(futures, 60).not_done


def test_a_call_that_exits_has_failed_and_its_thread_goes_on() -> None:
    workers = Workers()
    with pytest.raises(ExitCallError, match=r"called sys\.exit\(0\); it must return or raise an exception"):
        workers.submit(lambda: sys.exit(0)).result()
    assert workers.submit(lambda: 7).result() == 7


def test_an_async_call_that_exits_has_failed_and_the_loop_goes_on() -> None:
    with pytest.raises(ExitCallError, match=r"called sys\.exit\(3\)"):
        call_async(leave, {"code": 3}).result(timeout=60)
    assert call_async(double, {"number": 4}).result(timeout=60) == 8


def test_an_awaitable_returned_by_a_sync_function_is_awaited() -> None:
    assert finish(double(5)) == 10
    assert finish("text") == "text"
    with pytest.raises(ExitCallError):
        finish(leave(1))


def test_objects_may_be_async() -> None:
    class Asking:
        async def __call__(self) -> None:
            """Ask."""

    assert is_async(double)
    assert is_async(Asking())
    assert not is_async(len)


def write_source(folder: Path, source: str) -> Path:
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
    path = write_source(tmp_path, source)
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
    assert list_names(write_source(tmp_path, source)) is None


def test_invalid_python_says_where(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^{re.escape(str(tmp_path / 'rag.py'))}:2: "):
        list_names(write_source(tmp_path, "x = 1\ndef f(: ..."))
    with pytest.raises(DataError, match=r"rag\.py"):
        list_names(write_source(tmp_path, "x = '\0'"))


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
    assert find_parameters(write_source(tmp_path, source), "f") == names


def test_the_modules_beside_a_file_that_it_imports_are_found(tmp_path: Path) -> None:
    for name, text in {
        "app/__init__.py": "",
        "app/rag.py": "import json, helpers\nfrom . import steps\nfrom .parts.search import find\n",
        "app/steps.py": "def run():\n    from app import late\n",
        "app/late.py": "import app.rag\n",
        "app/parts/__init__.py": "",
        "app/parts/search.py": "from ..deep import thing\n",
        "app/deep.py": "this is no Python\n",
        "helpers.py": "import not_there\n",
        "other.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = [path.relative_to(tmp_path).as_posix() for path in list_imports(tmp_path / "app" / "rag.py", tmp_path)]
    assert found == [
        "app/__init__.py", "app/deep.py", "app/late.py", "app/parts/__init__.py", "app/parts/search.py", "app/steps.py",
        "helpers.py",
    ]  # fmt: skip
