from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.errors import BROKEN, GATE_FAILED, NOTHING_SCORED, PASSED, DataError, UsageError
from rageval_spec.plugin import Report, ReportNode
from rageval_spec.runner import Options, RunOutcome, plan, run
from rageval_spec.store.disk import hold
from tests.tiny import Counting, Failing, Install, install, write_spec

__all__ = ["install"]

BOTH: dict[str, Any] = {"reports": ["json", "parquet", "csv", "markdown", "junit"]}


def evaluate(folder: Path, options: dict[str, Any] | None = None, **sections: Any) -> RunOutcome:
    options = {"output": folder / "out", **(options or {})}
    return run(write_spec(folder, **sections), Options(**options))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_from_a_spec_to_a_verdict(tmp_path: Path) -> None:
    gates = [{"metric": "rr", "system": "good", "min": 0.5}, {"metric": "rr", "system": "tied", "min": 0.7}]
    outcome = evaluate(tmp_path, gates=gates)
    evaluation = outcome.evaluation
    assert (evaluation.datasets, evaluation.systems) == (("fruit",), ("good", "tied"))
    assert evaluation.metrics == ("rr", "precision@1")
    mean = evaluation.aggregate("fruit", "tied", "rr")
    assert mean is not None
    assert (mean.mean, mean.scored, mean.total) == (0.625, 4, 4)
    assert [comparison.baseline for comparison in evaluation.comparisons] == ["good", "good"]
    assert [gate.outcome for gate in evaluation.gates] == ["pass", "fail"]
    assert (outcome.exit_code, evaluation.verdict) == (GATE_FAILED, "fail")
    assert outcome.complaint == "1 of 2 gates failed"
    assert "✗ Not ready".encode() in b"".join(outcome.shown)
    assert evaluation.provenance.settings["ranking"]["missing"] == "zero"


