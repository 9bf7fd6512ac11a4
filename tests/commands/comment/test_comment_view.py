""""""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rageval_spec.commands.comment.comment_view import Check, list_checks, write_body
from rageval_spec.commands.compare.comparison_view import list_numbers
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.evaluation import Aggregate, Evaluation, JudgingCost
from rageval_spec.data.outcomes import GateOutcome
from rageval_spec.drawing.evaluation_view import LONGEST_COMMENT
from rageval_spec.drawing.view import Span
from rageval_spec.wording import find_format
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
    assert "`q1` · faithfulness 1.000 → 0.000<br>Question q1?<br>q1 is ~~1~~" in text
    assert "<details><summary>✅ 1 fixed question</summary>" in text
    assert "`q3` · faithfulness 0.100 → 1.000<br>" in text


def test_the_mark_is_the_first_line_and_depends_on_the_key() -> None:
    assert write_body(AFTER).splitlines()[0] == "<!-- rageval-spec: support-bot -->"
    assert write_body(AFTER, key="nightly").splitlines()[0] == "<!-- rageval-spec: nightly -->"
    assert write_body(AFTER, key="a --> b").splitlines()[0] == "<!-- rageval-spec: a-b -->"


@pytest.mark.parametrize("longest", [2_000, 5_000, LONGEST_COMMENT])
def test_a_large_evaluation_is_cut_by_section(longest: int) -> None:
    names = tuple(f"system {number} {'x' * 60}" for number in range(300))
    text = write_body(make_evaluation(systems=names), longest=longest)
    assert len(text) <= longest
    assert text.startswith("<!-- rageval-spec: support-bot -->\n## `support-bot`\n\n❌ **Not ready**:")
    assert "too long for a comment; see the results." in text
    assert "Versions and settings" in text


def test_a_thousand_broken_questions_fit() -> None:
    before = NamedResults("main", evaluate({f"q{number}": 1.0 for number in range(1000)}))
    text = write_body(evaluate({f"q{number}": 0.0 for number in range(1000)}), before)
    assert len(text) <= LONGEST_COMMENT
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
    assert text.index("v2 on golden: the endpoint is down") < text.index("| check |")
    assert "❌ **Incomplete**:" in text


EVALUATION = make_evaluation(metrics={"ndcg@10": (0.41234, 0.48765, 0.51239), "map": (0.3, 0.4, 0.5)})


def say(check: Check, evaluation: Evaluation = EVALUATION) -> list[str]:
    """The cells of a check's row as text."""
    cells = [check.name, *list_numbers(check.change, find_format(evaluation, check.change.metric))]
    spans = ([one] if isinstance(one, str | Span) else one for one in cells)
    return [" ".join(filter(None, (one if isinstance(one, str) else one.text for one in cell))) for cell in spans]


def test_gates_come_first_and_worst_first() -> None:
    checks = list_checks(EVALUATION, None)
    assert [one.is_gate for one in checks] == [True] * 3 + [False] * 3
    assert [say(one)[0][:1] for one in checks[:3]] == ["✗", "!", "✓"]
    assert say(checks[0])[0] == "✗ ndcg@10 · bm25 ≥ 0.45"
    assert say(checks[3])[0] == "map · bm25"


def test_without_a_baseline_the_base_is_the_first_system() -> None:
    hybrid = say(list_checks(EVALUATION, None)[2])
    assert hybrid[1:] == ["0.412 (bm25)", "0.512", "+0.100 ▲ better [0.068, 0.132]", "0.0246", "40", "23 / 12"]
    assert say(list_checks(EVALUATION, None)[0])[1:] == ["–", "0.412", "–", "", "40", ""]


def test_a_gate_on_another_system_keeps_its_comparison_beside_a_baseline() -> None:
    gate = replace(EVALUATION.gates[0], bound="drop from bm25 ≤ 0.02", gate=3, baseline="bm25")
    asked = replace(EVALUATION.comparisons[1], system="hybrid", baseline="bm25")
    evaluation = replace(EVALUATION, gates=(gate,), baselines=(asked,))
    (check, *_others) = list_checks(evaluation, NamedResults("main", EVALUATION))
    assert say(check)[1] == "0.412 (bm25)"


def test_the_base_of_a_gate_on_an_earlier_evaluation_is_its_number_on_the_compared_questions() -> None:
    asked = replace(EVALUATION.comparisons[1], system="bm25", baseline="main", baseline_mean=0.4567)
    evaluation = replace(EVALUATION, gates=(replace(EVALUATION.gates[0], baseline="main"),), baselines=(asked,))
    assert "0.457 (main)" in [say(check)[1] for check in list_checks(evaluation, None)]


def test_with_a_baseline_the_base_is_its_number() -> None:
    (check,) = list_checks(AFTER, BEFORE)
    assert [*say(check)[1:3], say(check)[5]] == ["0.750", "0.700", "4"]
    checks = list_checks(EVALUATION, NamedResults("main", make_evaluation(metrics={"ndcg@10": (0.4, 0.5, 0.6)})))
    assert [say(one)[1] for one in checks[3:]] == ["–"] * 3


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
    told = say(check)
    assert (told[2], told[1], told[3].split()[0], told[5]) == row
    assert "Difference: of the questions with a value in both" in write_body(
        head, NamedResults("main", evaluate(before))
    )


def test_datasets_and_slices_are_named_where_there_are_several() -> None:
    evaluation = make_evaluation(("golden", "other"), ("bm25",), {"map": (0.3,)})
    gate = replace(evaluation.gates[0], slice="level=easy")
    assert say(list_checks(replace(evaluation, gates=(gate,)), None)[0])[0] == "✓ map · golden · level=easy ≥ 0.45"


def test_a_share_is_shown_as_a_percentage() -> None:
    head = replace(AFTER, show_as={"faithfulness": "percent"})
    (check,) = list_checks(head, BEFORE)
    told = say(check, head)
    assert (told[2], told[1], told[3].split(" ∅")[0]) == ("70%", "75%", "−5 pp")
    assert "faithfulness 100% → 0%" in write_body(head, BEFORE)
