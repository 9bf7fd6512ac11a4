"""The arguments of `init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.commands.first_spec.files import ANSWERS, ROWS, write_rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--answers", "a.jsonl", "--from", "ragas", "a.jsonl"), "--answers and --from exclude each other"),
        (("--golden", "a.jsonl"), "--golden belongs to --answers"),
        (("--column", "text=a"), "--column belongs to --answers or --from"),
        (("--answers", "a.jsonl", "--column", "foo=a"), "--column foo: there is no such part; write one of answer,"),
        (("--answers", "a.jsonl", "--column", "text"), "--column 'text': write PART=NAME"),
        (("--answers", "b.jsonl"), "b.jsonl has no answers of a system; name the column with --column answer=NAME"),
        (("--answers", "notes.txt"), "it is not clear what this file holds; its name must end in one of .csv,"),
        (("--answers", "bad.jsonl"), "bad.jsonl:1"),
        (("--from", "beir", "a.jsonl"), "is not a folder; a BEIR dataset is one with corpus.jsonl"),
        (("--from", "ragas", "."), "is a folder; name the file with the questions"),
        (("--from", "beir", "."), "there is no "),
        (("--from", "trulens", "a.jsonl"), "'trulens' is not one of 'ragas', 'deepeval', 'promptfoo', 'beir'"),
    ],
)
def test_wrong_arguments_are_explained_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "a.jsonl", ANSWERS)
    write_rows(tmp_path / "b.jsonl", ROWS)
    (tmp_path / "notes.txt").write_text("a?\n")
    (tmp_path / "bad.jsonl").write_text("[1]\n")
    result = invoke("init", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "spec.yaml").exists()
