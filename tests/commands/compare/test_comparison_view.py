"""A comparison as text.

A comparison as Markdown.

The words that were removed from a text and added to it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rageval_spec.commands.compare.comparison_view import diff_words, shorten_edits
from rageval_spec.drawing.view import Span
from tests.answered_evaluation import answered, sample, save, value
from tests.command_line import invoke
from tests.commands.compare.results import AFTER, BEFORE, evaluation
from tests.sample_evaluation import HOSTILE, alter


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(evaluation(BEFORE), tmp_path / "before")
    save(alter(evaluation(AFTER), versions={"rageval-spec": "2.0"}), tmp_path / "after")
    return tmp_path


def compare(*arguments: str, width: int = 100, **env: str) -> str:
    result = invoke("compare", *arguments, env={"COLUMNS": str(width), **env})
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.usefixtures("here")
def test_first_what_else_differs_then_the_numbers_then_the_questions() -> None:
    told = compare("before", "after")
    head, numbers, questions = (
        told.partition("metric ")[0],
        told.partition("metric ")[2],
        told.partition("5 questions")[2],
    )
    assert head == "before → after\n\nWhat else differs\n• rageval-spec 1.2.3 before, 2.0 after\n\n"
    assert re.search(r"token_f1 +0\.660 +0\.600 +−0\.060", numbers)
    assert "Unchanged: latency of v1." in numbers
    assert (
        questions
        == """ in both: 1 broken, 1 fixed, 1 worse, 1 with another answer, 1 as before.

✗ broken · q1 · token_f1 0.900 → 0.100
  Question q1?
  It is [-red-] {+blue+}.

✓ fixed · q2 · token_f1 0.200 → 0.800
  Question q2?

− worse · q3 · token_f1 0.900 → 0.800
  Question q3?

~ changed · q4
  Question q4?
  The tower is [-high-] {+tall+}.
