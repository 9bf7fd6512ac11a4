"""Answers through the whole pipeline: from the spec to values, notes, gates and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry, runner
from rageval_spec.diagnostics import SpecError
from rageval_spec.plugin import JudgeNode
from rageval_spec.runner import Options, RunOutcome
from tests.answering import BRIEF, Brevity, BriefJudge, Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]
ANSWERS = {"q1": "red apple pie", "q2": "fail", "q3": "", "q4": {"error": "timed out"}}


@pytest.fixture(autouse=True)
def words(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("systems", "canned", Canned)
    install("judges", "briefly", BriefJudge)
    install("metrics", "brevity", Brevity)
    Canned.asked.clear()
    BriefJudge.told.clear()


def evaluate(folder: Path, options: Options | None = None, **sections: Any) -> RunOutcome:
    base: dict[str, Any] = {
        "systems": {"bot": {"use": "canned", "answers": ANSWERS}},
        "metrics": [{"use": "brevity", "judge": "briefly"}],
    }
    return runner.run(write_spec(folder, **{**base, **sections}), options or Options(output=folder / "out"))


def cells(outcome: RunOutcome) -> dict[tuple[str, str], tuple[Any, int, int]]:
    return {(a.system, a.metric): (a.mean, a.scored, a.total) for a in outcome.evaluation.aggregates}


def test_answers_get_values_and_queries_without_a_value_get_a_reason(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path)
    assert cells(outcome) == {("bot", "brevity"): (pytest.approx(1 / 3), 1, 4)}
    values = outcome.evaluation.values.select("query_id", "status", "reason", "details").rows()
    assert values == [
        ("q1", "scored", None, '{"claims":["red apple pie"]}'),
        ("q2", "error", "the reply is no JSON", '{"raw":"{"}'),
        ("q3", "unscorable", "empty", None),
        ("q4", "error", "timed out", None),
    ]
    assert {note.code for note in outcome.evaluation.notes} >= {"unanswered", "failed_queries"}
    assert BriefJudge.told == [BRIEF]
    assert Canned.asked == ["q1", "q2", "q3", "q4"]


def test_a_limit_stops_the_metric_with_its_reason_and_exit_code_3(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path, systems={"bot": {"use": "canned", "answers": {"q1": "stop"}}}, metrics=[
        {"use": "brevity", "judge": "briefly"}, "rr"
    ])  # fmt: skip
    assert outcome.exit_code == 4
    assert str(outcome.failures[0]).startswith("brevity of bot on fruit: limits.max_calls")


def test_contexts_with_ids_are_a_ranking_too(tmp_path: Path) -> None:
    answers = {"q1": {"answer": "apple", "contexts": ["a", "b"], "context_ids": ["d6", "d1"]}}
    outcome = evaluate(tmp_path, systems={"bot": {"use": "canned", "answers": answers}}, metrics=["rr", "num_ret"])
    assert cells(outcome)["bot", "rr"] == (pytest.approx(0.5 / 4), 4, 4)
    assert cells(outcome)["bot", "num_ret"][0] == 2


def test_metrics_that_a_system_cannot_have_are_excluded_with_a_note(tmp_path: Path) -> None:
    systems = {"good": {"use": "file", "path": "data/good.run"}, "bot": {"use": "canned", "answers": ANSWERS}}
    metrics = ["rr", {"use": "brevity", "judge": "briefly"}]
    outcome = evaluate(tmp_path, systems=systems, metrics=metrics, gates=[{"metric": "rr", "min": 0.1}])
    assert set(cells(outcome)) == {("good", "rr"), ("bot", "brevity")}
    assert outcome.exit_code == 0
    assert "no_ranking" in {note.code for note in outcome.evaluation.notes}
    assert b"brevity" in outcome.shown[0]


def test_answers_are_compared_with_the_first_system_that_answers(tmp_path: Path) -> None:
    short, long = ({f"q{n}": words for n in range(1, 5)} for words in ("one", "one two"))
    systems = {
        "good": {"use": "file", "path": "data/good.run"},
        "brief": {"use": "canned", "answers": short},
        "wordy": {"use": "canned", "answers": long},
    }
    outcome = evaluate(tmp_path, systems=systems, metrics=["rr", {"use": "brevity", "judge": "briefly"}])
    (comparison,) = outcome.evaluation.comparisons
    assert (comparison.metric, comparison.system, comparison.baseline) == ("brevity", "wordy", "brief")
    assert comparison.difference == -0.5
    assert "too_few_pairs" not in {note.code for note in outcome.evaluation.notes}
    assert "no difference from brief is significant" in outcome.shown[0].decode()


def test_a_system_that_answers_nothing_is_broken_and_the_others_are_complete(tmp_path: Path) -> None:
    broken = {f"q{n}": {"error": "connection refused"} for n in range(1, 5)}
    systems = {"bot": {"use": "canned", "answers": ANSWERS}, "down": {"use": "canned", "answers": broken}}
    outcome = evaluate(tmp_path, systems=systems)
    assert outcome.exit_code == 3
    assert str(outcome.failures[0]) == "down on fruit: none of 4 queries got an answer; the first: connection refused"
    assert cells(outcome)["bot", "brevity"][1:] == (1, 4)
    assert "too_few_pairs" not in {note.code for note in outcome.evaluation.notes}


def test_the_failure_rate_of_a_system_that_always_fails_is_known(tmp_path: Path) -> None:
    broken = {f"q{n}": {"error": "timed out", "context_ids": ["d1"]} for n in range(1, 5)}
    metrics = ["error_rate", "latency", "tokens", "cost", "rr"]
    gates = [{"metric": "error_rate", "max": 0.1}]
    outcome = evaluate(tmp_path, systems={"down": {"use": "canned", "answers": broken}}, metrics=metrics, gates=gates)
    found = cells(outcome)
    assert found.pop(("down", "error_rate")) == (1.0, 4, 4)
    assert set(found.values()) == {(None, 0, 4)}
    assert outcome.evaluation.gates[0].reason == "error_rate of down is 1.000, above the maximum 0.100"
    assert outcome.exit_code == 3


def test_a_dataset_without_judgements_is_enough_for_answers(tmp_path: Path) -> None:
    (tmp_path / "asked.jsonl").write_text('{"id": "q1", "question": "red?"}\n{"id": "q2", "question": "green?"}\n')
    datasets = {"asked": {"use": "jsonl", "path": "asked.jsonl"}}
    outcome = evaluate(tmp_path, datasets=datasets, systems={"bot": {"use": "canned", "answers": {"q1": "yes"}}})
    assert cells(outcome) == {("bot", "brevity"): (1.0, 1, 2)}


def test_limit_asks_only_the_first_queries(tmp_path: Path) -> None:
    evaluate(tmp_path, Options(output=tmp_path, limit=2))
    assert Canned.asked == ["q1", "q2"]


def test_with_a_limit_answers_to_other_queries_are_not_noted(tmp_path: Path) -> None:
    rows = [f'{{"query_id": "q{number}", "answer": "red"}}' for number in range(1, 6)]
    (tmp_path / "answers.jsonl").write_text("\n".join(rows))
    systems = {"bot": {"use": "file", "path": "answers.jsonl"}}

    def codes(limit: int | None) -> set[str]:
        found = evaluate(tmp_path, Options(output=tmp_path, limit=limit), systems=systems)
        return {note.code for note in found.evaluation.notes}

    assert "unknown_queries" in codes(None) and "unknown_queries" not in codes(2)


def test_metrics_of_answers_need_a_system_that_answers(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        evaluate(tmp_path, systems={"b": {"use": "bm25"}})
    assert "brevity is a metric of answers, but no system of this spec answers" in str(caught.value)


def test_a_fault_between_blocks_has_a_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BriefJudge, "abilities", frozenset({"support"}))
    with pytest.raises(SpecError) as caught:
        evaluate(tmp_path)
    (fault,) = caught.value.diagnostics
    assert fault.message == "the judge 'briefly' gives no grades"
    assert (tmp_path / "spec.yaml").read_text().splitlines()[fault.position.line - 1] == "- use: brevity"


def test_a_judge_without_keys_need_not_be_declared(tmp_path: Path) -> None:
    assert registry.load("judges", "briefly").node_type is JudgeNode
    assert evaluate(tmp_path).exit_code == evaluate(tmp_path, judges={"briefly": {"use": "briefly"}}).exit_code


def test_a_plan_shows_what_would_be_asked_and_makes_no_calls(tmp_path: Path) -> None:
    evaluate(tmp_path)
    Canned.asked.clear()
    planned = runner.plan(tmp_path / "spec.yaml")
    assert planned.expectation.questions == {"bot": 3}
    assert Canned.asked == []
    assert "bot  3 questions" in planned.render()


def test_a_metric_is_broken_if_most_of_its_queries_fail(tmp_path: Path) -> None:
    answers = {"q1": "fine", "q2": "fail", "q3": "fail", "q4": "fail"}
    outcome = evaluate(tmp_path, systems={"bot": {"use": "canned", "answers": answers}})
    assert outcome.exit_code == 3
    expected = "brevity of bot on fruit: 3 of 4 queries failed; the first: "
    (failure,) = outcome.failures
    assert str(failure).startswith(expected)
    assert cells(outcome)["bot", "brevity"] == (1.0, 1, 4)


def test_a_part_that_all_queries_lack_is_named_with_its_key(tmp_path: Path) -> None:
    systems = {"bot": {"use": "canned", "answers": dict.fromkeys(("q1", "q2", "q3", "q4"), "yes")}}
    metric = {"use": "brevity", "judge": "briefly", "needs_reference": True}
    with pytest.raises(SpecError) as raised:
        evaluate(tmp_path, systems=systems, metrics=[metric, "error_rate"])
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.message == "brevity needs a gold answer, and no question of 'fruit' has one"
    assert diagnostic.hint == "name the column in 'datasets.fruit.columns.reference', or remove the metric"


def test_queries_that_cannot_have_a_value_do_not_fail_a_gate(tmp_path: Path) -> None:
    answers = {"q1": "yes", "q2": "", "q3": "", "q4": ""}
    gates = [{"metric": "brevity", "min": 0.5}]
    outcome = evaluate(tmp_path, systems={"bot": {"use": "canned", "answers": answers}}, gates=gates)
    assert (outcome.exit_code, outcome.evaluation.aggregates[0].excused) == (0, 3)
    answers["q2"] = "fail"
    outcome = evaluate(tmp_path, systems={"bot": {"use": "canned", "answers": answers}}, gates=gates)
    assert outcome.evaluation.gates[0].reason == (
        "only 1 of 4 queries could be scored for brevity of bot (50% of the 2 that can have a value); "
        "the gate requires 90% (min_scored)"
    )


def faithful(folder: Path, answers: dict[str, Any], **sections: Any) -> RunOutcome:
    return evaluate(
        folder,
        systems={"bot": {"use": "canned", "answers": answers}},
        judges={"words": {"use": "overlap"}},
        metrics=[{"use": "faithfulness", "judge": "words"}, {"use": "context_relevance", "judge": "words"}],
        **sections,
    )


def test_a_system_that_refuses_most_questions_does_not_just_pass(tmp_path: Path) -> None:
    refusal = {"answer": "I don't know.", "contexts": ["An apple is red."]}
    answers = {"q1": {"answer": "An apple is red.", "contexts": ["An apple is red."]}}
    answers |= dict.fromkeys(("q2", "q3", "q4"), refusal)
    outcome = faithful(tmp_path, answers, gates=[{"metric": "faithfulness", "min": 0.9}])
    assert cells(outcome)["bot", "faithfulness"] == (1.0, 1, 4)
    [gate] = outcome.evaluation.gates
    assert (gate.outcome, outcome.exit_code) == ("warn", 0)
    assert gate.reason.startswith("faithfulness of bot is 1.000, but only 1 of 4 queries could be scored (25%)")
    assert "warning fruit, bot, faithfulness: only 1 of 4 queries could be scored" in outcome.shown[0].decode()


def test_contexts_that_are_empty_in_every_answer_give_one_warning(tmp_path: Path) -> None:
    outcome = faithful(tmp_path, {f"q{n}": {"answer": "An apple is red.", "contexts": []} for n in range(1, 5)})
    text = outcome.shown[0].decode()
    assert text.count("the contexts of all 4 answers are empty") == 1
    assert "warning fruit, bot: the contexts of all 4 answers are empty" in text


@pytest.mark.parametrize(
    ("answer", "reference"), [("k l m n o", "k l m"), ("k l m", "k l m n o"), ("k l m x", "k l m y")]
)
@pytest.mark.parametrize("stopping", [None, {"when": "decided", "first": 2, "batch": 1}])
def test_answers_that_are_all_exactly_at_the_bound_pass(
    tmp_path: Path, answer: str, reference: str, stopping: dict[str, Any] | None
) -> None:
    rows = [{"id": f"q{n}", "question": f"what is {n}?", "reference": reference} for n in range(12)]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    more: dict[str, Any] = {} if stopping is None else {"stopping": stopping}
    outcome = evaluate(
        tmp_path,
        datasets={"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        systems={"bot": {"use": "canned", "answers": {row["id"]: answer for row in rows}}},
        metrics=["token_f1", "rouge_l"],
        gates=[{"metric": metric, key: 0.75} for metric in ("token_f1", "rouge_l") for key in ("min", "max")],
        bands={"token_f1": {"fair": 0.75}},
        **more,
    )
    assert [one.outcome for one in outcome.evaluation.gates] == ["pass"] * 4
    assert {cell.mean for cell in outcome.evaluation.aggregates} == {0.75}
    assert outcome.evaluation.bands["token_f1"].find(0.75).word == "fair"


def test_three_costs_of_a_tenth_are_a_tenth_on_average(tmp_path: Path) -> None:
    answers = {name: {"answer": "apple", "cost": 0.1} for name in ("q1", "q2", "q3")}
    gates = [{"metric": "cost", "max": 0.1, "min_scored": 0.5}]
    outcome = evaluate(tmp_path, systems={"bot": {"use": "canned", "answers": answers}}, metrics=["cost"], gates=gates)
    assert [(one.outcome, one.observed) for one in outcome.evaluation.gates] == [("pass", 0.1)]
