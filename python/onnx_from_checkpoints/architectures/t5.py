"""Graphs of T5's encoder, of HHEM's classifier over it, and of T5 with one step of its decoder.

T5 (Raffel et al. 2020) and its successors T5 v1.1, FLAN-T5, mT5 and UMT5: norms without mean, attention without
scale, and positions only as a bias on attention, by distance. The arithmetic is that of transformers in float32. The
shape is read from config.json, or from the tensors where that names only a foundation.

A classifier made from a text generator, such as MiniCheck, is asked for one token only. Its decoder therefore reads
one token, whose attention to itself is a product of its values, and whose attention to the text needs neither the
keys nor the values of all tokens: a query times the keys' weights can be compared with the encoder's output as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx

from onnx_from_checkpoints.architectures.shared.contract import WantedGraph
from onnx_from_checkpoints.architectures.shared.layers import ACTIVATIONS, Encoder, find_buckets
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.settings import Settings, is_whole
from onnx_from_checkpoints.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


HHEM = ("HHEMv2", "HHEMv2Config")
"""What HHEM-2.1-Open is called in `model_type`: its config.json and its code disagree."""
_FOUNDATIONS = ("flan-t5-small", "flan-t5-base", "flan-t5-large", "flan-t5-xl", "flan-t5-xxl")
_HEAD_SIZE = 64
"""Values per attention head in each T5 that was published."""


def find_hhem_settings(config: Settings, weights: Weights) -> Settings:
    """What config.json of T5 would say of HHEM-2.1-Open, whose own names only its foundation; the tensors say the rest.

    The foundation must be a FLAN-T5, whose activation, epsilon and reach are known.
    """
    foundation = config.get("foundation")
    if not isinstance(foundation, str) or foundation.rstrip("/").rpartition("/")[2] not in _FOUNDATIONS:
        found = "is missing" if foundation is None else f"is {foundation!r}"
        raise UnsupportedModel(f"config.json: 'foundation' {found}; supported are: {', '.join(_FOUNDATIONS)}")
    vocabulary, hidden = weights.size("shared.weight", 2)
    buckets, heads = weights.size("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 2)
    feed_forward, _ = weights.size("encoder.block.0.layer.1.DenseReluDense.wi_0.weight", 2)
    return Settings(
        {
            "d_model": hidden,
            "num_heads": heads,
            "d_ff": feed_forward,
            "num_layers": weights.count_layers("encoder.block.{}."),
            "vocab_size": vocabulary,
            "relative_attention_num_buckets": buckets,
        }
    )


def _read_activation(config: Settings, default: str) -> tuple[str, bool]:
    """The activation, and whether it is gated.

    `feed_forward_proj` says both, where `gated-gelu` means the approximation by tanh. `dense_act_fn` and `is_gated_act`
    are derived from it, but count if they say something else.
    """
    stated = config.get("feed_forward_proj", default)
    parts = stated.split("-") if isinstance(stated, str) else []
    if len(parts) not in (1, 2) or (len(parts) == 2 and parts[0] != "gated"):
        config.refuse_value("feed_forward_proj", "like 'relu' or 'gated-gelu'", stated)
    name = config.get("dense_act_fn", "gelu_new" if stated == "gated-gelu" else parts[-1])
    key = "dense_act_fn" if "dense_act_fn" in config else "feed_forward_proj"
    return Settings({key: name}).activation(key, "", ACTIVATIONS), config.flag("is_gated_act", len(parts) == 2)


VERSION = "3"
WRITES_TEXT = True
KNOWN = "encoder.block.0.layer.0.SelfAttention.q.weight"
_LOWEST = float(np.finfo(np.float32).min)


def build(config: Settings, weights: Weights, wanted: WantedGraph) -> onnx.ModelProto:
    is_hhem = config.get("model_type") in HHEM
    model = T5(find_hhem_settings(config, weights) if is_hhem else config, weights, wanted)
    weights.refuse_layers("encoder.block.{}.", model.layers)
    # The encoder, the decoder and some heads share the embeddings of words; a file may hold them several times.
    weights.pass_over("shared.", "encoder.embed_tokens.", "decoder.embed_tokens.")
    if wanted.bare:
        weights.pass_over("decoder.", "lm_head.")
    if wanted.replies and config.get("model_type") != "t5":
        raise UnsupportedModel(f"replies: are not supported for {config.get('model_type')}, only for t5")
    if wanted.task == "classification" and not wanted.replies and not is_hhem:  # it has a head on its decoder
        head = "T5ForSequenceClassification" if "classification_head.dense.weight" in weights.names else "its head"
        raise UnsupportedModel(
            f"config.json: 'architectures': {head} is not supported for T5; supported are T5EncoderModel, "
            "T5ForTokenClassification, and T5ForConditionalGeneration with `replies`"
        )
    return model.build("classification" if wanted.replies else wanted.task)


def _find_classifier(weights: Weights) -> str:
    """The full name of the linear layer over tokens, without `.weight`."""
    found = sorted(name for name in weights.names if f".{name}".endswith(".classifier.weight"))
    return found[0].removesuffix(".weight") if found else "classifier"


class T5(Encoder):
    """A T5 model with this config.json.

    Attributes:
        head_size: `d_kv`; `heads` times this is `inner`, the width of queries, keys and values, which need not be that
            of the model.
        furthest: the distance from which on all distances share a bucket.
        gated: whether the feed-forward network multiplies its inner layer with a second one.
        biased_layers: whether each layer has a bias by distance of its own (UMT5), and not only the first.
        start: the token that the decoder starts with.
        scales_output: whether the decoder's output is divided by the root of its width before it becomes logits.
    """

    last_norm = "encoder.final_layer_norm"

    def __init__(self, config: Settings, weights: Weights, wanted: WantedGraph) -> None:
        kind = config.get("model_type")
        self.layers = self.decoder_layers = config.size("num_layers")
        if config.get("num_decoder_layers") is not None:
            self.decoder_layers = config.size("num_decoder_layers")
        self.activation, self.gated = _read_activation(config, "relu" if kind == "t5" else "gated-gelu")
        self.buckets = config.size("relative_attention_num_buckets", 32)
        self.furthest = config.size("relative_attention_max_distance", 128)
        if self.buckets % 4 or self.furthest <= self.buckets // 4:
            raise DamagedFile(
                f"config.json: 'relative_attention_num_buckets' {self.buckets} must be a multiple of 4, and "
                f"'relative_attention_max_distance' {self.furthest} more than a quarter of it"
            )
        hidden, self.heads = config.size("d_model"), config.size("num_heads")
        self.head_size = config.size("d_kv", _HEAD_SIZE)
        self.inner, self.feed_forward = self.heads * self.head_size, config.size("d_ff")
        self.vocabulary = config.size("vocab_size")
        self.epsilon = config.epsilon("layer_norm_epsilon", 1e-6)
        self.biased_layers = kind == "umt5"
        start = "decoder_start_token_id"  # padding, unless the configuration names another
        self.start = config.get("pad_token_id", 0) if config.get(start) is None else config.get(start)
        if not is_whole(self.start) or not 0 <= self.start < self.vocabulary:
            config.refuse_value(start, "a token's id", self.start)
        # With tied embeddings, as in the first T5. Newer versions of transformers write the first key, and the second
        # one as true in any case.
        self.scales_output = config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", True))
        super().__init__(weights, hidden, wanted.padded)
        self._replies = wanted.replies
        self._hidden_padding = self._hide_padding() if wanted.padded else ""
        self._distances = self._bias = ""

    def _classify_tokens(self, hidden: str) -> tuple[str, int]:
        return self.label_tokens(hidden, _find_classifier(self._weights), self._width)

    def _classify(self) -> tuple[str, int]:
        """HHEM is a token classifier of which only the first token counts."""
        if self._replies:
            return self._reply(), len(self._replies)
        return self.label(self._run_first(), _find_classifier(self._weights), self._width)

    def _reply(self) -> str:
        """The logits of the tokens `replies` after the decoder's first step: [texts, replies]."""
        weights = self._weights
        weights.refuse_layers("decoder.block.{}.", self.decoder_layers)
        # transformers 3 wrote it, and never added it to a score.
        weights.pass_over("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.")
        last = self._decode(self._run_layers())
        name = "lm_head.weight" if weights.has("lm_head.weight") else "shared.weight"
        rows = weights.read(name, self.vocabulary, self._width)[list(self._replies)]
        if self.scales_output:
            rows = rows * np.float32(self._width**-0.5)
        return self.add("MatMul", self.add("Squeeze", last, self.vector(1)), self.hold("replies", rows.T))

    def _embed(self) -> str:
        return self.add("Gather", self.hold("shared.weight", self._read_embeddings()), "input_ids")

    def _read_embeddings(self) -> Array:
        known = ("shared.weight", "encoder.embed_tokens.weight")
        name = next((name for name in known if self._weights.has(name)), known[0])
        return self._weights.read(name, self.vocabulary, self._width)

    def _run_layer(self, number: int, hidden: str, *, first_only: bool) -> str:
        layer = f"encoder.block.{number}."
        if number == 0 or self.biased_layers:
            self._bias = self._bias_by_distance(layer)
        normed = self._normalize(hidden, f"{layer}layer.0.layer_norm")
        name = f"{layer}layer.0.SelfAttention."
        if first_only:
            first = self.take_first(normed, 1)
            row = self.add("Squeeze", self.take_first(self._bias, 2), self.vector(2))
            attended = self._attend_from_one(name, first, normed, row)
            hidden = self.take_first(hidden, 1)
        else:
            projected = [self._project(normed, name + part) for part in "qkv"]
            options = {"scale": 1.0, "mask_filter_value": _LOWEST}
            attended = self.attend(*projected, "", self._mask, self._bias, heads=self.heads, **options)
            attended = self.multiply(attended, f"{name}o", self._read_output(name))
        return self._feed_forward(f"{layer}layer.1.", self.add("Add", hidden, attended))

    def _decode(self, encoded: str) -> str:
        """The decoder's normalised output for its start token: [texts, 1, hidden]."""
        start = self._read_embeddings()[self.start][None, None]
        hidden = self.hold("start", start)
        for number in range(self.decoder_layers):
            layer = f"decoder.block.{number}."
            normed = self._normalize(hidden, f"{layer}layer.0.layer_norm")
            hidden = self.add("Add", hidden, self._attend_to_itself(f"{layer}layer.0.SelfAttention.", normed))
            normed = self._normalize(hidden, f"{layer}layer.1.layer_norm")
            attended = self._attend_from_one(f"{layer}layer.1.EncDecAttention.", normed, encoded, "")
            hidden = self._feed_forward(f"{layer}layer.2.", self.add("Add", hidden, attended))
        return self._normalize(hidden, "decoder.final_layer_norm")

    def _attend_to_itself(self, name: str, normed: str) -> str:
        """Attention of the only token: all of it is on itself, so only the values count."""
        self._weights.pass_over(*(f"{name}{part}." for part in ("q", "k", "relative_attention_bias")))
        values = self._read_projection(f"{name}v").astype(np.float64)
        both = (values @ self._read_output(name)).astype(np.float32)
        return self.multiply(normed, f"{name}vo", both)

    def _attend_from_one(self, name: str, asking: str, source: str, bias: str) -> str:
        """Attention of one token [texts, 1, hidden] to those of `source` [texts, tokens, hidden].

        `bias` is empty or [1, heads, tokens]. The weights of keys and values are applied to the one token's query and
        context, for each head, instead of to all tokens.
        """
        heads, size = self.heads, self.head_size
        query = self.add("Reshape", self._project(asking, f"{name}q"), self.vector(-1, heads, 1, size))
        keys = self._read_projection(f"{name}k").T.reshape(heads, size, self._width)
        wanted = self.add("MatMul", query, self.hold(f"{name}k.by_head", keys))
        wanted = self.add("Squeeze", wanted, self.vector(2))
        scores = self.add("MatMul", wanted, self.add("Transpose", source, perm=[0, 2, 1]))
        for added in (bias, self._hidden_padding):
            scores = self.add("Add", scores, added) if added else scores
        context = self.add("MatMul", self.add("Softmax", scores, axis=-1), source)
        context = self.add("Unsqueeze", context, self.vector(2))
        values = self._read_projection(f"{name}v").reshape(self._width, heads, size).transpose(1, 0, 2)
        attended = self.add("MatMul", context, self.hold(f"{name}v.by_head", values))
        attended = self.add("Reshape", attended, self.vector(-1, 1, self.inner))
        return self.multiply(attended, f"{name}o", self._read_output(name))

    def _feed_forward(self, layer: str, hidden: str) -> str:
        """The feed-forward network with its norm and residual."""
        name = f"{layer}DenseReluDense."
        normed = self._normalize(hidden, f"{layer}layer_norm")
        widths = self._width, self.feed_forward
        first = f"{name}wi_0" if self.gated else f"{name}wi"
        inner = ACTIVATIONS[self.activation](self, self.apply_linear(normed, first, *widths, biased=False))
        if self.gated:
            inner = self.add("Mul", inner, self.apply_linear(normed, f"{name}wi_1", *widths, biased=False))
        narrowed = self.apply_linear(inner, f"{name}wo", self.feed_forward, self._width, biased=False)
        return self.add("Add", hidden, narrowed)

    def _project(self, source: str, name: str) -> str:
        return self.multiply(source, name, self._read_projection(name))

    def _read_projection(self, name: str) -> Array:
        """The weights of queries, keys or values: [hidden, inner]."""
        return self._weights.read(f"{name}.weight", self.inner, self._width).T

    def _read_output(self, name: str) -> Array:
        """The weights of what is attended: [inner, hidden]."""
        return self._weights.read(f"{name}o.weight", self._width, self.inner).T

    def _normalize(self, source: str, name: str) -> str:
        return self.normalize_by_root(source, name, self._width, self.epsilon)

    def _bias_by_distance(self, layer: str) -> str:
        """The bias on attention scores: [1, heads, tokens, tokens]."""
        name, reach = f"{layer}layer.0.SelfAttention.relative_attention_bias.weight", self.furthest
        table = self._weights.read(name, self.buckets, self.heads)
        by_distance = table[find_buckets(np.arange(-reach, reach + 1), self.buckets, reach)].T
        bias = self.add("Gather", self.hold(f"{name}.by_distance", by_distance), self._find_distances(), axis=1)
        return self.add("Unsqueeze", bias, self.vector(0))

    def _find_distances(self) -> str:
        """The distance of each key from each query, counted from 0 for the largest to the left: [tokens, tokens].

        Beyond `furthest` all distances have the same bucket.
        """
        if not self._distances:
            reach = self.furthest
            places = self.count_to(self.count_tokens())
            distances = self.add("Sub", places, self.add("Unsqueeze", places, self.vector(1)))
            within = self.add("Clip", distances, self.number(-reach), self.number(reach))
            self._distances = self.add("Add", within, self.number(reach))
        return self._distances

    def _hide_padding(self) -> str:
        """What is added to the scores of one token's attention: 0, or a huge negative number for padding."""
        present = self.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
        absent = self.add("Sub", self.hold("one", np.array(1, np.float32)), present)
        hidden = self.add("Mul", absent, self.hold("lowest", np.array(_LOWEST, np.float32)))
        return self.add("Unsqueeze", hidden, self.vector(1))
