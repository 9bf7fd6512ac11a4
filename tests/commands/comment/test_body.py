from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rageval_spec.commands.comment.body import LONGEST, mark, write_body
from rageval_spec.commands.results import Opened
from rageval_spec.data.evaluation import Aggregate, Evaluation, GateOutcome, JudgingCost
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
    )


BEFORE = Opened("main", evaluate({"q1": 1.0, "q2": 1.0, "q3": 0.1, "q4": 0.9}))
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
    before = Opened("main", evaluate({f"q{number}": 1.0 for number in range(1000)}))
    text = write_body(evaluate({f"q{number}": 0.0 for number in range(1000)}), before)
    assert len(text) <= LONGEST
    assert "❌ 1,000 broken questions" in text
    assert "950 more questions with smaller changes." in text


def test_names_have_no_effect_as_markdown_html_or_commands() -> None:
    hostile = make_hostile_evaluation()
    gate = replace(hostile.gates[2], metric="/close", reason="/close\n@everyone <b>")
    text = write_body(replace(hostile, gates=(gate,), failures=(HOSTILE,)), Opened(HOSTILE, hostile), commit=HOSTILE)
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
