"""Tools are found by their word, without importing the others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared import finding
from rageval_spec.exchange.shared.source import Source
from rageval_spec.exchange.shared.target import Exporter


@pytest.mark.parametrize("word", finding.words())
def test_every_tool_can_be_read_or_written_and_says_what(word: str) -> None:
    tool = finding.load(word)
    kinds = [kind for kind in (tool.source, tool.target) if kind is not None]
    assert kinds and all(issubclass(kind, (Source, Exporter)) for kind in kinds)
    assert all(kind.summary.endswith(".") and kind.examples for kind in kinds)


@pytest.mark.parametrize("word", finding.words())
def test_examples_are_commands_of_the_tool(word: str) -> None:
    tool = finding.load(word)
    for kind, command in ((tool.source, "import"), (tool.target, "export")):
        assert all(example.startswith(f"{command} {word}") for example in (kind.examples if kind else ()))


def test_an_unknown_word_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no tool 'ragass'; did you mean 'ragas'"):
        finding.load("ragass")


def test_listing_words_imports_no_tool() -> None:
    code = (
        "import sys; from rageval_spec.exchange.shared import finding; assert 'ragas' in finding.words(); "
        "assert 'rageval_spec.exchange.ragas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
