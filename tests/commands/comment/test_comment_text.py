""""""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rageval_spec.commands.comment.comment_text import (
    LONGEST,
    SAME_QUESTIONS,
    Part,
    join_parts,
    list_checks,
    list_lines,
    mark,
    write_body,
)
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.evaluation import Aggregate, Evaluation, JudgingCost
from rageval_spec.data.outcomes import GateOutcome
from tests.answered_evaluation import answered, sample, value
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation, make_hostile_evaluation


def evaluate(values: dict[str, float], name: str = "support-bot") -> Evaluation:
    """One system with a value of faithfulness for each question, and a gate that fails."""
    mean, count = sum(values.values()) / len(values), len(values)
    gate_reason = f"faithfulness of v1 is {mean:.3f}, below the minimum 0.950"
    return answered(
        [value(query, "faithfulness", number) for query, number in values.items()],
        [sample(query, answer=f"{query} is {number}") for query, number in values.items()],
        name=name,
        aggregates=(Aggregate("golden", "v1", "faithfulness", mean, None, count, count),),
        gates=(GateOutcome(0, "golden", "v1", "faithfulness", "fail", "≥ 0.95", mean, gate_reason),),
        judging={"judge": JudgingCost(12, 34_567, 890, 0.0123)},
        ranges={"faithfulness": (0.0, 1.0)},
    )


BEFORE = NamedResults("main", evaluate({"q1": 1.0, "q2": 1.0, "q3": 0.1, "q4": 0.9}))
AFTER = evaluate({"q1": 0.0, "q2": 1.0, "q3": 1.0, "q4": 0.8})


def test_golden() -> None:
    assert_golden("comment.md", write_body(AFTER, BEFORE, commit="abc123").encode())


def test_golden_without_a_baseline() -> None:
    assert_golden("comment_alone.md", write_body(make_evaluation(("golden", "other"))).encode())


def test_broken_and_fixed_questions_are_folded() -> None:
    text = write_body(AFTER, BEFORE)
    assert "<details><summary>❌ 1 broken question</summary>" in text
    assert "| `q1` | `v1` | faithfulness 1.000 → 0.000 | Question q1? | q1 is 1.0 | q1 is 0.0 |" in text
    assert "<details><summary>✅ 1 fixed question</summary>" in text
    assert "| `q3` | `v1` | faithfulness 0.100 → 1.000 |" in text


def test_the_mark_is_the_first_line_and_depends_on_the_key() -> None:
    assert write_body(AFTER).splitlines()[0] == mark(AFTER) == "<!-- rageval-spec: support-bot -->"
    assert write_body(AFTER, key="nightly").splitlines()[0] == "<!-- rageval-spec: nightly -->"
    assert mark(AFTER, "a --> b") == "<!-- rageval-spec: a-b -->"


@pytest.mark.parametrize("longest", [2_000, 5_000, LONGEST])
def test_a_large_evaluation_is_cut_by_section(longest: int) -> None:
    names = tuple(f"system {number} {'x' * 60}" for number in range(300))
    text = write_body(make_evaluation(systems=names), longest=longest)
    assert len(text) <= longest
    assert text.startswith("<!-- rageval-spec: support-bot -->\n## ❌ `support-bot`\n\n**Not ready:**")
    assert "too long for a comment; see the results." in text
    assert "Provenance" in text


def test_a_thousand_broken_questions_fit() -> None:
    before = NamedResults("main", evaluate({f"q{number}": 1.0 for number in range(1000)}))
    text = write_body(evaluate({f"q{number}": 0.0 for number in range(1000)}), before)
    assert len(text) <= LONGEST
    assert "❌ 1,000 broken questions" in text
    assert "950 more questions with smaller changes." in text


def test_names_have_no_effect_as_markdown_html_or_commands() -> None:
    hostile = make_hostile_evaluation()
    gate = replace(hostile.gates[2], metric="/close", reason="/close\n@everyone <b>")
    text = write_body(
        replace(hostile, gates=(gate,), failures=(HOSTILE,)), NamedResults(HOSTILE, hostile), commit=HOSTILE
    )
    outside = re.sub(r"(?s)```.*?```", "", text)
    assert not re.search(r"(?m)^\s*/", outside)
    prose = re.sub(r"(`+).+?\1", "", outside)
    assert "@everyone" not in prose
    assert "<script" not in prose
    assert "<b>" not in prose
    assert "\x1b" not in text


def test_failures_come_before_the_table() -> None:
    text = write_body(replace(AFTER, failures=("v2 on golden: the endpoint is down",)))
    assert text.index("❌ v2 on golden: the endpoint is down") < text.index("| Check |")
    assert "**Incomplete:**" in text


EVALUATION = make_evaluation(metrics={"ndcg@10": (0.41234, 0.48765, 0.51239), "map": (0.3, 0.4, 0.5)})


def test_gates_come_first_and_worst_first() -> None:
    checks = list_checks(EVALUATION, None)
    assert [one.is_gate for one in checks] == [True] * 3 + [False] * 3
    assert [one.name[0] for one in checks[:3]] == ["❌", "⚠", "✅"]
    assert checks[0].name == "❌ `ndcg@10` · `bm25` ≥ 0.45"
    assert checks[0].reason == "❌ ndcg@10 of bm25 is 0.412, below the minimum 0.450"
    assert checks[2].reason == ""
    assert checks[3].name == "`map` · `bm25`"


def test_without_a_baseline_the_base_is_the_first_system() -> None:
    hybrid = list_checks(EVALUATION, None)[2]
    assert hybrid.list_cells()[1:] == ["0.512", "0.412 (bm25)", "+0.100 ▲ better \\[0.068, 0.132\\]", "40", "23", "12"]
    assert list_checks(EVALUATION, None)[0].list_cells()[1:] == ["0.412", "–", "", "40", "", ""]


