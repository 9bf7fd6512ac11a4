"""Options of a command become the node of a tool, or a message about the option."""

from __future__ import annotations

import pytest

from rageval_spec.commands.exchange.settings import read_settings
from rageval_spec.errors import UsageError
from rageval_spec.exchange.langsmith.source import LangSmithSourceNode
from rageval_spec.exchange.otel.target import OtelTargetNode as OtelNode
from rageval_spec.exchange.phoenix.source import PhoenixSourceNode
from rageval_spec.exchange.shared.files import RowsNode
from rageval_spec.exchange.shared.source import WindowNode


def test_settings_become_a_node() -> None:
    assert read_settings(WindowNode, {"since": "7d", "limit": 3}) == WindowNode(since="7d", limit=3)


def test_a_wrong_or_missing_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--limit: must be at least 1, not 0$"):
        read_settings(WindowNode, {"limit": 0})
    with pytest.raises(UsageError, match=r"^--signals: must be 'traces', 'logs' or 'metrics', not 'x'$"):
        read_settings(OtelNode, {"signals": ("x",)})
    with pytest.raises(UsageError, match=r"^PATH: is missing$"):
        read_settings(RowsNode, {})


def test_options_that_do_not_go_together_are_named_as_they_are_written() -> None:
    with pytest.raises(UsageError, match=r"^name either --project, whose traces are read, or --dataset$"):
        read_settings(PhoenixSourceNode, {})
    with pytest.raises(UsageError, match=r"^name one of these: --project, --dataset, or PATH for exported files$"):
        read_settings(LangSmithSourceNode, {})


def test_an_empty_option_is_said_to_be_empty() -> None:
    with pytest.raises(UsageError, match=r"^--project: must not be empty$"):
        read_settings(PhoenixSourceNode, {"project": ""})
