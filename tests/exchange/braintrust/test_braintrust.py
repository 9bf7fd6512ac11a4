from __future__ import annotations

from rageval_spec.exchange import braintrust
from rageval_spec.exchange.shared.contracts import load


def test_the_word_names_a_source_and_a_target() -> None:
    tool = load("braintrust")
    assert (tool.source, tool.target) == (braintrust.SOURCE, braintrust.TARGET)