def test_reports_go_to_the_output_folder_or_where_the_spec_says(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "table.csv"
    reports: list[Any] = [
        "terminal",
        "json",
        {"use": "json", "path": "deep/copy.json"},
        {"use": "csv", "path": str(elsewhere)},
    ]
    outcome = evaluate(tmp_path, reports=reports)
    out = tmp_path / "out"
    standard = ("results.json", "values.parquet", "samples.parquet", "findings.parquet", "documents.parquet")
    assert outcome.written == (*(out / name for name in standard), out / "deep" / "copy.json", elsewhere)
    assert outcome.folder == out
    assert (out / "results.json").read_bytes() == (out / "deep" / "copy.json").read_bytes()
    assert len(outcome.shown) == 1
    assert elsewhere.read_bytes().startswith(b"dataset,system,metric,query_id")


def test_the_same_spec_and_data_give_the_same_bytes(tmp_path: Path) -> None:
    sections: dict[str, Any] = {
        "systems": {"bm25": {"use": "bm25"}, "tied": {"use": "file", "path": "data/tied.run"}},
        **BOTH,
    }
    evaluate(tmp_path, **sections)
    first = contents(tmp_path / "out")
    assert len(first) == 10
    places: list[dict[str, Any]] = [{}, {"no_store": True}, {"store": tmp_path / "another"}]
    for number, options in enumerate(places):
        out = tmp_path / f"out{number}"
        evaluate(tmp_path, {"output": out, **options}, **sections)
        assert contents(out) == first


def test_threads_change_no_number(tmp_path: Path) -> None:
    results = []
    for threads in (1, 2, 5):
        outcome = evaluate(tmp_path, {"overrides": [f"limits.threads={threads}"], "no_store": True}, **BOTH)
        report = json.loads((tmp_path / "out" / "results.json").read_bytes())
        report.pop("spec_digest")
        results.append((report, outcome.evaluation.values.rows()))
    assert results[0] == results[1] == results[2]


def test_where_the_spec_lies_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        evaluate(tmp_path / name, **BOTH)
    assert contents(tmp_path / "here" / "out") == contents(tmp_path / "there" / "out")
    monkeypatch.chdir(tmp_path / "here")
    run(Path("spec.yaml"), Options(output=Path("relative")))
    assert contents(tmp_path / "here" / "relative") == contents(tmp_path / "here" / "out")


def test_a_failed_system_ends_with_3_and_the_others_results(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    systems = {"good": {"use": "file", "path": "data/good.run"}, "broken": {"use": "failing"}}
    outcome = evaluate(tmp_path, systems=systems, gates=[{"metric": "rr", "system": "broken", "min": 0.1}])
    assert outcome.exit_code == BROKEN
    assert outcome.complaint == "1 evaluation of a system failed; the others are complete"
    good, broken = (outcome.evaluation.aggregate("fruit", system, "rr") for system in ("good", "broken"))
    assert good is not None
    assert broken is not None
    assert (good.mean, broken.mean, broken.scored, broken.total) == (0.5, None, 0, 4)
    assert outcome.evaluation.gates[0].outcome == "fail"


def test_nothing_scored_ends_with_4(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    outcome = evaluate(tmp_path, systems={"broken": {"use": "failing"}})
    assert outcome.exit_code == NOTHING_SCORED
    assert outcome.complaint == "no metric could be scored for any query"
    assert outcome.shown  # what is known is still reported


def test_no_query_scored_because_none_is_in_the_run(tmp_path: Path) -> None:
    write_spec(tmp_path)
    (tmp_path / "data" / "good.run").write_text("q77 Q0 d1 1 0.5 t\n")
    systems = {"good": {"use": "file", "path": "data/good.run"}}
    assert evaluate(tmp_path, systems=systems, ranking={"missing": "skip"}).exit_code == NOTHING_SCORED
    lost = evaluate(tmp_path, systems=systems)
    assert lost.exit_code == NOTHING_SCORED
    assert lost.evaluation.verdict == "error"
    assert "none of the run's 1 query is among the dataset's 4" in lost.evaluation.failures[0]


# Selection


def test_only_keeps_what_matches(tmp_path: Path) -> None:
    def cells(*only: str) -> set[tuple[str, str]]:
        evaluation = evaluate(tmp_path, {"only": only}).evaluation
        return {(aggregate.system, aggregate.metric) for aggregate in evaluation.aggregates}

    assert cells("good") == {("good", "rr"), ("good", "precision@1")}
    assert cells("prec*", "good") == {("good", "precision@1")}
    assert cells("fruit", "r?") == {("good", "rr"), ("tied", "rr")}


def test_an_only_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--only goood: no dataset, system or metric has this name; did you mean"):
        evaluate(tmp_path, {"only": ["goood"]})


def test_gates_on_excluded_parts_are_not_checked(tmp_path: Path) -> None:
    gates = [
        {"metric": "rr", "min": 0.99},
        {"metric": "precision@1", "min": 0.1},
        {"metric": "precision@1", "system": "tied", "min": 0.99},
        {"metric": "precision@1", "system": "good", "baseline": "tied", "max_drop": 0.0},
    ]
    evaluation = evaluate(tmp_path, {"only": ["good", "precision@1"]}, gates=gates).evaluation
    assert [(gate.metric, gate.outcome) for gate in evaluation.gates] == [("precision@1", "pass")]
    (note,) = [note for note in evaluation.notes if note.code == "gates_left_out"]
    assert note.message == "3 of 4 gates are not checked: their metric, system or dataset was left out"
    assert evaluation.provenance.settings["only"] == ["good", "precision@1"]


def test_a_limit_is_reported(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"limit": 3}).evaluation
    assert {aggregate.total for aggregate in evaluation.aggregates} == {3}
    assert evaluation.provenance.settings["limit"] == 3
    assert "limited" in {note.code for note in evaluation.notes}


def test_overrides(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"overrides": ["ranking.ties=input"]}).evaluation
    assert evaluation.provenance.settings["ranking"]["ties"] == "input"


# Baselines


def test_a_baseline_that_is_a_system(tmp_path: Path) -> None:
    gates = [{"metric": "rr", "system": "good", "baseline": "tied", "max_drop": 0.1}]
    outcome = evaluate(tmp_path, gates=gates)
    (gate,) = outcome.evaluation.gates
    assert (gate.outcome, gate.observed) == ("fail", -0.125)
    assert {comparison.baseline for comparison in outcome.evaluation.comparisons} == {"good"}


def test_a_baseline_in_the_history(tmp_path: Path) -> None:
    gates = [{"metric": "rr", "system": "good", "baseline": "main", "max_drop": 0.1}]
    outcome = evaluate(tmp_path, {"save_as": "main"})
    assert outcome.written[-1] == tmp_path / ".rageval" / "history" / "main"
    assert evaluate(tmp_path, gates=gates).exit_code == PASSED
    run_file = tmp_path / "data" / "good.run"
    run_file.write_text(run_file.read_text().replace("q1 Q0 d1", "q1 Q0 d9").replace("q1 Q0 d2", "q1 Q0 d8"))
    outcome = evaluate(tmp_path, gates=gates)
    assert outcome.exit_code == GATE_FAILED
    assert outcome.evaluation.gates[0].observed == -0.25


def test_edited_references_are_distinguished_from_a_system_that_got_worse(tmp_path: Path) -> None:
    gates = [{"metric": "rr", "system": "good", "baseline": "main", "max_drop": 0.1}]
    evaluate(tmp_path, {"save_as": "main"})
    qrels = tmp_path / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text().replace("q1\td1\t2\nq1\td2\t1", "q1\td7\t2") + "q5\td1\t1\n")
    outcome = evaluate(tmp_path, gates=gates, reports=["terminal", "markdown", "junit"])
    assert (outcome.exit_code, outcome.evaluation.verdict) == (PASSED, "warn")
    [gate] = outcome.evaluation.gates
    assert (gate.outcome, gate.counts_as) == ("inconclusive", "warn")
    unlike = "not comparable with main: the relevance judgements of 1 query changed"
    shared = "compared with main on 4 of 5 queries: 1 is new"
    assert unlike in gate.reason
    assert gate.reason.endswith(f"; {shared}")
    terminal = " ".join(outcome.shown[0].decode().split())
    markdown, junit = ((tmp_path / "out" / name).read_text() for name in ("report.md", "junit.xml"))
    for text in (terminal, markdown.partition("###")[0], junit):
        assert text.count(unlike) >= 2  # the gate, and the warning
        assert shared in text
    assert "≠ not comparable with main; a warning names what changed" in terminal
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["baselines"][0]["changes"] == [
        {"part": "qrels", "told": "the relevance judgements of 1 query changed"}
    ]
    assert results["overlaps"] == [
        {"dataset": "fruit", "baseline": "main", "same": 4, "changed": 0, "added": 1, "removed": 0}
    ]


