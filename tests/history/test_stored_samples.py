"""The samples of a results folder, read in parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data import tables
from rageval_spec.errors import DataError
from rageval_spec.history.folder import load_record
from rageval_spec.history.results_folder import write_results
from rageval_spec.history.stored_samples import StoredSamples
from tests.answered_evaluation import BRIDGE, answered, bridges, sample

KEY = ("dataset", "system", "query_id")


@pytest.fixture
def stored(tmp_path: Path) -> StoredSamples:
    """Five thousand questions, which are more than a block; those of odd numbers share their contexts."""
    rows: list[dict[str, Any]] = [
        {**BRIDGE, "query_id": f"q{at}"} if at % 2 else sample(f"q{at}", contexts=[f"text {at}"]) for at in range(5000)
    ]
    write_results(answered([], rows), tmp_path)
    return StoredSamples(tmp_path)


def test_blocks_are_the_whole_table(stored: StoredSamples) -> None:
    blocks = [*stored.blocks()]
    assert [block.height for block in blocks] == [4096, 904]
    assert_frame_equal(pl.concat(blocks), stored.load())
    assert stored.load()["contexts"].to_list()[4998:] == [["text 4998"], BRIDGE["contexts"]]


def test_columns_are_as_in_the_whole_table(stored: StoredSamples) -> None:
    assert_frame_equal(stored.select([*KEY, "status"]), stored.load().select(*KEY, "status"))
    assert stored.select(["contexts"]).equals(stored.load().select("contexts"))


@pytest.mark.parametrize("count", [0, 2, 300])
def test_rows_are_found_with_their_texts_in_the_order_of_the_file(stored: StoredSamples, count: int) -> None:
    wanted = stored.load().select(KEY).tail(count).reverse()
    assert_frame_equal(stored.find(wanted), stored.load().tail(count))


def test_a_folder_without_samples_has_none(tmp_path: Path) -> None:
    stored = StoredSamples(tmp_path)
    assert [*stored.blocks()] == []
    assert stored.load().equals(tables.empty_samples())
    assert stored.select(KEY).height == stored.find(stored.select(KEY)).height == 0


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "samples.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"samples\.parquet: not a table of samples"):
        StoredSamples(tmp_path).select(KEY)


def test_a_list_and_a_card_never_hold_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rageval_spec.commands.compare.questions import find_changes
    from rageval_spec.reports.shared.cards import Filter, select_cards

    write_results(bridges(), tmp_path)
    monkeypatch.setattr(StoredSamples, "load", lambda _: pytest.fail("all samples were read"))
    evaluation = load_record(tmp_path).evaluation
    assert len(select_cards(evaluation, Filter(limit=2))) == 2
    assert find_changes(evaluation, replace(evaluation), Filter()).shared == 3
