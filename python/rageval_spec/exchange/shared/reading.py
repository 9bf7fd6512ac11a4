"""Reads the traces of a source, once for all blocks of a spec that ask for the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import DataError

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.exchange.shared.source import Source
    from rageval_spec.plugin.budget import Budget

_READ: dict[str, tuple[list[Trace], Sequence[str], Budget]] = {}
"""Traces, remarks, and the budget of the evaluation that read them: while it is held, no other one gets its id."""
_LOCK = Lock()
_MOST_KEPT = 4


def read_traces(source: Source[Any], where: str) -> tuple[list[Trace], Sequence[str]]:
    """All traces of a source, and its remarks.

    A dataset and a system of one spec that read the same traces read them once, so that both see the same. `where`
    begins the message of an error.

    Raises:
        DataError: there are none.
        RagevalError: they cannot be read.
    """
    key = json.dumps(
        [
            type(source).__module__,
            source.node.model_dump(mode="json"),
            str(source.context.folder),
            id(source.context.budget),
        ]
    )
    with _LOCK:
        if key not in _READ:
            try:
                traces = list(source.read())
            finally:
                source.close()
            if not traces:
                nothing = f"{where}: there are no traces in what it names; widen `since`, or correct the names"
                raise DataError("; ".join((nothing, *source.remarks())))
            while len(_READ) >= _MOST_KEPT:
                _READ.pop(next(iter(_READ)))
            _READ[key] = traces, tuple(source.remarks()), source.context.budget
        return _READ[key][:2]
