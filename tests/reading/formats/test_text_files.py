""""""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import zipfile
from pathlib import Path

import polars as pl
import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.formats.json_files import json_objects
from rageval_spec.reading.formats.text_files import (
    ForeignFileError,
    find_file,
    find_separator,
    format_of,
    name_content,
    refuse_header,
    refuse_line,
    text_lines,
)
from tests.plugins import COMPRESSIONS, build_dataset, build_system, write
from tests.tiny import write_spec


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\n\r\nb\r\n", ["a", "", "b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("grün\u2028é\n".encode(), ["grün\u2028é"]),
    ],
    ids=["plain", "no last line end", "crlf", "byte order mark", "not ascii"],
)
def test_lines_come_without_their_ends(tmp_path: Path, compression: str, content: bytes, lines: list[str]) -> None:
    path = write(tmp_path / "file", content, compression)
    assert list(text_lines(path)) == list(enumerate(lines, 1))


@pytest.mark.parametrize("compression", ["", ".gz"])
def test_bytes_that_are_not_utf8_are_named_with_line_and_column(tmp_path: Path, compression: str) -> None:
    path = write(tmp_path / "file", b"fine\ncaf\xe9\n", compression)
    with pytest.raises(DataError) as caught:
        list(text_lines(path))
    assert str(caught.value).startswith(f"{path}:2:4: byte 0xe9 is not UTF-8")


def test_zstd_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"fine\ncaf\xe9\n", ".zst")
    with pytest.raises(DataError, match=r"utf8.*decompress the file to see on which line"):
        list(text_lines(path))


def test_cut_off_gzip_is_refused_where_it_ends(tmp_path: Path) -> None:
    source = random.Random(7)
    rows = [source.randbytes(40).hex() for _ in range(1000)]
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode(), mtime=0)[:-5000])
    whole = 0
    with pytest.raises(DataError) as caught:
        for whole, text in text_lines(path):
            assert text == rows[whole - 1]
    assert 0 < whole < 1000
    assert str(caught.value).startswith(f"{path}:{whole + 1}: the compressed file is damaged or cut off")


def test_cut_off_zstd_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "file", random.Random(7).randbytes(5000).hex(), ".zst")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged or cut off"):
        list(text_lines(path))


@pytest.mark.parametrize("name", ["missing", "folder", "empty"])
def test_unreadable_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    reason = {"missing": "no such file", "folder": "this is a folder, not a file", "empty": "the file is empty"}
    with pytest.raises(DataError) as caught:
        list(text_lines(tmp_path / name))
    assert str(caught.value) == f"{tmp_path / name}: {reason[name]}"


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "secret", "a\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(DataError, match="no permission to read it"):
        list(text_lines(path))


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.jsonl", "jsonl"), ("a.JSONL.GZ", "jsonl"), ("a.b.tsv.zst", "tsv"), ("a", ""), ("a.gz", ""), ("a.run", "run")],
)
def test_the_name_says_the_format_before_the_compression(name: str, form: str) -> None:
    assert format_of(Path(name)) == form


def test_a_compressed_file_replaces_a_missing_plain_one(tmp_path: Path) -> None:
    wanted = tmp_path / "corpus.jsonl"
    assert find_file(wanted) == wanted
    compressed = write(wanted, "{}", ".zst")
    assert find_file(wanted) == compressed
    assert find_file(write(wanted, "{}")) == wanted


@pytest.mark.parametrize("compression", ["", ".gz"])
def test_a_line_that_is_too_long_is_refused_before_it_is_read_whole(tmp_path: Path, compression: str) -> None:
    path = write(tmp_path / "rows.jsonl", b"{}\n" + bytes(3 << 20), compression)
    lines = text_lines(path, longest=1 << 20)
    assert next(lines) == (1, "{}")
    with pytest.raises(DataError, match=r"rows\.jsonl.*:2: this line is longer than 1 MiB; is a line feed missing"):
        next(lines)
    assert [len(line) for _, line in text_lines(path)] == [2, 3 << 20]
    assert [len(line) for _, line in text_lines(path, longest=None)] == [2, 3 << 20]


CSV = "question,reference\nwhy?,so\n"


def zipped(name: str, content: bytes = b"") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, content)
    return packed.getvalue()


