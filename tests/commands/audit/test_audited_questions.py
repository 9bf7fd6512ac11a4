""""""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.audit.item_analysis import check_unjudged
from rageval_spec.commands.audit.audited_questions import (
    EarlierResults,
    find_meaning,
    find_results,
    list_outputs,
    list_powers,
    measure,
    open_questions,
    open_subject,
    open_train,
)
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.spec import load
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.wording import format_number
from tests.command_line import invoke
from tests.plugins import build_dataset, write
from tests.question_sets import ask, audit
from tests.tiny import write_spec


def test_every_check_is_made_or_says_why_not(tmp_path: Path) -> None:
    write(tmp_path / "golden.jsonl", '{"id": "q1", "question": "Who won?"}\n')
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    found = audit(dataset, ask("Who won?", "How?", references=["Ann"], relevant=[{"d1": 1}]))
    assert (found.questions, found.with_reference, found.with_relevant) == (2, 1, 1)
    names = [check.name for check in found.checks]
    assert len(names) == len(set(names)) >= 11
    assert all(check.skipped for check in found.checks if check.state == "skipped")


def test_only_judged_questions_count_without_gold_answers(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nb\td1\t1\n")
    found = open_questions(build_dataset("beir", tmp_path, path="."))
    assert [(question.query_id, question.text) for question in found.questions] == [("b", "two")]


def test_a_file_of_any_format_can_hold_training_questions(tmp_path: Path) -> None:
    csv = write(tmp_path / "train.csv", "question\none\ntwo\n", ".gz")
    json_lines = write(tmp_path / "train.jsonl", '{"question": "one"}\n')
    assert [question.text for question in open_train(csv).questions] == ["one", "two"]
    assert [question.text for question in open_train(json_lines).questions] == ["one"]


def test_a_beir_folder_means_its_training_split(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nb\td1\t1\n")
    write(tmp_path / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\na\td1\t1\n")
    assert [question.query_id for question in open_train(tmp_path).questions] == ["a"]
    assert [question.query_id for question in open_train(tmp_path / "qrels" / "test.tsv").questions] == ["b"]


def test_a_missing_or_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.csv: no such file"):
        open_train(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"empty\.jsonl"):
        open_train(write(tmp_path / "empty.jsonl", ""))


def test_questions_that_no_model_wrote_yet_are_not_made_by_an_audit(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs" / "a.md", "# Fees\n\nThe fee is 5 euros a month, and it is due on the first day.\n")
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "version: 1\n"
        "datasets: {golden: {use: generated, path: docs, model: writer, count: 2}}\n"
        "models: {writer: {use: chat, base_url: 'http://127.0.0.1:9/v1', model: m}}\n"
        "systems: {found: {use: bm25}}\n"
        "metrics: [ndcg@10]\n"
    )
    subject = open_subject(spec, [], tmp_path / "store")
    with pytest.raises(DataError, match="not made yet; `rageval-spec run` makes them"):
        open_questions(subject.datasets["golden"])
    assert not (tmp_path / "store").exists() and not (tmp_path / ".rageval").exists()


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


def open_tiny(tmp_path: Path) -> tuple[Spec, SpecPlugins, EarlierResults]:
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


def open_parts(folder: Path, **models: object) -> SpecPlugins:
    return build_parts(load(write_spec(folder, metrics=["ndcg@10"], models=models)))


def test_without_a_model_words_are_compared(tmp_path: Path) -> None:
    embed, remark = find_meaning(None, None)
    assert embed is None and "an embedding model in the spec" in remark
    with pytest.raises(UsageError, match="the spec has no embedding model of this name; it has none"):
        find_meaning(open_parts(tmp_path), "minilm")


def test_a_model_behind_an_endpoint_is_only_asked_if_it_is_named(tmp_path: Path) -> None:
    endpoint = {"use": "http", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    parts = open_parts(tmp_path, far=endpoint)
    assert find_meaning(parts, None)[0] is None
    assert find_meaning(parts, "far")[0] is not None
    with pytest.raises(UsageError, match="did you mean 'far'"):
        find_meaning(parts, "fa")


def test_a_local_model_that_cannot_be_opened_is_left_out_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RagevalError("it cannot be downloaded")

    parts = open_parts(tmp_path, near={"use": "onnx", "model": "minilm"})
    monkeypatch.setattr(parts.models["near"], "prepare", fail)
    embed, remark = find_meaning(parts, None)
    assert embed is None and "'near' cannot be opened: it cannot be downloaded" in remark
    with pytest.raises(RagevalError, match="cannot be downloaded"):
        find_meaning(parts, "near")
    monkeypatch.setattr(parts.models["near"], "prepare", lambda: None)
    assert "with the model 'near', by their meaning" in find_meaning(parts, None)[1]
