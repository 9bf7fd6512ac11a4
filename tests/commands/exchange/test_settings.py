"""Options of a command become the node of a tool, or a message about the option."""

from __future__ import annotations

import pytest

from rageval_spec.commands.exchange.settings import read_settings
from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared.files import RowsNode
from rageval_spec.exchange.shared.source import WindowNode


def test_settings_become_a_node() -> None:
    assert read_settings(WindowNode, {"since": "7d", "limit": 3}) == WindowNode(since="7d", limit=3)


def test_a_wrong_or_missing_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--limit: Input should be greater than or equal to 1$"):
        read_settings(WindowNode, {"limit": 0})
    with pytest.raises(UsageError, match=r"^PATH: Field required$"):
        read_settings(RowsNode, {})
