"""The results folder holds everything, is complete or not there, and can be loaded again.

Tables know which results they belong to.

The samples of a results folder, read in parts.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data import tables
from rageval_spec.data.datasets import Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import collect_base_values
from rageval_spec.data.tables import SampleTable
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.history import results_folder
from rageval_spec.history.results_folder import (
    EVIDENCE,
    FILES,
    TABLES,
    StoredSamples,
    check_marks,
    make_mark,
    write_results,
)
from rageval_spec.history.saved_evaluations import load_record
from tests.answered_evaluation import BRIDGE, answered, bridges, sample

ROOT = Path(__file__).parents[2]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_evaluation_is_loaded_as_it_was_written(tmp_path: Path) -> None:
    before = bridges()
    assert write_results(before, tmp_path) == tuple(tmp_path / name for name in FILES)
    after = load_record(tmp_path).evaluation
    assert_frame_equal(after.values, before.values)
    kept = [name for name in after.samples.columns if name != "status"]
    assert_frame_equal(after.samples.select(kept), before.samples.select(kept))
    assert after.samples["status"].to_list() == ["answered", "answered", "failed"]
    assert_frame_equal(after.findings, before.findings)
    assert_frame_equal(after.documents, before.documents)
    assert after.findings.height == 2


def test_texts_of_documents_are_written_once(tmp_path: Path) -> None:
    write_results(answered([], [BRIDGE, {**BRIDGE, "query_id": "q2"}, sample("q3", contexts=[])]), tmp_path)
    samples, documents = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("samples", "documents"))
    assert "contexts" not in samples.columns
    assert samples["documents"].to_list() == [[0, 1], [0, 1], []]
    assert documents.select("doc_id", "text").rows()[1] == ("opening", "It opened in 1909.")


def test_findings_are_a_table_of_their_own(tmp_path: Path) -> None:
    write_results(bridges(), tmp_path)
    assert_frame_equal(pl.read_parquet(tmp_path / "findings.parquet"), bridges().findings)


def test_blocks_do_not_show_in_the_files(tmp_path: Path) -> None:
    whole = bridges()
    streamed = replace(whole, sample_table=SampleTable(lambda: whole.samples.iter_slices(1)))
    write_results(whole, tmp_path / "whole")
    write_results(streamed, tmp_path / "streamed")
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "streamed" / name).read_bytes(), name


def test_without_samples_those_of_an_earlier_evaluation_are_removed(tmp_path: Path) -> None:
    write_results(bridges(), tmp_path)
    (tmp_path / "mine.txt").touch()
    write_results(bridges(), tmp_path, with_samples=False)
    assert names(tmp_path) == {*FILES, "mine.txt"} - {*EVIDENCE}
    assert load_record(tmp_path).evaluation.samples.height == 0


def test_a_folder_keeps_its_files_if_one_cannot_be_written(tmp_path: Path) -> None:
    write_results(bridges(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail() -> pl.DataFrame:
        raise ValueError("the disk is full")

    broken: Evaluation = replace(bridges(shift=0.25), sample_table=SampleTable(lambda: [fail()]))
    with pytest.raises(ValueError, match="the disk is full"):
        write_results(broken, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("table", ["values.parquet", "documents.parquet", "samples.parquet"])
def test_a_full_disk_is_told_and_the_earlier_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    write_results(bridges(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write = pl.DataFrame.write_parquet

    def write_to_full_disk(frame: pl.DataFrame, path: Path, **options: Any) -> None:
        write(frame, Path("/dev/full") if f".{table}." in path.name else path, **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", write_to_full_disk)
    with pytest.raises(RagevalError, match=f"{table}: the table could not be written; is the disk full"):
        write_results(bridges(shift=0.25), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(RagevalError, match="out: the results could not be written: File exists"):
        write_results(bridges(), tmp_path / "out")


KILLED = """
import os, signal, sys
from pathlib import Path
from rageval_spec.history import results_folder
from tests.answered_evaluation import BRIDGE, answered

target, name, nth = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls, original = [], getattr(*((results_folder, name) if name == "sync" else (Path, name)))

def die(*arguments):
    calls.append(arguments)
    if len(calls) == nth:
        if name == "sync":
            os.truncate(arguments[0], arguments[0].stat().st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments)

setattr(results_folder if name == "sync" else Path, name, die)
results_folder.write_results(answered([], [{**BRIDGE, "contexts": ["One.", "Two."]}]), target)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(
    ("step", "nth"), [("sync", 1), ("sync", 5), *(("replace", nth) for nth in range(1, len(FILES) + 1))]
)
def test_a_killed_run_leaves_no_half_file(tmp_path: Path, step: str, nth: int) -> None:
    """Killed while it writes (`sync`, with half a file), the earlier files stay; while it renames, each is whole.

    A folder with files of both runs is refused.
    """
    write_results(bridges(), tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), step, str(nth)], cwd=ROOT, check=False)
    assert killed.returncode == -9
    assert all(name in FILES or name.endswith(".part") for name in names(tmp_path))
    changed = [name for name in FILES if (tmp_path / name).read_bytes() != before[name]]
    assert "results.json" not in changed
    assert len(changed) == (0 if step == "sync" else nth - 1)
    if changed:
        with pytest.raises(
            DataError, match=r"parquet is not of the evaluation in results\.json; .* run the spec again"
        ):
            load_record(tmp_path)
    else:
        assert load_record(tmp_path).evaluation.name == bridges().name
    write_results(bridges(), tmp_path)
    assert load_record(tmp_path).evaluation.name == bridges().name
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == before


def with_baseline() -> Evaluation:
    base = bridges(shift=0.15).values
    return replace(bridges(), load_base_values=lambda: collect_base_values(bridges().values, {"main": base}))


