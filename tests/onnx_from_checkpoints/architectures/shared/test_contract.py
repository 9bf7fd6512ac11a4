""""""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from onnx_from_checkpoints.architectures.shared.contract import (
    WantedGraph,
    read_choice,
    read_flag,
    read_number,
    read_size,
    refuse_unless,
)
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import list_architectures


def test_each_module_says_what_it_builds_and_its_version() -> None:
    found = list_architectures()
    assert list(found) == sorted(found)
    for model_type, module in found.items():
        assert model_type in module.MODEL_TYPES
        assert module.VERSION


def test_what_is_wanted_cannot_change_while_a_graph_is_built() -> None:
    with pytest.raises(FrozenInstanceError):
        WantedGraph("embedding").padded = True  # type: ignore[misc]


def test_a_missing_setting_has_its_default() -> None:
    assert read_flag({}, "biased", True) is True
    assert read_number({}, "theta", 2) == 2.0
    assert read_choice({}, "kind", "cls", ("cls", "mean")) == "cls"


def test_a_setting_is_read() -> None:
    config = {"biased": False, "theta": 10_000, "kind": "mean"}
    assert read_flag(config, "biased", True) is False
    assert read_number(config, "theta", 2) == 10_000.0
    assert read_choice(config, "kind", "cls", ("cls", "mean")) == "mean"


@pytest.mark.parametrize("value", [None, 1, "true"])
def test_a_flag_must_be_true_or_false(value: object) -> None:
    with pytest.raises(DamagedFile, match=re.escape(f"config.json: 'biased' must be true or false, but is {value!r}")):
        read_flag({"biased": value}, "biased", True)


@pytest.mark.parametrize("value", [None, True, "10", 0, -1.5, float("inf"), float("nan")])
def test_a_number_must_be_above_zero(value: object) -> None:
    with pytest.raises(DamagedFile, match=r"config\.json: 'rope\.theta' must be a number above 0, but is"):
        read_number({"theta": value}, "theta", 1, where="rope.")


@pytest.mark.parametrize("value", [None, "max", ["cls"]])
def test_other_choices_are_refused_with_the_supported_ones(value: object) -> None:
    with pytest.raises(UnsupportedModel, match=r"'kind' .* is not supported; supported are: cls, mean"):
        read_choice({"kind": value}, "kind", "cls", ("mean", "cls"))


def test_a_setting_with_one_possible_value_may_be_missing() -> None:
    refuse_unless({}, "causal", False)
    refuse_unless({"causal": False}, "causal", False, None)
    refuse_unless({"causal": None}, "causal", False, None)
    with pytest.raises(
        UnsupportedModel, match=re.escape("config.json: 'causal' True is not supported; only false or null")
    ):
        refuse_unless({"causal": True}, "causal", False, None)


def test_a_size_or_its_default() -> None:
    assert read_size({"layers": 3}, "layers", 2) == 3
    assert read_size({}, "layers", 2) == 2


@pytest.mark.parametrize(("value", "found"), [(None, "is missing"), (0, "but is 0"), (True, "True"), (2.5, "2.5")])
def test_anything_else_is_refused_with_its_key(value: Any, found: str) -> None:
    with pytest.raises(DamagedFile, match=rf"config\.json: 'layers' .*{found}"):
        read_size({} if value is None else {"layers": value}, "layers")
