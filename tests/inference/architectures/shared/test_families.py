from __future__ import annotations

import re
from typing import Any

import pytest

from rageval_spec.inference.architectures.shared.families import FAMILIES, read_shape
from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel
from rageval_spec.inference.graph import build_graph
from tests.inference.models import HIDDEN, VOCABULARY, make_config, make_weights

KINDS = sorted(FAMILIES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, r"not an encoder that can be built: llama; .* bert, .*distilbert, .*xlm-roberta"),
        ({"model_type": None}, "has no model_type"),
        ({"is_decoder": True}, r"config\.json: 'is_decoder' is True: this is a decoder"),
        ({"position_embedding_type": "relative_key"}, r"config\.json: 'position_embedding_type' 'relative_key' is not"),
        ({"hidden_act": "swiglu"}, r"config\.json: 'hidden_act' 'swiglu' is not supported; supported are: .*gelu"),
        ({"hidden_act": ["gelu"]}, r"config\.json: 'hidden_act' \['gelu'\] is not supported"),
    ],
)
def test_models_that_cannot_be_built(changes: dict[str, Any], message: str) -> None:
    config = make_config("bert")
    with pytest.raises(UnsupportedModel, match=message):
        build_graph({**config, **changes}, make_weights(config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 5}, "16 is not a multiple of num_attention_heads 5"),
        ({"hidden_size": None}, "'hidden_size' is missing"),
        ({"num_hidden_layers": 0}, "'num_hidden_layers' must be a whole number above 0, but is 0"),
        ({"vocab_size": "many"}, "'vocab_size' must be a whole number above 0, but is 'many'"),
        (
            {"vocab_size": VOCABULARY + 1},
            re.escape("'embeddings.word_embeddings.weight' has the shape [40, 16], but must have [41, 16]"),
        ),
        ({"layer_norm_eps": None}, "'layer_norm_eps' must be a number from 0 to 1, but is None"),
        ({"pad_token_id": "[PAD]"}, r"'pad_token_id' must be a whole number, but is '\[PAD\]'"),
        ({"type_vocab_size": 0}, "'type_vocab_size' must be a whole number above 0, but is 0"),
        ({"num_hidden_layers": 1}, r"weights have 2 layers \('encoder\.layer\.1'\), but config\.json has 1"),
        ({"num_hidden_layers": 3}, r"no tensor 'encoder.layer.2.*shape \[16, 16\]"),
    ],
)
def test_inconsistent_configurations(changes: dict[str, Any], message: str) -> None:
    config = make_config("bert")
    with pytest.raises(DamagedFile, match=message):
        build_graph({**config, **changes}, make_weights(config))


def test_positions_of_null_are_absolute() -> None:
    config = make_config("bert")
    plain, null = (
        build_graph(one, make_weights(config)) for one in (config, config | {"position_embedding_type": None})
    )
    assert plain == null


@pytest.mark.parametrize("kind", KINDS)
def test_one_spelling_of_sizes_for_all_architectures(kind: str) -> None:
    shape = read_shape(make_config(kind))
    assert (shape.model_type, shape.hidden, shape.vocabulary, shape.layers) == (kind, HIDDEN, VOCABULARY, 2)
    assert shape.types == (2 if kind in ("bert", "electra") else shape.types)


def test_mpnet_with_other_buckets_than_those_of_transformers_is_refused() -> None:
    config = make_config("mpnet") | {"relative_attention_num_buckets": 16}
    with pytest.raises(UnsupportedModel, match=r"'relative_attention_num_buckets' 16 is not supported; only 32 is"):
        read_shape(config)
