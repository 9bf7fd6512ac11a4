"""Reads settings from config.json: flags, numbers and choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel


def read_flag(config: Mapping[str, Any], key: str, default: bool) -> bool:
    """True or false.

    Raises:
        DamagedFile: the value is something else.
    """
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise DamagedFile(f"config.json: '{key}' must be true or false, but is {value!r}")
    return value


def read_number(config: Mapping[str, Any], key: str, default: float, *, where: str = "") -> float:
    """A number above 0.

    Args:
        where: the key of the object in config.json that `config` is, with a dot; empty for the whole file.

    Raises:
        DamagedFile: the value is something else.
    """
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise DamagedFile(f"config.json: '{where}{key}' must be a number above 0, but is {value!r}")
    return float(value)


def read_choice(config: Mapping[str, Any], key: str, default: str, supported: Collection[str], where: str = "") -> str:
    """One of the supported words.

    Raises:
        UnsupportedModel: the value is something else; the message lists the supported words.
    """
    value = config.get(key, default)
    if not isinstance(value, str) or value not in supported:
        names = ", ".join(sorted(supported))
        raise UnsupportedModel(f"config.json: '{where}{key}' {value!r} is not supported; supported are: {names}")
    return value


def refuse_unless(config: Mapping[str, Any], key: str, *allowed: object) -> None:
    """Refuse a value that changes the numbers in a way that is not supported; a missing key is allowed.

    Raises:
        UnsupportedModel: the value is not one of `allowed`.
    """
    if key in config and config[key] not in allowed:
        wanted = " or ".join("null" if one is None else str(one).lower() for one in allowed)
        raise UnsupportedModel(f"config.json: '{key}' {config[key]!r} is not supported; only {wanted} is")
