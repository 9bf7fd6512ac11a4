"""Imports from TruLens's databases, and exports to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.traces import Trace
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.exchange.trulens.source import TrulensSource, TrulensSourceNode
from rageval_spec.exchange.trulens.target import TrulensTarget, TrulensTargetNode
from rageval_spec.plugin import Context


def read(path: Path, **settings: Any) -> list[Trace]:
    source = TrulensSource(TrulensSourceNode(path=str(path), **settings), Context("trulens", Path()))
    try:
        return list(source.read())
    finally:
        source.close()


def send(
    path: Path, evaluation: Evaluation, folder: Path | None = None, *, dry_run: bool = False, **settings: Any
) -> Receipt:
    target = TrulensTarget(TrulensTargetNode(database=str(path), **settings), Context("trulens", Path()))
    shown: list[str] = []
    try:
        receipt = send_parcels(target, evaluation, folder, tool="trulens", dry_run=dry_run, show=shown.append)
    finally:
        target.close()
    return replace(receipt, remarks=(*receipt.remarks, *shown))
