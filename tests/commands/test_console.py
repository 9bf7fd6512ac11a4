from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import invoke, start


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_output_that_cannot_be_written_is_one_line_and_exits_with_3(spec: Path) -> None:
    command = f"{sys.executable} -m rageval_spec validate {spec}"
    for target, reason in ((">/dev/full", "cannot be written: No space left on device"), (">&-", "is closed")):
        ended = subprocess.run(["sh", "-c", f"{command} {target}"], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (3, f"rageval-spec: standard output {reason}\n")


def test_a_reader_that_goes_away_is_not_an_error(spec: Path, tmp_path: Path) -> None:
    for arguments in (["metrics"], ["schema"], ["run", spec, "-o", tmp_path / "out"], ["plan", spec]):
        with start(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            errors = process.stderr.read()
        assert process.returncode == 0
        assert [line for line in errors.splitlines() if not line.startswith("wrote ")] == []


NOISY = """
import os, subprocess, sys
print('noise of the import')
def answer(question):
    print('noise of print')
    os.write(1, b'noise of the descriptor\\n')
    subprocess.run([sys.executable, '-c', 'print("noise of a program")'], check=True)
    return 'yes'
"""


def test_only_results_reach_standard_output(tmp_path: Path) -> None:
    (tmp_path / "rag.py").write_text(NOISY)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"query_id": "q", "question": "Is it?", "reference": "yes"}))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: quiet\n"
        "datasets: {rows: {use: jsonl, path: rows.jsonl}}\n"
        "systems: {app: {use: python, function: 'rag:answer'}}\n"
        "metrics: [exact_match]\nreports: [terminal]\n"
    )
    with start("run", tmp_path / "spec.yaml") as process:
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output.startswith("Complete: the spec has no gates.\n\nquiet on rows")
    assert "noise" not in output
    assert [f"noise of {what}" in errors for what in ("the import", "print", "the descriptor", "a program")] == [
        True
    ] * 4


RESERVED = """
import os
from rageval_spec.commands.console import reserve_output, write
with reserve_output():
    print('noise')
    os.write(1, b'more noise\\n')
    write('result\\n')
print('after', flush=True)
os.write(1, b'after that\\n')
"""


def test_standard_output_is_restored_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", RESERVED], capture_output=True, text=True, check=True)
    assert done.stdout == "result\nafter\nafter that\n"
    assert sorted(done.stderr.splitlines()) == ["more noise", "noise"]


HIDDEN = "q\u202e\x9b31m"
SHOWN = "q\\u202e\\x9b31m"


def test_control_characters_in_ids_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(f"{HIDDEN} 0 d1 1\n")
    (tmp_path / "run").write_text(f"{HIDDEN} Q0 d1 1 0.5 t\n")
    printed = invoke("score", tmp_path / "qrels", tmp_path / "run", "rr", "-q").stdout
    assert printed == f"{'rr':<22}\t{SHOWN}\t1.0000\n{'rr':<22}\tall\t1.0000\n"
    exact = invoke("score", tmp_path / "qrels", tmp_path / "run", "rr", "-q", "--format", "json").stdout
    assert list(json.loads(exact)["queries"]) == [HIDDEN]


def test_control_characters_in_files_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "run").write_text(f"q1 Q0 d1 1 {HIDDEN} t\n")
    told = invoke("score", tmp_path / "qrels", tmp_path / "run", "rr").stderr
    assert all(character.isprintable() or character == "\n" for character in told)
    told = invoke("score", tmp_path / f"{HIDDEN}\x1b[31m", tmp_path / "run", "rr").stderr
    assert SHOWN + "\\x1b[31m" in told
    assert all(character.isprintable() or character == "\n" for character in told)


def test_line_breaks_in_messages_are_kept(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("version: 1\nmetrcs: [rr]\n")
    assert "\n  metrcs: [rr]\n  ^^^^^^\n" in invoke("validate", tmp_path / "spec.yaml").stderr
