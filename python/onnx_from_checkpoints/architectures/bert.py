"""Graphs of encoders with BERT's layers, built from the weights and `config.json` of transformers.

Architectures: BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019), DistilBERT (Sanh et al. 2019), ELECTRA (Clark et
al. 2020), MPNet (Song et al. 2020, with the relative position buckets of T5). They differ in how they name their
tensors, and in the shape that config.json gives.

The graph has the form that ONNX Runtime's CPU kernels run fastest: projections are plain matrix products, and
attention and GELU are ONNX Runtime's own fused operators. The arithmetic is that of transformers in float32,
including the exact GELU (with erf).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared import contract
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, LayerNames, Transformer, find_buckets
from onnx_from_checkpoints.settings import Settings
from onnx_from_checkpoints.weights import Blocks, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class _Head(NamedTuple):
    """A classifier: the names of its two linear layers, and the operator between them."""

    dense: str
    activation: str
    labels: str


_POOLER = _Head("pooler.dense", "Tanh", "classifier")
"""Its first layer is the encoder's own."""
_DENSE = _Head("classifier.dense", "Tanh", "classifier.out_proj")


@dataclass(frozen=True, slots=True)
class TensorNames(LayerNames):
    """How one architecture names its tensors.

    Attributes:
        positions: `absolute` counts from 0; `offset` counts tokens other than padding from `pad_token_id` + 1.
        head: its sequence classifier.
        renamed: its keys in config.json, by BERT's.
    """

    query: str
    key: str
    value: str
    positions: Literal["absolute", "offset"] = "absolute"
    types: bool = True
    head: _Head = _DENSE
    renamed: Mapping[str, str] = field(default_factory=dict)


_BERT = TensorNames(
    layer="encoder.layer.{}.",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attended="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    widened="intermediate.dense",
    narrowed="output.dense",
    output_norm="output.LayerNorm",
    head=_POOLER,
)


_ROBERTA = replace(_BERT, positions="offset", head=_DENSE)
_MPNET = replace(
    _ROBERTA,
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attended="attention.attn.o",
    attention_norm="attention.LayerNorm",
    types=False,
)
_DISTILBERT = TensorNames(
    layer="transformer.layer.{}.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attended="attention.out_lin",
    attention_norm="sa_layer_norm",
    widened="ffn.lin1",
    narrowed="ffn.lin2",
    output_norm="output_layer_norm",
    types=False,
    head=_Head("pre_classifier", "Relu", "classifier"),
    renamed={
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
    },
)
FAMILIES: Mapping[str, TensorNames] = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "distilbert": _DISTILBERT,
    "electra": replace(_BERT, head=_DENSE._replace(activation="Gelu")),
    "mpnet": _MPNET,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""The architectures that can be built, by transformers' `model_type`."""
_BUCKETS = 32


VERSION = "3"
KNOWN = "embeddings.word_embeddings.weight"
MOST_BYTES_OF_TABLES = 150_000_000
"""Above this size, projections are not precomputed: the tables would cost more memory than the time saved is worth."""
_INVERSE = "inverse"
"""Suffix of the normalisation output that holds 1 / standard deviation."""


def build(config: Settings, weights: Weights, wanted: contract.WantedGraph) -> onnx.ModelProto:
    """Build the graph; see `contract.Architecture`.

    Tables of the first layer's projections save 3 % of the time with 6 layers and 30,000 words of 384 values, and cost
    140 MB.
    """
    model = Bert(config, weights, wanted.padded, wanted.tabled)
    if wanted.task != "classification" or model.family.head != _POOLER:
        weights.pass_over("pooler.")  # of the task of pretraining; files have it although nothing uses it
    return model.build(wanted.task)


