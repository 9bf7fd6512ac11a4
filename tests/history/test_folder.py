"""Saving and finding earlier evaluations."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history import folder as history
from rageval_spec.history.folder import (
    compare_settings,
    find_baseline,
    labels,
    load_evaluation,
    save_evaluation,
    write_evaluation,
)
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation


def assert_same(one: Evaluation, other: Evaluation) -> None:
    assert_frame_equal(one.values, other.values)
    assert replace(one, values=None) == replace(other, values=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("evaluation", [make_evaluation(("golden", "scifact")), make_hostile_evaluation()])
def test_what_is_saved_is_found_unchanged(tmp_path: Path, evaluation: Evaluation) -> None:
    saved = save_evaluation(evaluation, "main", tmp_path)
    assert saved == tmp_path / "main"
    assert_same(find_baseline("main", tmp_path), evaluation)


def test_saving_again_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    newer = replace(make_evaluation(), name="newer")
    save_evaluation(newer, "main", tmp_path)
    assert find_baseline("main", tmp_path).name == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["main"]


@pytest.mark.parametrize("label", ["feature/a b", "..", ".", ".hidden", "a%2Fb", "ärger", "C:\\x", "a\nb", "main"])
def test_any_label_is_one_folder_of_the_history(tmp_path: Path, label: str) -> None:
    folder = tmp_path / "history"
    saved = save_evaluation(make_evaluation(), label, folder)
    assert saved.parent == folder
    assert saved.resolve().parent == folder.resolve()
    assert labels(folder) == (label,)
    assert find_baseline(label, folder).name == "support-bot"


@pytest.mark.parametrize("label", ["", "  ", "x" * 300])
def test_a_label_that_cannot_be_a_folder_is_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(UsageError, match="label"):
        save_evaluation(make_evaluation(), label, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_results_folder_is_a_baseline_relative_to_the_spec(tmp_path: Path) -> None:
    results = tmp_path / "specs" / "results"
    results.mkdir(parents=True)
    write_evaluation(make_evaluation(), results)
    assert_same(find_baseline("results", tmp_path / "history", tmp_path / "specs"), make_evaluation())
    assert_same(find_baseline(str(results), tmp_path / "history"), make_evaluation())


def test_a_label_comes_before_a_folder(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    write_evaluation(replace(make_evaluation(), name="folder"), tmp_path / "main")
    save_evaluation(replace(make_evaluation(), name="label"), "main", tmp_path / "history")
    assert find_baseline("main", tmp_path / "history", tmp_path).name == "label"


def test_an_unknown_baseline_is_named_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'main' is neither a label in .*none is saved yet.* nor a folder"):
        find_baseline("main", tmp_path)
    save_evaluation(make_evaluation(), "main", tmp_path)
    with pytest.raises(DataError, match="did you mean 'main'"):
        find_baseline("mian", tmp_path)
    with pytest.raises(DataError, match="known are main"):
        find_baseline("x" * 400, tmp_path)
    with pytest.raises(DataError, match="known are main"):
        find_baseline("\0", tmp_path)


def test_a_kill_while_writing_leaves_the_label_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(history, "_replace_folder", die)
    with pytest.raises(KeyboardInterrupt):
        save_evaluation(replace(make_evaluation(), name="newer"), "main", tmp_path)
    monkeypatch.undo()
    assert labels(tmp_path) == ("main",)
    assert_same(find_baseline("main", tmp_path), make_evaluation())


def test_a_kill_between_the_renames_loses_nothing(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    (tmp_path / "main").rename(tmp_path / ".main.previous")
    assert labels(tmp_path) == ("main",)
    assert_same(find_baseline("main", tmp_path), make_evaluation())
    save_evaluation(replace(make_evaluation(), name="newer"), "main", tmp_path)
    assert find_baseline("main", tmp_path).name == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["main"]


def test_what_a_killed_process_left_is_removed_in_time(tmp_path: Path) -> None:
    abandoned, young, other = (tmp_path / name for name in (f".main.{'a' * 32}", f".main.{'b' * 32}", ".main.mine"))
    for folder in (abandoned, young, other):
        folder.mkdir()
    for folder in (abandoned, other):
        os.utime(folder, (0, 0))
    save_evaluation(make_evaluation(), "main", tmp_path)
    assert not abandoned.exists()
    assert young.exists()
    assert other.exists()
    assert labels(tmp_path) == ("main",)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file.*main: the evaluation could not be saved"):
        save_evaluation(make_evaluation(), "main", tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "results.json: not a JSON report: "),
        (b"[]", "format_version is None where 1 was expected"),
        (b'{"format_version": 2}', "format_version is 2 where 1 was expected"),
        (b'{"format_version": 1}', "not a JSON report of rageval-spec: name: "),
        (b"\xff", "not a JSON report"),
    ],
)
def test_a_broken_report_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    write_evaluation(make_evaluation(), tmp_path)
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_evaluation(tmp_path)


def test_broken_or_absent_values_are_named(tmp_path: Path) -> None:
    write_evaluation(make_evaluation(), tmp_path)
    values = tmp_path / "values.parquet"
    values.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"values\.parquet: not a Parquet file"):
        load_evaluation(tmp_path)
    make_evaluation().values.drop("status", "value").write_parquet(values)
    with pytest.raises(DataError, match="the column 'value', 'status' is missing"):
        load_evaluation(tmp_path)
    doubled = make_evaluation().values
    doubled.extend(doubled.head(1)).write_parquet(values)
    with pytest.raises(DataError, match="several values"):
        load_evaluation(tmp_path)
    values.unlink()
    with pytest.raises(DataError, match="add the report parquet"):
        load_evaluation(tmp_path)


def test_the_label_holds_the_json_report_as_text(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    assert json.loads((tmp_path / "main" / "results.json").read_text("utf-8"))["name"] == "support-bot"


def test_settings_that_changed_are_noted() -> None:
    now = make_evaluation()
    before = replace(now, settings={"ranking": {"ties": "input", "missing": "zero"}, "statistics": {"seed": 8}})
    [note] = compare_settings(now, before, "main")
    assert note.message == "the baseline main was evaluated with ranking.ties: input, this one with trec_eval"
    assert compare_settings(now, now, "main") == ()
