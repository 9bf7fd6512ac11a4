from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.functions.named import NamedFunction, check_name, describe_error


@pytest.fixture(autouse=True)
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


def test_a_name_is_a_module_and_a_function() -> None:
    assert check_name("rag.answers:Bot.answer", "'a:b'") == "rag.answers:Bot.answer"
    for wrong in ("rag", "rag:", ":answer", "a-b:c", "a:b:c"):
        with pytest.raises(ValueError, match="write 'module:function', for example 'a:b'"):
            check_name(wrong, "'a:b'")


def test_the_file_is_beside_the_spec_or_installed_or_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    assert NamedFunction("named_checks:f", tmp_path, "x").inputs()[0].path == path
    assert NamedFunction("json:loads", tmp_path, "x").inputs()[0].path.name == "__init__.py"
    assert NamedFunction("sys:exit", tmp_path, "x").inputs() == ()
    missing = NamedFunction("nowhere.at_all:f", tmp_path, "x").inputs()[0]
    assert missing.path == tmp_path / "nowhere" / "at_all.py"
    assert missing.hint == "nor is a module 'nowhere.at_all' installed"


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


def test_a_function_is_loaded_from_beside_the_spec(tmp_path: Path) -> None:
    write(tmp_path, "class Checks:\n    @staticmethod\n    def cites(): return 7\n")
    assert NamedFunction("named_checks:Checks.cites", tmp_path, "x").load()() == 7


def test_an_error_of_a_users_code_is_one_visible_line() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_error("checks:cites", KeyError("a")) == "checks:cites raised KeyError: 'a'"
    assert describe_error("f", ValueError("a\x1b[31m\n")) == "f raised ValueError: a\\x1b[31m\\n"
    assert describe_error("f", UnreadableError()) == "f raised UnreadableError: (its message cannot be read)"
    assert describe_error("f", AssertionError()) == "f raised AssertionError"
