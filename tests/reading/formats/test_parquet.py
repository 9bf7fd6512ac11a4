from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.column_names import CORPUS, QRELS
from rageval_spec.reading.formats import parquet as module
from rageval_spec.reading.formats.parquet import parquet_columns, parquet_objects, read_parquet
from rageval_spec.reading.formats.text_files import ForeignFileError
from tests.plugins import write


def save(folder: Path, **columns: Any) -> Path:
    path = folder / "table.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_ids_become_text_and_numbers_stay_typed(tmp_path: Path) -> None:
    path = save(tmp_path, other=[[1], [2]], qid=[7, 8], docid=["a", "b"], score=[1.5, None])
    records = read_parquet(path, QRELS)
    assert records.frame.rows() == [("7", "a", 1.5), ("8", "b", None)]
    assert records.locate(1) == f"{path}: row 2"


@pytest.mark.parametrize(
    "values",
    [
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
        pl.Series(["a", "b"]),
    ],
)
def test_texts_of_every_kind_are_text(tmp_path: Path, values: pl.Series) -> None:
    records = read_parquet(save(tmp_path, doc_id=values, text=values), CORPUS)
    assert records.frame.rows() == [("a", None, "a"), ("b", None, "b")]
    assert set(records.frame.dtypes) == {pl.String}


def test_a_column_with_only_nulls_fits_any_kind(tmp_path: Path) -> None:
    frame = read_parquet(save(tmp_path, query_id=["q"], doc_id=["d"], score=[None]), QRELS).frame
    assert frame.rows() == [("q", "d", None)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"score": [True]}, "the column 'score' must hold numbers, not Boolean"),
        ({"query_id": [1.5]}, "the column 'query_id' must hold text or integers, not Float64"),
        ({"doc_id": [b"d"]}, "the column 'doc_id' must hold text or integers, not Binary"),
        ({"doc_id": [["d"]]}, "the column 'doc_id' must hold text or integers, not List(String)"),
    ],
)
def test_a_column_of_another_type_is_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = save(tmp_path, **{"query_id": ["q"], "doc_id": ["d"], "score": [1], **columns})
    with pytest.raises(DataError) as caught:
        read_parquet(path, QRELS)
    assert str(caught.value) == f"{path}: {message}"


def test_objects_have_all_columns_and_a_number(tmp_path: Path) -> None:
    path = save(tmp_path, a=[1, None], b=[["x"], []])
    assert list(parquet_objects(path)) == [(1, {"a": 1, "b": ["x"]}), (2, {"a": None, "b": []})]
    assert parquet_columns(path) == ["a", "b"]


READERS: list[Callable[[Path], object]] = [
    lambda path: read_parquet(path, CORPUS),
    parquet_columns,
    lambda path: list(parquet_objects(path)),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": 1}\n', "this is JSON Lines, not Parquet; write use: jsonl"),
        (b"a,b\n1,2\n", "this is CSV, not Parquet; write use: csv"),
        (b"%PDF-1.7", "this is a PDF file, not Parquet"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, read: Callable[[Path], object], content: bytes, message: str) -> None:
    with pytest.raises(ForeignFileError, match=message):
        read(write(tmp_path / "table.parquet", content))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "content", [b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"\xff\xff\xff\x7fPAR1", b"no such thing"]
)
def test_damaged_files_are_refused_on_one_line(tmp_path: Path, read: Callable[[Path], object], content: bytes) -> None:
    path = write(tmp_path / "table.parquet", content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: not a Parquet file, or a damaged one (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, at: float) -> None:
    path = save(tmp_path, doc_id=[str(number) for number in range(1000)], text=["x"] * 1000)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * at)])
    for read in READERS:
        with pytest.raises(DataError, match="a damaged one"):
            read(path)


def test_no_rows_are_refused_and_missing_files_named(tmp_path: Path) -> None:
    path = save(tmp_path, doc_id=pl.Series([], dtype=pl.String), text=pl.Series([], dtype=pl.String))
    for read in (READERS[0], READERS[2]):
        with pytest.raises(DataError, match="no rows"):
            read(path)
    for read in READERS:
        with pytest.raises(DataError, match=r"gone\.parquet: no such file"):
            read(tmp_path / "gone.parquet")


def test_a_name_with_a_star_is_one_file(tmp_path: Path) -> None:
    save(tmp_path, doc_id=["d1"], text=["x"])
    path = tmp_path / "*.parquet"
    pl.DataFrame({"doc_id": ["d2"], "text": ["y"]}).write_parquet(path)
    assert read_parquet(path, CORPUS).frame["doc_id"].to_list() == ["d2"]


def _write(path: Path, frame: pl.DataFrame) -> Path:
    frame.write_parquet(path)
    return path


@pytest.mark.parametrize(
    "frame",
    [
        pl.select(pl.repeat("q", 200_000).alias("query_id")),
        pl.select(pl.repeat(1.5, 200_000).alias("score")),
        pl.DataFrame({"texts": [["x"] * 200_000]}),
        pl.DataFrame({"text": ["x" * 100_000] * 100}),
        pl.DataFrame({"texts": [["x" * 100_000] * 100]}),
    ],
    ids=["rows", "numbers", "one list", "long texts", "long texts in a list"],
)
def test_a_file_that_expands_to_much_more_than_it_is_is_refused(
    tmp_path: Path, frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ALWAYS_READ", 2**20)
    monkeypatch.setattr(module, "MOST_EXPANSION", 10)
    path = _write(tmp_path / "bomb.parquet", frame)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="the file expands to more than 1 MiB"):
        list(parquet_objects(path))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "uncompressed"])
def test_the_footer_tells_the_values_of_each_column(tmp_path: Path, compression: Any) -> None:
    frame = pl.DataFrame({"query_id": [f"q{n}" for n in range(30)], "texts": [["a", "b"]] * 30, "of": [{"a": 1}] * 30})
    path = tmp_path / "a.parquet"
    frame.write_parquet(path, compression=compression, row_group_size=10, metadata={"key": "text" * 100})
    assert [values for values, _ in module._list_chunks(module._read_footer(path))] == [10, 20, 10] * 3
    assert len(list(parquet_objects(path))) == 30


@given(st.binary(max_size=200))
def test_any_footer_is_read_or_left_to_the_reader(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        path.write_bytes(b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1")
        module.refuse_bomb(path)
