""""""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.reading.column_names import RecordColumn
from rageval_spec.reading.formats.delimited import (
    delimited_objects,
    header_of,
    read_delimited_batches,
    read_pairs,
    separator_of,
)
from rageval_spec.reading.formats.records import Records, join_records
from tests.plugins import COMPRESSIONS, write

COLUMNS = (
    RecordColumn("key", ("key", "id"), "id", advice="name it"),
    RecordColumn("text", ("text",), required=False),
)


def _read(path: Path, separator: str) -> Records:
    return join_records([*read_delimited_batches(path, COLUMNS, separator)])


FIELDS = st.text(st.sampled_from('ab,"\n\t é '), max_size=6)


@given(rows=st.lists(st.tuples(st.sampled_from(["k1", "k 2"]), FIELDS, FIELDS), min_size=1))
def test_csv_files_of_pythons_csv_module_are_read_back(
    rows: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer).writerows([("text", "other", "id"), *((text, other, key) for key, text, other in rows)])
    path = write(tmp_path_factory.mktemp("rows") / "rows.csv", buffer.getvalue())
    records = _read(path, ",")
    assert records.frame.rows() == [(key, text) for key, text, _ in rows]
    begins = [1 + sum(t.count("\n") + o.count("\n") + 1 for _, t, o in rows[:index]) for index in range(len(rows))]
    assert [records.locate(row) for row in range(len(rows))] == [f"{path}:{line + 1}" for line in begins]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("start", ["", "\ufeff", "\r\n\r\n"], ids=["plain", "byte order mark", "blank lines first"])
def test_windows_files_and_compressed_ones_read_the_same(tmp_path: Path, start: str, compression: str) -> None:
    path = write(tmp_path / "rows.csv", start + "key,text\r\na,x\r\n\r\nb\r\n", compression)
    records = _read(path, ",")
    assert records.frame.rows() == [("a", "x"), ("b", "")]
    assert records.locate(1) == f"{path}:{4 + start.count(chr(10))}"


def test_quotes_are_plain_characters_between_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.tsv", 'key\ttext\na\t"x" y\nb\t"z\n')
    assert _read(path, "\t").frame.rows() == [("a", '"x" y'), ("b", '"z')]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_quotes_of_spreadsheet_programs_enclose_fields(tmp_path: Path, separator: str) -> None:
    rows = [("key", "text"), ("a", "Who, if anyone?"), ("b", 'What is "NaN"?'), ("c", "When?\nWhere?"), ("d", "x\ty")]
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator).writerows(rows)
    path = write(tmp_path / "rows.txt", buffer.getvalue())
    assert _read(path, separator).frame.rows() == rows[1:]
    assert [tuple(row.values()) for _, row in delimited_objects(path, separator)] == rows[1:]


@pytest.mark.parametrize("rows", ['a\t"x\nb\ty"\n', 'a\t"x\nb\ty" z\n', 'a\t"x"\nb\n'])
def test_plain_quotes_between_tabs_swallow_no_rows(tmp_path: Path, rows: str) -> None:
    path = write(tmp_path / "rows.tsv", "key\ttext\n" + rows)
    assert _read(path, "\t").frame["key"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("key,text\ra,x\r", "lines end in carriage returns alone, as on old Macintosh computers; save it as CSV UTF-8"),
        ('key,text\na,"x\n', "a quote is never closed"),
    ],
)
def test_what_is_no_csv_says_why(tmp_path: Path, content: str, told: str) -> None:
    path = write(tmp_path / "rows.csv", content)
    with pytest.raises(DataError, match=told):
        list(delimited_objects(path, ","))


def test_a_header_in_quotes_is_read_between_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.tsv", '"key"\t"text"\n"a"\t"x"\n')
    assert header_of(path, "\t") == ["key", "text"]


def test_the_line_that_tells_excel_the_separator_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "sep=;\nkey;text\na;x\n")
    with pytest.raises(DataError, match=r"rows\.csv:1: the line 'sep=;' is for Excel only; delete it"):
        header_of(path, ";")


def test_a_quote_inside_an_unquoted_field_is_plain(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", 'key,text\na,5" disk\nb,y\n')
    assert _read(path, ",").frame.rows() == [("a", '5" disk'), ("b", "y")]


def test_long_fields_are_read_and_the_limit_of_csv_is_restored(tmp_path: Path) -> None:
    long = "x" * 300_000
    path = write(tmp_path / "rows.csv", f'key,text\na,{long}\nb,5" disk\n')
    before = csv.field_size_limit()
    assert _read(path, ",").frame["text"].to_list() == [long, '5" disk']
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("key,text\na,x\nb,y,z\n", ":3: 3 fields, but the header has 2"),
        ('key,text\na,x\nb,"y\nc,z\n', ":3: not CSV: a quote is never closed"),
        ('key,text\na,"x" y\n', ":2: not CSV: ',' expected after '\"'"),
        ("name,text\na,x\n", ":1: no column 'key' or 'id'; the columns are 'name', 'text'; name it"),
        ("key,key\na,x\n", ":1: 'key' is listed twice"),
        ("key,text\n", ": a header and no rows"),
        ("key,text\n\n,\n", ": a header and no rows"),
    ],
)
def test_a_bad_file_is_refused_with_the_line(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path / "rows.csv", content)
    with pytest.raises(DataError) as caught:
        _read(path, ",")
    assert str(caught.value).startswith(f"{path}{message}")


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", b"key,text\na,x\nb,caf\xe9\n")
    with pytest.raises(DataError, match=r":3:6: byte 0xe9 is not UTF-8"):
        _read(path, ",")


@pytest.mark.parametrize(("name", "separator"), [("a.tsv", "\t"), ("a.tsv.gz", "\t"), ("a.csv", ","), ("a", ",")])
def test_the_name_says_the_separator(name: str, separator: str) -> None:
    assert separator_of(Path(name)) == separator


PAIR_FIELDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).filter(str.strip)


@given(rows=st.lists(st.tuples(PAIR_FIELDS, PAIR_FIELDS | st.just("two\ttabs\t")), min_size=1))
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
