"""Clusters and weights from the spec to numbers, gates, baselines and errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.diagnostics import SpecError
from rageval_spec.history.saved_evaluations import load_record
from rageval_spec.runner import Options, run
from tests.checked_specs import validate
from tests.command_line import invoke

QUESTIONS: list[dict[str, Any]] = [
    {"kind": "easy", "source": "a", "traffic": 5},
    {"kind": "easy", "source": "a", "traffic": 1},
    {"kind": "easy", "source": "b", "traffic": 1},
    {"kind": "easy", "source": "b", "traffic": 1},
    {"kind": "hard", "source": "c", "traffic": 1},
    {"kind": "hard", "source": "c", "traffic": 1},
]
RIGHT = (1, 1, 1, 0, 0, 1)


def write(
    folder: Path,
    questions: Sequence[Mapping[str, Any]] = QUESTIONS,
    right: Mapping[str, Sequence[int]] | None = None,
    mix: str = "kind,share\neasy,0.2\nhard,0.8\n",
    **sections: Any,
) -> Path:
    """A spec whose systems answer a question rightly (1) or wrongly (0)."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"query_id": f"q{at}", "question": "?", "reference": "yes", **row} for at, row in enumerate(questions)]
    (folder / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "mix.csv").write_text(mix)
    systems = right or {"bot": RIGHT}
    for name, values in systems.items():
        answers = [{"query_id": f"q{at}", "answer": "yes" if value else "no"} for at, value in enumerate(values)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    content = {
        "version": 1,
        "name": "design",
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {name: {"use": "file", "path": f"{name}.jsonl"} for name in systems},
        "metrics": ["token_f1"],
        "statistics": {"resamples": 200, "permutations": 200},
        "reports": ["json"],
        "history": "none",
        **sections,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(content, indent=1))
    return path


def evaluate(folder: Path, *, save_as: str | None = None, limit: int | None = None, **parts: Any) -> Evaluation:
    options = Options(output=folder / "out", save_as=save_as, limit=limit)
    return run(write(folder, **parts), options).evaluation


def faults(folder: Path, **parts: Any) -> str:
    with pytest.raises(SpecError) as caught:
        evaluate(folder, **parts)
    return str(caught.value).replace(f"{folder}/", "")


def notes(evaluation: Evaluation) -> dict[str, str]:
    return {note.code: note.message for note in evaluation.notes}


def test_clusters_reach_intervals_and_are_described(tmp_path: Path) -> None:
    found = evaluate(tmp_path, cluster="source")
    plain = evaluate(tmp_path / "plain")
    assert found.aggregates[0].mean == plain.aggregates[0].mean
    assert found.aggregates[0].interval != plain.aggregates[0].interval
    summary = found.designs["golden"]
    assert (summary.questions, summary.cluster, summary.clusters, summary.is_weighted) == (6, "source", 3, False)
    assert found.provenance.spec["cluster"] == {"golden": "source"}


def test_a_mix_of_production_reweights_the_mean(tmp_path: Path) -> None:
    cell = evaluate(tmp_path, weights="mix.csv").aggregates[0]
    assert cell.mean == pytest.approx(0.2 * 0.75 + 0.8 * 0.5)
    assert cell.design is not None and cell.design.plain == pytest.approx(4 / 6)
    summary = evaluate(tmp_path, weights="mix.csv").designs["golden"]
    assert [(one.name, one.questions) for one in summary.strata] == [("kind=easy", 4), ("kind=hard", 2)]
    assert [one.share for one in summary.strata] == pytest.approx([0.2, 0.8])


def test_a_column_of_weights(tmp_path: Path) -> None:
    cell = evaluate(tmp_path, weight="traffic").aggregates[0]
    assert cell.mean == pytest.approx((5 + 1 + 1 + 1) / 10)


def test_a_mix_can_name_slices(tmp_path: Path) -> None:
    slices = [
        {"name": "few", "where": {"column": "traffic", "max": 1}},
        {"name": "many", "where": {"column": "traffic", "min": 2}},
    ]
    mix = "slice,share\nfew,0.5\nmany,0.5\n"
    assert evaluate(tmp_path, mix=mix, slices=slices, weights="mix.csv").aggregates[0].mean == pytest.approx(
        0.5 * 3 / 5 + 0.5
    )


def test_gates_look_at_the_weighted_mean(tmp_path: Path) -> None:
    gates = [{"metric": "token_f1", "min": 0.6}]
    assert [one.outcome for one in evaluate(tmp_path, gates=gates).gates] == ["pass"]
    [gate] = evaluate(tmp_path, gates=gates, weights="mix.csv").gates
    assert gate.outcome == "fail"
    assert gate.observed == pytest.approx(0.55)


def test_a_gate_on_a_single_cluster_has_no_interval(tmp_path: Path) -> None:
    one = [{**row, "source": "a"} for row in QUESTIONS]
    found = evaluate(
        tmp_path, questions=one, cluster="source", gates=[{"metric": "token_f1", "min": 0.1, "on": "lower"}]
    )
    assert found.aggregates[0].interval is None
    assert found.gates[0].outcome == "inconclusive"
    assert "and all belong to one cluster" in found.gates[0].reason
    assert "all questions belong to one cluster ('source')" in notes(found)["one_cluster"]


def test_questions_without_a_cluster_are_counted(tmp_path: Path) -> None:
    rows = [*QUESTIONS[:4], {"kind": "hard"}, {"kind": "hard", "source": ""}]
    found = evaluate(tmp_path, questions=rows, cluster="source")
    assert notes(found)["no_cluster"] == "2 of 6 questions have no value in 'source'; each counts as its own"
    assert found.designs["golden"].clusters == 4


def test_a_question_on_two_sources_joins_them(tmp_path: Path) -> None:
    rows = [*QUESTIONS[:5], {"kind": "hard", "source": ["a", "b"]}]
    assert evaluate(tmp_path, questions=rows, cluster="source").designs["golden"].clusters == 2


def test_a_cluster_column_that_no_question_has(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"the questions of 'golden' have no column 'sorce'; did you mean 'source'\?"):
        validate(write(tmp_path, cluster="sorce"))


def test_a_kind_of_production_without_questions_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    found = faults(tmp_path, mix="kind,share\neasy,0.6\nhrad,0.4\n", weights="mix.csv")
    assert found.startswith(
        "mix.csv:3:1: no question of 'golden' is kind=hrad, which is 40% of production; did you mean 'kind=hard'?"
        " [wrong-weights]\n"
        "  hrad,0.4\n  ^^^^"
    )
    assert not (tmp_path / "out").exists()


def test_with_a_limit_missing_kinds_are_a_warning(tmp_path: Path) -> None:
    found = evaluate(tmp_path, limit=3, weights="mix.csv")
    assert (
        notes(found)["missing_kinds"] == "no evaluated question is kind=hard: 80% of production; means are of the rest"
    )
    assert found.aggregates[0].mean == 1


def test_questions_that_production_does_not_have_do_not_count(tmp_path: Path) -> None:
    found = evaluate(tmp_path, mix="kind,share\nhard,1\n", weights="mix.csv", slices=["kind"])
    assert found.aggregates[0].mean == pytest.approx(0.5)
    assert notes(found)["unlisted"] == (
        "4 of 6 questions are of a kind that mix.csv does not list, so they do not count in means"
    )
    easy = found.aggregate("golden", "bot", "token_f1", "kind=easy")
    assert easy is not None and easy.mean == pytest.approx(0.75)


def test_shares_that_do_not_add_up_are_divided_and_told(tmp_path: Path) -> None:
    found = evaluate(tmp_path, mix="kind,share\neasy,0.1\nhard,0.4\n", weights="mix.csv")
    assert found.aggregates[0].mean == pytest.approx(0.55)
    assert notes(found)["shares_scaled"] == "the shares in mix.csv add up to 0.5; they are divided by that"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("kind", "no question of 'golden' has a weight in 'kind'"),
        (
            "part",
            "2 questions, q1, q2, of 'golden' have no weight in 'part'; a weight is a number that is not negative",
        ),
        ("none", "every question of 'golden' has the weight 0 in 'none'"),
    ],
)
def test_wrong_weights_are_an_error(tmp_path: Path, column: str, message: str) -> None:
    parts = [1, -1, "x", 2, 0, 3]
    rows = [{**row, "part": part, "none": 0} for row, part in zip(QUESTIONS, parts, strict=True)]
    found = faults(tmp_path, questions=rows, weight=column)
    assert found.startswith("spec.yaml:")
    assert message in found


