"""The commands of `history`, as a user runs them.

What import makes of results folders.

Ages and dates choose records.

Records as tables for other programs.

Records as text.

The page of a trend is written whole.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.commands.history import (
    choose,
    draw,
    export_records,
    find_id,
    import_records,
    list_records,
    read_moment,
    show_record,
)
from rageval_spec.data.results import Record
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.history import evaluation_records
from rageval_spec.history.database import RecordFilter
from rageval_spec.history.evaluation_records import load_stored
from rageval_spec.history.saved_evaluations import save_evaluation, write_record
from rageval_spec.history.trends import TrendFilter
from rageval_spec.runner import Options, run
from tests.command_line import invoke
from tests.history.records import make_id, make_marked_evaluation, make_record, opened
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation
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
    assert [line[:5] for line in lines[2:]] == ["10003", "10002", "10001"]
    assert len(invoke("history", "list", "--limit", "1").output.splitlines()) == 3
    only = json.loads(invoke("history", "list", "--branch", "topic", "--format", "json").output)
    assert [entry["id"] for entry in only] == [make_id(0x10002)]
    assert invoke("history", "list", "--name", "another").output == "no records\n"
    assert "labels" not in invoke("history", "list", "--branch", "topic").output


def test_a_record_is_shown_by_label_and_by_id(history: Path) -> None:
    by_label, by_id = invoke("history", "show", "v1").output, invoke("history", "show", "10003").output
    assert by_label == by_id
    assert f"record   {make_id(0x10003)}" in by_label and "$0.25" in by_label and "gitlab" in by_label
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
    assert len(invoke("history", "list").output.splitlines()) == 5
    assert "removed 2 records" in invoke("history", "prune", "--keep", "2100-01-01").output
    assert len(invoke("history", "list").output.splitlines()) == 3
    assert "write 90d, 12h or 2026-03-01" in invoke("history", "prune", "--keep", "soon").output


def test_import_takes_folders_and_unsent_records_once(history: Path) -> None:
    folder = save_evaluation(make_marked_evaluation(), "old")
    kept = evaluation_records.keep(make_record(0x10009), history / "results")
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
    assert "--outcome failed: did you mean 'fail'?" in refused.stderr


@pytest.mark.usefixtures("history")
def test_a_label_does_not_hide_a_word_for_the_newest_record() -> None:
    refused = invoke("history", "label", "10001", "previous")
    assert refused.exit_code == 2
    assert "the label 'previous' already means the newest record of its kind; choose another" in refused.stderr


def test_a_label_keeps_its_time_and_its_commit(tmp_path: Path) -> None:
    time = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    write_record(Record("a" * 32, time, f"{'b' * 40}-dirty", "main", make_marked_evaluation()), tmp_path)
    with opened(tmp_path / "new") as history:
        import_records(history, [tmp_path / "results.json"])
        [entry] = history.entries()
    assert (entry.id, entry.time, entry.labels) == ("a" * 32, time, ("main",))
    assert (entry.commit, entry.is_dirty, entry.branch) == ("b" * 40, True, None)


def test_a_label_that_was_set_later_stays_where_it_is(tmp_path: Path) -> None:
    with opened(tmp_path / "new") as history:
        folder = save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
        import_records(history, [folder])
        newer = history.find("main")
        old = Record("a" * 32, datetime(2025, 1, 1, tzinfo=UTC), None, "main", make_marked_evaluation())
        write_record(old, tmp_path)
        import_records(history, [tmp_path])
        assert history.find("main") == newer and len(history.entries()) == 2


def test_one_bad_path_imports_nothing(tmp_path: Path) -> None:
    folder = save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
    bad = tmp_path / "record-1.pending.json"
    bad.write_text("{")
    with opened(tmp_path / "new") as history:
        with pytest.raises(DataError, match="not a record"):
            import_records(history, [folder, bad])
        assert history.entries() == []


def test_an_imported_folder_is_the_evaluation_with_the_bounds_of_its_gates(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1, "target": 0.2}])
    evaluation = run(path, Options(output=tmp_path / "out")).evaluation
    with opened(tmp_path / ".rageval") as history:
        meaning = history.entries()[0].meaning
    with opened(tmp_path / "new") as history:
        import_records(history, [tmp_path / "out"])
        [entry] = history.entries()
        found = load_stored(history, entry.id).evaluation
        assert export_records(history, RecordFilter(), "jsonl").count(b"\n") == 1
    assert entry.meaning == meaning
    assert_frame_equal(found.values, evaluation.values.drop("details", strict=False))
    assert found.fingerprints == evaluation.fingerprints
    assert replace(found, values=None) == replace(evaluation, values=None)  # type: ignore[arg-type]
    assert (entry.gates[0]["min"], entry.gates[0]["target"], entry.outcome) == (0.1, 0.2, "pass")


def test_a_history_is_imported_whole_into_another_one(tmp_path: Path) -> None:
    records = [make_record(1, None, "main"), make_record(2, make_hostile_evaluation()), make_record(3)]
    with opened(tmp_path / "old", *records) as old, opened(tmp_path / "new", make_record(3)) as new:
        assert import_records(new, [tmp_path / "old" / "history.db"]) == "imported 2 records; 1 was there already\n"
        assert new.entries() == old.entries()
        assert [*new.copy()] == [*old.copy()]
        assert export_records(new, RecordFilter(), "csv") == export_records(old, RecordFilter(), "csv")
        assert load_stored(new, make_id(1)).label == "main"


def test_a_file_that_is_no_history_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("id,time\n")
    with opened(tmp_path / "old", make_record(1)), opened(tmp_path / "new") as new:
        with pytest.raises(UsageError, match=r"runs\.csv is neither a results folder, .* nor a history"):
            import_records(new, [tmp_path / "old" / "history.db", tmp_path / "runs.csv"])
        assert new.entries() == []


def test_a_date_is_in_utc_and_an_age_counts_from_now() -> None:
    assert choose(since="2026-03-01", limit=3).since == datetime(2026, 3, 1, tzinfo=UTC)
    assert read_moment("2026-03-01T12:00:00+02:00", "--since").utcoffset() == timedelta(hours=2)
    before = datetime.now(UTC) - timedelta(days=90)
    assert before <= read_moment("90d", "--since") <= datetime.now(UTC) - timedelta(days=90)
    assert choose().since is None


@pytest.mark.parametrize("text", ["", "90", "yesterday", "9" * 40 + "d"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"--since .*is neither an age nor a date; write 90d"):
        read_moment(text, "--since")


@pytest.mark.parametrize("name", ["0002", "main", "previous", "branch:topic", "commit:cccccccc"])
def test_a_record_is_named_by_what_gates_take_too(tmp_path: Path, name: str) -> None:
    topic = make_record(2, replace(make_marked_evaluation(), gates=()), "main", branch="topic")
    with opened(tmp_path, make_record(1), topic) as history:
        assert find_id(history, name) == make_id(2)
        with pytest.raises(UsageError, match="no record 'branch:other'"):
            find_id(history, "branch:other")


def test_every_format_has_the_same_numbers(tmp_path: Path) -> None:
    other = make_evaluation(metrics={"rr": (0.5, 0.6)})
    with opened(tmp_path, make_record(1, None, "main"), make_record(2, other)) as history:
        text, lines, table = (export_records(history, RecordFilter(), form) for form in ("csv", "jsonl", "parquet"))
    cells = list(csv.DictReader(StringIO(text.decode())))
    objects = [json.loads(line) for line in lines.splitlines()]
    frame = pl.read_parquet(BytesIO(table))
    assert frame.columns == list(cells[0]) and frame.height == len(cells) == len(objects) == 2
    assert frame["golden/bm25/map"].to_list() == [0.33333, None]
    assert (cells[0]["golden/bm25/map"], cells[1]["golden/bm25/map"]) == ("0.33333", "")
    assert objects[0]["golden/bm25/map low"] == frame["golden/bm25/map low"][0] == 0.33333 * 0.9
    assert "golden/bm25/map" not in objects[1] and objects[1]["golden/bm25/rr"] == 0.5
    assert objects[0]["labels"] == "main" and objects[0]["ci_run"] == "1" and not objects[0]["is_dirty"]


def test_formulas_of_names_are_harmless_in_spreadsheets(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1, make_hostile_evaluation())) as history:
        rows = list(csv.reader(StringIO(export_records(history, RecordFilter(), "csv").decode())))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "@", "\t"))]


def test_a_star_marks_changed_files_and_names_are_harmless(tmp_path: Path) -> None:
    record = make_record(1, make_hostile_evaluation())
    dirty = replace(record, row={**record.row, "is_dirty": 1})
    with opened(tmp_path, dirty) as history:
        texts = list_records(history, RecordFilter(), "text"), show_record(history, make_id(1), "text")
    listed, shown = (text if isinstance(text, str) else text.decode() for text in texts)
    assert "cccccccc*" in listed and f"{'c' * 40} (with changed files)" in shown
    assert "\x1b" not in listed + shown and listed.count("cccccccc*") == 1


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with opened(tmp_path, make_record(1)) as history, pytest.raises(RagevalError, match="could not be written"):
        draw(history, TrendFilter("map"), RecordFilter(), tmp_path / "file" / "trend.html")
