"""Evaluations are recorded at their end, and a history that cannot be written costs none of them.

A record holds the evaluation, and gives it back.

Records that could not be sent wait in files, and are sent once.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.errors import DataError
from rageval_spec.history import evaluation_records
from rageval_spec.history.database import SqliteConnection, open_history
from rageval_spec.history.evaluation_lookup import SearchPlaces, find_record
from rageval_spec.history.evaluation_records import (
    build_record,
    find_ci_run,
    load_stored,
)
from rageval_spec.runner import Options, run
from tests.history.records import make_id, make_marked_evaluation, make_record, opened
from tests.sample_evaluation import make_hostile_evaluation
from tests.tiny import write_spec


def list_ids(folder: Path) -> list[str]:
    with open_history(folder / ".rageval" / "history.db") as history:
        return [entry.id for entry in history.entries()]


def test_an_evaluation_is_recorded_with_its_gates_bounds_and_meaning(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1, "target": 0.2}])
    outcome = run(path, Options(output=None))
    assert outcome.unrecorded is None
    with open_history(tmp_path / ".rageval" / "history.db") as history:
        [entry] = history.entries()
    assert (
        entry.outcome == outcome.evaluation.verdict and entry.spec_digest == outcome.evaluation.provenance.spec_digest
    )
    assert entry.seconds is not None and entry.cost is None and entry.labels == ()
    assert (entry.gates[0]["min"], entry.gates[0]["target"]) == (0.1, 0.2) and "max" not in entry.gates[0]
    assert set(entry.meaning["metrics"]) == set(outcome.evaluation.metrics)


def test_options_and_specs_can_turn_the_history_off_or_move_it(tmp_path: Path) -> None:
    run(write_spec(tmp_path), Options(output=None, no_history=True, no_store=True))
    run(write_spec(tmp_path, history="none"), Options(output=None, no_store=True))
    assert not (tmp_path / ".rageval").exists()
    run(write_spec(tmp_path, history={"use": "sqlite", "path": "kept/all.db"}), Options(output=None, no_store=True))
    assert (tmp_path / "kept" / "all.db").is_file() and not (tmp_path / ".rageval").exists()


def test_the_label_is_of_the_same_record_in_the_folder_and_in_the_database(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    run(path, Options(output=None, save_as="main"))
    [record_id] = list_ids(tmp_path)
    places = SearchPlaces(tmp_path / ".rageval" / "history", tmp_path / ".rageval" / "history.db", tmp_path)
    assert find_record("main", places).id == find_record(record_id, places).id == record_id


@pytest.mark.parametrize("output", [None, "results"])
def test_a_broken_history_keeps_the_record_beside_the_results_for_the_next_evaluation(
    tmp_path: Path, output: str | None
) -> None:
    path = write_spec(tmp_path)
    options = Options(output=None if output is None else tmp_path / output)
    aside = tmp_path / (output or ".rageval")
    database = tmp_path / ".rageval" / "history.db"
    database.mkdir(parents=True)
    outcome = run(path, options)
    assert outcome.exit_code == 0 and outcome.unrecorded is not None
    which = " with this results folder" if output else ""
    assert f"the next evaluation{which} sends it" in outcome.unrecorded
    [kept] = aside.glob("record-*.pending.json")
    assert str(kept) in outcome.unrecorded
    database.rmdir()
    assert run(path, options).unrecorded is None
    assert not list(aside.glob("record-*.pending.json"))
    assert len(list_ids(tmp_path)) == 2 and kept.name.split("-")[1].split(".")[0] in list_ids(tmp_path)


def test_a_record_that_can_be_kept_nowhere_is_said_to_be_lost(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    (tmp_path / ".rageval").write_text("a file where the folder should be")
    outcome = run(path, Options(output=None, no_store=True))
    assert outcome.exit_code == 0
    assert outcome.unrecorded is not None and "nor could its record be kept" in outcome.unrecorded


def test_a_record_goes_beside_the_spec_if_the_results_folder_cannot_hold_it(tmp_path: Path) -> None:
    path = write_spec(tmp_path, history={"use": "sqlite", "path": "all.db"})
    (tmp_path / "all.db").mkdir()
    (tmp_path / "results").write_text("a file where the folder should be")
    outcome = run(path, Options(output=tmp_path / "results"))
    [kept] = (tmp_path / ".rageval").glob("record-*.pending.json")
    assert outcome.unrecorded is not None and str(kept) in outcome.unrecorded
    (tmp_path / "all.db").rmdir()
    (tmp_path / "results").unlink()
    assert run(path, Options(output=tmp_path / "results")).unrecorded is None
    with open_history(tmp_path / "all.db") as history:
        assert len(history.entries()) == 2
    assert not kept.exists()


def test_an_earlier_record_that_still_waits_is_told_and_the_new_one_is_recorded(tmp_path: Path) -> None:
    waiting = tmp_path / "results" / "record-1.pending.json"
    waiting.parent.mkdir()
    waiting.write_text("{}")
    outcome = run(write_spec(tmp_path), Options(output=tmp_path / "results"))
    assert outcome.exit_code == 0 and len(list_ids(tmp_path)) == 1
    assert outcome.unrecorded is not None and f"the record in {waiting} waits still" in outcome.unrecorded
    assert list(waiting.parent.glob("*.pending.json")) == [waiting]


def test_a_full_disk_costs_no_outcome_and_the_record_is_sent_once_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = write_spec(tmp_path), Options(output=tmp_path / "results")
    run(path, options)
    connect = SqliteConnection.__init__

    def connect_to_a_full_disk(self: SqliteConnection, *arguments: Any, **named: Any) -> None:
        connect(self, *arguments, **named)
        self.execute(f"PRAGMA max_page_count = {self.execute('PRAGMA page_count')[0][0]}")

    monkeypatch.setattr(SqliteConnection, "__init__", connect_to_a_full_disk)
    outcome = run(path, options)
    assert outcome.exit_code == 0
    assert outcome.unrecorded is not None and "database or disk is full" in outcome.unrecorded
    [kept] = (tmp_path / "results").glob("record-*.pending.json")
    assert len(list_ids(tmp_path)) == 1
    monkeypatch.undo()
    assert run(path, options).unrecorded is None
    ids = list_ids(tmp_path)
    assert len(ids) == len(set(ids)) == 3 and kept.name.split("-")[1].split(".")[0] in ids
    assert not kept.exists()


def test_a_record_holds_all_that_is_needed_to_judge_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time, label, commit, branch, CI run, versions, spec, digests, settings, outcome, gates, numbers and values."""
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_PIPELINE_ID", "77")
    path = write_spec(
        tmp_path,
        systems={"words": {"use": "bm25"}},
        metrics=["rr"],
        slices=[{"name": "red", "where": {"column": "question", "contains": "red"}}],
        gates=[{"metric": "rr", "min": 0.1}],
    )
    for command in (["init", "-q", "-b", "topic"], ["add", "spec.yaml"], ["commit", "-qm", "first"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    path.write_text(path.read_text() + "# changed\n")
    evaluation = run(path, Options(output=tmp_path / "out", save_as="v1")).evaluation
    with open_history(tmp_path / ".rageval" / "history.db") as history:
        [entry] = history.entries()
        numbers, found = list(history.numbers()), load_stored(history, entry.id).evaluation
    assert (entry.name, entry.labels, entry.outcome, entry.branch, entry.is_dirty) == (
        "tiny", ("v1",), "pass", "topic", True,
    )  # fmt: skip
    assert entry.commit is not None and len(entry.commit) == 40 and entry.ci == {"system": "gitlab", "run": "77"}
    assert entry.seconds is not None and entry.time.tzinfo is not None and entry.gates[0]["outcome"] == "pass"
    assert {(one.metric, one.slice) for one in numbers} == {("rr", None), ("rr", "red")}
    assert found.provenance.digests["fruit"].keys() == {"questions", "qrels", "corpus"}
    assert found.values.filter(system="words")["query_id"].sort().to_list() == ["q1", "q2", "q3", "q4"]
    assert found.provenance.spec["systems"]["words"]["use"] == "bm25" and "rageval-spec" in found.provenance.versions
    assert found.provenance.settings["ranking"]["ties"] == "trec_eval"
    assert (found.provenance.spec_digest, found.gates) == (evaluation.provenance.spec_digest, evaluation.gates)


@pytest.mark.parametrize("evaluation", [make_marked_evaluation(), make_hostile_evaluation()])
def test_a_record_becomes_the_evaluation_again(tmp_path: Path, evaluation: object) -> None:
    assert isinstance(evaluation, type(make_marked_evaluation()))
    with opened(tmp_path, make_record(1, evaluation, "main")) as history:
        found = load_stored(history, make_id(1))
    assert (found.id, found.label, found.commit) == (make_id(1), "main", "c" * 40)
    assert_frame_equal(found.evaluation.values, evaluation.values)
    assert found.evaluation.fingerprints == evaluation.fingerprints
    assert replace(found.evaluation, values=None) == replace(evaluation, values=None)  # type: ignore[arg-type]


def test_the_details_of_judges_stay_in_the_results_folder(tmp_path: Path) -> None:
    evaluation = make_marked_evaluation()
    detailed = replace(evaluation, values=evaluation.values.with_columns(details=pl.lit("long")))
    with opened(tmp_path, make_record(1, detailed)) as history:
        assert_frame_equal(load_stored(history, make_id(1)).evaluation.values, evaluation.values)


def test_what_ci_tells_counts_where_git_tells_nothing() -> None:
    ci = {"system": "github", "commit": "abc", "branch": "topic"}
    row = build_record(make_marked_evaluation(), "1", datetime.now(UTC), ci=ci).row
    assert (row["git_commit"], row["branch"], row["is_dirty"]) == ("abc", "topic", None)


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    record = make_record(1)
    broken = replace(record, contents={**record.contents, "values.parquet": b"PAR1"})
    with opened(tmp_path, broken) as history, pytest.raises(DataError, match="is damaged"):
        load_stored(history, make_id(1))


def test_a_kept_record_is_read_unchanged(tmp_path: Path) -> None:
    record = make_record(1, None, "main")
    assert evaluation_records.read(evaluation_records.keep(record, tmp_path / "new")) == record


def test_kept_records_are_sent_once_and_their_files_removed(tmp_path: Path) -> None:
    aside = tmp_path / "results"
    for number in (1, 2):
        evaluation_records.keep(make_record(number), aside)
    (aside / "record-x.pending.json").write_text("{}")
    with opened(tmp_path, make_record(1)) as history:
        sent = evaluation_records.send(history, [aside, aside, tmp_path / "absent"])
        assert sent.records == 2
        assert [entry.id for entry in history.entries()] == [make_id(2), make_id(1)]
        assert evaluation_records.send(history, [aside]).records == 0
    assert [path.name for path in aside.iterdir()] == ["record-x.pending.json"]
    assert [problem.split(":")[0] for problem in sent.problems] == [
        f"the record in {aside / 'record-x.pending.json'} waits still"
    ]


def test_a_record_that_the_history_refuses_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    refused = make_record(1)
    evaluation_records.keep(replace(refused, aggregates=[("too", "short")]), tmp_path)
    evaluation_records.keep(make_record(2), tmp_path)
    with opened(tmp_path) as history:
        sent = evaluation_records.send(history, [tmp_path])
        assert [entry.id for entry in history.entries()] == [make_id(2)]
    assert sent.records == 1 and "waits still" in sent.problems[0]
    assert [path.name for path in tmp_path.glob("*.pending.json")] == [f"record-{make_id(1)}.pending.json"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"row": {}, "contents": {}, "aggregates": [], "labels": []}'])
def test_a_file_that_is_not_a_record_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record-1.pending.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a record"):
        evaluation_records.read(path)


@pytest.mark.parametrize(
    ("environment", "run"),
    [
        ({}, {}),
        ({"CI": "true"}, {"system": "other"}),
        ({"CI": "false"}, {}),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_RUN_ID": "17",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "a/b",
                "GITHUB_REF": "refs/pull/12/merge",
                "GITHUB_HEAD_REF": "topic",
                "GITHUB_REF_NAME": "12/merge",
                "GITHUB_SHA": "abc",
            },
            {
                "system": "github",
                "run": "17",
                "url": "https://github.com/a/b/actions/runs/17",
                "request": "12",
                "branch": "topic",
                "commit": "abc",
            },
        ),
        (
            {"GITLAB_CI": "true", "CI_PIPELINE_ID": "5", "CI_COMMIT_BRANCH": "main", "CI_JOB_URL": "https://x/1"},
            {"system": "gitlab", "run": "5", "branch": "main", "url": "https://x/1"},
        ),
        ({"JENKINS_URL": "https://j", "BUILD_NUMBER": "3"}, {"system": "jenkins", "run": "3"}),
    ],
)
def test_the_ci_run_is_read_from_the_environment(environment: dict[str, str], run: dict[str, str]) -> None:
    assert find_ci_run(environment) == run
