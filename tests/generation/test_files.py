from pathlib import Path

from rageval_spec.generation.documents import read_documents
from rageval_spec.generation.files import list_files


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("A text.")


def test_the_files_are_those_that_are_read(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a.txt", "sub/c.html", ".rageval/store/x.md", ".hidden.md", "golden.jsonl", "x.png")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(tmp_path / "sub")
    names = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    assert names == [document.doc_id for document in read_documents(tmp_path).documents]
    assert "a.txt" in names and "b.md" in names
    assert sum(name.endswith("c.html") for name in names) == 1


def test_a_corpus_is_one_file(tmp_path: Path) -> None:
    write(tmp_path, "data/corpus.jsonl", "data/notes.md", "one.txt")
    assert list_files(tmp_path / "data") == [tmp_path / "data" / "corpus.jsonl"]
    assert list_files(tmp_path / "data" / "corpus.jsonl") == [tmp_path / "data" / "corpus.jsonl"]
    assert list_files(tmp_path / "one.txt") == [tmp_path / "one.txt"]


def test_nothing_to_read_gives_no_files(tmp_path: Path) -> None:
    write(tmp_path, "x.png")
    assert list_files(tmp_path) == list_files(tmp_path / "absent") == []
