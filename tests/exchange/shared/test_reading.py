"""Traces are read once for all blocks that ask for the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.reading import read_traces
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from tests.exchange.tool import TRACES, ToySource


def test_another_evaluation_or_other_settings_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "reads", 0)
    context, later = Context("a", tmp_path, budget=Budget()), Context("b", tmp_path, budget=Budget())
    node = ToySource.node_type()
    assert read_traces(ToySource(node, context), "systems.a")[0] == TRACES
    read_traces(ToySource(node, context), "datasets.a")
    assert ToySource.reads == 1
    read_traces(ToySource(ToySource.node_type(limit=3), context), "systems.a")
    read_traces(ToySource(node, later), "systems.a")
    assert ToySource.reads == 3


def test_a_later_evaluation_never_gets_what_an_earlier_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToySource, "reads", 0)
    for _ in range(5):  # each budget is gone before the next is made, so that its place in memory is free again
        read_traces(ToySource(ToySource.node_type(), Context("a", tmp_path, budget=Budget())), "systems.a")
    assert ToySource.reads == 5


def test_no_traces_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "traces", [])
    with pytest.raises(DataError, match=r"systems.a: there are no traces in what it names"):
        read_traces(ToySource(ToySource.node_type(), Context("a", tmp_path, budget=Budget())), "systems.a")


def test_what_was_left_out_is_said_if_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "traces", [])
    monkeypatch.setattr(ToySource, "remarks", lambda self: ["7 traces without a question left out"])
    with pytest.raises(DataError, match="or correct the names; 7 traces without a question left out"):
        read_traces(ToySource(ToySource.node_type(), Context("a", tmp_path, budget=Budget())), "systems.a")
