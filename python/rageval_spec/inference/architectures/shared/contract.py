"""What a module of an architecture provides, and what it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rageval_spec.inference.tasks import Task

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which graph to build.

    Attributes:
        task: what the graph outputs: `last_hidden_state` [texts, tokens, hidden], `logits` [texts, labels], or
            `token_logits` [texts, tokens, labels], all float32.
        padded: whether the graph has the input `attention_mask`, which is 0 for padding. Without it, the texts of a
            batch have equal length.
        tabled: whether projections of the first layer may be looked up in precomputed tables.
        replies: the ids of the tokens whose logits are the labels' (`classification` by a text generator).
    """

    task: Task
    padded: bool = False
    tabled: bool = False
    replies: tuple[int, ...] = ()


class Architecture(Protocol):
    """A module in `architectures`."""

    MODEL_TYPES: tuple[str, ...]
    """transformers' names of the architecture: `model_type` in config.json."""
    VERSION: str
    """Increased when the same weights would give a different graph."""

    def build(self, config: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], wanted: Wanted) -> onnx.ModelProto:
        """Build the graph; equal arguments give equal bytes.

        Raises:
            UnsupportedModel: the configuration asks for something that is not supported; the message names the key.
            DamagedFile: a size or a tensor is missing, or they do not fit together.
        """


class Builder(Protocol):
    """Builds the graphs of one model; see `Wanted.task`."""

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
