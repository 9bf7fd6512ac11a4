"""Graphs of DeBERTa-v2 (He et al. 2021) and DeBERTa-v3 (He et al. 2023), whose `model_type` is the same.

Attention is disentangled: to the score of a query and a key, it adds the product of the query with an embedding of
their distance (content to position, `c2p`), and that of the key with another one (position to content, `p2c`). The
shape according to config.json says which distances share an embedding.

The keys and queries of distances are constants here, and each head is computed by itself: what it needs at a time
fits into a core's cache, and its columns are used where they are, without a transposition. Measured on 512 tokens of
the base size, all heads together took 1.5 times as long (int8: 1.9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, MICROSOFT, LayerNames, Transformer
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


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


def _read_terms(config: Settings) -> tuple[str, ...]:
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


def _read_distances(config: Settings, terms: tuple[str, ...]) -> Distances:
    reach = config.whole("max_relative_positions", -1)
    if reach < 1:
        reach = config.size("max_position_embeddings", 512)
    buckets = config.whole("position_buckets", -1)
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
        shared=config.flag("share_att_key", False),
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


def _read_convolution(config: Settings, hidden: int) -> Convolution | None:
    size = config.whole("conv_kernel_size", 0)
    if size < 1:
        return None
    if size % 2 == 0:
        raise DamagedFile(f"config.json: 'conv_kernel_size' must be odd, but is {size}")
    groups = config.size("conv_groups", 1)
    if hidden % groups:
        raise DamagedFile(f"config.json: hidden_size {hidden} is not a multiple of conv_groups {groups}")
    return Convolution(size, groups, config.activation("conv_act", "tanh", ACTIVATIONS))


VERSION = "2"
KNOWN = "embeddings.word_embeddings.weight"
_NAMES = LayerNames(
    layer="encoder.layer.{}.",
    attended="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    widened="intermediate.dense",
    narrowed="output.dense",
    output_norm="output.LayerNorm",
)


def build(config: Settings, weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    """Build the graph; see `contract.Architecture`.

    Without absolute positions (`position_biased_input: false`), a text may be longer than `max_position_embeddings`.
    The hidden states and logits of padding mean nothing.
    """
    model = Deberta(config, weights, wanted.padded)
    if not model.distances:
        weights.pass_over("encoder.rel_embeddings.", "encoder.LayerNorm.")
    if not model.positions:
        weights.pass_over("embeddings.position_embeddings.")
    return model.build(wanted.task)


class _Between(NamedTuple):
    """The distances between the tokens of a batch.

    Attributes:
        distances: what config.json says of them.
        embeddings: the embeddings of distances: [rows, hidden].
        first: the first row that the batch needs, [1].
        end: the row after the last one that it needs, [1].
        rows: for each query and key the row, counted from `first`: int32 [texts, queries, keys].
        single: whether the first token is the only query.
    """

    distances: Distances
    embeddings: NDArray[np.float64]
    first: str
    end: str
    rows: str
    single: bool = False


class Deberta(Transformer):
    """A model with this config.json; keys that are not in it have transformers' defaults.

    Attributes:
        positions: the number of absolute positions, 0 if there are none.
        types: the number of token types, 0 if there are none.
        scale: the factor of all products that make up a score.
        distances: None without relative positions.
    """

    def __init__(self, config: Settings, weights: Weights, padded: bool) -> None:
        super().__init__(config, weights, padded, _NAMES)
        config.refuse_unless("attention_head_size", self.size)
        config.refuse_unless("pooler_hidden_size", self._width)
        terms = _read_terms(config)
        self.embedding = config.size("embedding_size", self._width)
        self.positions = 0
        if config.flag("position_biased_input", True):
            self.positions = config.size("max_position_embeddings", 512)
        self.types = config.whole("type_vocab_size", 0, least=0)
        self.epsilon = config.number("layer_norm_eps", 1e-7)
        self.activation = config.activation("hidden_act", "gelu", ACTIVATIONS)
        self.pooled = config.activation("pooler_hidden_act", "gelu", ACTIVATIONS)
        # Terms count even if relative_attention is false, so that they add nothing.
        self.scale = 1 / math.sqrt(self.size * (1 + len(terms)))
        is_relative = config.flag("relative_attention", False) and terms
        self.distances = _read_distances(config, terms) if is_relative else None
        self.convolution = _read_convolution(config, self._width)
        self._between: _Between | None = None

    def _embed(self) -> str:
        """Normalised sum of the embeddings of words and, in some models, of absolute positions and token types."""
        words = self._weights.read("embeddings.word_embeddings.weight", self.vocabulary, self.embedding)
        found = self.add("Gather", self.hold("words", words), "input_ids")
        if self.positions:
            places = self._weights.read("embeddings.position_embeddings.weight", self.positions, self.embedding)
            tokens = self.add("Shape", "input_ids", start=1, end=2)
            rows = self.add("Slice", self.hold("positions", places), self.vector(0), tokens, self.vector(0))
            found = self.add("Add", found, rows)
        if self.types:
            found = self.add("Add", found, self._look_up_types())
        if self.embedding != self._width:
            weight = self._weights.read("embeddings.embed_proj.weight", self._width, self.embedding).T
            found = self.multiply(found, "embeddings.embed_proj", weight)
        embedded = self._normalize(found, "embeddings.LayerNorm")
        self._between = self._find_distances(self.distances) if self.distances else None
        return embedded

    def _look_up_types(self) -> str:
        kinds = self._weights.read("embeddings.token_type_embeddings.weight", self.types, self.embedding)
        held = self.hold("types", kinds)
        if self.types == 1:
            return held
        self._inputs.append("token_type_ids")
        return self.add("Gather", held, "token_type_ids")

    def _mark_padding(self) -> str:
        """What is added to scores: 0 for tokens and the lowest float32 for padding, [texts, 1, tokens]."""
        empty = self.add("Equal", self.add("Unsqueeze", "attention_mask", self.vector(1)), self.number(0))
        lowest = self.hold("lowest", np.array(np.finfo(np.float32).min))
        return self.add("Where", empty, lowest, self.hold("nothing", np.array(0, np.float32)))

    def _read_distances(self, distances: Distances) -> NDArray[np.float64]:
        """The embeddings of distances, normalised if the model does so: [rows, hidden]."""
        table = self._weights.read("encoder.rel_embeddings.weight", distances.embeddings, self._width)
        if not distances.normalized:
            return table.astype(np.float64)
        scale, shift = (self._weights.read(f"encoder.LayerNorm.{kind}", self._width) for kind in ("weight", "bias"))
        centred = table - table.mean(axis=1, keepdims=True, dtype=np.float64)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + self.epsilon)
        return np.asarray(centred / deviation * scale + shift)

    def _find_distances(self, distances: Distances) -> _Between:
        texts, tokens = (self.add("Shape", "input_ids", start=axis, end=axis + 1) for axis in (0, 1))
        places = self.count_to(self.add("Squeeze", tokens))
        found = self.add("Sub", self.add("Unsqueeze", places, self.vector(1)), places)
        reach = self.number(distances.reach)
        found = self.add("Add", self.add("Clip", found, self.number(-distances.reach), reach), reach)
        rows = self.add("Gather", self.hold("rows", distances.rows), found)
        first, last = (self.add(f"Reduce{which}", rows, keepdims=0) for which in ("Min", "Max"))
        counted = self.add("Cast", self.add("Sub", rows, first), to=onnx.TensorProto.INT32)
        rows = self.add("Expand", counted, self.add("Concat", texts, tokens, tokens, axis=0))
        return _Between(
            distances,
            self._read_distances(distances),
            first=self.add("Unsqueeze", first, self.vector(0)),
            end=self.add("Unsqueeze", self.add("Add", last, self.number(1)), self.vector(0)),
            rows=self.declare(rows, "texts", "tokens", "tokens", kind=onnx.TensorProto.INT32),
        )

    def _run_layer(self, number: int, hidden: str, *, first_only: bool) -> str:
        convolution = self.convolution if number == 0 else None
        found = super()._run_layer(number, hidden, first_only=first_only and not convolution)
        return self._convolve(convolution, hidden, found) if convolution else found

    def _attend(self, number: int, layer: str, asking: str, source: str) -> str:  # noqa: ARG002 - as all
        names, hidden, between = f"{layer}attention.self.", source, self._between
        if between and asking != source:
            between = between._replace(rows=self.take_first(between.rows, 1), single=True)
        queries = self._project_heads(asking, f"{names}query_proj", "tokens" if asking == hidden else 1)
        keys, values = (self._project_heads(hidden, f"{names}{part}_proj") for part in ("key", "value"))
        tables = self._project_distances(names, between) if between else {}
        attended = []
        for head in range(self.heads):
            added = [self._mask] if self._mask else []
            if between and "c2p" in tables:
                added.append(self._look_up_keys(queries[head], tables["c2p"][head], between))
            if between and "p2c" in tables:
                added.append(self._look_up_queries(keys[head], tables["p2c"][head], between))
            shares = self._share(queries[head], keys[head], added)
            attended.append(self.add("MatMul", shares, values[head]))
        return self.add("Concat", *attended, axis=-1)

    def _project_heads(self, source: str, name: str, tokens: str | int = "tokens") -> Sequence[str]:
        """Queries, keys or values of each head: [texts, tokens, head's width]."""
        projected = self.apply_linear(source, name, self._width, self._width)
        # A quantised product has no known shape, and then nothing of the head would have one.
        self.declare(projected, "texts", tokens, self._width)
        others = [str(head) for head in range(1, self.heads)]
        first = self.add("Split", projected, axis=-1, num_outputs=self.heads, besides=others)
        return [first, *(f"{first}_{head}" for head in others)]

    def _project_distances(self, names: str, between: _Between) -> dict[str, Sequence[str]]:
        """By term and head the keys (c2p) or queries (p2c) of distances, times the scale: [rows, width of a head]."""
        distances = between.distances
        parts = {"c2p": ("key_proj", "pos_key_proj"), "p2c": ("query_proj", "pos_query_proj")}
        found: dict[str, Sequence[str]] = {}
        for term in distances.terms:
            shared, own = parts[term]
            weight, bias = self._weights.read_linear(
                names + (shared if distances.shared else own), self._width, self._width
            )
            projected = (between.embeddings @ weight.astype(np.float64) + bias) * self.scale
            heads = np.split(projected.astype(np.float32), self.heads, axis=1)
            found[term] = [self.hold(f"{names}{term}.{head}", table) for head, table in enumerate(heads)]
        return found

    def _look_up_keys(self, queries: str, table: str, between: _Between) -> str:
        """The products of queries with the keys of distances: [texts, queries, keys]."""
        needed = self._take_needed(table, between)
        if between.single:
            # One query as the left operand would be multiplied together with those of the other texts of a batch, and
            # by another kernel than alone: the bits of a text would depend on the other texts.
            products = self.add("FusedMatMul", needed, queries, domain=MICROSOFT, transB=1)
            products = self.add("Reshape", products, self.vector(0, 1, -1))
            self.declare(products, "texts", 1, "needed")
        else:
            products = self.add("FusedMatMul", queries, needed, domain=MICROSOFT, transB=1)
            self.declare(products, "texts", "tokens", "needed")
        return self.add("GatherElements", products, between.rows, axis=2)

    def _look_up_queries(self, keys: str, table: str, between: _Between) -> str:
        """The products of keys with the queries of distances: [texts, queries, keys]."""
        products = self.add("FusedMatMul", self._take_needed(table, between), keys, domain=MICROSOFT, transB=1)
        self.declare(products, "texts", "needed", "tokens")
        return self.add("GatherElements", products, between.rows, axis=1)

    def _take_needed(self, table: str, between: _Between) -> str:
        """The rows of a table of distances that the batch needs: [rows, width of a head]."""
        needed = self.add("Slice", table, between.first, between.end, self.vector(0))
        return self.declare(needed, "needed", self.size)

    def _share(self, queries: str, keys: str, added: Sequence[str]) -> str:
        """How much each query takes of each key's value: [texts, queries, keys]."""
        scores = self.add("FusedMatMul", queries, keys, domain=MICROSOFT, transB=1, alpha=self.scale)
        for one in added:
            scores = self.add("Add", scores, one)
        return self.add("Softmax", scores, axis=-1)

    def _convolve(self, convolution: Convolution, embedded: str, hidden: str) -> str:
        """Add the convolution over the embeddings to the output of the first layer, and normalise.

        The convolution is a product with the embeddings of neighbours side by side, so that it can be quantised.
        """
        if self._mask:
            seen = self.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
            embedded = self.add("Mul", embedded, self.add("Unsqueeze", seen, self.vector(2)))
        before = convolution.size // 2
        filled = self.add("Pad", embedded, self.vector(0, before, 0, 0, before, 0))
        tokens = self.add("Shape", "input_ids", start=1, end=2)
        neighbours = [
            self.add("Slice", filled, start := self.vector(place), self.add("Add", tokens, start), self.vector(1))
            for place in range(convolution.size)
        ]
        together = self.add("Concat", *neighbours, axis=-1) if len(neighbours) > 1 else neighbours[0]
        name = "encoder.conv.conv"
        product = self.multiply(together, name, self._read_kernel(f"{name}.weight", convolution))
        bias = self._weights.read(f"{name}.bias", self._width)
        added = self.add("Add", hidden, self.activate(product, name, bias, convolution.activation))
        return self._normalize(added, "encoder.conv.LayerNorm")

    def _read_kernel(self, name: str, convolution: Convolution) -> Array:
        """The kernel as a matrix [places * hidden, hidden]; channels of other groups have weight 0."""
        width = self._width
        part = width // convolution.groups
        kernel = self._weights.read(name, width, part, convolution.size)
        matrix = np.zeros((convolution.size, width, width), np.float32)
        for start in range(0, width, part):
            group = slice(start, start + part)
            matrix[:, group, group] = kernel[group].transpose(2, 1, 0)
        return matrix.reshape(-1, width)

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize(source, name, self._width, self.epsilon)

    def _classify(self) -> tuple[str, int]:
        first = self.add("Gather", self._run_layers(first_only=True), self.number(0), axis=1)
        pooled = self.apply_gemm(first, self._weights.read_head, "pooler.dense", self._width, self._width)
        return self.label(ACTIVATIONS[self.pooled](self, pooled), "classifier", self._width)
