"""Metrics with people's labels, from the spec to the results, the gates and the messages.

`plan` says how many labels belong to the answers, as far as these are known.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.runner import Options, RunOutcome, run
from tests.command_line import invoke
from tests.pipeline.labelling import write


def evaluate(path: Path, **options: Any) -> RunOutcome:
    return run(path, Options(output=path.parent / "out", **options))


def notes(outcome: RunOutcome, code: str) -> list[str]:
    return [note.message for note in outcome.evaluation.notes if note.code == code]


def test_means_gates_slices_and_comparisons_are_corrected(tmp_path: Path) -> None:
    gates = [
        {"metric": "token_f1", "min": 0.1, "on": "lower"},
        {"metric": "token_f1", "min": 0.62, "decide": "certain"},
        {"metric": "token_f1", "baseline": "a", "max_drop": 0.5},
    ]
    outcome = evaluate(write(tmp_path, slices=["part"], gates=gates))
    a, b = outcome.evaluation.aggregates
    assert a.correction is not None and b.mean is not None and a.mean is not None
    assert (a.correction.labels, a.correction.source, a.scored) == (20, "people", 40)
    assert a.mean != a.correction.judged
    assert a.interval is not None and a.interval.method == "ppi++-score"
    (test,) = outcome.evaluation.comparisons
    assert test.correction is not None and test.correction.labels == 20
    lower, _, certain, _, drop = outcome.evaluation.gates
    assert lower.observed == a.interval.low
    assert certain.outcome == "inconclusive" and "more labels would decide" in certain.reason
    assert drop.observed == test.difference
    halves = [one for part in outcome.evaluation.slices for one in part.aggregates]
    assert [one.correction.labels for one in halves if one.correction] == [10, 10, 10, 10]
    assert all(one.mean is not None for one in halves)
    assert outcome.evaluation.weakest == ()
    labels = outcome.evaluation.provenance.labels
    assert [*labels] == ["people"] and len(labels["people"]) == 64


def test_labels_and_corrections_are_in_the_results_and_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    path = write(tmp_path)
    evaluate(path)
    first = (tmp_path / "out" / "results.json").read_bytes()
    (content,) = [one for one in json.loads(first)["aggregates"] if one["system"] == "a"]
    assert content["correction"]["source"] == "people" and content["correction"]["reason"] is None
    values = pl.read_parquet(tmp_path / "out" / "values.parquet")
    assert values["label"].drop_nulls().len() == 40
    evaluate(path)
    assert (tmp_path / "out" / "results.json").read_bytes() == first


def test_specs_without_labels_have_the_results_that_they_had(tmp_path: Path) -> None:
    evaluate(write(tmp_path, metrics=["token_f1"]))
    content = json.loads((tmp_path / "out" / "results.json").read_bytes())
    assert "labels" not in content and "correction" not in content["aggregates"][0]
    assert "labels" not in content["spec"] and content["spec"]["metrics"] == [{"as": None, "use": "token_f1"}]
    assert "label" not in pl.read_parquet(tmp_path / "out" / "values.parquet").columns


def test_labels_change_no_stored_value_and_no_key(tmp_path: Path) -> None:
    def keys(path: Path) -> dict[str, str]:
        plan = json.loads(invoke("plan", path, "--format", "json").stdout)
        return {step["title"]: step["key"] for step in plan["steps"]}

    plain = keys(write(tmp_path, metrics=["token_f1"]))
    labelled = keys(write(tmp_path))
    again = keys(write(tmp_path, labelled=21))
    changed = {title for title in plain if labelled[title] != plain[title]}
    assert changed == {"aggregate golden", "report terminal"}
    assert {title for title in labelled if again[title] != labelled[title]} == {*changed, "labels people"}


def test_a_label_does_not_count_for_another_text(tmp_path: Path) -> None:
    path = write(tmp_path, labelled=15)
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    rows[0]["answer"] += " else"
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    outcome = evaluate(path)
    a, b = (one.correction for one in outcome.evaluation.aggregates)
    assert a is not None and b is not None
    assert (a.labels, b.labels) == (14, 15)
    assert notes(outcome, "unused_labels") == [
        "token_f1: 1 of 30 labels of 'people' is of an answer that has changed; it does not count"
    ]


def test_answers_that_all_changed_give_no_number_and_fail_the_gate(tmp_path: Path) -> None:
    path = write(tmp_path, systems=("a",), gates=[{"metric": "token_f1", "min": 0.1}])
    rows = [json.loads(line) | {"answer": "other"} for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    outcome = evaluate(path)
    (found,) = outcome.evaluation.aggregates
    assert found.mean is None and found.correction is not None
    assert found.correction.judged is not None
    (gate,) = outcome.evaluation.gates
    assert gate.outcome == "fail"
    assert "token_f1 of a has no value: the labels 'people' cannot correct it: none of the" in gate.reason
    assert outcome.exit_code == 1


def test_labels_without_a_digest_count_and_it_is_said(tmp_path: Path) -> None:
    outcome = evaluate(write(tmp_path, columns="query_id,system,value"))
    assert outcome.evaluation.aggregates[0].mean is not None
    assert notes(outcome, "unnamed_answers") == [
        "token_f1: 40 labels of 'people' do not name the answer's digest, so they count even if the answer has "
        "changed since"
    ]
    assert notes(outcome, "few_labels") == [
        "token_f1: only 40 answers have labels; from 50 on, intervals become useful"
    ]


def test_an_earlier_evaluation_is_compared_by_the_labels_of_its_own_answers(tmp_path: Path) -> None:
    path = write(tmp_path, systems=("a",))
    evaluate(path, save_as="main")
    gates = [{"metric": "token_f1", "baseline": "main", "max_drop": 0.5}]
    same = evaluate(write(tmp_path, systems=("a",), gates=gates))
    (test,) = same.evaluation.baselines
    assert (test.difference, test.p_value) == (0.0, 1.0)
    assert test.correction is not None and test.correction.labels == 20
    path = write(tmp_path, systems=("a",), gates=gates)
    (tmp_path / "a.jsonl").write_bytes((tmp_path / "b.jsonl").read_bytes())
    labels = (tmp_path / "labels.csv").read_text().splitlines()
    own = [f"{n},b,token_f1,yes,{digest}" for n, digest in (line.split(",")[::4] for line in labels if ",b," in line)]
    swapped = [line.replace(",b,", ",a,") for line in own]
    (tmp_path / "labels.csv").write_text("\n".join([labels[0], *swapped]))
    changed = evaluate(path)  # today's answers have labels, and those of the baseline have none
    assert changed.evaluation.baselines == ()
    assert "too few questions have labels of 'people' for both" in changed.evaluation.gates[0].reason
    unnamed = write(tmp_path, systems=("a",), gates=gates, columns="query_id,system,value")
    assert evaluate(unnamed).evaluation.baselines == ()  # a label could be of either answer


@pytest.mark.parametrize("kept", [{"samples": "none"}, {"samples": "texts"}, {"redact": ["answer"]}])
def test_labels_count_whatever_is_kept_of_the_answers(tmp_path: Path, kept: dict[str, Any]) -> None:
    whole = evaluate(write(tmp_path, systems=("a",))).evaluation.aggregates
    outcome = evaluate(write(tmp_path, systems=("a",), **kept), save_as="main")
    assert outcome.evaluation.aggregates == whole
    assert "samples" not in kept or kept["samples"] != "none" or outcome.evaluation.samples.is_empty()
    gates = [{"metric": "token_f1", "baseline": "main", "max_drop": 0.5}]
    (test,) = evaluate(write(tmp_path, systems=("a",), gates=gates, **kept)).evaluation.baselines
    assert test.correction is not None and test.correction.labels == 20


def test_results_without_texts_are_not_said_to_have_other_answers(tmp_path: Path) -> None:
    spec = write(tmp_path, systems=("a",), samples="none")
    evaluate(spec)
    done = invoke("calibrate", tmp_path / "out", "--labels", tmp_path / "labels.csv")
    assert done.exit_code != 0
    assert "20 are of an answer whose text the results do not hold" in done.output
    assert "name the spec instead of the results" in done.output
    assert "changed" not in done.output
    assert "20 labelled items" in invoke("calibrate", spec).output


def test_an_evaluation_of_before_there_were_labels_can_be_the_baseline(tmp_path: Path) -> None:
    evaluate(write(tmp_path, systems=("a",), metrics=["token_f1"]), save_as="main")
    gates = [{"metric": "token_f1", "baseline": "main", "max_drop": 0.5}]
    outcome = evaluate(write(tmp_path, systems=("a",), gates=gates))
    assert [one.correction is not None for one in outcome.evaluation.baselines] == [True]
    assert outcome.evaluation.gates[0].outcome == "pass"


def test_adjudicated_labels_and_several_annotators(tmp_path: Path) -> None:
    path = write(tmp_path, systems=("a",))
    lines = [
        f"q{n},a,token_f1,{value},{who},{'yes' if who == 'eve' else ''}"
        for n in range(20)
        for who, value in (("ann", 1), ("bob", n % 2), *([("eve", 0)] if n < 5 else []))
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["query_id,system,metric,value,annotator,adjudicated", *lines]))
    (found,) = evaluate(path).evaluation.aggregates
    expected = [0.0 if n < 5 else (1 + n % 2) / 2 for n in range(20)]
    assert found.correction is not None
    assert found.correction.labelled == pytest.approx(sum(expected) / 20)


def test_the_plan_reads_the_labels_and_names_their_file(tmp_path: Path) -> None:
    done = invoke("plan", write(tmp_path))
    assert "labels people" in done.stdout


def test_weights_and_clusters_count_for_corrected_means(tmp_path: Path) -> None:
    (tmp_path / "mix.csv").write_text("part,share\neven,0.9\nodd,0.1\n")
    plain = run(write(tmp_path), Options(output=None)).evaluation
    found = run(write(tmp_path, weights="mix.csv", cluster="part"), Options(output=None)).evaluation
    first, before = found.aggregates[0], plain.aggregates[0]
    assert first.correction is not None and before.correction is not None
    assert first.mean != before.mean
    assert first.design is not None
    assert first.design.plain == pytest.approx(before.mean)
    assert first.design.clusters == 2


def plan(path: Path, *options: str) -> dict[str, Any]:
    done = invoke("plan", path, "--format", "json", *options)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["to_ask"]["labels"]
    return dict(found)


def test_the_plan_counts_labels_that_match_and_that_do_not(tmp_path: Path) -> None:
    path = write(tmp_path, systems=("a",))
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    rows[0]["answer"] += " else"
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert plan(path) == {
        "metric": "token_f1", "source": "people", "answers": 40, "matching": 19, "changed": 1, "unknown": 0,
        "absent": 20,
    }  # fmt: skip
    assert invoke("plan", path).stdout.endswith(
        "with labels of 'people': 19 as they are now, 1 changed, 20 of other questions or systems\n"
    )
    assert plan(path, "--limit", "5")["matching"] == 4


def test_answers_that_are_still_to_be_made_are_not_known(tmp_path: Path) -> None:
    path = write(tmp_path, columns="query_id,value", systems=("a",), labelled=20)
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text("\n".join(lines[:21]))
    text = path.read_text().replace("use: file", "use: python").replace("path: a.jsonl", "function: app:answer")
    path.write_text(text.replace("    holds: answers\n", ""))
    (tmp_path / "app.py").write_text("def answer(question):\n    return question\n")
    found = plan(path)
    assert (found["unknown"], found["matching"]) == (20, 0)


def test_a_plan_without_labels_says_nothing_of_them(tmp_path: Path) -> None:
    done = invoke("plan", write(tmp_path, metrics=["token_f1"]), "--format", "json")
    assert "labels" not in json.loads(done.stdout)["to_ask"]