def test_a_gate_can_accept_that_judgements_changed(tmp_path: Path) -> None:
    gate = {"metric": "rr", "system": "good", "baseline": "main", "max_drop": 0.1, "accept_changes": ["qrels"]}
    evaluate(tmp_path, {"save_as": "main"})
    qrels = tmp_path / "data" / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text().replace("q1\td1\t2\nq1\td2\t1", "q1\td7\t2"))
    outcome = evaluate(tmp_path, gates=[gate])
    assert outcome.exit_code == GATE_FAILED
    assert "although the relevance judgements of 1 query changed" in outcome.evaluation.gates[0].reason
    assert [note.code for note in outcome.evaluation.notes if "main" in note.message] == ["accepted_changes"]


def test_edited_questions_and_gold_answers_are_noticed_in_a_results_folder_too(tmp_path: Path) -> None:
    data, answers = tmp_path / "golden.jsonl", tmp_path / "answers.jsonl"
    rows = [{"query_id": f"q{n}", "question": f"what is {n}?", "reference": f"it is {n}"} for n in range(4)]
    answers.write_text("".join(json.dumps({"query_id": r["query_id"], "answer": r["reference"]}) + "\n" for r in rows))

    def run_on(rows: list[dict[str, str]], out: str, **sections: Any) -> Evaluation:
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return evaluate(
            tmp_path,
            {"output": tmp_path / out},
            datasets={"faq": {"use": "jsonl", "path": "golden.jsonl"}},
            systems={"bot": {"use": "file", "path": "answers.jsonl"}},
            metrics=["exact_match"],
            **sections,
        ).evaluation

    run_on(rows, "first", reports=["terminal"])
    edited = [rows[0] | {"reference": "it is none"}, rows[1] | {"question": "what?"}, rows[2]]
    gates = [{"metric": "exact_match", "baseline": "first", "max_drop": 0}]
    [gate] = run_on(edited, "second", gates=gates).gates
    assert gate.outcome == "inconclusive"
    assert "is not comparable with first: the reference of 1 query changed" in gate.reason
    assert gate.reason.endswith("; compared with first on 2 of 3 queries: 1 changed, 1 was removed")
    [gate] = run_on([rows[0], edited[1], rows[2]], "second", gates=gates).gates
    assert (gate.outcome, gate.observed) == ("pass", 0.0)
    assert "on 2 shared queries" in gate.reason
    [gate] = run_on(rows, "second", gates=gates).gates
    assert gate.outcome == "pass"
    assert gate.reason.endswith("(Holm-adjusted p = 1.0000)")


