from __future__ import annotations

from rageval_spec.exchange import langsmith
from rageval_spec.exchange.shared.contracts import load


def test_the_word_names_a_source_and_a_target() -> None:
    tool = load("langsmith")
    assert (tool.source, tool.target) == (langsmith.SOURCE, langsmith.TARGET)
