"""Mistakes on the command line: what is wrong, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import invoke


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run", "SPEC is missing: write, for example, rageval-spec run spec.yaml"),
        ("rn", "there is no command 'rn'; did you mean 'run'?"),
        ("plan a.yaml b c", "'b c' is too much: write, for example, rageval-spec plan"),
        ("list metric", "'metric': did you mean 'metrics'?"),
        ("list nothing", "'nothing': write one of datasets, systems"),
        ("init --from rags x", "--from rags: did you mean 'ragas'?"),
        ("init --from ragas", "--from lacks its 2 values"),
        ("init --url", "--url lacks its value"),
        ("init --from ragas tests.jsnl", "there is no file 'tests.jsnl'; did you mean 'tests.jsonl'?"),
        ("show --limit 0", "--limit 0: write a whole number from 1 to"),
        ("show --limit many", "--limit many: write a whole number from 1 to"),
        ("calibrate --confidence 2", "--confidence 2.0: write a number above 0.5 and below 1"),
        ("calibrate --width 0", "--width 0.0: write a number above 0 to 1"),
        ("history list --limit 0", "--limit 0: write a whole number from 1 on"),
        ("run spec.yaml --lmit 3", "there is no option '--lmit'; did you mean '--limit'?"),
        ("run spec.yaml --nothing", "there is no option '--nothing'\n"),
        ("status tests.jsonl", "'tests.jsonl' is a file; name a folder"),
        ("init tests", "there is no file or folder 'tests'; did you mean 'tests.jsonl'?"),
        ("init test.jsonl", "there is no file 'test.jsonl'; did you mean 'tests.jsonl'?"),
    ],
)
def test_a_mistake_says_what_to_write(
    arguments: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests.jsonl").write_text('{"question": "a"}\n')
    result = invoke(*arguments.split())
    assert result.exit_code == 2
    assert says in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tests.jsonl"]


def test_a_word_that_looks_like_short_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["rageval-spec", "init", "-url", "x"])
    assert "there is no option '-url'; did you mean '--url'?" in invoke("init", "-url", "x").stderr