def test_an_unknown_baseline_is_reported_before_anything_is_computed(tmp_path: Path, install: Install) -> None:
    install("systems", "counting", Counting)
    Counting.asked.clear()
    gates = [{"metric": "rr", "baseline": "mian", "max_drop": 0.1}]
    with pytest.raises(DataError, match="baseline 'mian' is neither a label"):
        evaluate(tmp_path, systems={"costly": {"use": "counting"}}, gates=gates)
    assert Counting.asked == []


@pytest.mark.parametrize("label", ["", "previous"])
def test_a_label_that_cannot_be_set_is_reported_before_anything_is_computed(
    tmp_path: Path, install: Install, label: str
) -> None:
    install("systems", "counting", Counting)
    Counting.asked.clear()
    with pytest.raises(UsageError, match="label"):
        evaluate(tmp_path, {"save_as": label}, systems={"costly": {"use": "counting"}})
    assert Counting.asked == []


def test_a_broken_evaluation_is_not_saved_as_a_baseline(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    systems = {"good": {"use": "file", "path": "data/good.run"}, "broken": {"use": "failing"}}
    outcome = evaluate(tmp_path, {"save_as": "main"}, systems=systems)
    assert outcome.complaint is not None
    assert outcome.complaint.endswith("; the results were not saved as 'main'")
    assert not (tmp_path / ".rageval" / "history").exists()


def test_other_settings_than_the_baselines_are_noted(tmp_path: Path) -> None:
    evaluate(tmp_path, {"save_as": "main"})
    gates = [{"metric": "rr", "baseline": "main", "max_drop": 0.5}]
    evaluation = evaluate(tmp_path, {"limit": 2}, gates=gates).evaluation
    assert [note.message for note in evaluation.notes if note.code == "other_settings"] == [
        "the baseline main was evaluated with limit: None, this one with 2"
    ]


# What breaks


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file is in the way")
    outcome = evaluate(tmp_path, reports=["json", "terminal"])
    assert "out: the results could not be written" in str(outcome.lost_reports[0])
    assert (outcome.exit_code, outcome.complaint) == (3, "1 report could not be made; the others are complete")
    assert b"rr" in outcome.shown[0]


def test_a_report_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Install
) -> None:
    class Exploding(Report[ReportNode]):
        node_type = ReportNode
        filename = "exploding.txt"

        def render(self, evaluation: Evaluation) -> bytes:
            raise ValueError("no report today")

    install("reports", "exploding", Exploding)
    outcome = evaluate(tmp_path, reports=[{"use": "exploding"}, "json"])
    assert str(outcome.lost_reports[0]) == "the report 'exploding' could not be made: ValueError: no report today"
    assert "results.json" in contents(tmp_path / "out") and "exploding.txt" not in contents(tmp_path / "out")


@pytest.mark.parametrize("filename", [None, "texts.txt"])
def test_a_report_that_returns_no_bytes_is_named(tmp_path: Path, install: Install, filename: str | None) -> None:
    name = filename

    class Texts(Report[ReportNode]):
        node_type = ReportNode
        filename = name

        def render(self, evaluation: Evaluation) -> bytes:
            return "text"  # type: ignore[return-value]

    install("reports", "texts", Texts)
    outcome = evaluate(tmp_path, reports=[{"use": "texts"}])
    assert str(outcome.lost_reports[0]) == (
        "the report 'texts' could not be made: TypeError: render() returned str, and must return bytes"
    )