class Bert(Transformer):
    """A model with this config.json."""

    def __init__(self, config: Settings, weights: Weights, padded: bool, tabled: bool) -> None:
        model_type = str(config.get("model_type"))
        self.family = FAMILIES[model_type]
        contract.refuse_decoders(config)
        config.refuse_unless("position_embedding_type", "absolute", None)
        super().__init__(config, weights, padded, self.family, self.family.renamed)
        self.positions = config.size("max_position_embeddings")
        self.types = config.size("type_vocab_size", 2) if self.family.types else 0
        self.embedding = config.size("embedding_size", 128) if model_type == "electra" else self._width
        self.activation = config.activation(config.find("hidden_act", "activation"), "gelu", ACTIVATIONS)
        self.epsilon = 1e-12 if model_type == "distilbert" else config.epsilon("layer_norm_eps", 1e-12)
        self.padding = 0
        if self.family.positions == "offset" and config.get("pad_token_id", 1) is not None:
            self.padding = config.whole("pad_token_id", 1, least=0)
        if model_type == "mpnet":  # transformers puts distances into 32 buckets, whatever config.json says
            config.refuse_unless("relative_attention_num_buckets", _BUCKETS)
        self.buckets = _BUCKETS if model_type == "mpnet" else 0
        self._places = self._find_places()
        # Queries, keys and values of each word, in float32.
        size_of_tables = 3 * 4 * self.vocabulary * self._width
        self._tabled = tabled and self.embedding == self._width and size_of_tables <= MOST_BYTES_OF_TABLES
        self._embedded = self._bias = ""

    def _embed(self) -> str:
        """Normalised sum of word, position and type embeddings, projected if it is narrower than the layers."""
        tables = self._read_embeddings()
        self._tabled = self._tabled and not isinstance(tables["words"], Blocks)
        if self.types > 1:
            self._inputs.append("token_type_ids")
        embedded = self._normalize(self._look_up("", tables), "embeddings.LayerNorm", self.embedding)
        self._embedded = embedded
        if self.embedding != self._width:
            embedded = self.apply_linear(embedded, "embeddings_project", self.embedding, self._width)
        self._bias = self._bucket_distances() if self.buckets else ""
        return embedded

    def _read_embeddings(self) -> dict[str, Any]:
        """Embeddings of words and positions, and of token types if there are several."""
        weights = self._weights
        words = weights.read_table("embeddings.word_embeddings.weight", self.vocabulary, self.embedding)
        places = weights.read("embeddings.position_embeddings.weight", self.positions, self.embedding)
        if not self.types:
            return {"words": words, "positions": places}
        kinds = weights.read("embeddings.token_type_embeddings.weight", self.types, self.embedding)
        if self.types == 1:
            return {"words": words, "positions": places + kinds[0]}
        return {"words": words, "types": kinds, "positions": places}

    def _look_up(self, prefix: str, tables: Mapping[str, Any]) -> str:
        """Sum, for each token, its rows in the tables, which are stored as constants named prefix + name."""
        found = self.gather(prefix + "words", tables["words"], "input_ids")
        if "types" in tables:
            found = self.add("Add", found, self.gather(prefix + "types", tables["types"], "token_type_ids"))
        return self.add("Add", found, self._place(self.hold(prefix + "positions", tables["positions"])))

    def _find_places(self) -> str:
        """The number of tokens, or the position of each token if positions skip padding."""
        if self.family.positions == "absolute":
            return self.add("Shape", "input_ids", start=1, end=2)
        padding = self.number(self.padding)
        empty = self.add("Equal", "input_ids", padding)
        counted = self.add("Cast", self.add("Not", empty), to=onnx.TensorProto.INT64)
        places = self.add("Mul", self.add("CumSum", counted, self.number(1)), counted)
        return self.add("Add", places, padding)

    def _place(self, positions: str) -> str:
        """Rows of the tokens: [tokens, width], or [texts, tokens, width] if positions skip padding."""
        if self.family.positions == "absolute":
            return self.add("Slice", positions, self.vector(0), self._places, self.vector(0))
        return self.add("Gather", positions, self._places)

    def _bucket_distances(self) -> str:
        """MPNet's attention bias by distance, [1, heads, tokens, tokens]."""
        reach = self.positions
        table = self._weights.read("encoder.relative_attention_bias.weight", self.buckets, self.heads)
        by_distance = table[find_buckets(np.arange(-reach, reach + 1), self.buckets)]
        places = self.count_to(self.count_tokens())
        from_each = self.add("Unsqueeze", places, self.vector(1))
        distances = self.add("Add", self.add("Sub", places, from_each), self.number(reach))
        bias = self.add("Gather", self.hold("distances", by_distance), distances)
        return self.add("Unsqueeze", self.add("Transpose", bias, perm=[2, 0, 1]), self.vector(0))

    def _attend(self, number: int, layer: str, asking: str, source: str) -> str:  # noqa: ARG002 - as all
        names = self.family
        bias = self.take_first(self._bias, 2) if self._bias and asking != source else self._bias
        sources = ((asking, names.query), (source, names.key), (source, names.value))
        projected, biases = zip(*(self._project(read, layer + name) for read, name in sources), strict=True)
        together = self.hold(f"{layer}attention.bias", np.concatenate(biases))
        return self.attend(*projected, together, self._mask, bias, heads=self.heads)

    def _project(self, source: str, name: str) -> tuple[str, Array]:
        """Queries, keys or values before the bias is added, and the bias."""
        weight, bias = self._weights.read_linear(name, self._width, self._width)
        if self._tabled and source == self._embedded:
            return self._look_up_projected(name, weight, bias)
        return self.multiply(source, name, weight), bias

    def _look_up_projected(self, name: str, weight: Array, bias: Array) -> tuple[str, Array]:
        """Look up projections of normalised embeddings instead of multiplying.

        Normalising is linear except for the division by the standard deviation, which depends on all embeddings of a
        token. Up to that division, the projection of a sum of embeddings is therefore the sum of their projections.
        """
        scale, shift = (self._weights.read(f"embeddings.LayerNorm.{kind}", self._width) for kind in ("weight", "bias"))
        exact = weight.astype(np.float64)
        tables = {
            kind: ((table - table.mean(axis=1, keepdims=True, dtype=np.float64)) * scale @ exact).astype(np.float32)
            for kind, table in self._read_embeddings().items()
        }
        projected = self.add("Mul", self._look_up(f"{name}.", tables), f"{self._embedded}_{_INVERSE}")
        return projected, (bias + shift @ exact).astype(np.float32)

    def _classify(self) -> tuple[str, int]:
        first, head = self._run_first(), self.family.head
        read = self._weights.read if head == _POOLER else self._weights.read_head
        pooled = self.apply_gemm(first, read, head.dense, self._width, self._width)
        return self.label(self.add(head.activation, pooled), head.labels, self._width)

    def _normalize(self, source: str, name: str, size: int = 0) -> str:
        besides = ("mean", _INVERSE) if self._tabled and not self._embedded else ()
        return self.normalize(source, name, size or self._width, self.epsilon, besides)