def test_values_of_a_gates_baseline_are_kept_also_without_samples(tmp_path: Path) -> None:
    for with_samples in (True, False):
        write_results(with_baseline(), tmp_path, with_samples=with_samples)
        assert_frame_equal(load_record(tmp_path).evaluation.base_values, with_baseline().base_values)


def test_values_of_a_baseline_that_no_gate_names_any_more_are_removed(tmp_path: Path) -> None:
    write_results(with_baseline(), tmp_path)
    write_results(bridges(), tmp_path)
    assert names(tmp_path) == {*FILES}
    assert load_record(tmp_path).evaluation.base_values.height == 0


def test_a_broken_file_of_base_values_is_named(tmp_path: Path) -> None:
    write_results(with_baseline(), tmp_path)
    (tmp_path / "baselines.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"baselines\.parquet: not a table of base values"):
        _ = load_record(tmp_path).evaluation.base_values


def write_table(path: Path, metadata: dict[str, str]) -> Path:
    pl.DataFrame({"a": [1]}).write_parquet(path, metadata=metadata)
    return path


def test_tables_pass_with_the_mark_of_the_results_and_without_any(tmp_path: Path) -> None:
    results = b'{"name": "\xc3\xa4", "values": [0.1, 2]}'
    own, old = write_table(tmp_path / "own", make_mark(results)), write_table(tmp_path / "old", {"other": "x"})
    (tmp_path / "broken").write_bytes(b"text")
    check_marks(results, [own, old, tmp_path / "absent", tmp_path / "broken"])
    check_marks(b'{\r\n "values": [0.1, 2],\r\n "name": "\\u00e4"}', [own])


def test_a_table_of_other_results_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "values.parquet", make_mark(b'{"name": "a"}'))
    with pytest.raises(DataError, match=r"values\.parquet is not of the evaluation in results\.json"):
        check_marks(b'{"name": "b"}', [path])


@pytest.mark.parametrize("name", [name for name in TABLES if name != "baselines.parquet"])
def test_each_table_of_a_folder_is_marked(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_folder, "_FEW_FINGERPRINTS", -1)
    write_results(bridges(), tmp_path)
    with pytest.raises(DataError, match=name):
        check_marks(b"{}", [tmp_path / name])


KEY = ("dataset", "system", "query_id")


@pytest.fixture
def stored(tmp_path: Path) -> StoredSamples:
    """Five thousand questions, which are more than a block; those of odd numbers share their contexts."""
    rows: list[dict[str, Any]] = [
        {**BRIDGE, "query_id": f"q{at}"} if at % 2 else sample(f"q{at}", contexts=[f"text {at}"]) for at in range(5000)
    ]
    write_results(answered([], rows), tmp_path)
    return StoredSamples(tmp_path)


def test_blocks_are_the_whole_table(stored: StoredSamples, tmp_path: Path) -> None:
    whole, blocks = StoredSamples(tmp_path).whole, [*stored.blocks()]
    assert [block.height for block in blocks] == [4096, 904]
    assert_frame_equal(pl.concat(blocks), whole)
    assert whole["contexts"].to_list()[4998:] == [["text 4998"], BRIDGE["contexts"]]


def test_columns_are_as_in_the_whole_table(stored: StoredSamples, tmp_path: Path) -> None:
    whole = StoredSamples(tmp_path).whole
    assert_frame_equal(stored.select([*KEY, "status"]), whole.select(*KEY, "status"))
    assert stored.select(["contexts"]).equals(whole.select("contexts"))


@pytest.mark.parametrize("count", [0, 2, 300])
def test_rows_are_found_with_their_texts_in_the_order_of_the_file(
    stored: StoredSamples, tmp_path: Path, count: int
) -> None:
    whole = StoredSamples(tmp_path).whole
    wanted = whole.select(KEY).tail(count).reverse()
    assert_frame_equal(stored.find(wanted), whole.tail(count))


def test_a_folder_without_samples_has_none(tmp_path: Path) -> None:
    stored = StoredSamples(tmp_path)
    assert [*stored.blocks()] == []
    assert stored.whole.equals(tables.empty_samples())
    assert stored.select(KEY).height == stored.find(stored.select(KEY)).height == 0


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "samples.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"samples\.parquet: not a table of samples"):
        StoredSamples(tmp_path).select(KEY)


def test_a_list_and_a_card_never_hold_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rageval_spec.commands.compare.changes import find_changes
    from rageval_spec.drawing.cards import select_cards
    from rageval_spec.drawing.question_order import Filter

    write_results(bridges(), tmp_path)
    monkeypatch.setattr(StoredSamples, "whole", property(lambda _: pytest.fail("all samples were read")))
    evaluation = load_record(tmp_path).evaluation
    assert len(select_cards(evaluation, Filter(limit=2))) == 2
    assert find_changes(evaluation, replace(evaluation), Filter()).shared == 3


def test_fingerprints_of_many_questions_are_in_a_file_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"d": {"q1": Fingerprint("a1", "b1"), "q2": Fingerprint("a2", None, "c2")}}
    evaluation = replace(bridges(), load_fingerprints=lambda: Fingerprints(known))
    write_results(evaluation, tmp_path)
    inside = load_record(tmp_path).evaluation.fingerprints
    assert not (tmp_path / "fingerprints.parquet").exists()
    monkeypatch.setattr(results_folder, "_FEW_FINGERPRINTS", 0)
    write_results(evaluation, tmp_path)
    beside = load_record(tmp_path).evaluation.fingerprints
    assert {name: dict(of.items()) for name, of in beside.datasets.items()} == inside.datasets == known
    monkeypatch.undo()
    write_results(evaluation, tmp_path)
    assert not (tmp_path / "fingerprints.parquet").exists()
