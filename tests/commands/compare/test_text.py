"""A comparison as text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.answered_evaluation import answered, sample, save, value
from tests.command_line import invoke
from tests.commands.compare.results import AFTER, BEFORE, evaluation
from tests.sample_evaluation import HOSTILE


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(evaluation(BEFORE), tmp_path / "before")
    save(replace(evaluation(AFTER), versions={"rageval-spec": "2.0"}), tmp_path / "after")
    return tmp_path


def compare(*arguments: str, width: int = 100, **env: str) -> str:
    result = invoke("compare", *arguments, env={"COLUMNS": str(width), **env})
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_first_what_else_differs_then_the_numbers_then_the_questions() -> None:
    told = compare("before", "after")
    head, numbers, questions = (
        told.partition("metric ")[0],
        told.partition("metric ")[2],
        told.partition("5 questions")[2],
    )
    assert head == "before → after\n\nWhat else differs\n  • rageval-spec 1.2.3 before, 2.0 after\n\n"
    assert re.search(r"token_f1 +0\.660 +0\.600 +−0\.060", numbers)
    assert "Unchanged: latency of v1." in numbers
    assert (
        questions
        == """ in both: 1 broken, 1 fixed, 1 worse, 1 with another answer, 1 as before

✗ broken  q1  token_f1 0.900 → 0.100
  Question q1?
  It is [-red-] {+blue+}.

✓ fixed  q2  token_f1 0.200 → 0.800
  Question q2?

− worse  q3  token_f1 0.900 → 0.800
  Question q3?

~ changed  q4
  Question q4?
  The tower is [-high-] {+tall+}.
"""
    )


def test_a_limit_says_what_it_hides(here: Path) -> None:
    save(evaluation(dict.fromkeys(BEFORE, 0.1)), here / "bad")
    assert "3 smaller changes not shown; --limit sets how many of each kind are" in compare(
        "before", "bad", "--limit", "1"
    )


def test_equal_results_say_so() -> None:
    assert compare("before", "before") == (
        "before → before\n\nUnchanged: token_f1, latency of v1.\n\n5 questions in both: 5 as before\n"
    )


def test_an_answer_that_is_gone_says_why(here: Path) -> None:
    save(answered([value("q", "token_f1", 0.9)], [sample("q")]), here / "there")
    save(answered([value("q", "token_f1", None)], [sample("q", answer=None, error="timeout")]), here / "gone")
    told = compare("there", "gone")
    assert "✗ broken  q  no answer any more\n  Question q?\n  timeout\n  [-The bridge" in told
    assert "✓ fixed  q  has an answer now" in compare("gone", "there")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_and_colours_only_repeat_the_signs(width: int) -> None:
    plain = compare("before", "after", width=width)
    assert max(map(len, plain.splitlines())) <= width
    coloured = compare("before", "after", width=width, FORCE_COLOR="1")
    assert "\x1b[31m[-red-]\x1b[0m" in coloured
    assert compare("before", "after", width=width, FORCE_COLOR="1", NO_COLOR="1") == plain


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_texts_of_users_do_nothing(here: Path, form: str) -> None:
    text = f"{HOSTILE}\u202e[red]x[/red]\r"
    save(answered([value("q", "token_f1", 0.9)], [sample("q", question=text, answer=text)]), here / "one")
    save(answered([value("q", "token_f1", 0.1)], [sample("q", question=text, answer=f"{text} y")]), here / "two")
    told = compare("one", "two", "--format", form)
    assert not {"\x1b", "\x00", "\u202e", "\r"} & set(told)
    if form == "markdown":
        assert "<script>" not in told


def test_enormous_answers_are_cut(here: Path) -> None:
    for name, word in (("one", "a"), ("two", "b")):
        answer = f"{word} " * 200_000
        save(answered([value("q", "token_f1", 0.9)], [sample("q", answer=answer)]), here / name)
    assert len(compare("one", "two")) < 4_000
