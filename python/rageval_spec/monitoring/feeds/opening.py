"""Which feed a system of a spec has."""

from __future__ import annotations

from typing import Any

from rageval_spec.errors import UsageError
from rageval_spec.exchange.otel.source import SPOOL_FOLDER, OtelFilesNode, split_address
from rageval_spec.exchange.shared.contracts import WindowNode, open_part
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.feeds.row_files import FileFeed, RowReader
from rageval_spec.monitoring.feeds.spans import ReceiverFeed, SpanFileFeed
from rageval_spec.monitoring.feeds.tools import ToolFeed
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.systems.file import FileNode
from rageval_spec.systems.shared.trace_system import TraceSystem

_UNUSABLE = ("until", "limit", "dataset", "path", "table")
"""Keys of tools that name something else than all traces from some time on."""


def open_feed(where: str, name: str, system: Any, settle: float, ledger: Ledger) -> Feed:
    """The feed of a system; `where` is the spec.

    Raises:
        UsageError: nobody records the traces of this system, or its block names something that does not grow.
    """
    node = system.node
    place = f"{where}: systems.{name}"
    if isinstance(node, FileNode) and isinstance(node.path, str) and node.follow:
        named = {part: value for part, value in node.columns.model_dump().items() if value is not None}
        reader = RowReader(node.layout, named)
        return FileFeed(name, settle, system.context.resolve(node.path), reader, ledger.find_questions)
    if isinstance(node, OtelFilesNode):
        return _open_spans(place, name, system, settle, ledger)
    if isinstance(system, TraceSystem) and issubclass(system.source_type.node_type, WindowNode):
        if given := [key for key in _UNUSABLE if getattr(node, key, None) is not None]:
            raise UsageError(f"{place}: a monitor reads all traces as they come; remove {', '.join(map(repr, given))}")
        return ToolFeed(name, settle, open_part(system.source_type, system))
    raise UsageError(
        f"{place}: 'use: {node.use}' has no traces to watch; write {{use: file, path: traces.jsonl, follow: true}}, "
        "{use: otel, listen: 127.0.0.1:4318}, or the tool that records them, such as {use: phoenix, project: NAME}"
    )


def _open_spans(place: str, name: str, system: Any, settle: float, ledger: Ledger) -> Feed:
    node, context = system.node, system.context
    if node.listen is not None:
        token = None if node.token is None else node.token.reveal()
        folder = context.resolve(SPOOL_FOLDER / "monitor")
        return ReceiverFeed(name, settle, ledger, split_address(node.listen), folder, token)
    if not node.follow:
        raise UsageError(f"{place}: a monitor reads files that grow; add 'follow: true'")
    return SpanFileFeed(name, settle, ledger, context.resolve(node.path))
