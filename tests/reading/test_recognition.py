from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import polars as pl
import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.json_lines import json_objects
from rageval_spec.reading.recognition import (
    ForeignFileError,
    find_separator,
    name_content,
    refuse_header,
    refuse_line,
)
from tests.plugins import build_dataset, build_system
from tests.tiny import write_spec

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
    from rageval_spec.pipeline.preflight import validate

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
