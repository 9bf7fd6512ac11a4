"""What is read of a file's settings, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.settings import Settings


def test_a_missing_setting_has_its_default() -> None:
    assert Settings({}).flag("biased", True) is True
    assert Settings({}).number("theta", 2) == 2.0
    assert Settings({}).choice("kind", "cls", ("cls", "mean")) == "cls"


def test_a_setting_is_read() -> None:
    config = {"biased": False, "theta": 10_000, "kind": "mean"}
    assert Settings(config).flag("biased", True) is False
    assert Settings(config).number("theta", 2) == 10_000.0
    assert Settings(config).choice("kind", "cls", ("cls", "mean")) == "mean"


@pytest.mark.parametrize("value", [None, 1, "true"])
def test_a_flag_must_be_true_or_false(value: object) -> None:
    with pytest.raises(DamagedFile, match=re.escape(f"config.json: 'biased' must be true or false, but is {value!r}")):
        Settings({"biased": value}).flag("biased", True)


@pytest.mark.parametrize("value", [None, True, "10", 0, -1.5, float("inf"), float("nan")])
def test_a_number_must_be_above_zero(value: object) -> None:
    with pytest.raises(DamagedFile, match=r"config\.json: 'rope\.theta' must be a number above 0, but is"):
        Settings({"rope": {"theta": value}}).number("rope.theta", 1)


@pytest.mark.parametrize("value", [None, "max", ["cls"]])
def test_other_choices_are_refused_with_the_supported_ones(value: object) -> None:
    with pytest.raises(UnsupportedModel, match=r"'kind' .* is not supported; supported are: cls, mean"):
        Settings({"kind": value}).choice("kind", "cls", ("mean", "cls"))


def test_a_setting_with_one_possible_value_may_be_missing() -> None:
    Settings({}).refuse_unless("causal", False)
    Settings({"causal": False}).refuse_unless("causal", False, None)
    Settings({"causal": None}).refuse_unless("causal", False, None)
    with pytest.raises(
        UnsupportedModel, match=re.escape("config.json: 'causal' True is not supported; only false or null")
    ):
        Settings({"causal": True}).refuse_unless("causal", False, None)


def test_a_size_or_its_default() -> None:
    assert Settings({"layers": 3}).size("layers", 2) == 3
    assert Settings({}).size("layers", 2) == 2


@pytest.mark.parametrize(("value", "found"), [(None, "is missing"), (0, "but is 0"), (True, "True"), (2.5, "2.5")])
def test_anything_else_is_refused_with_its_key(value: Any, found: str) -> None:
    with pytest.raises(DamagedFile, match=rf"config\.json: 'layers' .*{found}"):
        Settings({} if value is None else {"layers": value}).size("layers")


def test_a_setting_with_several_keys() -> None:
    config = Settings({"theta": 3, "rope": {"base": 3.0, "other": 4}, "none": None})
    assert config.find("first", "theta", "rope.base") == "theta"
    assert config.find("none", "rope.base") == "rope.base"
    assert config.find("none", "first") == "none"
    assert config.find("first", "second") == "first"
    with pytest.raises(DamagedFile, match=re.escape("config.json: 'theta' is 3, but 'rope.other' is 4; remove one")):
        config.find("theta", "rope.other")
