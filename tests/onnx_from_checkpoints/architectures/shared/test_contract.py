"""What every module of an architecture provides."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from onnx_from_checkpoints.architectures.shared.contract import WantedGraph
from onnx_from_checkpoints.model_graph import list_architectures


def test_each_module_says_its_version() -> None:
    found = list_architectures()
    assert list(found) == sorted(found)
    assert all(module.VERSION for module in found.values())


def test_what_is_wanted_cannot_change_while_a_graph_is_built() -> None:
    with pytest.raises(FrozenInstanceError):
        WantedGraph("embedding").padded = True  # type: ignore[misc]