def test_a_question_in_two_rows_is_an_error(tmp_path: Path) -> None:
    rows = [{**QUESTIONS[0], "kind": ["easy", "hard"]}, *QUESTIONS[1:]]
    found = faults(tmp_path, questions=rows, weights="mix.csv")
    assert "the question q0 of 'golden' belongs to several rows of mix.csv" in found


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ("knd,share\neasy,1\n", "mix.csv:1:1: the questions of 'golden' have no column 'knd'; did you mean 'kind'?"),
        ("slice,share\neasy,1\n", "mix.csv:1:1: the column 'slice' names slices, but the spec has no 'slices:'"),
        ("dataset,kind,share\ngoldn,easy,1\n", "mix.csv:2:1: the spec has no dataset 'goldn'; did you mean 'golden'?"),
        ("kind,share\neasy,x\n", "mix.csv:2:6: 'x' is not a share"),
    ],
)
def test_validate_checks_the_mix(tmp_path: Path, mix: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        validate(write(tmp_path, mix=mix, weights="mix.csv"))
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)


def test_systems_are_compared_cluster_by_cluster_with_weights(tmp_path: Path) -> None:
    right = {"bot": RIGHT, "other": (1, 1, 1, 1, 1, 1)}
    found = evaluate(tmp_path, right=right, cluster="source", weights="mix.csv")
    [comparison] = found.comparisons
    assert comparison.difference == pytest.approx(0.45)
    assert comparison.p_value == 0.5  # two of three clusters differ, both to the better
    assert comparison.design is not None
    assert comparison.design.clusters == 3
    assert comparison.design.plain == pytest.approx(1 / 3)


