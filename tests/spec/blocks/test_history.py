"""`history:` says where evaluations are recorded.

Blocks refuse unknown keys and cannot be changed.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads
from rageval_spec.spec.blocks.plugin_blocks import SpecBlock
from rageval_spec.spec.blocks.spec_node import HistoryNode

_SPEC = """version: 1
datasets: {d: {use: trec, qrels: x}}
systems: {s: {use: bm25}}
metrics: [rr]
"""


def read(history: str = "") -> HistoryNode:
    text = f"{_SPEC}{f'history: {history}' if history else ''}\n"
    return loads(text, check_files=False, environment={"URL": "postgresql://me:word@host/base"}).history


def test_a_word_or_a_block_says_where() -> None:
    assert read().use == read("sqlite").use == read("{use: sqlite}").use == "sqlite"
    assert read("none") == read("{use: none}") == HistoryNode(use="none")
    assert read("{use: sqlite, path: a.db}").path == "a.db"


def test_the_address_is_a_secret() -> None:
    node = read("{use: postgres, url: '${secret:URL}'}")
    assert node.url is not None and node.url.reveal() == "postgresql://me:word@host/base"
    assert "word" not in repr(node) and "word" not in node.model_dump_json()


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ("{use: postgres}", "5:16: 'use: postgres' needs the address of a database; add 'url: ${secret:HISTORY_URL}'"),
        ("{use: sqlite, url: x}", "'use: sqlite' has no 'url'; write 'use: postgres', or remove 'url'"),
        ("{use: none, path: x}", "'use: none' has no 'path'"),
        ("postgres", "expected a mapping, none or sqlite, found the text 'postgres'; write {use: postgres}"),
        ("my.db", "expected a mapping, none or sqlite, found the text 'my.db'; the known keys are use, path, url"),
        ("no", "found no, which YAML reads as false; write none"),
        ("{use: mysql}", "postgres"),
    ],
)
def test_what_is_wrong_is_said(history: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(history)
    assert message in str(caught.value)


def test_the_history_is_not_part_of_the_digest() -> None:
    digests = {
        loads(f"{_SPEC}{history}", check_files=False).digest for history in ("", "history: none", "history: sqlite")
    }
    assert len(digests) == 1


class Bounds(SpecBlock):
    low: int = 0


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="hihg"):
        Bounds.model_validate({"low": 1, "hihg": 2})


def test_a_block_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Bounds().low = 1  # type: ignore[misc]