"""
    )


@pytest.mark.usefixtures("here")
def test_a_limit_says_what_it_hides(here: Path) -> None:
    save(evaluation(dict.fromkeys(BEFORE, 0.1)), here / "bad")
    assert "3 smaller changes not shown; --limit sets how many of each kind are" in compare(
        "before", "bad", "--limit", "1"
    )


@pytest.mark.usefixtures("here")
def test_equal_results_say_so() -> None:
    assert compare("before", "before") == (
        "before → before\n\nUnchanged: token_f1, latency of v1.\n\n5 questions in both: 5 as before.\n"
    )


@pytest.mark.usefixtures("here")
def test_an_answer_that_is_gone_says_why(here: Path) -> None:
    save(answered([value("q", "token_f1", 0.9)], [sample("q")]), here / "there")
    save(answered([value("q", "token_f1", None)], [sample("q", answer=None, error="timeout")]), here / "gone")
    told = compare("there", "gone")
    assert "✗ broken · q · no answer any more\n  Question q?\n  timeout\n  [-The bridge" in told
    assert "✓ fixed · q · has an answer now" in compare("gone", "there")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_and_colours_only_repeat_the_signs(width: int) -> None:
    plain = compare("before", "after", width=width)
    assert max(map(len, plain.splitlines())) <= width
    coloured = compare("before", "after", width=width, FORCE_COLOR="1")
    assert "\x1b[31m[-red-]\x1b[0m" in coloured
    assert compare("before", "after", width=width, FORCE_COLOR="1", NO_COLOR="1") == plain


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_texts_of_users_do_nothing(here: Path, form: str) -> None:
    text = f"{HOSTILE}\u202e[red]x[/red]\r"
    save(answered([value("q", "token_f1", 0.9)], [sample("q", question=text, answer=text)]), here / "one")
    save(answered([value("q", "token_f1", 0.1)], [sample("q", question=text, answer=f"{text} y")]), here / "two")
    told = compare("one", "two", "--format", form)
    assert not {"\x1b", "\x00", "\u202e", "\r"} & set(told)
    if form == "markdown":
        assert "<script>" not in told


@pytest.mark.usefixtures("here")
def test_enormous_answers_are_cut(here: Path) -> None:
    for name, word in (("one", "a"), ("two", "b")):
        answer = f"{word} " * 200_000
        save(answered([value("q", "token_f1", 0.9)], [sample("q", answer=answer)]), here / name)
    assert len(compare("one", "two")) < 4_000


def test_numbers_are_a_table_and_changed_words_are_struck_or_bold(tmp_path: Path) -> None:
    before, after = save(evaluation(BEFORE), tmp_path / "before"), save(evaluation(AFTER), tmp_path / "after")
    told = invoke("compare", before, after, "--format", "markdown").stdout
    assert "| `token_f1` | 0.660 | 0.600 | −0.060 ∅ \\[" in told
    assert "5 pairs cannot show a difference" in told
    assert "Unchanged: latency of v1." in told
    assert "5 questions in both: 1 broken, 1 fixed, 1 worse, 1 with another answer, 1 as before." in told
    entry = "- **✗ broken** · `q1` · token\\_f1 0.900 → 0.100<br>Question q1?<br>It is ~~red~~ **blue**.\n"
    assert entry in told


def marked(before: str, after: str) -> str:
    signs = {"prose": "", "removed": "-", "added": "+"}
    return "".join(
        f"[{signs[one.kind]}{one.text}]" if one.kind != "prose" else one.text for one in diff_words(before, after)
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("It is red.", "It is blue.", "It is[- red][+ blue]."),
        ("It is red.", "It is red. Or blue.", "It is red.[+ Or blue.]"),
        ("a b c d", "b c", "[-a b][+b] c[- d]"),
        ("", "new", "[+new]"),
        ("old", "", "[-old]"),
        ("", "", ""),
        ("same", "same", "same"),
        ("one, two", "three, four", "[-one, two][+three, four]"),
        ("橋は一九一一年", "橋は一九〇九年", "橋は一九[-一一][+〇九]年"),
        ("x\ny", "x\nz", "x[-\ny][+\nz]"),
    ],
)
def test_words_are_removed_and_added(before: str, after: str, expected: str) -> None:
    assert marked(before, after) == expected


@pytest.mark.parametrize("texts", [("a b  c\n", " a c d"), ("x " * 9000, "y x " * 5000), ("", " "), ("a.b", "a. b")])
def test_both_texts_can_be_read_from_the_edits(texts: tuple[str, str]) -> None:
    edits = diff_words(*texts)
    assert "".join(edit.text for edit in edits if edit.kind != "added") == texts[0]
    assert "".join(edit.text for edit in edits if edit.kind != "removed") == texts[1]


def test_long_texts_with_little_in_common_are_replaced_as_a_whole() -> None:
    before, after = " ".join(f"a{n} x" for n in range(5000)), " ".join(f"b{n} x" for n in range(5000))
    assert [edit.kind for edit in diff_words(f"same {before} same", f"same {after} same")] == [
        "prose",
        "removed",
        "added",
        "prose",
    ]


def prose(text: str) -> Span:
    return Span(text, kind="prose")


def test_what_is_far_from_a_change_is_left_out() -> None:
    edits = shorten_edits([prose("a" * 500), Span("b" * 900, kind="added"), prose("c" * 500)])
    assert [(edit.kind, len(edit.text)) for edit in edits] == [("prose", 63), ("added", 601), ("prose", 63)]
    assert edits[0].text.endswith("aaa")
    assert edits[2].text.startswith("ccc")
    assert shorten_edits([prose("short")]) == [prose("short")]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_share_is_shown_as_a_percentage(tmp_path: Path, form: str) -> None:
    later = evaluation(AFTER, show_as={"token_f1": "percent"})
    before, after = save(evaluation(BEFORE), tmp_path / "before"), save(later, tmp_path / "after")
    told = re.sub(r"[\s|]+", " ", invoke("compare", before, after, "--format", form).stdout)
    assert "66% 60% −6 pp ∅" in told
    assert "90% → 10%" in told
    assert "pp: percentage points." in told
    invoke("compare", before, after, "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "−6 pp ∅" in page
    assert "90% → 10%" in page