def parquet() -> bytes:
    packed = io.BytesIO()
    pl.DataFrame({"question": ["why?"]}).write_parquet(packed)
    return packed.getvalue()


CONTENTS: dict[str, tuple[bytes, str]] = {
    "XLSX": (
        zipped("[Content_Types].xml"),
        "this is an Excel workbook (XLSX), not text; write use: xlsx for a dataset",
    ),
    "XLS": (b"\xd0\xcf\x11\xe0\xa1\xb1" + bytes(99), "this is an Excel workbook (XLS, or one with a password)"),
    "ODS": (zipped("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"), "this is an OpenDocument spread"),
    "ZIP": (zipped("golden.csv", CSV.encode()), "this is a ZIP archive, not text; extract the file from it"),
    "Parquet": (parquet(), "this is a Parquet file, not text; write use: parquet for a dataset"),
    "Parquet in gzip": (gzip.compress(parquet(), mtime=0), "this is a Parquet file"),
    "HTML": (b"\n<!DOCTYPE html><title>404</title>", "this is an HTML page"),
    "HTML in capitals": (b"\xef\xbb\xbf\n<HTML><BODY>Login", "this is an HTML page"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
}


@pytest.mark.parametrize(("content", "message"), CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("word", ["csv", "jsonl"])
def test_files_that_are_not_text_are_named(tmp_path: Path, word: str, content: bytes, message: str) -> None:
    (tmp_path / "golden.csv").write_bytes(content)
    dataset = build_dataset(word, tmp_path, path="golden.csv")
    with pytest.raises(ForeignFileError) as caught:
        _ = dataset.open().queries or dataset.open().qrels
    assert message in str(caught.value)
    (fault,) = dataset.check_files()
    assert fault.key == ("path",)
    assert message in f"{fault.message}; {fault.hint}"


@pytest.mark.parametrize("content", [CSV.encode(), "é".encode() * 40, b"a", b"", "\ufeffa,b".encode(), b"a\0b\0"[:3]])
def test_text_is_not_another_type(content: bytes) -> None:
    assert name_content(content) is None


@pytest.mark.parametrize(
    ("word", "name", "content", "message"),
    [
        ("csv", "a.csv", '\n{"question": "why?"}\n', ":2: this is JSON Lines, not CSV; write use: jsonl"),
        ("csv", "a.csv", '{"question":"why?","reference":"so"}\n', ":1: this is JSON Lines, not CSV; write use: jsonl"),
        ("csv", "a.csv", '[\n{"question": "why?"}]\n', ":1: this is a JSON list, not CSV; write use: jsonl"),
        ("jsonl", "a.jsonl", CSV, "this is CSV with the columns 'question', 'reference', not JSON Lines; write use"),
        ("jsonl", "a.jsonl", "question;reference\n", "this is CSV with the columns 'question', 'reference', not JSON"),
        ("jsonl", "a.jsonl", '[{"question": "why?"}]', "this is a JSON list, not JSON Lines; give the file a name"),
        ("parquet", "a.parquet", CSV, ": this is CSV, not Parquet; write use: csv"),
        ("parquet", "a.parquet", '{"question": "why?"}\n', ": this is JSON Lines, not Parquet; write use: jsonl"),
    ],
)  # fmt: skip
def test_formats_that_are_taken_for_each_other_are_named(
    tmp_path: Path, word: str, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    dataset = build_dataset(word, tmp_path, path=name)
    with pytest.raises(DataError) as caught:
        _ = dataset.open().queries or dataset.open().qrels
    assert message in str(caught.value)
    (fault,) = dataset.check_files()
    assert message.lstrip(":12 ") in f"{fault.message}; {fault.hint}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"question;reference\nwhy?;so, it is\n"),
        ("a.csv", b"question\treference\nwhy?\tso, it is\n"),
        ("a.csv", b"question|reference\nwhy?|so, it is\n"),
        ("a.tsv", b'question,reference\nwhy?,"so, it is"\n'),
        ("a.csv", b"\xef\xbb\xbfquestion;reference\nwhy?;so, it is\n"),
        ("a.csv", "question;reference\r\nwhy?;so, it is\r\n".encode("utf-16")),
        ("a.csv", 'question,reference\nwhy?,"so, it is"\n'.encode("utf-16-le")),
        ("a.csv", b"\xfe\xff" + 'question,reference\nwhy?,"so, it is"\n'.encode("utf-16-be")),
        ("a.csv", gzip.compress("question\treference\nwhy?\tso, it is\n".encode("utf-16"), mtime=0)),
    ],
)
@pytest.mark.parametrize("word", ["csv", "golden"])
def test_separators_and_encodings_that_the_file_shows_are_read(
    tmp_path: Path, word: str, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    collection = build_dataset(word, tmp_path, path=name).open()
    assert collection.queries is not None and collection.references is not None
    assert collection.queries.rows() == [("1", "why?")]
    assert collection.references["references"].to_list() == [["so, it is"]]


def test_a_separator_that_the_spec_names_is_not_second_guessed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question;reference\nwhy?;so\n")
    with pytest.raises(DataError, match=r"are separated by a semicolon, not by a comma; write separator: \";\""):
        assert build_dataset("csv", tmp_path, path="a.csv", separator=",").open().qrels is not None


def test_following_the_message_helps(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question;reference\nwhy?;so\n")
    collection = build_dataset("csv", tmp_path, path="a.csv", separator=";").open()
    assert collection.queries is not None and collection.queries.rows() == [("1", "why?")]
    (tmp_path / "b.csv").write_text(json.dumps({"question": "why?"}) + "\n")
    collection = build_dataset("jsonl", tmp_path, path="b.csv").open()
    assert collection.queries is not None and collection.queries.rows() == [("1", "why?")]


def test_gzip_under_any_name_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(CSV.encode(), mtime=0))
    collection = build_dataset("csv", tmp_path, path="a.csv").open()
    assert collection.queries is not None and collection.queries.rows() == [("1", "why?")]


def test_files_of_answers_get_the_same_message(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;answer\nq1;so\n")
    (fault,) = build_system("file", tmp_path, path="a.csv", separator=",").check_files()
    assert (fault.key, fault.hint) == (("path",), 'write separator: ";"')
    assert build_system("file", tmp_path, path="a.csv").answers_on("golden")
    (tmp_path / "b.jsonl").write_text("id,answer\nq1,so\n")
    (fault,) = build_system("file", tmp_path, path="b.jsonl").check_files()
    assert fault.hint is not None and "format: csv for a system" in fault.hint


def test_validate_reports_it_at_its_place(tmp_path: Path) -> None:
    from rageval_spec.diagnostics import SpecError
    from tests.checked_specs import validate

    (tmp_path / "golden.csv").write_bytes(zipped("xl/workbook.xml"))
    path = write_spec(tmp_path, datasets={"golden": {"use": "csv", "path": "golden.csv"}})
    with pytest.raises(SpecError, match=r"golden\.csv: this is an Excel workbook") as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert fault.source_line.strip() == "path: golden.csv"


@pytest.mark.parametrize(
    ("header", "separator"),
    [
        ("a,b", ","),
        ("a;b;c", ";"),
        ("a\tb", "\t"),
        ("a|b", "|"),
        ('"question";"answer"', ";"),
        ("a", None),
        ("", None),
        ("a,", None),
        ("a,a", None),
        ("What is it, and why does anybody want to know all these things at once? " * 2, None),
    ],
)
def test_a_separator_is_found_between_names(header: str, separator: str | None) -> None:
    assert find_separator(header) == separator


def test_correct_headers_and_lines_pass() -> None:
    refuse_header(Path("a.csv"), 1, "question,reference;more", ",")
    refuse_header(Path("a.csv"), 1, "question", ",")
    refuse_header(Path("a.csv"), 1, "[draft] question,reference", ",")
    refuse_line(Path("a.jsonl"), 1, '{"a": 1, "b": 2}')
    refuse_line(Path("a.jsonl"), 1, '"text, with a comma"')


def test_a_json_document_is_told_from_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{\n  "version": "1"\n}\n')
    with pytest.raises(ForeignFileError, match=r"rows\.jsonl:1: this is one JSON document, not JSON Lines; give"):
        list(json_objects(path))


def test_a_name_too_long_for_a_suffix_is_read(tmp_path: Path) -> None:
    path = tmp_path / f"{'x' * 247}.jsonl"
    assert find_file(path) == path
    path.write_text("{}\n")
    assert find_file(path) == path
