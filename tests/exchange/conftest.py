"""A tool for tests of the frame of exchange."""

from __future__ import annotations

from types import ModuleType

import pytest

from rageval_spec.exchange.shared import contracts
from rageval_spec.exchange.shared.contracts import Tool
from tests.exchange import tool


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool of `tests/exchange/tool.py` under the word `toy`, which has stored nothing."""
    monkeypatch.setattr(contracts, "words", lambda: ("toy",))
    monkeypatch.setattr(contracts, "load", lambda word: Tool(word, tool.ToySource, tool.ToyTarget))
    monkeypatch.setattr(tool.ToyTarget, "stored", {})
    return tool
