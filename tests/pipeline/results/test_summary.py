from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.diagnostics import SpecError
from rageval_spec.runner import Options, run
from rageval_spec.wording import format_p_value
from tests.checked_specs import validate


def test_a_gate_depends_neither_on_the_order_of_systems_nor_on_metrics_without_a_gate(tmp_path: Path) -> None:
    support = Path(__file__).parents[3] / "specs" / "data" / "support"
    runs = {name: {"use": "file", "path": str(support / "runs" / f"{name}.run")} for name in ("keyword", "rewrite")}
    gate = {"metric": "ndcg@10", "system": "keyword", "baseline": "rewrite", "max_drop": 0.02, "alpha": 0.05}

    def reason(order: list[str], metrics: list[str]) -> str:
        """The gate's outcome, after a check that the table shows the gate's p-value for any order of systems."""
        spec = {
            "version": 1,
            "datasets": {"support": {"use": "beir", "path": str(support)}},
            "systems": {name: runs[name] for name in order},
            "metrics": metrics,
            "gates": [gate],
        }
        path = tmp_path / "spec.yaml"
        path.write_text(json.dumps(spec))
        evaluation = run(path, Options(quiet=True, output=tmp_path / "out")).evaluation
        (outcome,) = evaluation.gates
        shown = evaluation.comparison("support", order[1], "ndcg@10")
        assert shown is not None
        assert f"(Holm-adjusted {format_p_value(shown.p_adjusted)})" in outcome.reason
        return f"{outcome.outcome}: {outcome.reason}"

    alone = reason(["keyword", "rewrite"], ["ndcg@10"])
    assert alone.startswith("fail")
    for order in (["keyword", "rewrite"], ["rewrite", "keyword"]):
        assert reason(order, ["ndcg@10", "rr", "recall@20"]) == alone


def test_two_gates_on_one_pair_show_the_p_value_of_the_reports(tmp_path: Path) -> None:
    support = Path(__file__).parents[3] / "specs" / "data" / "support"
    runs = {name: {"use": "file", "path": str(support / "runs" / f"{name}.run")} for name in ("keyword", "rewrite")}
    drop = {"max_drop": 0.02, "alpha": 0.05}
    metrics = ["ndcg@10", "rr", "recall@20"]
    spec = {
        "version": 1,
        "datasets": {"support": {"use": "beir", "path": str(support)}},
        "systems": runs,
        "metrics": metrics,
        "gates": [
            {"metric": "ndcg@10", "system": "keyword", "baseline": "rewrite", **drop},
            *({"metric": metric, "system": "rewrite", "baseline": "keyword", **drop} for metric in metrics),
        ],
        "reports": ["terminal", "markdown", "junit", "json"],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec))
    evaluation = run(path, Options(quiet=True, output=tmp_path / "out")).evaluation
    [shown] = [one for one in evaluation.every_comparison if one.metric == "ndcg@10"]
    told = f"Holm-adjusted {format_p_value(shown.p_adjusted)}"
    reasons = [gate.reason for gate in evaluation.gates if gate.metric == "ndcg@10"]
    assert len(reasons) == 2
    assert all(f"({told})" in reason for reason in reasons)
    assert {one.p_adjusted for one in evaluation.baselines if one.metric == "ndcg@10"} == {shown.p_adjusted}
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "| Holm-adjusted p |" in markdown
    assert f"| {told.rpartition(' ')[2]} |" in markdown


@pytest.mark.parametrize(
    ("keys", "expected"),
    [({}, {"q1": "One.", "q2": "Two."}), ({"redact": ["answer"]}, {}), ({"samples": "none"}, {})],
)
def test_answers_of_a_saved_baseline_are_at_hand_unless_the_spec_keeps_none(
    tmp_path: Path, keys: dict[str, Any], expected: dict[str, str]
) -> None:
    def evaluate(answers: dict[str, str], output: str, **changes: Any) -> Evaluation:
        rows = [{"query_id": query, "question": f"What is {query}?", "answer": answers[query], "reference": "One."}
                for query in answers]  # fmt: skip
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        spec = {
            "version": 1,
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"app": {"use": "file", "path": "rows.jsonl"}},
            "metrics": ["token_f1"],
        }
        (tmp_path / "spec.yaml").write_text(json.dumps(spec | changes), encoding="utf-8")
        return run(tmp_path / "spec.yaml", Options(quiet=True, output=tmp_path / output)).evaluation

    evaluate({"q1": "One.", "q2": "Two."}, "before")
    gates = [{"metric": "token_f1", "baseline": "before", "max_drop": 0.1}]
    now = evaluate({"q1": "Une.", "q2": "Two.", "q3": "Three."}, "now", gates=gates, **keys)
    assert dict(now.base_answers.select("query_id", "answer").iter_rows()) == expected
    assert set(now.base_answers["baseline"]) == ({"before"} if expected else set())