def test_a_baseline_is_compared_with_the_weights_of_today(tmp_path: Path) -> None:
    evaluate(tmp_path, save_as="main")
    gates = [{"metric": "token_f1", "baseline": "main", "max_drop": 0.3}]
    right = {"bot": (1, 1, 1, 1, 0, 0)}
    found = evaluate(tmp_path, right=right, gates=gates, weights="mix.csv")
    [comparison] = found.baselines
    assert comparison.difference == pytest.approx(0.2 * 0.25 - 0.8 * 0.5)
    assert found.gates[0].outcome == "fail"
    assert notes(found)["other_weights"] == (
        "main was weighted in another way (no weights, now mix.csv); "
        "comparisons weight both sides as this evaluation does"
    )


def test_a_saved_evaluation_keeps_its_clusters_and_weights(tmp_path: Path) -> None:
    found = evaluate(tmp_path, cluster="source", weights="mix.csv")
    kept = load_record(tmp_path / "out").evaluation
    assert kept.question_designs == found.question_designs
    assert (kept.designs, kept.aggregates, kept.comparisons) == (found.designs, found.aggregates, found.comparisons)


def test_the_same_spec_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name, threads in (("one", 1), ("two", 3)):
        limits = {"threads": threads}
        evaluate(tmp_path / name, cluster="source", weights="mix.csv", slices=["kind"], limits=limits)
        contents.append((tmp_path / name / "out" / "results.json").read_bytes())
    assert contents[0] == contents[1]


def test_results_without_a_design_have_no_key_of_one(tmp_path: Path) -> None:
    evaluate(tmp_path, slices=["kind"], right={"bot": RIGHT, "other": RIGHT})
    text = (tmp_path / "out" / "results.json").read_text()
    assert "design" not in text.replace('"name": "design"', "")
    assert "cluster" not in text and '"weight' not in text


def test_a_gate_says_that_its_number_is_weighted(tmp_path: Path) -> None:
    found = evaluate(tmp_path, weights="mix.csv", gates=[{"metric": "token_f1", "min": 0.6}])
    assert found.gates[0].reason == (
        "token_f1 of bot is 0.550, below the minimum 0.600; weighted (if all questions count the same, the mean is "
        "0.667)"
    )


def test_a_gate_on_a_slice_in_which_all_questions_weigh_the_same_says_nothing_of_weights(tmp_path: Path) -> None:
    gates = [{"metric": "token_f1", "slice": "kind=hard", "max": 1.0}]
    found = evaluate(tmp_path, weights="mix.csv", slices=["kind"], gates=gates)
    assert "weighted" not in found.gates[0].reason and "in the slice kind=hard is" in found.gates[0].reason


def test_a_gate_on_another_number_says_that_the_plain_one_is_the_mean(tmp_path: Path) -> None:
    evaluate(tmp_path, save_as="main", weights="mix.csv")
    gates = [{"metric": "token_f1", "baseline": "main", "max_drop": 0.3}]
    found = evaluate(tmp_path, weights="mix.csv", gates=gates)
    assert found.gates[0].reason.endswith("; weighted (if all questions count the same, the mean is 0.667)")


