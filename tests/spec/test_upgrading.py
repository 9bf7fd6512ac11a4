"""Former keys are rewritten in place: nothing else changes, and what a spec means stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import load
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.spec_node import LimitsNode, SpecNode
from rageval_spec.spec.upgrading import find_upgrade, write_upgrade
from rageval_spec.systems.bm25 import Bm25Node
from tests.command_line import invoke

SPEC = """\
# fields: a comment
version: 1
datasets:
%s
systems: {x: {use: bm25}}
metrics: [ndcg]  # the end
"""
CASES = {
    "in one line": (
        "  a: {use: jsonl, path: a.jsonl, fields: {text: ask}}  # fields",
        "  a: {use: jsonl, path: a.jsonl, columns: {text: ask}}  # fields",
    ),
    "quoted": (
        "  a: {use: jsonl, path: a, 'fields': {text: ask}}",
        "  a: {use: jsonl, path: a, 'columns': {text: ask}}",
    ),
    "quoted twice": (
        '  a: {use: jsonl, path: a, "fields": {text: ask}}',
        '  a: {use: jsonl, path: a, "columns": {text: ask}}',
    ),
    "both in one line": (
        "  a: {use: jsonl, path: a, fields: {text: ask}, corpus: c, corpus_fields: {text: x}}",
        "  a: {use: jsonl, path: a, corpus: c, columns: {text: ask, corpus: {text: x}}}",
    ),
    "both, the other way round": (
        "  a: {use: jsonl, path: a, corpus: c, corpus_fields: {text: x}, fields: {text: ask}}",
        "  a: {use: jsonl, path: a, corpus: c, columns: {corpus: {text: x}, text: ask}}",
    ),
    "both in a block": (
        "  a:\n    use: jsonl\n    path: a\n    corpus: c\n    fields: {text: ask}  # of questions\n"
        "    corpus_fields: {text: x}",
        "  a:\n    use: jsonl\n    path: a\n    corpus: c  # of questions\n    columns: {text: ask, corpus: {text: x}}",
    ),
    "beside the key of today": (
        "  a: {columns: {query_id: nr}, use: jsonl, path: a, fields: {text: ask}}",
        "  a: {columns: {text: ask, query_id: nr}, use: jsonl, path: a}",
    ),
    "within a further key": (
        "  a: {use: trec, qrels: q, corpus: c, corpus_fields: {text: 'x'}}",
        "  a: {use: trec, qrels: q, corpus: c, columns: {corpus: {text: 'x'}}}",
    ),
    "a block": (
        "  a:\n    use: trec\n    qrels: q\n    corpus: c\n    corpus_fields:  # of documents\n      text: body\n\n"
        "      # between\n      title: head\n  # after\n",
        "  a:\n    use: trec\n    qrels: q\n    corpus: c\n    columns:  # of documents\n      corpus:\n"
        "        text: body\n\n        # between\n        title: head\n  # after\n",
    ),
    "a block that an alias shows again": (
        "  a: &one {use: jsonl, path: a.jsonl, fields: {text: ask}}\n  b: *one",
        "  a: &one {use: jsonl, path: a.jsonl, columns: {text: ask}}\n  b: *one",
    ),
}


def write(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["", "with a byte order mark"])
@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_only_the_keys_change(tmp_path: Path, before: str, after: str, start: str, ending: str) -> None:
    path = write(tmp_path, start + (SPEC % before).replace("\n", ending))
    path.chmod(0o640)
    found = find_upgrade(path)
    assert found.by_hand == ()
    write_upgrade(found)
    assert path.read_bytes().decode() == start + (SPEC % after).replace("\n", ending)
    assert path.stat().st_mode & 0o777 == 0o640
    assert find_upgrade(path).renamed == ()


BY_HAND = {
    "the new key is there": "  a:\n    use: jsonl\n    path: a\n    columns:\n      query_id: nr\n"
    "    fields: {text: ask}",
    "an alias": "  a: {use: jsonl, path: a, columns: &c {text: x}}\n"
    "  b: {use: trec, qrels: q, corpus: c, corpus_fields: *c}",
    "an anchor before a block": "  a:\n    use: trec\n    qrels: q\n    corpus: c\n    corpus_fields: &c\n     text: x",
}


@pytest.mark.parametrize("block", BY_HAND.values(), ids=BY_HAND)
def test_what_would_change_the_meaning_is_left_for_people(tmp_path: Path, block: str) -> None:
    path = write(tmp_path, SPEC % block)
    before = path.read_bytes()
    shown = invoke("upgrade", path)
    assert (shown.exit_code, path.read_bytes()) == (1, before)
    assert "is now part of 'columns'; write columns: {" in shown.stderr
    assert " by hand" in shown.stderr


def test_both_names_at_once_are_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, SPEC % "  a: {use: jsonl, path: a, columns: {text: a}, fields: {text: b}}")
    with pytest.raises(SpecError, match="'text' is defined under both"):
        find_upgrade(path)


@pytest.mark.parametrize("text", ["", "- a\n", "a: [", "version: 1\nversion: 1\n"])
def test_what_is_no_spec_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError):
        find_upgrade(write(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "told"), [("-", "name the spec's file"), ("none.yaml", "there is no such file"), (".", "this is a folder")]
)
def test_only_files_are_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke("upgrade", name)
    assert (shown.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert told in shown.stderr


def test_the_command_shows_the_difference_and_writes(tmp_path: Path) -> None:
    path = write(tmp_path, SPEC % CASES["in one line"][0])
    before = path.read_bytes()
    checked = invoke("upgrade", path, "--check")
    assert (checked.exit_code, path.read_bytes()) == (1, before)
    assert "\n-  a: {use: jsonl, path: a.jsonl, fields: {text: ask}}" in checked.stdout
    assert "\n+  a: {use: jsonl, path: a.jsonl, columns: {text: ask}}" in checked.stdout
    written = invoke("upgrade", path)
    assert (written.exit_code, written.stdout) == (0, f"{checked.stdout}{path}: renamed 1 key\n")
    for arguments in ((), ("--check",)):
        again = invoke("upgrade", path, *arguments)
        assert (again.exit_code, again.stdout) == (0, f"{path}: nothing to rename\n")


def test_a_broken_file_does_not_keep_the_others_from_being_rewritten(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    broken, good = write(tmp_path / "first", "a: ["), write(tmp_path / "second", SPEC % CASES["in one line"][0])
    shown = invoke("upgrade", broken, tmp_path / "none.yaml", good)
    assert shown.exit_code == 2
    assert f"{broken}:1:" in shown.stderr
    assert f"{tmp_path / 'none.yaml'}" in shown.stderr
    assert good.read_text() == SPEC % CASES["in one line"][1]


def test_a_file_that_is_read_only_stays_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, SPEC % CASES["in one line"][0])
    before = path.read_bytes()
    path.chmod(0o444)
    shown = invoke("upgrade", path)
    assert (shown.exit_code, path.read_bytes(), path.stat().st_mode & 0o777) == (2, before, 0o444)
    assert f"{path}: is read-only" in shown.stderr


def test_the_warning_names_the_line_and_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"_id": "q1", "ask": "why?"}\n')
    path = write(tmp_path, SPEC % "  a: {use: jsonl, path: a.jsonl, fields: {text: ask}}")
    (warning,) = load(path, check_files=False).warnings
    assert warning.position.line == 4
    assert warning.hint == f"write columns: {{...}}, or run: rageval-spec upgrade {path}"


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renamed key in each kind of block, which no version has had."""
    for node, keys in (
        (SpecNode, {"title": "name"}),
        (GateNode, {"least": "min"}),
        (LimitsNode, {"parallel": "concurrency"}),
        (Bm25Node, {"saturation": "k1"}),
    ):
        monkeypatch.setattr(node, "former_keys", keys, raising=False)


