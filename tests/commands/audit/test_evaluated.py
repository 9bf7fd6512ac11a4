from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.audit.unjudged import check_unjudged
from rageval_spec.commands.audit.evaluated import Found, find_results, list_outputs, list_powers, measure
from rageval_spec.commands.audit.opening import open_questions
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.parts import Parts, build_parts
from rageval_spec.spec import load
from rageval_spec.spec.nodes import Spec
from rageval_spec.wording import format_number
from tests.command_line import invoke
from tests.tiny import write_spec

SYSTEMS = {"bm25": {"use": "bm25"}, "flat": {"use": "bm25", "b": 0.0, "k1": 0.1}}


def test_without_results_nothing_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = load(write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"]))
    found = find_results(spec, [])
    assert found.names == [] and "rageval-spec run" in found.why_none
    assert list_powers(spec, build_parts(spec), found, "golden") is None
    assert not (tmp_path / ".rageval").exists()
    with pytest.raises(UsageError, match="nowhere"):
        find_results(spec, ["nowhere"])


def test_named_results_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"])
    assert invoke("run", path, "-q", "-o", tmp_path / "out").exit_code == 0
    spec = load(path)
    found = find_results(spec, [str(tmp_path / "out")])
    assert found.names == [str(tmp_path / "out")]
    (dataset,) = spec.datasets
    powers = list_powers(spec, build_parts(spec), found, dataset)
    assert powers is not None and {power.system for power in powers} == {"bm25", "flat"}
    assert list_powers(spec, build_parts(spec), found, "other") == []


def open_tiny(tmp_path: Path) -> tuple[Spec, Parts, Found]:
    path = write_spec(tmp_path, systems=SYSTEMS, metrics=["num_ret", "ndcg@10", "bpref", "judged@10"])
    assert invoke("run", path, "-q", "-o", tmp_path / "out").exit_code == 0
    spec = load(path)
    return spec, build_parts(spec), find_results(spec, [str(tmp_path / "out")])


def test_the_first_metric_with_a_best_value_tells_what_fails(tmp_path: Path) -> None:
    spec, parts, found = open_tiny(tmp_path)
    (dataset,) = spec.datasets
    measured = measure(spec, parts, found, dataset, None)
    assert measured is not None
    assert (measured.metric, measured.systems, measured.best, measured.fails_at) == ("ndcg@10", ("bm25", "flat"), 1, 0)
    other = measure(spec, parts, found, dataset, "bpref")
    assert other is not None and other.metric == "bpref"
    with pytest.raises(UsageError, match=r"--metric num_ret: write one of"):
        measure(spec, parts, found, dataset, "num_ret")
    assert measure(spec, parts, found, "other", None) is None


def test_systems_of_several_results_are_told_apart(tmp_path: Path) -> None:
    spec, parts, found = open_tiny(tmp_path)
    (dataset,) = spec.datasets
    assert invoke("run", tmp_path / "spec.yaml", "-q", "-o", tmp_path / "more").exit_code == 0
    twice = find_results(spec, [*found.names, str(tmp_path / "more")])
    measured = measure(spec, parts, twice, dataset, None)
    assert measured is not None and measured.systems[0] == f"bm25 ({found.names[0]})"
    assert len(measured.systems) == 4


def test_values_from_the_first_ten_documents_are_those_of_the_evaluation(tmp_path: Path) -> None:
    spec, parts, found = open_tiny(tmp_path)
    (dataset,) = spec.datasets
    outputs = list_outputs(found, dataset)
    assert outputs is not None
    table = check_unjudged(open_questions(parts.datasets[dataset]), outputs).tables[0]
    means = {(one.system, one.metric): one.mean for one in found.opened[0].evaluation.aggregates}
    for row in table.rows:
        for metric, number in zip(("ndcg@10", "bpref", "judged@10"), row[1:4], strict=True):
            assert number == format_number(means[row[0], metric] or 0.0), (row[0], metric)


def test_a_history_that_cannot_be_read_is_no_evaluation_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"])
    assert invoke("run", path, "-q", "-o", tmp_path / "out").exit_code == 0
    assert find_results(load(path), []).names != []
    (database,) = (tmp_path / ".rageval").glob("history*")
    database.write_bytes(b"not a database" * 1000)
    found = find_results(load(path), [])
    assert found.names == [] and found.why_none.startswith("the history cannot be read: ")


def test_a_record_without_samples_is_said_to_lack_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"])
    assert invoke("run", path, "-q", "-o", tmp_path / "out").exit_code == 0
    told = " ".join(invoke("audit", path).stdout.split())
    assert "With the values of record " in told
    assert "Unjudged documents: these results hold values, but not what systems found" in told
    assert "name a results folder that a run wrote: --results FOLDER" in told
    told = " ".join(invoke("audit", path, "--results", "out").stdout.split())
    assert "With the values of out." in told and "judged@10" in told


def test_results_that_are_named_twice_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, found = open_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    spec = load("spec.yaml")
    assert find_results(spec, ["out", "out", "./out/", "out/results.json"]).names == ["out"]
    assert found.names == [str(tmp_path / "out")]


def test_results_of_other_datasets_are_not_taken_for_a_record_without_samples(tmp_path: Path) -> None:
    _, _, found = open_tiny(tmp_path)
    assert list_outputs(found, "other") is None


def test_results_from_before_the_clusters_leave_the_rest_of_the_audit(tmp_path: Path) -> None:
    open_tiny(tmp_path)
    path = tmp_path / "spec.yaml"
    path.write_text(path.read_text() + "cluster: topic\n")
    done = invoke("audit", path, "--results", tmp_path / "out")
    told = " ".join(done.stdout.split())
    assert "judged@10" in told, done.stderr
    assert "is not known: the results know no clusters or weights of the questions" in told


def test_a_drop_beyond_the_range_of_the_metric_cannot_be_shown(tmp_path: Path) -> None:
    spec, parts, found = open_tiny(tmp_path)
    (dataset,) = spec.datasets
    powers = list_powers(spec, parts, found, dataset)
    assert powers is not None
    assert all(power.smallest_drop is None or power.smallest_drop <= 1 for power in powers if power.metric == "ndcg@10")
    assert any(power.smallest_drop is None for power in powers), "four questions are too few"
