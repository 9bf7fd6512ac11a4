""""""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.generation import documents
from rageval_spec.generation.documents import Unread, describe_unread, list_files, read_documents
from rageval_spec.reading.column_names import CorpusColumns
from tests.generation.portable_documents import make_pdf


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def reasons(folder: Path) -> dict[str, str]:
    return dict(read_documents(folder).unread)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "shop" / "b" / "refunds.md", "# Refunds\n\nWithin 14 days.\n")
    write(tmp_path / "shop" / "a-note.txt", "Just text.\r\nTwo lines.")
    write(tmp_path / "shop" / "page.html", "<title>Page</title><nav>x</nav><p>Body")
    return tmp_path / "shop"


def test_files_of_all_kinds_become_documents_in_the_order_of_their_paths(folder: Path) -> None:
    write(folder / "c.pdf", make_pdf([["First page."], ["Second page."]]))
    found = read_documents(folder)
    assert (found.kind, found.unread) == ("files", ())
    assert [(one.doc_id, one.title, one.text) for one in found.documents] == [
        ("a-note.txt", "a note", "Just text.\nTwo lines."),
        ("b/refunds.md", "Refunds", "# Refunds\n\nWithin 14 days.\n"),
        ("c.pdf", "c", "First page.\n\nSecond page."),
        ("page.html", "Page", "Body"),
    ]
    assert found.documents[2].pages == (0, 13)


def test_the_version_changes_with_the_content_and_not_with_the_time(folder: Path) -> None:
    before = {one.doc_id: one.version for one in read_documents(folder).documents}
    os.utime(folder / "page.html", (0, 0))
    write(folder / "a-note.txt", "Other text.")
    after = {one.doc_id: one for one in read_documents(folder).documents}
    assert {name for name in after if after[name].version != before[name]} == {"a-note.txt"}
    assert after["page.html"].modified == "1970-01-01T00:00:00Z"


def test_everything_that_is_not_read_is_listed_with_its_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST", 1 << 20)
    write(folder / "latin.txt", "fine\ncaf\xe9".encode("latin-1"))
    write(folder / "binary.md", b"a\0b")
    write(folder / "empty.md", "")
    write(folder / "blank.md", " \n")
    write(folder / "huge.txt", b"a" * ((1 << 20) + 1))
    write(folder / "scan.pdf", make_pdf([[]]))
    write(folder / "half.pdf", make_pdf([["Text."], []]))
    write(folder / "picture.png", b"\x89PNG")
    write(folder / "LICENSE", "text")
    write(folder / "rows.jsonl", "{}")
    write(folder / ".git" / "x.md", "text")
    write(folder / ".hidden.md", "text")
    write(folder / "packed.md", gzip.compress(b"text", mtime=0))
    write(folder / "odd.html", '<meta charset="klingon"><p>text')
    (folder / "nowhere.md").symlink_to(folder / "absent.md")
    assert reasons(folder) == {
        "latin.txt": "line 2, column 4: byte 0xe9 is not UTF-8; convert the file",
        "binary.md": "the file is binary, not text",
        "empty.md": "the file is empty",
        "blank.md": "the file has no text",
        "huge.txt": "the file has 1 MiB; at most 1 MiB are read as one document",
        "scan.pdf": "no page has text; if the pages are scanned images, run OCR over them first",
        "half.pdf": "1 of 2 pages without text (page 2); scanned pages need OCR",
        "picture.png": "files in .png are not read, only Markdown, text, HTML and PDF",
        "LICENSE": "files without a suffix are not read, only Markdown, text, HTML and PDF",
        "rows.jsonl": "a JSON file inside a folder is not read; name the file itself if it is the corpus",
        ".git/": "a hidden folder",
        ".hidden.md": "a hidden file",
        "packed.md": "the file is compressed; decompress it",
        "odd.html": "the page names an encoding that does not exist, 'klingon'",
        "nowhere.md": "a link to nothing",
    }
    assert "half.pdf" in {one.doc_id for one in read_documents(folder).documents}


def test_links_to_folders_are_followed_but_not_in_circles(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "x.md", "Linked.")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "b" / "up").symlink_to(folder)
    found = read_documents(folder)
    assert "linked/x.md" in {one.doc_id for one in found.documents}
    assert found.unread == (Unread("b/up/", "a link to a folder that was read already"),)


def test_a_named_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    assert reasons(folder) == {"pipe.md": "this is a named pipe, not a file"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.txt", "café".encode("utf-16")),
        ("x.txt", "\ufeffcafé".encode()),
        ("x.html", b'<meta charset="latin-1"><p>caf\xe9'),
        ("x.html", b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1252"><p>caf\xe9'),
    ],
)
def test_encodings_that_a_file_names_are_read(tmp_path: Path, name: str, data: bytes) -> None:
    assert read_documents(write(tmp_path / name, data)).documents[0].text == "café"


