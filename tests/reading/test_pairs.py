from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.pairs import read_pairs
from tests.plugins import COMPRESSIONS, write

FIELDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).filter(str.strip)


@given(rows=st.lists(st.tuples(FIELDS, FIELDS | st.just("two\ttabs\t")), min_size=1))
def test_written_content_is_read_back(rows: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "queries.tsv"
    path.write_text("".join(f"{query}\t{text}\n" for query, text in rows), encoding="utf-8", newline="")
    first = rows[0][0].removeprefix("\ufeff"), rows[0][1]
    assert read_pairs(path).frame.rows() == [first, *rows[1:]]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_rows_are_located_past_blank_lines(tmp_path: Path, compression: str) -> None:
    path = write(tmp_path / "queries.tsv", "\ufeff\nq1\ta\r\n \t \n\nq2\t\n", compression)
    records = read_pairs(path)
    assert records.frame.rows() == [("q1", "a"), ("q2", "")]
    assert [records.locate(0), records.locate(1)] == [f"{path}:2", f"{path}:5"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"q1 a\n", ":1: no tab; each line must be id, tab, text"),
        (b"q1\ta\n\nq2,b\n", ":3: no tab; each line must be id, tab, text"),
        (b" \n\t\n", ": the file has only blank lines"),
        (b"", ": the file is empty"),
        (b"q1\ta\nq2\t\xff\n", ":2:4: byte 0xff is not UTF-8"),
    ],
)
def test_files_that_are_not_lists_of_pairs_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path / "queries.tsv", content)
    with pytest.raises(DataError) as caught:
        read_pairs(path)
    assert str(caught.value).startswith(f"{path}{message}")
