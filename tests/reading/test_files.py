from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.files import find_file, format_of, text_lines
from tests.plugins import COMPRESSIONS, write


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
