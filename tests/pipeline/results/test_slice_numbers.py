"""Slices from the spec to the results: numbers, comparisons, gates, gaps, samples and baselines."""

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
from tests.checked_specs import validate

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
