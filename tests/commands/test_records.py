"""The commands of `history`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.history import pending
from rageval_spec.history.folder import save_evaluation
from tests.command_line import invoke
from tests.history.records import make_id, make_marked_evaluation, make_record, opened
from tests.tiny import write_spec


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a history of three records."""
    monkeypatch.chdir(tmp_path)
    with opened(
        tmp_path / ".rageval",
        make_record(0x10001),
        make_record(0x10002, branch="topic"),
        make_record(0x10003, None, "v1"),
    ):
        pass
    return tmp_path


def test_the_list_has_the_newest_first_and_leaves_empty_columns_out(history: Path) -> None:
    lines = invoke("history", "list").output.splitlines()
    assert lines[0].split() == ["record", "time", "(UTC)", "outcome", "name", "labels", "branch", "commit", "cost"]
    assert [line[:5] for line in lines[1:]] == ["10003", "10002", "10001"]
    assert len(invoke("history", "list", "--limit", "1").output.splitlines()) == 2
    only = json.loads(invoke("history", "list", "--branch", "topic", "--format", "json").output)
    assert [entry["id"] for entry in only] == [make_id(0x10002)]
    assert invoke("history", "list", "--name", "another").output == "no records\n"
    assert "labels" not in invoke("history", "list", "--branch", "topic").output


def test_a_record_is_shown_by_label_and_by_id(history: Path) -> None:
    by_label, by_id = invoke("history", "show", "v1").output, invoke("history", "show", "10003").output
    assert by_label == by_id
    assert f"record    {make_id(0x10003)}" in by_label and "$0.25" in by_label and "gitlab" in by_label
    assert "[0.371, 0.454]" in by_label
    whole = json.loads(invoke("history", "show", "10003", "--format", "json").output)
    assert len(whole["numbers"]) == 15 and whole["labels"] == ["v1"]
    assert invoke("history", "show", "zzzz").exit_code == 2


def test_labels_are_given_moved_and_removed(history: Path) -> None:
    assert invoke("history", "label", "10001", "main").output == f"main: record {make_id(0x10001)[:8]}\n"
    assert invoke("history", "label", "10002", "main").exit_code == 0
    assert make_id(0x10002) in invoke("history", "show", "main").output
    assert invoke("history", "label", "main", "--remove").exit_code == 0
    assert invoke("history", "label", "main", "--remove").exit_code == 2
    assert invoke("history", "label", "main").exit_code == 2
    assert invoke("history", "label", "main", "x", "--remove").exit_code == 2


def test_pruning_keeps_labels(history: Path) -> None:
    told = invoke("history", "prune", "--keep", "2100-01-01", "--dry-run").output
    assert told.splitlines() == ["  10001000", "  10002000", "would remove 2 records"]
    assert len(invoke("history", "list").output.splitlines()) == 4
    assert "removed 2 records" in invoke("history", "prune", "--keep", "2100-01-01").output
    assert len(invoke("history", "list").output.splitlines()) == 2
    assert "write 90d, 12h or 2026-03-01" in invoke("history", "prune", "--keep", "soon").output


def test_import_takes_folders_and_unsent_records_once(history: Path) -> None:
    folder = save_evaluation(make_marked_evaluation(), "old")
    kept = pending.keep(make_record(0x10009), history / "results")
    assert invoke("history", "import", folder, kept).output == "imported 2 records\n"
    again = invoke("history", "import", folder, kept).output
    assert again == "imported 0 records; 2 were there already\n"
    assert make_marked_evaluation().name in invoke("history", "show", "old").output
    assert invoke("history", "import", history / "nothing").exit_code == 2


def test_the_export_has_a_line_for_each_record(history: Path) -> None:
    lines = invoke("history", "export").output.splitlines()
    assert len(lines) == 4 and lines[0].startswith("id,time,name,labels,")
    assert [line[:5] for line in lines[1:]] == ["10001", "10002", "10003"]


def test_a_trend_is_drawn_on_the_terminal_or_as_a_page(history: Path) -> None:
    assert "map (golden, bm25): 0.333, 3 records" in invoke("history", "trend", "map").output
    assert "3 records" not in invoke("history", "trend", "map", "--branch", "topic").output
    assert invoke("history", "trend", "--html", "new/trend.html").output == "wrote new/trend.html\n"
    assert b"<svg" in (history / "new" / "trend.html").read_bytes()
    assert "did you mean 'map'" in invoke("history", "trend", "mapp").output


def test_without_a_history_the_commands_say_what_makes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = invoke("history", "list")
    assert told.exit_code == 2 and "rageval-spec run records evaluations" in told.output
    elsewhere = invoke("history", "list", env={"RAGEVAL_HISTORY": "else/x.db"})
    assert "there is no history at else/x.db" in elsewhere.output
    assert not list(tmp_path.iterdir())


def test_a_history_beside_a_spec_in_a_folder_below_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs" / ".rageval").mkdir(parents=True)
    (tmp_path / "specs" / ".rageval" / "history.db").touch()
    told = invoke("history", "list")
    assert told.exit_code == 2
    assert "add --history specs/.rageval/history.db" in told.output


def test_a_run_is_compared_with_a_record_and_gated_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_spec(tmp_path)
    assert invoke("run", path, "-q").exit_code == 0
    [first] = json.loads(invoke("history", "list", "--format", "json").output)
    compared = invoke("compare", first["id"][:8], "rageval-results")
    assert compared.exit_code == 0 and f"{first['id'][:8]} → rageval-results" in compared.output
    write_spec(tmp_path, gates=[{"metric": "rr", "baseline": first["id"], "max_drop": 0.1}])
    assert invoke("run", path, "-q").exit_code == 0
    assert invoke("compare", "previous", "branch:none").exit_code == 2
    assert invoke("compare", "previous", "rageval-results").exit_code == 0
    write_spec(tmp_path, gates=[{"metric": "rr", "baseline": "previous", "max_drop": 0.1}])
    assert invoke("run", path, "-q").exit_code == 0
    write_spec(tmp_path, gates=[{"metric": "rr", "baseline": "absent", "max_drop": 0.1}])
    assert "neither a label" in invoke("run", path, "-q").output


@pytest.mark.usefixtures("history")
def test_an_outcome_that_no_record_can_have_is_refused() -> None:
    refused = invoke("history", "list", "--outcome", "failed")
    assert refused.exit_code == 2
    assert "'failed' is not one of 'pass', 'warn', 'fail', 'error'" in refused.stderr


@pytest.mark.usefixtures("history")
def test_a_label_does_not_hide_a_word_for_the_newest_record() -> None:
    refused = invoke("history", "label", "10001", "previous")
    assert refused.exit_code == 2
    assert "the label 'previous' already means the newest record of its kind; choose another" in refused.stderr
