"""What a module of an architecture provides, and how it reads its settings from config.json.

Settings are sizes, flags, numbers and choices.
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


class Builder(Protocol):
    """Builds the graphs of one model; see `WantedGraph.task`."""

    def build_encoder(self) -> onnx.ModelProto:
        """Build the graph that outputs `last_hidden_state`."""

    def build_classifier(self) -> onnx.ModelProto:
        """Build the graph that outputs `logits`."""

    def build_token_classifier(self) -> onnx.ModelProto:
        """Build the graph that outputs `token_logits`."""


def build_for(task: Task, builder: Builder) -> onnx.ModelProto:
    """Build the graph for a task."""
    if task == "classification":
        return builder.build_classifier()
    if task == "token_classification":
        return builder.build_token_classifier()
    return builder.build_encoder()


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
    """The activation function that a key names, by the one of its names that is in `supported`.

    Raises:
        UnsupportedModel: the value is something else; the message lists the supported words.
    """
    names = {name: name for name in supported}
    names |= {other: name for other, name in _SYNONYMS.items() if name in names}
    return names[read_choice(config, key, default, names)]


def refuse_unless(config: Mapping[str, Any], key: str, *allowed: object) -> None:
    """Refuse a value that changes the numbers in a way that is not supported; a missing key is allowed.

    Raises:
        UnsupportedModel: the value is not one of `allowed`.
    """
    if key in config and config[key] not in allowed:
        wanted = " or ".join("null" if one is None else str(one).lower() for one in allowed)
        raise UnsupportedModel(f"config.json: '{key}' {config[key]!r} is not supported; only {wanted} is")


def read_size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number above 0.

    Raises:
        DamagedFile: it is missing and has no default, or is something else.
    """
    size = config.get(key, default)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        found = "is missing" if size is None else f"must be a whole number above 0, but is {size!r}"
        raise DamagedFile(f"config.json: '{key}' {found}")
    return size
