"""Every code of a diagnostic is explained, every explained code is used, and each example gives its code."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rageval_spec import registry
from rageval_spec.commands.plugin_words import find_keys
from rageval_spec.spec.diagnostic_codes import CODES
from tests.command_line import invoke

ROOT = Path(__file__).parents[2]
BASE = {
    "version": "1",
    "datasets": "{support: {use: jsonl, path: data/support/golden.jsonl, qrels: data/support/qrels/test.tsv, "
    "corpus: data/support/corpus.jsonl}}",
    "systems": "{bm25: {use: bm25}, assistant: {use: file, path: data/support/answers.jsonl}}",
    "metrics": "[ndcg@10]",
}
"""What an example leaves out."""
STANDS_FOR = {
    "GATES": ", ".join("{metric: ndcg@10, floor: 1}" for _ in range(120)),
    "[[[[DEEP]]]]": "[" * 60 + "]" * 60,
    "'query_id'": '"query_id"', "'q02'": '"q02"', "'answer'": '"answer"', "'Yes.'": '"Yes."', "'rating'": '"rating"',
    "'question'": '"question"',
}  # fmt: skip
"""What cannot be shown whole."""


def read_codes() -> Iterator[str]:
    """The codes in the source: every text with a hyphen that is an argument of what makes a diagnostic."""
    makers = {"diagnose", "Diagnostic", "FileFault", "_report", "_refuse", "Trap"}
    for path in (ROOT / "python" / "rageval_spec").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                values = [*node.args, *(one.value for one in node.keywords)] if name in makers else []
                texts = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                shape = r"[a-z0-9]+(-[a-z0-9]+)+" if name.startswith("_") else r"[a-z0-9]+(-[a-z0-9]+)*"
                yield from (text for text in texts if re.fullmatch(shape, text) and text not in ("error", "warning"))


def test_every_code_is_explained_and_every_explained_code_is_used() -> None:
    assert {*read_codes()} == {*CODES}


def test_no_code_is_a_word_or_a_key() -> None:
    words = {word for section in registry.SECTIONS for word in registry.words(section)}
    assert all("-" in code and code not in words and not find_keys(code) for code in CODES)
    assert [*CODES] == sorted(CODES)


@pytest.mark.parametrize("code", CODES)
def test_the_example_gives_its_code_and_what_to_write_instead_does_not(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "t-0")
    broken = EntryPoint("tone", "nowhere:Tone", "rageval_spec.metrics")
    monkeypatch.setattr(registry, "_entry_points", lambda section: {"tone": broken} if section == "metrics" else {})
    monkeypatch.setattr(registry, "words", registry.words.__wrapped__)
    (tmp_path / "data").symlink_to(ROOT / "specs" / "data")
    shown = validate(tmp_path, CODES[code].example)
    assert f"[{code}]" in shown, shown
    assert f"[{code}]" not in (shown := validate(tmp_path, CODES[code].instead)), shown


def test_explain_tells_what_a_code_means_with_an_example_and_what_to_write() -> None:
    shown = invoke("explain", "unknown-key").stdout
    assert shown == invoke("explain", "[unknown-key]").stdout
    assert shown.splitlines() == [
        "unknown-key: A block has a key that it does not know.",
        "",
        "Example",
        "  systems: {bm25: {use: bm25, k: 1.2}}",
        "",
        "Write",
        "  systems: {bm25: {use: bm25, k1: 1.2}}",
    ]
    assert json.loads(invoke("explain", "unknown-key", "--format", "json").stdout)["code"] == "unknown-key"
    assert "did you mean 'unknown-key'?" in invoke("explain", "unkown-key").stderr


def validate(folder: Path, example: str) -> str:
    """What the command of an example prints, `validate` if it has none."""
    command, lines = ["validate", "spec.yaml"], []
    for whole, short in ((long, short) for short, long in STANDS_FOR.items()):
        example = example.replace(short, whole)
    for line in example.splitlines():
        if line.startswith("$ rageval-spec "):
            command = line.split()[2:]
        elif found := re.match(r"# (\S+): (.*)", line):
            (folder / found[1]).write_text(found[2].replace("|", "\n") + "\n", encoding="utf-8")
        else:
            lines.append(line)
    given = {line.partition(":")[0] for line in lines}
    lines += [f"{key}: {value}" for key, value in BASE.items() if key not in given]
    text = "\n".join(lines).encode() + b"\n"
    (folder / "spec.yaml").write_bytes(text.replace(b"LATIN1", "café".encode("latin-1")))
    done = invoke(*command)
    return f"{done.stdout}\n{done.stderr}"
