"""The shape of a DeBERTa-v2 or v3 according to its config.json, and which distances share an embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rageval_spec.inference.architectures.shared.activations import ACTIVATIONS
from rageval_spec.inference.architectures.shared.settings import read_choice, read_flag, read_number
from rageval_spec.inference.architectures.shared.sizes import read_size
from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TERMS = ("c2p", "p2c")


@dataclass(frozen=True, slots=True)
class Convolution:
    """The convolution over the embeddings, whose output is added to that of the first layer (v2-xlarge has one).

    Attributes:
        size: the number of tokens that it reads, an odd number.
        groups: the number of groups of channels that do not read one another.
    """

    size: int
    groups: int
    activation: str


@dataclass(frozen=True, slots=True)
class Distances:
    """The relative positions (query minus key) of attention.

    Attributes:
        terms: which products are added to the scores: `c2p` of queries with distances, `p2c` of keys with distances.
        rows: the row of the embeddings for each distance from -`reach` to `reach`, never decreasing. Distances further
            away have the row of the nearest end.
        embeddings: the number of rows.
        shared: whether queries and keys of distances are projected by the weights of those of tokens.
        normalized: whether the embeddings are normalised before that.
    """

    terms: tuple[str, ...]
    rows: NDArray[np.int64]
    embeddings: int
    shared: bool
    normalized: bool

    @property
    def reach(self) -> int:
        """The largest distance that `rows` has."""
        return len(self.rows) // 2


@dataclass(frozen=True, slots=True)
class Shape:
    """The contents of config.json.

    Attributes:
        positions: the number of absolute positions, 0 if there are none.
        types: the number of token types, 0 if there are none.
        scale: the factor of all products that make up a score.
        distances: None without relative positions.
    """

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    embedding: int
    positions: int
    types: int
    epsilon: float
    activation: str
    pooled: str
    scale: float
    distances: Distances | None
    convolution: Convolution | None


def read_shape(config: Mapping[str, Any]) -> Shape:
    """Read config.json, with transformers' defaults for keys that are not in it.

    Raises:
        UnsupportedModel: an activation or a kind of relative positions is not supported.
        DamagedFile: a value is missing or invalid, or values do not fit together.
    """
    hidden, heads = read_size(config, "hidden_size"), read_size(config, "num_attention_heads")
    _check_widths(config, hidden, heads)
    terms = _read_terms(config)
    return Shape(
        hidden=hidden,
        layers=read_size(config, "num_hidden_layers"),
        heads=heads,
        inner=read_size(config, "intermediate_size"),
        vocabulary=read_size(config, "vocab_size"),
        embedding=read_size(config, "embedding_size", hidden),
        positions=read_size(config, "max_position_embeddings", 512)
        if read_flag(config, "position_biased_input", True)
        else 0,
        types=_read_whole(config, "type_vocab_size", 0, least=0),
        epsilon=read_number(config, "layer_norm_eps", 1e-7),
        activation=read_choice(config, "hidden_act", "gelu", ACTIVATIONS),
        pooled=read_choice(config, "pooler_hidden_act", "gelu", ACTIVATIONS),
        # Terms count even if relative_attention is false, so that they add nothing.
        scale=1 / math.sqrt(hidden // heads * (1 + len(terms))),
        distances=_read_distances(config, terms) if read_flag(config, "relative_attention", False) and terms else None,
        convolution=_read_convolution(config, hidden),
    )


def _check_widths(config: Mapping[str, Any], hidden: int, heads: int) -> None:
    if hidden % heads:
        raise DamagedFile(f"config.json: hidden_size {hidden} is not a multiple of num_attention_heads {heads}")
    for key, needed in (("attention_head_size", hidden // heads), ("pooler_hidden_size", hidden)):
        found = config.get(key, needed)
        if found != needed:
            raise DamagedFile(
                f"config.json: '{key}' is {found!r}, but must be {needed} with hidden_size {hidden} and "
                f"num_attention_heads {heads}"
            )


def _read_terms(config: Mapping[str, Any]) -> tuple[str, ...]:
    """`pos_att_type` is a list of words, or one text with | between them."""
    stated = config.get("pos_att_type")
    words = stated.lower().split("|") if isinstance(stated, str) else stated or ()
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise DamagedFile(f"config.json: 'pos_att_type' must be a list of {' and '.join(_TERMS)}, but is {stated!r}")
    named = {word.strip() for word in words} - {"", "none"}
    if not named <= set(_TERMS):
        unknown = min(named - set(_TERMS))
        raise UnsupportedModel(
            f"config.json: 'pos_att_type' has {unknown!r}, which is not supported; supported are: {', '.join(_TERMS)}"
        )
    return tuple(term for term in _TERMS if term in named)


def _read_distances(config: Mapping[str, Any], terms: tuple[str, ...]) -> Distances:
    reach = _read_whole(config, "max_relative_positions", -1)
    if reach < 1:
        reach = read_size(config, "max_position_embeddings", 512)
    buckets = _read_whole(config, "position_buckets", -1)
    if buckets > 0:
        _check_buckets(buckets, reach)
    span = buckets if buckets > 0 else reach
    norms = str(config.get("norm_rel_ebd", "none")).lower().split("|")
    for norm in (one.strip() for one in norms):
        if norm not in ("none", "layer_norm"):
            raise UnsupportedModel(
                f"config.json: 'norm_rel_ebd' {norm!r} is not supported; supported are: layer_norm, none"
            )
    return Distances(
        terms=terms,
        rows=find_rows(reach, buckets),
        embeddings=2 * span,
        shared=read_flag(config, "share_att_key", False),
        normalized="layer_norm" in map(str.strip, norms),
    )


def _check_buckets(buckets: int, reach: int) -> None:
    if buckets % 2:
        raise UnsupportedModel(f"config.json: 'position_buckets' {buckets} is not supported; only even numbers are")
    if reach - 1 <= buckets // 2:
        raise DamagedFile(
            f"config.json: 'position_buckets' is {buckets}, which needs a max_relative_positions (or, without it, a "
            f"max_position_embeddings) above {buckets // 2 + 1}, but it is {reach}"
        )


def find_rows(reach: int, buckets: int) -> NDArray[np.int64]:
    """The row of the embeddings for each distance from -`reach` to `reach`.

    Args:
        reach: from this distance on, all distances of a sign share a row.
        buckets: the number of rows for distances of one sign, even: half of them hold one distance each, the others
            widen logarithmically up to `reach`. 0 or less gives each distance its own row.
    """
    distances = np.arange(-reach, reach + 1)
    span = reach
    if buckets > 0:
        span, exact = buckets, buckets // 2
        size = np.abs(distances)
        ratio = _log(np.maximum(size, exact).astype(np.float32) / np.float32(exact))
        ratio = ratio / _log(np.array((reach - 1) / exact, np.float32))
        grown = np.ceil(ratio * np.float32(exact - 1)).astype(np.int64) + exact
        distances = np.where(size <= exact, distances, np.sign(distances) * grown)
    return np.clip(distances + span, 0, 2 * span - 1)


def _log(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest float32 to the logarithm: a distance at a bucket's border must fall into the bucket of PyTorch."""
    return np.log(values.astype(np.float64)).astype(np.float32)


def _read_convolution(config: Mapping[str, Any], hidden: int) -> Convolution | None:
    size = _read_whole(config, "conv_kernel_size", 0)
    if size < 1:
        return None
    if size % 2 == 0:
        raise DamagedFile(f"config.json: 'conv_kernel_size' must be odd, but is {size}")
    groups = read_size(config, "conv_groups", 1)
    if hidden % groups:
        raise DamagedFile(f"config.json: hidden_size {hidden} is not a multiple of conv_groups {groups}")
    return Convolution(size, groups, read_choice(config, "conv_act", "tanh", ACTIVATIONS))


def _read_whole(config: Mapping[str, Any], key: str, default: int, least: int | None = None) -> int:
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        wanted = "a whole number" if least is None else f"a whole number from {least} up"
        raise DamagedFile(f"config.json: '{key}' must be {wanted}, but is {value!r}")
    return value
