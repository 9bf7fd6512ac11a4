"""How fast models read on this machine: measured whenever they read much, or else guessed from their sizes.

`<cache>/speeds.json` has a speed for each model, precision and number of threads. A plan estimates seconds with it, and
nothing else depends on it, so a lost or damaged file is no error.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from rageval_spec.dataclass import dataclass
from rageval_spec.plugin import Context, Speed, count_roughly
from rageval_spec.store.disk import InputFile, find_cache, write_flushed

if TYPE_CHECKING:
    from onnx_from_checkpoints import Configuration
    from rageval_spec.inference.model_files import ModelFiles

B = TypeVar("B")

ENOUGH_SECONDS = 1.0
"""A measurement of less than this says little."""
_FILE = "speeds.json"
_MOST_TOKENS_PER_SECOND = 1e12
"""A larger speed in the file is not from a measurement."""
_LARGEST_SIZE = 10**6
"""A larger size in config.json is not that of a model."""
_FLOPS_OF_CORE: Mapping[str, float] = {"fp32": 50e9, "int8": 80e9}
"""What a guess assumes of a core: about a third of what a server's core of 2024 reached with minilm, in operations a
second."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "d_model", "dim", "n_embd"),
    "layers": ("num_hidden_layers", "num_layers", "n_layers", "n_layer"),
    "inner": ("intermediate_size", "d_ff", "hidden_dim", "n_inner"),
}
"""The keys of config.json, by architecture."""


def recall_speed(key: str) -> Speed | None:
    found = _read().get(key)
    if not isinstance(found, dict):
        return None
    rate, day = found.get("tokens_per_second"), found.get("measured_on")
    if isinstance(rate, (int, float)) and 0 < rate <= _MOST_TOKENS_PER_SECOND and _is_date(day):
        return Speed(float(rate), day)
    return None


def _is_date(day: object) -> TypeGuard[str]:
    try:
        return isinstance(day, str) and bool(date.fromisoformat(day))
    except ValueError:
        return False


def guess_speed(config: Mapping[str, Any], precision: str, threads: int) -> Speed | None:
    """A speed from the sizes in config.json; None if they are not there.

    The two operations for each weight that a token passes, without those of attention, embeddings and heads.
    """
    hidden, layers, inner = (_find_size(config, names) for names in _NAMES.values())
    if hidden is None or layers is None:
        return None
    weights = layers * (4 * hidden**2 + 2 * hidden * (inner or 4 * hidden))
    return Speed(threads * _FLOPS_OF_CORE[precision] / (2 * weights))


def _find_size(config: Mapping[str, Any], names: Iterable[str]) -> int | None:
    found = (config.get(name) for name in names)
    return next(
        (one for one in found if isinstance(one, int) and not isinstance(one, bool) and 0 < one <= _LARGEST_SIZE), None
    )


@dataclass(frozen=True)
class ReadingSpeed:
    """How fast one model reads.

    Attributes:
        source: its files.
        configuration: what they say, and what the spec says instead.
        precision: that of the weights as they are used, `fp32` or `int8`.
        context: its threads, and the fingerprints of files.
    """

    source: ModelFiles
    configuration: Configuration
    precision: str
    context: Context

    @property
    def threads(self) -> int:
        from rageval_spec.inference.session import count_cores

        return self.context.threads or count_cores()

    @cached_property
    def key(self) -> str:
        """What the speed depends on: the weights, their precision and the threads."""
        weights = self.context.fingerprint(InputFile(self.source.path(self.source.weights[0]), ("model",)))
        return f"{weights[:32]} {self.precision} {self.threads}"

    def find(self) -> Speed | None:
        """The speed that was measured on this machine, or else a guess."""
        return recall_speed(self.key) or guess_speed(self.configuration.encoder, self.precision, self.threads)

    def count(self, text: str | tuple[str, str]) -> int:
        """About how many tokens of a text or a pair are read; what is cut off does not count."""
        return int(min(count_roughly(text), self.configuration.max_length or math.inf))

    def keep(self, texts: Sequence[str] | Sequence[tuple[str, str]], answers: Iterator[B]) -> Iterator[B]:
        """The answers to the texts; the time that they took is kept, if it is long enough to tell a speed."""
        begun = time.perf_counter()
        yield from answers
        seconds, tokens = time.perf_counter() - begun, sum(map(self.count, texts))
        if seconds >= ENOUGH_SECONDS and tokens:
            with suppress(OSError):
                told = {"tokens_per_second": round(tokens / seconds, 1), "measured_on": f"{date.today():%Y-%m-%d}"}
                _keep(self.key, told)


def _keep(key: str, speed: Mapping[str, Any]) -> None:
    path = find_cache() / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{_FILE}.{os.getpid()}.part")
    write_flushed(part, json.dumps({**_read(), key: speed}, indent=1, sort_keys=True).encode())
    part.replace(path)


def _read() -> Mapping[str, Any]:
    try:
        content = json.loads((find_cache() / _FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
