"""What a module of an architecture provides, and the settings of config.json that several read alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from onnx_from_checkpoints.configuration import Task
from onnx_from_checkpoints.settings import Settings

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

    VERSION: str
    """Increased when the same weights would give a different graph."""
    KNOWN: str
    """The name of a tensor that every model of the architecture has, from which the prefix of names is found."""

    def build(self, config: Settings, weights: Weights, wanted: WantedGraph) -> onnx.ModelProto:
        """Build the graph; equal arguments give equal bytes.

        Each tensor that can change what the graph gives is read; the caller refuses weights with others, except those
        that this passes over (`Weights.pass_over`).

        Raises:
            UnsupportedModel: the configuration asks for something that is not supported; the message names the key.
            DamagedFile: a size or a tensor is missing, or they do not fit together.
        """


def read_rope(config: Settings, place: str = "rope_parameters", kinds: Collection[str] = ("default",)) -> str:
    """The kind of rotary positions; their settings are at `place` in config.json."""
    config.refuse_unless("rope_scaling", None)
    config.refuse_unless(f"{place}.partial_rotary_factor", 1)
    return config.choice(f"{place}.rope_type", "default", kinds)


def refuse_decoders(config: Settings) -> None:
    config.refuse_unless("is_decoder add_cross_attention is_causal causal causal_mask", False, None)