def test_a_metric_that_is_shown_in_another_way_stays_comparable_and_its_values_stay_fractions(tmp_path: Path) -> None:
    row = {"question": "What is red?", "answer": "An apple is red.", "reference": "An apple."}
    rows = [{"query_id": f"q{at}", **row} for at in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    spec: dict[str, Any] = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"app": {"use": "file", "path": "rows.jsonl"}},
        "metrics": [{"use": "token_f1"}],
    }
    evaluations = []
    for output, changes in (
        ("before", {}),
        (
            "now",
            {
                "metrics": [{"use": "token_f1", "show_as": "percent"}],
                "gates": [{"metric": "token_f1", "baseline": "before"}],
            },
        ),
    ):
        (tmp_path / "spec.yaml").write_text(json.dumps(spec | changes), encoding="utf-8")
        evaluations.append(run(tmp_path / "spec.yaml", Options(quiet=True, output=tmp_path / output)).evaluation)
    before, now = evaluations
    assert now.show_as == {"token_f1": "percent"}
    assert now.values.equals(before.values)
    assert [one.changes for one in now.baselines] == [()]
    stored = json.loads((tmp_path / "now" / "results.json").read_bytes())
    assert stored["show_as"] == {"token_f1": "percent"}
    assert stored["aggregates"][0]["mean"] == before.aggregates[0].mean
    assert "show_as" not in json.loads((tmp_path / "before" / "results.json").read_bytes())


HARD = range(12)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_spec(folder: Path, wrong: Callable[[int], bool] = lambda n: n in HARD and n != 5, **sections: Any) -> Path:
    """40 questions, 12 of them hard. The system `old` errs on every fifth; `new` where `wrong` says so."""
    questions = [
        {"id": f"q{n:02}", "question": f"number {n}?", "reference": str(n), "level": "hard" if n in HARD else "easy"}
        for n in range(40)
    ]
    write_lines(folder / "golden.jsonl", questions)
    for name, errs in (("old", lambda n: n % 5 == 0), ("new", wrong)):
        answers = [{"query_id": f"q{n:02}", "answer": "no" if errs(n) else str(n)} for n in range(40)]
        write_lines(folder / f"{name}.jsonl", answers)
    spec: dict[str, Any] = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {name: {"use": "file", "path": f"{name}.jsonl"} for name in ("old", "new")},
        "metrics": ["exact_match"],
        "slices": ["level", {"name": "small", "where": {"column": "question", "contains": "number 1"}}],
        "reports": ["json"],
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec | sections))
    return path


def evaluate(folder: Path, save_as: str | None = None, **sections: Any) -> Evaluation:
    path = write_spec(folder, **sections)
    return run(path, Options(output=folder / "out", no_store=True, save_as=save_as)).evaluation


def test_every_slice_has_counts_intervals_and_comparisons(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path)
    assert [(one.name, one.by, one.description, one.queries) for one in evaluation.slices] == [
        ("level=easy", "level", "level is easy", 28),
        ("level=hard", "level", "level is hard", 12),
        ("small", None, "question contains 'number 1'", 11),
    ]
    hard = evaluation.aggregate("golden", "new", "exact_match", "level=hard")
    assert hard is not None and hard.interval is not None
    assert hard.mean == pytest.approx(1 / 12)
    assert (hard.scored, hard.total, hard.slice) == (12, 12, "level=hard")
    compared = evaluation.comparison("golden", "new", "exact_match", "level=hard")
    assert compared is not None
    assert (compared.baseline, compared.queries) == ("old", 12)
    assert compared.difference == pytest.approx(1 / 12 - 9 / 12)


def test_the_comparisons_of_slices_are_a_family_of_their_own(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path)
    (whole,) = evaluation.comparisons
    assert whole.p_adjusted == whole.p_value
    tests = [comparison for one in evaluation.slices for comparison in one.comparisons]
    assert len(tests) == 3
    strongest = min(tests, key=lambda comparison: comparison.p_value)
    assert strongest.p_adjusted == pytest.approx(min(1, 3 * strongest.p_value))


def test_the_slice_that_is_worse_is_named_and_the_rest_is_not(tmp_path: Path) -> None:
    (gap,) = evaluate(tmp_path).weakest
    assert (gap.system, gap.metric, gap.slice, gap.queries) == ("new", "exact_match", "level=hard", 12)
    assert gap.mean == pytest.approx(1 / 12)
    assert gap.rest == 1.0


def test_no_slice_is_named_where_all_are_alike(tmp_path: Path) -> None:
    assert evaluate(tmp_path, wrong=lambda n: n % 4 == 0).weakest == ()


def test_samples_say_which_slices_they_are_in(tmp_path: Path) -> None:
    samples = evaluate(tmp_path).samples.filter(pl.col("system") == "new")
    slices = dict(samples.select("query_id", "slices").iter_rows())
    assert (slices["q01"], slices["q12"]) == (["level=hard", "small"], ["level=easy", "small"])


def test_results_have_the_slices(tmp_path: Path) -> None:
    evaluate(tmp_path)
    results = json.loads((tmp_path / "out" / "results.json").read_bytes())
    assert [one["name"] for one in results["slices"]] == ["level=easy", "level=hard", "small"]
    assert [one["slice"] for one in results["weakest"]] == ["level=hard"]


