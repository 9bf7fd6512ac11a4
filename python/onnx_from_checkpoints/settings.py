"""An object of a JSON file of a checkpoint, whose values are checked when they are read.

A choice that is not supported is an `UnsupportedModel`, any other value that is missing or impossible a `DamagedFile`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel

T = TypeVar("T")
_ABSENT = object()
_SYNONYMS: Mapping[str, str] = {
    "gelu_accurate": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_python": "gelu",
    "gelu_python_tanh": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "swish": "silu",
}
"""transformers' further names of one function: they differ in how it is computed, and not in what it is."""


class Settings:
    """The settings in an object. A key with dots leads into objects: `rope_parameters.rope_theta`.

    Attributes:
        content: the object as it is.
        place: the file, or its name, for messages.
    """

    def __init__(
        self, content: Mapping[str, Any], place: Path | str = "config.json", *, null_is_missing: bool = False
    ) -> None:
        self.content = content
        self.place = place
        self._null_is_missing = null_is_missing

    def __contains__(self, key: str) -> bool:
        return self.get(key, _ABSENT) is not _ABSENT

    def get(self, key: str, default: Any = None) -> Any:
        """The value as it is."""
        *outer, last = key.split(".")
        values = self.content
        for depth, part in enumerate(outer, 1):
            values = values.get(part) or {}
            if not isinstance(values, Mapping):
                self.refuse_value(".".join(outer[:depth]), "an object", values)
        value = values.get(last, default)
        return default if value is None and self._null_is_missing else value

    def find(self, *keys: str) -> str:
        """The key under which a setting is that has several; those that are there must have the same value."""
        stated = [key for key in keys if self.get(key) is not None]
        for key in stated[1:]:
            if self.get(key) != self.get(stated[0]):
                raise DamagedFile(
                    f"{self.place}: '{stated[0]}' is {show(self.get(stated[0]))}, but '{key}' is "
                    f"{show(self.get(key))}; remove one"
                )
        return (stated or [key for key in keys if key in self] or keys)[0]

    def size(self, key: str, default: int | None = None) -> int:
        return int(self._read(key, default, "a whole number above 0", lambda value: is_whole(value) and value > 0))

    def whole(self, key: str, default: int, least: float = -math.inf) -> int:
        """A whole number, `least` or more."""
        wanted = "a whole number" if least == -math.inf else f"a whole number from {least} up"
        return int(self._read(key, default, wanted, lambda value: is_whole(value) and value >= least))

    def number(self, key: str, default: float | None = None) -> float:
        return float(self._read(key, default, "a number above 0", lambda value: _is_number(value) and value > 0))

    def epsilon(self, key: str, default: float) -> float:
        """What a norm adds to the variance."""
        accepts: Callable[[Any], bool] = lambda value: _is_number(value) and 0 <= value < 1  # noqa: E731
        return float(self._read(key, default, "a number from 0 to 1", accepts))

    def flag(self, key: str, default: bool) -> bool:
        return bool(self._read(key, default, "true or false", lambda value: isinstance(value, bool)))

    def optional(self, key: str, kind: type[T], wanted: str = "a text") -> T | None:
        """A value of a type; None if it is missing or null."""
        value = self.get(key)
        if value is not None and not isinstance(value, kind):
            self.refuse_value(key, wanted, value)
        return value

    def mapping(self, key: str) -> Mapping[str, Any]:
        """An object, which is empty if it is missing or null."""
        return self.optional(key, dict, "an object") or {}

    def count(self, key: str) -> int | None:
        """A number above 0 without its fraction; None if it is missing or null.

        transformers writes `model_max_length` as a huge float if it is unknown.
        """
        return None if self.get(key) is None else int(self.number(key))

    def choice(self, key: str, default: str, supported: Collection[str]) -> str:
        """One of the supported words; the message about any other lists them."""
        value = self.get(key, default)
        if not isinstance(value, str) or value not in supported:
            names = ", ".join(sorted(supported))
            raise UnsupportedModel(f"{self.place}: '{key}' {show(value)} is not supported; supported are: {names}")
        return value

    def activation(self, key: str, default: str, supported: Collection[str]) -> str:
        """The activation function that a key names, by the one of its names that is in `supported`."""
        names = {name: name for name in supported}
        names |= {other: name for other, name in _SYNONYMS.items() if name in names}
        return names[self.choice(key, default, names)]

    def refuse_unless(self, keys: str, *allowed: object) -> None:
        """Refuse values of keys, with spaces between them, that change the numbers in a way that is not supported.

        A missing key is allowed.
        """
        for key in keys.split():
            if key in self and self.get(key) not in allowed:
                wanted = " or ".join("null" if one is None else str(one).lower() for one in allowed)
                raise UnsupportedModel(
                    f"{self.place}: '{key}' {show(self.get(key))} is not supported; only {wanted} is"
                )

    def refuse_value(self, key: str, wanted: str, value: object) -> NoReturn:
        raise DamagedFile(f"{self.place}: '{key}' must be {wanted}, but is {show(value)}")

    def _read(self, key: str, default: Any, wanted: str, accepts: Callable[[Any], bool]) -> Any:
        value = self.get(key, default)
        if value is None and default is None:
            raise DamagedFile(f"{self.place}: '{key}' is missing")
        if not accepts(value):
            self.refuse_value(key, wanted, value)
        return value


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def show(value: object) -> str:
    """A value in a message, shortened if it is long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def read_settings(path: Path) -> Settings:
    """The object in a JSON file, in which null counts as missing; an empty one if the file does not exist."""
    content = load_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise DamagedFile(f"{path}:1: must be an object, but is {show(content)}")
    return Settings(content, path, null_is_missing=True)


def load_json(path: Path) -> object:
    """The content of a JSON file.

    Raises:
        DamagedFile: the file cannot be read, or is not UTF-8 or not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DamagedFile(f"{path}:{error.lineno}: is not JSON: {error.msg} in column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{path}: is not UTF-8 (byte {error.start})") from error
    except RecursionError as error:
        raise DamagedFile(f"{path}: is nested too deeply") from error
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
