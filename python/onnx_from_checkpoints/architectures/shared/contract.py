"""What a module of an architecture provides, and how it reads its settings from config.json.

Settings are sizes, flags, numbers and choices. A choice that is not supported is an `UnsupportedModel`, any other value
that is missing or impossible a `DamagedFile`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from onnx_from_checkpoints.configuration import Task
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel

if TYPE_CHECKING:
    import onnx

    from onnx_from_checkpoints.weights import Weights


@dataclass(frozen=True, slots=True)
class WantedGraph:
    """Which graph to build.

    Attributes:
        task: what the graph outputs: `last_hidden_state` [texts, tokens, hidden], `logits` [texts, labels], or
            `token_logits` [texts, tokens, labels], all float32.
        padded: whether the graph has the input `attention_mask`, which is 0 for padding. Without it, the texts of a
            batch have equal length.
        tabled: whether projections of the first layer may be looked up in precomputed tables.
        replies: the ids of the tokens whose logits are the labels' (`classification` by a text generator).
        bare: whether only the encoder of the weights is meant. Heads and decoders beside it then do not count.
    """

    task: Task
    padded: bool = False
    tabled: bool = False
    replies: tuple[int, ...] = ()
    bare: bool = False


class Architecture(Protocol):
    """A module in `architectures`."""

    MODEL_TYPES: tuple[str, ...]
    """transformers' names of the architecture: `model_type` in config.json."""
    VERSION: str
    """Increased when the same weights would give a different graph."""
    KNOWN: str
    """The name of a tensor that every model of the architecture has, from which the prefix of names is found."""

    def build(self, config: Mapping[str, Any], weights: Weights, wanted: WantedGraph) -> onnx.ModelProto:
        """Build the graph; equal arguments give equal bytes.

        Each tensor that can change what the graph gives is read; the caller refuses weights with others, except those
        that this passes over (`Weights.pass_over`).

        Raises:
            UnsupportedModel: the configuration asks for something that is not supported; the message names the key.
            DamagedFile: a size or a tensor is missing, or they do not fit together.
        """


def read_flag(config: Mapping[str, Any], key: str, default: bool) -> bool:
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise DamagedFile(f"config.json: '{key}' must be true or false, but is {value!r}")
    return value


def read_number(config: Mapping[str, Any], key: str, default: float, *, where: str = "") -> float:
    """A number above 0; `where` is the key of the object in config.json that `config` is, with a dot."""
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise DamagedFile(f"config.json: '{where}{key}' must be a number above 0, but is {value!r}")
    return float(value)


def read_epsilon(config: Mapping[str, Any], key: str, default: float, wanted: str) -> float:
    """What a norm adds to the variance: from 0 to below 1; `wanted` describes that in the message."""
    epsilon = config.get(key, default)
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 <= epsilon < 1:
        raise DamagedFile(f"config.json: '{key}' must be {wanted}, but is {epsilon!r}")
    return float(epsilon)


def read_choice(config: Mapping[str, Any], key: str, default: str, supported: Collection[str], where: str = "") -> str:
    """One of the supported words; the message about any other lists them."""
    value = config.get(key, default)
    if not isinstance(value, str) or value not in supported:
        names = ", ".join(sorted(supported))
        raise UnsupportedModel(f"config.json: '{where}{key}' {value!r} is not supported; supported are: {names}")
    return value


_SYNONYMS: Mapping[str, str] = {
    "gelu_accurate": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_python": "gelu",
    "gelu_python_tanh": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "swish": "silu",
}
"""transformers' further names of one function: they differ in how it is computed, and not in what it is."""


def read_activation(config: Mapping[str, Any], key: str, default: str, supported: Collection[str]) -> str:
    """The activation function that a key names, by the one of its names that is in `supported`."""
    names = {name: name for name in supported}
    names |= {other: name for other, name in _SYNONYMS.items() if name in names}
    return names[read_choice(config, key, default, names)]


def refuse_unless(config: Mapping[str, Any], key: str, *allowed: object) -> None:
    """Refuse a value that changes the numbers in a way that is not supported; a missing key is allowed."""
    if key in config and config[key] not in allowed:
        wanted = " or ".join("null" if one is None else str(one).lower() for one in allowed)
        raise UnsupportedModel(f"config.json: '{key}' {config[key]!r} is not supported; only {wanted} is")


def read_size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number above 0."""
    size = config.get(key, default)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        found = "is missing" if size is None else f"must be a whole number above 0, but is {size!r}"
        raise DamagedFile(f"config.json: '{key}' {found}")
    return size


def read_rope(
    stated: object, where: str = "rope_parameters", kinds: Collection[str] = ("default",)
) -> tuple[Mapping[str, Any], str]:
    """The object with the settings of rotary positions, which is at `where` in config.json, and their kind."""
    found = stated or {}
    if not isinstance(found, Mapping):
        raise DamagedFile(f"config.json: '{where}' must be an object, but is {found!r}")
    kind = read_choice(found, "rope_type", "default", kinds, f"{where}.")
    if found.get("partial_rotary_factor", 1) != 1:
        raise UnsupportedModel(f"config.json: '{where}.partial_rotary_factor' is not supported; only 1 is")
    return found, kind