def test_a_gate_on_another_system_keeps_its_comparison_beside_a_baseline() -> None:
    gate = replace(EVALUATION.gates[0], bound="drop from bm25 ≤ 0.02", gate=3, baseline="bm25")
    asked = replace(EVALUATION.comparisons[1], system="hybrid", baseline="bm25")
    evaluation = replace(EVALUATION, gates=(gate,), baselines=(asked,))
    (check, *_others) = list_checks(evaluation, NamedResults("main", EVALUATION))
    assert check.base == "0.412 (bm25)"


def test_the_base_of_a_gate_on_an_earlier_evaluation_is_its_number_on_the_compared_questions() -> None:
    asked = replace(EVALUATION.comparisons[1], system="bm25", baseline="main", baseline_mean=0.4567)
    evaluation = replace(EVALUATION, gates=(replace(EVALUATION.gates[0], baseline="main"),), baselines=(asked,))
    shown = {check.name: check.base for check in list_checks(evaluation, None)}
    assert "0.457 (main)" in shown.values()


def test_with_a_baseline_the_base_is_its_number() -> None:
    (check,) = list_checks(AFTER, BEFORE)
    assert (check.head, check.base, check.questions) == ("0.700", "0.750", "4")
    checks = list_checks(EVALUATION, NamedResults("main", make_evaluation(metrics={"ndcg@10": (0.4, 0.5, 0.6)})))
    assert [one.base for one in checks[3:]] == ["–"] * 3


@pytest.mark.parametrize(
    ("before", "after", "row"),
    [
        ({"q1": 1.0, "q2": 0.5, "q3": 0.0}, {"q1": 0.5, "q2": 0.5, "q4": 1.0},
         ("0.500 (0.667 of all 3)", "0.750", "−0.250", "2")),
        ({"q1": 1.0, "q2": 0.5}, {"q1": 0.5, "q2": 0.5, "q3": 0.0, "q4": 0.1},
         ("0.500 (0.275 of all 4)", "0.750", "−0.250", "2")),
        ({"q1": 1.0, "q2": 0.5, "q3": 0.0}, {"q1": 0.5, "q2": 0.5}, ("0.500", "0.750", "−0.250", "2")),
    ],
)  # fmt: skip
def test_head_base_and_difference_are_of_the_same_questions(
    before: dict[str, float], after: dict[str, float], row: tuple[str, ...]
) -> None:
    """0.667 against 0.500, with a difference of -0.25, would be the numbers of other questions."""
    head = evaluate(after)
    (check,) = list_checks(head, NamedResults("main", evaluate(before)))
    assert (check.head, check.base, check.difference.split()[0], check.questions) == row
    assert SAME_QUESTIONS in write_body(head, NamedResults("main", evaluate(before)))


def test_datasets_and_slices_are_named_where_there_are_several() -> None:
    evaluation = make_evaluation(("golden", "other"), ("bm25",), {"map": (0.3,)})
    gate = replace(evaluation.gates[0], slice="level=easy")
    assert list_checks(replace(evaluation, gates=(gate,)), None)[0].name == "✅ `map` · `golden` · `level=easy` ≥ 0.45"


ROWS = [[f"q{number}", "x" * 50] for number in range(100)]
TABLE = Part("Broken questions", ROWS, ["query", "text"])


def test_what_fits_is_whole() -> None:
    text = join_parts("head", [TABLE], 60_000)
    assert text.count("| q") == 101
    assert "too long" not in text
    assert text.startswith("head\n\n<details><summary>Broken questions</summary>\n\n| query | text |\n")
    assert text.endswith("\n\n</details>\n")


@pytest.mark.parametrize("longest", [400, 1_000, 2_000, 5_000])
def test_rows_are_cut_from_the_end_and_counted(longest: int) -> None:
    text = join_parts("head", [TABLE, Part("Provenance", before="sha")], longest)
    assert len(text) <= longest
    shown = text.count("| q") - 1
    assert 0 < shown < 100
    assert f"{100 - shown} more rows: too long for a comment; see the results." in text
    assert "Provenance" in text


def test_a_part_without_room_is_named() -> None:
    text = join_parts("head", [Part("Settings", before="y" * 500), Part("Cost", before="$1", is_folded=False)], 400)
    assert text == "head\n\nSettings: too long for a comment; see the results.\n\n**Cost**\n\n$1\n"


def test_lines_need_no_header() -> None:
    assert Part("", list_lines(["a", "b"]), is_folded=False).render() == "- a\n- b"
    assert Part("", list_lines(["a", "b"]), is_folded=False).render(1) == (
        "- a\n\n1 more row: too long for a comment; see the results."
    )


def test_more_parts_than_have_a_line_are_counted() -> None:
    parts = [Part(f"Slices of {'d' * 500} {number}", before="y" * 500) for number in range(3000)]
    text = join_parts("head", parts, 60_000)
    assert len(text) <= 60_000
    assert text.count("<details>") == text.count("</details>") > 50
    named = text.count("...: too long for a comment; see the results.")
    assert named >= 20 and text.endswith(
        f"{3000 - named - text.count('<details>'):,} more parts: too long for a comment; see the results.\n"
    )


def test_a_share_is_shown_as_a_percentage() -> None:
    head = replace(AFTER, show_as={"faithfulness": "percent"})
    (check,) = list_checks(head, BEFORE)
    assert (check.head, check.base, check.difference.split(" ∅")[0]) == ("70%", "75%", "−5 pp")
    assert "faithfulness 100% → 0%" in write_body(head, BEFORE)
