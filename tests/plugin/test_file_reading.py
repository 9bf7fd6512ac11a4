from __future__ import annotations

from pathlib import Path

from tests.plugins import build_dataset, build_system


def test_a_file_that_is_missing_is_not_described(tmp_path: Path) -> None:
    assert list(build_dataset("golden", tmp_path, path="none.json").describe_files()) == []
    assert list(build_dataset("csv", tmp_path, path="none.csv").describe_files()) == []
    assert list(build_system("file", tmp_path, path="none.jsonl").describe_files()) == []


def test_runs_and_judgements_have_no_columns_of_questions(tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance\nq,d,1\n")
    (tmp_path / "a.run").write_text("q Q0 d 1 0.5 t\n")
    assert list(build_dataset("csv", tmp_path, path="qrels.csv").describe_files()) == []
    assert list(build_system("file", tmp_path, path="a.run").describe_files()) == []


def test_a_description_has_the_file_as_the_spec_writes_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,answer\nwhy?,so\n")
    (found,) = build_dataset("csv", tmp_path, path="a.csv").describe_files()
    assert (found.file, found.details) == ("a.csv", ("ids are row numbers",))
    assert found.columns == {"text": "question", "reference": "answer"}
    assert found.others == ()