def outcomes(evaluation: Evaluation) -> list[tuple[str, str | None, str, str]]:
    return [(gate.system, gate.slice, gate.outcome, gate.reason) for gate in evaluation.gates]


def test_a_gate_looks_at_one_slice(tmp_path: Path) -> None:
    gate = {"metric": "exact_match", "system": "new", "slice": "level=hard", "min": 0.5}
    ((_, slice, outcome, reason),) = outcomes(evaluate(tmp_path, gates=[gate]))
    assert (slice, outcome) == ("level=hard", "fail")
    assert reason.startswith("exact_match of new in the slice level=hard is 0.08")


def test_a_gate_on_a_column_looks_at_each_of_its_slices(tmp_path: Path) -> None:
    gate = {"metric": "exact_match", "system": "new", "slice": "level", "min": 0.5}
    found = outcomes(evaluate(tmp_path, gates=[gate]))
    assert [(slice, outcome) for _, slice, outcome, _ in found] == [("level=easy", "pass"), ("level=hard", "fail")]


def test_a_gate_on_a_slice_without_queries_fails_and_lists_the_others(tmp_path: Path) -> None:
    gate = {"metric": "exact_match", "system": "new", "slice": "level=medium", "min": 0.5}
    ((_, slice, outcome, reason),) = outcomes(evaluate(tmp_path, gates=[gate]))
    assert (slice, outcome) == ("level=medium", "fail")
    assert reason == (
        "the evaluation has no slice level=medium, so the gate on exact_match could not be checked; "
        "the slices by 'level' are level=easy, level=hard"
    )


def test_a_gate_compares_with_a_system_on_the_slice(tmp_path: Path) -> None:
    gates = [
        {"metric": "exact_match", "baseline": "old", "slice": "level=hard", "max_drop": 0.1},
        {"metric": "exact_match", "baseline": "old", "max_drop": 0.5},
    ]
    evaluation = evaluate(tmp_path, gates=gates)
    (_, slice, outcome, reason), (_, _, other, _) = outcomes(evaluation)
    assert (slice, outcome, other) == ("level=hard", "fail", "pass")
    assert "exact_match of new in the slice level=hard is 0.667 below old" in reason
    assert "on 12 shared queries" in reason
    shown = evaluation.comparison("golden", "new", "exact_match", "level=hard")
    assert shown is not None and shown.p_adjusted == shown.p_value


def test_a_gate_compares_with_an_earlier_evaluation_on_the_slice(tmp_path: Path) -> None:
    evaluate(tmp_path, save_as="main", slices=[], wrong=lambda n: False)
    gate = {"metric": "exact_match", "system": "new", "baseline": "main", "slice": "level", "max_drop": 0.1}
    found = outcomes(evaluate(tmp_path, gates=[gate]))
    assert [(slice, outcome) for _, slice, outcome, _ in found] == [("level=easy", "pass"), ("level=hard", "fail")]
    assert "in the slice level=hard is 0.917 below main on 12 shared queries" in found[1][3]


def test_slices_change_no_other_number(tmp_path: Path) -> None:
    with_slices, without = evaluate(tmp_path), evaluate(tmp_path, slices=[])
    assert with_slices.aggregates == without.aggregates
    assert with_slices.comparisons == without.comparisons
    assert (without.slices, without.weakest) == ((), ())


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first = evaluate(tmp_path)
    before = (tmp_path / "out" / "results.json").read_bytes()
    second = evaluate(tmp_path)
    assert (tmp_path / "out" / "results.json").read_bytes() == before
    assert first.weakest == second.weakest


@pytest.mark.parametrize(
    ("slices", "line", "message"),
    [
        (["levle"], "levle", "the questions of 'golden' have no column 'levle'; did you mean 'level'?"),
        ([{"by": "xyz"}], "xyz", "the questions of 'golden' have no column 'xyz'; the columns are 'level'"),
        (
            [{"name": "n", "where": [{"column": "level", "equal": "a"}, {"column": "hops", "min": 2}]}],
            "hops",
            "the questions of 'golden' have no column 'hops'; the columns are 'level'",
        ),
        ([{"by": "answerabel"}], "answerabel", "did you mean 'answerable'?"),
    ],
)
def test_a_column_that_the_file_lacks_is_found_before_anything_runs(
    tmp_path: Path, slices: list[Any], line: str, message: str
) -> None:
    path = write_spec(tmp_path, slices=slices)
    with pytest.raises(SpecError) as caught:
        validate(path)
    (found,) = caught.value.diagnostics
    assert message in str(found)
    assert found.source_line[found.position.column - 1 :].startswith(f'"{line}"')


def test_a_column_of_one_dataset_is_enough(tmp_path: Path) -> None:
    write_lines(tmp_path / "other.jsonl", [{"id": "q1", "question": "a?", "reference": "x"}])
    datasets = {name: {"use": "jsonl", "path": f"{name}.jsonl"} for name in ("golden", "other")}
    validate(write_spec(tmp_path, datasets=datasets))
    with pytest.raises(SpecError, match="no dataset has a column 'levle'; did you mean 'level'"):
        validate(write_spec(tmp_path, datasets=datasets, slices=["levle"]))
