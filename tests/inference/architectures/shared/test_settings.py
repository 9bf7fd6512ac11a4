from __future__ import annotations

import re

import pytest

from rageval_spec.inference.architectures.shared.settings import read_choice, read_flag, read_number, refuse_unless
from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel


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