def test_a_gate_warns_if_no_question_of_a_kind_could_be_scored(tmp_path: Path) -> None:
    rows = [{**row, "reference": None if row["kind"] == "hard" else "yes"} for row in QUESTIONS]
    gates = [{"metric": "token_f1", "min": 0.1, "min_scored": 0.5}]
    found = evaluate(tmp_path, questions=rows, weights="mix.csv", gates=gates)
    assert found.aggregates[0].mean == pytest.approx(0.75)
    assert found.gates[0].outcome == "warn"
    assert "token_f1 of bot leaves out 80% of production, which has no scored question" in found.gates[0].reason
    assert notes(found)["uncovered"] == ("token_f1: 80% of production has no scored question; the mean is of the rest")


def test_shares_of_causes_are_weighted(tmp_path: Path) -> None:
    rows = [{**row, "reference_contexts": ["yes"]} for row in QUESTIONS]
    path = write(tmp_path, questions=rows, metrics=["token_f1", "latency"], weights="mix.csv", cluster="source")
    content = json.loads(path.read_text())
    content["diagnosis"] = {"retrieval": "token_f1", "correctness": "token_f1"}
    path.write_text(json.dumps(content))
    found = run(path, Options(output=tmp_path / "out")).evaluation.diagnosis
    assert found is not None
    [fine] = [one for one in found.counts if one.cause == "fine"]
    assert fine.count == 4
    assert fine.share == pytest.approx(0.55)
    assert fine.interval is not None and fine.interval.low < 0.55 < fine.interval.high


def test_numbers_without_a_design_are_those_of_before_there_were_any(tmp_path: Path) -> None:
    """The digest is of the rules for questions on their own; clusters and weights change none of their numbers."""
    gates = [{"metric": "token_f1", "system": "other", "baseline": "bot", "max_drop": 0.1}]
    evaluate(tmp_path, right={"bot": RIGHT, "other": (1, 0, 1, 1, 1, 1)}, slices=["kind"], gates=gates)
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    parts = ("aggregates", "comparisons", "baselines", "slices", "weakest", "gates", "notes", "diagnosis")
    text = json.dumps({part: found[part] for part in parts}, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "07db59557534bfc352f42e1a030161dcd9aae4a00dcd5e269771c10244fe657d"
    )


def test_the_history_keeps_designs_and_breaks_where_weights_change(tmp_path: Path) -> None:
    """The second evaluation is weighted, the third by another mix; a comparison of records has the weights."""
    mixes = ("kind,share\neasy,0.5\nhard,0.5\n", "kind,share\neasy,0.2\nhard,0.8\n")
    for number in range(3):
        sections: dict[str, Any] = {"weights": "mix.csv"} if number else {}
        path = write(tmp_path, mix=mixes[number // 2], history="sqlite", **sections)
        run(path, Options(output=tmp_path / f"out{number}"))
    database = tmp_path / ".rageval" / "history.db"
    told = invoke("history", "trend", "token_f1", "--history", database).stdout
    assert told.count("the weights of the questions changed") == 2


def test_calibrate_counts_clusters(tmp_path: Path) -> None:
    rows = [{"kind": "easy", "source": f"s{at // 3}"} for at in range(36)]
    right = [int(at % 5 > 0) for at in range(36)]
    path = write(tmp_path, rows, {"bot": right}, cluster="source")
    run(path, Options(output=tmp_path / "out"))
    lines = [f"q{at},token_f1,{int(at % 4 > 0)},ann" for at in range(36)]
    (tmp_path / "labels.csv").write_text("query_id,metric,value,annotator\n" + "\n".join(lines) + "\n")
    labels = ("--labels", tmp_path / "labels.csv")
    assert "Intervals: 36 labelled questions in 12 clusters." in invoke("calibrate", tmp_path / "out", *labels).stdout


def test_a_dataset_that_is_left_out_needs_no_design(tmp_path: Path) -> None:
    path = write(tmp_path, cluster={"golden": "source", "wiki": "page"})
    content = json.loads(path.read_text())
    content["datasets"]["wiki"] = {"use": "jsonl", "path": "golden.jsonl"}
    path.write_text(json.dumps(content))
    with pytest.raises(SpecError, match="the questions of 'wiki' have no column 'page'"):
        validate(path)
    found = run(path, Options(output=None, only=["golden"])).evaluation
    assert [*found.designs] == ["golden"]
    assert found.provenance.spec["cluster"] == {"golden": "source"}


def test_a_weight_that_overflows_is_refused(tmp_path: Path) -> None:
    rows = [{**row, "big": 1e308} for row in QUESTIONS]
    with pytest.raises(SpecError, match="no question of 'golden' has a weight in 'big'"):
        evaluate(tmp_path, questions=rows, weight="big")
