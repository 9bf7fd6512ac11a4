from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Note
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.terminal import wrap_name
from rageval_spec.plugin import Context
from rageval_spec.reports.terminal import TerminalNode, TerminalReport
from tests.reports.golden import assert_golden
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation

MANY = ("bm25", "dense", "hybrid", "rerank-cross-encoder-v2", "colbert", "splade", "late-interaction")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)


def render(evaluation: Evaluation, width: int | None = 80, digits: int = 4) -> str:
    node = TerminalNode(use="terminal", width=width, digits=digits)
    return TerminalReport(node, Context("terminal", output=Path("rageval-results"))).render(evaluation).decode()


@pytest.mark.parametrize(
    ("name", "evaluation", "width"),
    [
        ("terminal_one_system.txt", make_evaluation(systems=("bm25",)), 80),
        ("terminal_three_systems.txt", make_evaluation(), 80),
        ("terminal_three_systems_wide.txt", make_evaluation(("golden", "scifact")), 140),
        ("terminal_many_systems.txt", make_evaluation(systems=MANY), 80),
        ("terminal_hostile_names.txt", make_hostile_evaluation(), 80),
    ],
)
def test_golden(name: str, evaluation: Evaluation, width: int) -> None:
    assert_golden(name, render(evaluation, width).encode())


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("systems", [MANY[:1], MANY[:2], MANY[:3], MANY])
def test_no_number_is_cut_off(width: int, systems: tuple[str, ...]) -> None:
    evaluation = make_evaluation(systems=systems)
    text = render(evaluation, width)
    for aggregate in evaluation.aggregates:
        if aggregate.interval and aggregate.mean and aggregate.mean > 0.001:
            assert f"{aggregate.mean:.4f}" in text
            assert f"[{aggregate.interval.low:.4f}, {aggregate.interval.high:.4f}]" in text
    assert all(system in text for system in systems)
    assert "…" not in text
    if width >= 60:
        assert max(map(len, text.splitlines())) <= width


def test_cells_take_one_line_if_there_is_room() -> None:
    text = render(make_evaluation(), 140)
    [row] = [line for line in text.splitlines() if line.startswith("ndcg@10 ")]
    assert re.split(r"  +", row) == [
        "ndcg@10",
        "0.4123 [0.3711, 0.4536] ✗",
        "0.4876 [0.4389, 0.5364]",
        "!",
        "0.5124 [0.4612, 0.5636] ▲ ✓",
        "40/40",
    ]


def test_the_number_scored_is_in_the_cells_if_systems_differ() -> None:
    [row] = [line for line in render(make_evaluation(), 140).splitlines() if line.startswith("recall@100")]
    assert re.findall(r"\d+/40", row) == ["40/40", "37/40", "37/40"]


def test_every_dataset_has_its_table() -> None:
    text = render(make_evaluation(("golden", "scifact")))
    assert "support-bot on golden\n" in text
    assert "support-bot on scifact\n" in text
    assert len(re.findall(r"^metric ", text, re.MULTILINE)) == 2


def test_gates_are_in_words_and_the_worst_comes_first() -> None:
    lines = render(make_evaluation()).splitlines()
    at = lines.index("✗ FAIL ndcg@10 of bm25 is 0.412, below the minimum 0.450")
    assert lines[at + 1].startswith("! warn ndcg@10 of dense")
    passed = lines.index("Passed gates (1)")
    assert passed < at
    assert lines[passed + 1].startswith("✓ pass ndcg@10 of hybrid")
    assert "✗ Not ready: 1 of 3 gates failed, 1 warned. ndcg@10 of bm25" in "\n".join(lines[-2:])


def test_many_passed_gates_are_counted_and_every_failure_is_shown() -> None:
    passed, _, failed = make_evaluation().gates
    lines = render(replace(make_evaluation(), gates=(*[passed] * 30, *[failed] * 30))).splitlines()
    assert sum(line.startswith("✗ FAIL") and "bm25" in line for line in lines) == 30
    assert sum(line.startswith("✓ pass") for line in lines) == 13
    assert "✓ pass 18 other gates" in lines


def test_many_notes_are_counted() -> None:
    notes = tuple(Note("code", f"number {number}") for number in range(23))
    text = render(replace(make_evaluation(), notes=notes))
    assert text.count("number") == 20
    assert "3 other notes; the JSON report lists all of them" in text


def test_marks_have_a_legend() -> None:
    text = render(make_evaluation(), 120)
    assert "▲ ▼  significantly higher or lower than bm25 (paired permutation test, Holm-adjusted p < 0.05)" in text
    calm = make_evaluation(metrics={"map": (0.3, 0.31, 0.32)})
    assert "none: no difference from bm25 is significant" in render(calm, 120)
    assert "▲" not in render(make_evaluation(systems=("bm25",)), 120)


def test_ties_are_a_footnote() -> None:
    text = render(make_evaluation(systems=("bm25",), metrics={"map": (0.3333,)}))
    assert "ties decide the value of 3 queries: map between 0.332 and 0.336\n" in text


def test_a_cell_without_scored_queries_shows_a_dash() -> None:
    cell = replace(make_evaluation().aggregates[0], mean=None, interval=None, scored=0, ties=None)
    evaluation = replace(make_evaluation(systems=("bm25",), metrics={"ndcg@10": (0.1,)}), aggregates=(cell,), gates=())
    [row] = [line for line in render(evaluation).splitlines() if line.startswith("ndcg@10")]
    assert row.split() == ["ndcg@10", "–", "0/40"]


def test_digits() -> None:
    assert "0.41 [0.37, 0.45]" in render(make_evaluation(), 120, digits=2)


def test_control_characters_never_reach_the_terminal() -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", render(make_hostile_evaluation()))


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False),
    ],
)
def test_colour(environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text = render(make_evaluation())
    assert ("\x1b[" in text) == coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", text).replace(" ", "") == render_plain(monkeypatch).replace(" ", "")


def render_plain(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NO_COLOR", "1")
    return render(make_evaluation())


def test_the_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    assert render(make_evaluation(), None) == render(make_evaluation(), 140)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("ndcg@10", ["ndcg@10"]),
        ("answer_correctness_of_the_support_bot", ["answer_correctness_of_the_", "support_bot"]),
        ("faithfulness(judge=strict,mode=claims)", ["faithfulness(judge=strict,", "mode=claims)"]),
        ("supercalifragilisticexpialidocious", ["supercalifragilisticexpialid", "ocious"]),
        ("a " * 15, ["a " * 14, "a "]),
        ("___", ["___"]),
        ("", [""]),
    ],
)
def test_a_long_name_is_broken_between_its_words(name: str, lines: list[str]) -> None:
    assert wrap_name(make_visible(name), 28) == lines