PLANTED = """\
version: 1
title: planted
datasets: {a: {use: trec, qrels: q.txt}}
systems: {x: {use: bm25, saturation: 1.2}}  # saturation
metrics: [rr]
gates:
  - {metric: rr, least: 0.5}
limits: {parallel: 3}
"""


@pytest.mark.usefixtures("renamed")
def test_every_kind_of_block_may_have_had_other_names(tmp_path: Path) -> None:
    path = write(tmp_path, PLANTED)
    before = load(path, check_files=False)
    assert [warning.message for warning in before.warnings] == [
        "'title' is now called 'name'", "'saturation' is now called 'k1'", "'least' is now called 'min'",
        "'parallel' is now called 'concurrency'",
    ]  # fmt: skip
    write_upgrade(find_upgrade(path))
    new = PLANTED.replace("title:", "name:").replace("least:", "min:").replace("parallel:", "concurrency:")
    assert path.read_text() == new.replace("saturation:", "k1:")
    after = load(path, check_files=False)
    assert after.warnings == ()
    assert (after.digest, after.name, after.limits.concurrency) == (before.digest, "planted", 3)


@pytest.mark.usefixtures("renamed")
def test_a_key_under_both_names_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'title' is the former name of 'name', which is there as well"):
        load(write(tmp_path, PLANTED + "name: other\n"), check_files=False)


class _Words:
    """Texts that YAML writes in several ways."""

    names: ClassVar = st.text("abcdefghij", min_size=1, max_size=4)
    comments: ClassVar = st.sampled_from(["", "  # fields: x", "  #"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blocks=st.dictionaries(
        _Words.names, st.tuples(st.booleans(), st.booleans(), _Words.comments), min_size=1, max_size=4
    )
)
def test_whatever_the_layout_the_meaning_stays(tmp_path: Path, blocks: Mapping[str, tuple[bool, bool, str]]) -> None:
    lines = []
    for name, (is_block, has_corpus, comment) in blocks.items():
        key = "corpus_fields" if has_corpus else "fields"
        if is_block:
            lines += [f"  {name}:{comment}", "    use: jsonl", "    path: p", "    corpus: c", f"    {key}:{comment}"]
            lines += [f"      text: ask{comment}", comment, "      title: head"]
        else:
            lines.append(f"  {name}: {{use: jsonl, path: p, corpus: c, {key}: {{text: ask, title: head}}}}{comment}")
    if any(not has_corpus for _, has_corpus, _ in blocks.values()):
        lines = [line for line in lines if line.strip() != "title: head"]
        lines = [line.replace(", title: head", "") for line in lines]
    path = write(tmp_path, SPEC % "\n".join(lines))
    before = load(path, check_files=False)
    found = find_upgrade(path)
    assert (len(found.renamed), found.by_hand) == (len(blocks), ())
    write_upgrade(found)
    after = load(path, check_files=False)
    assert (after.digest, after.warnings) == (before.digest, ())
    kept = [line for line in found.before.splitlines() if "#" in line]
    assert [line.rpartition("#")[2] for line in kept] == [
        line.rpartition("#")[2] for line in found.after.splitlines() if "#" in line
    ]