def test_a_report_of_several_files_is_a_folder(tmp_path: Path, install: Install) -> None:
    class Wide(Report[ReportNode]):
        node_type = ReportNode
        filename = "wide.html"

        def render(self, evaluation: Evaluation) -> bytes:
            return b"all"

        def render_files(self, evaluation: Evaluation) -> Iterator[tuple[str, bytes]]:
            yield "parts/one.js", b"1"
            yield "index.html", b"page"

    install("reports", "wide", Wide)
    out = tmp_path / "out"
    out.mkdir()
    (out / "wide.html").write_text("of an earlier evaluation")
    (out / "other").write_text("a file of the name")
    outcome = evaluate(tmp_path, reports=[{"use": "wide"}, {"use": "wide", "path": "other"}])
    found = contents(out)
    folders = ("other_files", "wide")
    expected = {f"{folder}/{name}" for folder in folders for name in ("index.html", "parts/one.js")}
    assert {name for name in found if not name.endswith((".json", ".parquet"))} == expected
    assert outcome.written[-2:] == (out / "wide" / "index.html", out / "other_files" / "index.html")


def test_plan_computes_nothing(tmp_path: Path, install: Install) -> None:
    install("systems", "counting", Counting)
    Counting.asked.clear()
    path = write_spec(tmp_path, systems={"costly": {"use": "counting"}})
    planned = plan(path)
    assert "1 retrieval to compute" in planned.render()
    assert Counting.asked == []
    run(path, Options(output=tmp_path / "out"))
    planned = plan(path)
    assert "0 retrievals to compute" in planned.render()
    planned = plan(path, Options(limit=1))
    assert "1 retrieval to compute" in planned.render()


def test_a_kill_leaves_nothing_half_written(tmp_path: Path) -> None:
    """Kill evaluations at moments spread over their whole duration; the next one gives the same bytes as always."""
    systems = {f"bm25-{k1}": {"use": "bm25", "k1": k1} for k1 in (0.5, 1.2)}
    sections: dict[str, Any] = {"systems": systems, "reports": ["json", "parquet"]}
    path = write_spec(tmp_path, **sections)
    expected = tmp_path / "expected"
    started = time.monotonic()
    command = [sys.executable, "-m", "rageval_spec", "run", str(path), "--quiet", "-o"]
    subprocess.run([*command, str(expected), "--no-store"], check=True)
    life = time.monotonic() - started
    out = tmp_path / "out"
    for moment in (0.4, 0.55, 0.7, 0.85, 1.0):
        with subprocess.Popen([*command, str(out)], stderr=subprocess.DEVNULL) as process:
            time.sleep(life * moment)
            process.send_signal(signal.SIGKILL)
        for name, content in contents(out).items():
            if name in ("results.json", "values.parquet"):
                assert content == (expected / name).read_bytes()
    evaluate(tmp_path, **sections)  # a damaged table would warn, and a warning is an error here
    assert {name: contents(out)[name] for name in contents(expected)} == contents(expected)
    assert pl.read_parquet(out / "values.parquet").height == 4 * 2 * 2


def test_several_evaluations_can_use_one_store_at_the_same_time(tmp_path: Path) -> None:
    systems = {f"bm25-{k1}": {"use": "bm25", "k1": k1} for k1 in (0.5, 1.2)}
    path = write_spec(tmp_path, systems=systems, reports=["json", "parquet"])
    command = [sys.executable, "-m", "rageval_spec", "run", str(path), "--quiet", "-o"]
    outs = [tmp_path / f"out{number}" for number in range(4)]
    processes = [subprocess.Popen([*command, str(out)], stderr=subprocess.PIPE) for out in outs]
    for process in processes:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert len({tuple(contents(out).items()) for out in outs}) == 1
    assert list((tmp_path / ".rageval" / "store" / "temporary").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_what_a_killed_process_left_in_the_store_goes_when_the_next_run_starts(tmp_path: Path) -> None:
    evaluate(tmp_path)
    temporary = tmp_path / ".rageval" / "store" / "temporary"
    for name in ("left", "held"):
        (temporary / name).mkdir(parents=True)
    (temporary / "left" / "lock").touch()
    with hold(temporary / "held"):
        evaluate(tmp_path)
        assert [path.name for path in temporary.iterdir()] == ["held"]