def test_a_file_is_one_document(tmp_path: Path) -> None:
    (document,) = read_documents(write(tmp_path / "refund_policy.txt", "Within 14 days.")).documents
    assert (document.doc_id, document.title) == ("refund_policy.txt", "refund policy")


def test_a_readme_is_named_after_its_folder(tmp_path: Path) -> None:
    (document,) = read_documents(write(tmp_path / "gift-cards" / "README.md", "No heading.")).documents
    assert document.title == "gift cards"


def test_a_corpus_has_its_own_ids_versions_and_places(tmp_path: Path) -> None:
    rows = (
        '{"_id": 7, "title": "T", "text": "One.\\n\\nTwo."}\n\n{"_id": "a", "text": "x", "metadata": {"version": "v2"}}'
    )
    found = read_documents(write(tmp_path / "corpus.jsonl", rows))
    assert found.kind == "corpus"
    assert [(one.doc_id, one.title, one.path) for one in found.documents] == [
        ("7", "T", f"{tmp_path}/corpus.jsonl:1"),
        ("a", "", f"{tmp_path}/corpus.jsonl:3"),
    ]
    assert len(found.documents[0].blocks) == 2
    assert found.documents[1].version == "v2"


def test_a_folder_of_beir_is_its_corpus(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", "{}")
    write(tmp_path / "corpus.jsonl.gz", gzip.compress(b'{"_id": "1", "text": "x"}\n{"_id": "2", "text": " "}', mtime=0))
    found = read_documents(tmp_path)
    assert ([one.doc_id for one in found.documents], found.kind) == (["1"], "corpus")
    assert found.unread == (Unread("corpus.jsonl.gz:2", "the document '2' has no text"),)


def test_the_keys_of_a_corpus_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "kb.jsonl", '{"url": "u", "head": "H", "body": "B"}')
    found = read_documents(path, CorpusColumns(doc_id="url", title="head", text="body")).documents[0]
    assert (found.doc_id, found.title, found.text) == ("u", "H", "B")
    with pytest.raises(DataError, match=r"kb\.jsonl:1: .*the columns are 'url', 'head', 'body'"):
        read_documents(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('{"_id": "1", "text": "x"}\n{"_id": "1", "text": "y"}', r"corpus.jsonl:2: the document '1' is listed twice"),
        ('{"_id": "1", "text": "x"}\n{"_id": "2", "te', r"corpus.jsonl:2:.*not JSON"),
        ('{"_id": "1", "text": ["x"]}', r"corpus.jsonl:1: 'text' must be text"),
        ('{"_id": null, "text": "x"}', r"corpus.jsonl:1: no doc_id"),
    ],
)
def test_a_broken_corpus_is_an_error_with_its_place(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(write(tmp_path / "corpus.jsonl", rows))


def test_nothing_to_read_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read_documents(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="there is nothing to read; give a folder of Markdown"):
        read_documents(tmp_path / "empty")
    write(tmp_path / "bad" / "x.png", b"x")
    with pytest.raises(DataError, match=r"no document could be read:\n  x.png: files in .png are not read"):
        read_documents(tmp_path / "bad")
    with pytest.raises(DataError, match=r"x.png: files in .png"):
        read_documents(tmp_path / "bad" / "x.png")


def test_unread_files_are_described_by_reason() -> None:
    unread = (Unread("a.png", "no"), Unread("e.md", "empty"), *(Unread(f"{n}.png", "no") for n in range(6)))
    assert describe_unread(unread) == [
        "7 files not read: no: a.png, 0.png, 1.png, 2.png, 3.png and 2 more",
        "e.md: empty",
    ]


def write_folder(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("A text.")


def test_the_files_are_those_that_are_read(tmp_path: Path) -> None:
    write_folder(tmp_path, "b.md", "a.txt", "sub/c.html", ".rageval/store/x.md", ".hidden.md", "golden.jsonl", "x.png")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(tmp_path / "sub")
    names = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    assert names == [document.doc_id for document in read_documents(tmp_path).documents]
    assert "a.txt" in names and "b.md" in names
    assert sum(name.endswith("c.html") for name in names) == 1


def test_a_corpus_is_one_file(tmp_path: Path) -> None:
    write_folder(tmp_path, "data/corpus.jsonl", "data/notes.md", "one.txt")
    assert list_files(tmp_path / "data") == [tmp_path / "data" / "corpus.jsonl"]
    assert list_files(tmp_path / "data" / "corpus.jsonl") == [tmp_path / "data" / "corpus.jsonl"]
    assert list_files(tmp_path / "one.txt") == [tmp_path / "one.txt"]


def test_nothing_to_read_gives_no_files(tmp_path: Path) -> None:
    write_folder(tmp_path, "x.png")
    assert list_files(tmp_path) == list_files(tmp_path / "absent") == []
