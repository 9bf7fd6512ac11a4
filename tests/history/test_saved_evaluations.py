"""Saving evaluations and finding them again."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.results import Record
from rageval_spec.data.tables import FIRST_SAMPLES, SampleTable, empty_samples
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history import saved_evaluations as history
from rageval_spec.history.evaluation_lookup import SearchPlaces, find_record
from rageval_spec.history.saved_evaluations import compare_settings, labels, load_record, save_evaluation, write_record
from rageval_spec.reading.formats import parquet
from tests.sample_evaluation import alter, make_evaluation, make_hostile_evaluation


def assert_same(one: Evaluation, other: Evaluation) -> None:
    assert_frame_equal(one.values, other.values)
    assert replace(one, values=None) == replace(other, values=None)  # type: ignore[arg-type]


def write(evaluation: Evaluation, folder: Path) -> None:
    """The files of a results folder, or of a label."""
    write_record(Record("1", None, None, None, evaluation), folder)


@pytest.mark.parametrize("evaluation", [make_evaluation(("golden", "scifact")), make_hostile_evaluation()])
def test_a_saved_evaluation_is_found_unchanged(tmp_path: Path, evaluation: Evaluation) -> None:
    saved = save_evaluation(evaluation, "main", tmp_path)
    assert saved == tmp_path / "main"
    assert_same(find_record("main", SearchPlaces(tmp_path, None)).evaluation, evaluation)


def test_saving_again_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    newer = replace(make_evaluation(), name="newer")
    save_evaluation(newer, "main", tmp_path)
    assert find_record("main", SearchPlaces(tmp_path, None)).evaluation.name == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["main"]


@pytest.mark.parametrize("label", ["feature/a b", "..", ".", ".hidden", "a%2Fb", "ärger", "C:\\x", "a\nb", "main"])
def test_any_label_is_one_folder_of_the_history(tmp_path: Path, label: str) -> None:
    folder = tmp_path / "history"
    saved = save_evaluation(make_evaluation(), label, folder)
    assert saved.parent == folder
    assert saved.resolve().parent == folder.resolve()
    assert labels(folder) == (label,)
    assert find_record(label, SearchPlaces(folder, None)).evaluation.name == "support-bot"


@pytest.mark.parametrize("label", ["", "  ", "x" * 300])
def test_a_label_that_cannot_be_a_folder_is_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(UsageError, match="label"):
        save_evaluation(make_evaluation(), label, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_results_folder_is_a_baseline_relative_to_the_spec(tmp_path: Path) -> None:
    results = tmp_path / "specs" / "results"
    results.mkdir(parents=True)
    write(make_evaluation(), results)
    beside_spec = SearchPlaces(tmp_path / "history", None, tmp_path / "specs")
    assert_same(find_record("results", beside_spec).evaluation, make_evaluation())
    assert_same(find_record(str(results), SearchPlaces(tmp_path / "history", None)).evaluation, make_evaluation())


def test_a_label_takes_precedence_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    write(replace(make_evaluation(), name="folder"), tmp_path / "main")
    save_evaluation(replace(make_evaluation(), name="label"), "main", tmp_path / "history")
    assert find_record("main", SearchPlaces(tmp_path / "history", None, tmp_path)).evaluation.name == "label"


def test_an_unknown_baseline_is_named_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'main' is neither a label in .*none has been saved yet.* nor a folder"):
        find_record("main", SearchPlaces(tmp_path, None))
    save_evaluation(make_evaluation(), "main", tmp_path)
    with pytest.raises(DataError, match="did you mean 'main'"):
        find_record("mian", SearchPlaces(tmp_path, None))
    with pytest.raises(DataError, match="known are main"):
        find_record("x" * 400, SearchPlaces(tmp_path, None))
    with pytest.raises(DataError, match="known are main"):
        find_record("\0", SearchPlaces(tmp_path, None))


def test_a_kill_while_writing_leaves_the_label_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(history, "_replace_folder", die)
    with pytest.raises(KeyboardInterrupt):
        save_evaluation(replace(make_evaluation(), name="newer"), "main", tmp_path)
    monkeypatch.undo()
    assert labels(tmp_path) == ("main",)
    assert_same(find_record("main", SearchPlaces(tmp_path, None)).evaluation, make_evaluation())


def test_a_kill_between_the_renames_loses_nothing(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    (tmp_path / "main").rename(tmp_path / ".main.previous")
    assert labels(tmp_path) == ("main",)
    assert_same(find_record("main", SearchPlaces(tmp_path, None)).evaluation, make_evaluation())
    save_evaluation(replace(make_evaluation(), name="newer"), "main", tmp_path)
    assert find_record("main", SearchPlaces(tmp_path, None)).evaluation.name == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["main"]


def test_drafts_of_killed_processes_are_removed_after_an_hour(tmp_path: Path) -> None:
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
        (b"{", "results.json is not a JSON report of rageval-spec: "),
        (b"[]", "is not a JSON report of rageval-spec of format_version 1: it has no format_version"),
        (b'{"format_version": 2}', "its format_version is 2; evaluate again with this version"),
        (b'{"format_version": 1}', "not a JSON report of rageval-spec: name: "),
        (b"\xff", "not a JSON report"),
    ],
)
def test_a_broken_report_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    write(make_evaluation(), tmp_path)
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_record(tmp_path)


def test_broken_or_absent_values_are_named(tmp_path: Path) -> None:
    write(make_evaluation(), tmp_path)
    values = tmp_path / "values.parquet"
    values.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"values\.parquet: not a Parquet file"):
        load_record(tmp_path)
    make_evaluation().values.drop("status", "value").write_parquet(values)
    with pytest.raises(DataError, match="the column 'value', 'status' is missing"):
        load_record(tmp_path)
    doubled = make_evaluation().values
    doubled.extend(doubled.head(1)).write_parquet(values)
    with pytest.raises(DataError, match="several values"):
        load_record(tmp_path)
    values.unlink()
    with pytest.raises(DataError, match="add 'parquet' to 'reports'"):
        load_record(tmp_path)


def test_the_label_holds_the_json_report_as_text(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    assert json.loads((tmp_path / "main" / "results.json").read_text("utf-8"))["name"] == "support-bot"


def test_settings_that_changed_are_noted() -> None:
    now = make_evaluation()
    before = alter(now, settings={"ranking": {"ties": "input", "missing": "zero"}, "statistics": {"seed": 8}})
    [note] = compare_settings(now, before, "main")
    assert note.message == "the baseline main was evaluated with ranking.ties: input, this one with trec_eval"
    assert compare_settings(now, now, "main") == ()


def test_another_model_of_a_system_is_noted_and_another_name_of_the_same_is_not() -> None:
    def with_model(name: str, **block: str) -> Evaluation:
        spec = {"systems": {"dense": {"use": "dense", "model": name}, "bm25": {"use": "bm25"}}, "models": {name: block}}
        return alter(make_evaluation(), spec=spec)

    now = with_model("multilingual", model="multilingual", precision="fp32")
    [note] = compare_settings(now, with_model("minilm", model="minilm", precision="fp32"), "main")
    told = "the baseline main was evaluated with systems.dense.model: minilm, this one with multilingual"
    assert note.message == told
    assert compare_settings(now, with_model("e5", model="multilingual", precision="fp32"), "main") == ()
    [note] = compare_settings(now, with_model("multilingual", model="multilingual", precision="int8"), "main")
    told = "the baseline main was evaluated with models.multilingual.precision: int8, this one with fp32"
    assert note.message == told


# Records


def test_a_record_holds_its_time_and_label(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    save_evaluation(make_evaluation(), "main", tmp_path)
    record = find_record("main", SearchPlaces(tmp_path, None))
    assert record.label == "main"
    assert record.time is not None
    assert before <= record.time <= datetime.now(UTC)
    save_evaluation(make_evaluation(), "main", tmp_path)
    assert find_record("main", SearchPlaces(tmp_path, None)).id != record.id


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record("17", datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC), "abc-dirty", "ä/b", make_evaluation())
    write_record(record, tmp_path)
    found = load_record(tmp_path)
    assert (found.id, found.time, found.commit, found.label) == (record.id, record.time, record.commit, record.label)


def test_folders_of_reports_and_earlier_versions_have_neither_time_nor_commit(tmp_path: Path) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    (tmp_path / "main" / "record.json").unlink()
    found = find_record("main", SearchPlaces(tmp_path, None))
    assert (found.time, found.commit, found.label) == (None, None, None)
    assert found.id == find_record("main", SearchPlaces(tmp_path, None)).id != ""
    assert found.evaluation.samples.height == 0


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"id": "1", "time": "noon", "commit": null, "label": null}'])
def test_a_broken_record_is_named(tmp_path: Path, content: str) -> None:
    save_evaluation(make_evaluation(), "main", tmp_path)
    (tmp_path / "main" / "record.json").write_text(content)
    with pytest.raises(DataError, match=r"record\.json: not a record of rageval-spec"):
        find_record("main", SearchPlaces(tmp_path, None))


# Samples


def with_samples() -> Evaluation:
    row = {"dataset": "golden", "system": "bot", "query_id": "q1", "question": "Why?", "references": ["So."]}
    row |= {"status": "answered", "slices": ["all"]}
    samples = pl.concat([empty_samples(), pl.DataFrame([row])], how="diagonal_relaxed")
    return replace(make_evaluation(), sample_table=SampleTable(lambda: [samples]))


def test_samples_are_saved_if_there_are_any(tmp_path: Path) -> None:
    assert not (save_evaluation(make_evaluation(), "retrieval", tmp_path) / "samples.parquet").exists()
    evaluation = with_samples()
    save_evaluation(evaluation, "main", tmp_path)
    assert_frame_equal(find_record("main", SearchPlaces(tmp_path, None)).evaluation.samples, evaluation.samples)


def test_samples_of_earlier_versions_get_the_columns_that_they_lack(tmp_path: Path) -> None:
    saved = save_evaluation(with_samples(), "main", tmp_path)
    judged = pl.Series("relevant", [[{"doc_id": "a", "relevance": 2}]])
    first = with_samples().samples.select(FIRST_SAMPLES)
    failed = first.with_columns(judged.clear(1), pl.lit("timed out").alias("error"))
    pl.concat([first.with_columns(judged), failed]).write_parquet(saved / "samples.parquet")
    found = find_record("main", SearchPlaces(tmp_path, None)).evaluation.samples
    assert found.schema == empty_samples().schema
    assert found["relevant"].to_list() == [[{"doc_id": "a", "relevance": 2, "rank": None}], None]
    assert found.select("status", "slices", "scores").rows() == [("answered", [], None), ("failed", [], None)]


def test_damaged_samples_are_reported_when_read_and_do_not_prevent_a_comparison(tmp_path: Path) -> None:
    saved = save_evaluation(with_samples(), "main", tmp_path)
    (saved / "samples.parquet").write_bytes(b"PAR1")
    found = find_record("main", SearchPlaces(tmp_path, None)).evaluation
    with pytest.raises(DataError, match=r"samples\.parquet: not a table of samples"):
        found.samples  # noqa: B018 - reading it is what fails


WRONG = [pl.lit(7), pl.lit(None), pl.lit(1.5), pl.lit([1, 2]), pl.lit(b"x"), pl.lit(True), pl.struct(a=1)]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("column", ["dataset", "system", "metric", "query_id", "status", "reason"])
def test_values_of_another_type_are_named(tmp_path: Path, column: str, wrong: pl.Expr) -> None:
    write(make_evaluation(), tmp_path)
    path = tmp_path / "values.parquet"
    pl.read_parquet(path).with_columns(wrong.alias(column)).write_parquet(path)
    if column == "reason" and str(wrong) == str(pl.lit(None)):
        assert load_record(tmp_path).evaluation.values["reason"].null_count()
        return
    with pytest.raises(DataError, match=rf"values\.parquet: .*{column}|several values"):
        load_record(tmp_path)


@pytest.mark.parametrize(
    "wrong", [pl.lit("x"), pl.lit(None), pl.lit(float("nan")), pl.lit(float("inf")), pl.lit([1.0])]
)
def test_a_scored_row_has_a_finite_number(tmp_path: Path, wrong: pl.Expr) -> None:
    write(make_evaluation(), tmp_path)
    path = tmp_path / "values.parquet"
    pl.read_parquet(path).with_columns(wrong.alias("value")).write_parquet(path)
    with pytest.raises(DataError, match=r"values\.parquet: .*value"):
        load_record(tmp_path)


@pytest.mark.parametrize("name", ["values.parquet", "samples.parquet"])
def test_a_table_that_expands_too_far_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ALWAYS_READ", 2**20)
    write(with_samples(), tmp_path)
    mark = {key: text for key, text in pl.read_parquet_metadata(tmp_path / name).items() if key != "ARROW:schema"}
    names = pl.read_parquet_schema(tmp_path / name)
    table = pl.select(pl.repeat("x", 200_000).alias(one) for one in [*names][:1]).lazy()
    table.with_columns(pl.lit(None).alias(one) for one in [*names][1:]).collect().write_parquet(
        tmp_path / name, metadata=mark
    )
    with pytest.raises(DataError, match="expands to more than"):
        _ = load_record(tmp_path).evaluation.samples
