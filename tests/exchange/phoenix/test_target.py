from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from rageval_spec.exchange.phoenix.target import PhoenixTarget, PhoenixTargetNode
from rageval_spec.exchange.shared.finding import load
from rageval_spec.plugin import Context


def test_an_experiment_needs_a_dataset() -> None:
    with pytest.raises(ValidationError, match="name `dataset` too"):
        PhoenixTargetNode(experiment="nightly")


def test_the_destination_names_the_server_and_the_dataset() -> None:
    node = PhoenixTargetNode(url="http://localhost:6006/", dataset="golden")
    target = PhoenixTarget(node, Context("phoenix", Path()))
    assert target.destination == "http://localhost:6006, dataset golden"
    target.close()


def test_the_tool_can_be_found() -> None:
    assert load("phoenix").target is PhoenixTarget
