from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.inference.architectures.shared.disentangled import Convolution, find_rows, read_shape
from rageval_spec.inference.checkpoint_errors import CheckpointError, DamagedFile, UnsupportedModel
from tests.reference.deberta import find_bucket

CONFIG: dict[str, Any] = {
    "model_type": "deberta-v2",
    "hidden_size": 12,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "vocab_size": 40,
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_buckets": 256,
    "max_position_embeddings": 512,
}


class TestRows:
    def test_each_distance_has_its_own_row_without_buckets(self) -> None:
        assert find_rows(3, -1).tolist() == [0, 1, 2, 3, 4, 5, 5]

    def test_published_models_have_256_buckets_for_512_positions(self) -> None:
        rows = dict(zip(range(-512, 513), find_rows(512, 256).tolist(), strict=True))
        assert [rows[distance] for distance in (-512, -511, -510, -128, -1, 0, 1, 128)] == [
            0, 1, 1, 128, 255, 256, 257, 384
        ]  # fmt: skip
        # log(129 / 128) / log(511 / 128) * 127 is 0.71, log(130 / 128) 1.42, log(132 / 128) 2.82
        assert [rows[distance] for distance in (129, 130, 131, 132)] == [385, 386, 387, 387]
        assert [rows[distance] for distance in (510, 511, 512)] == [511, 511, 511]

    def test_a_distance_on_the_border_of_a_bucket_is_in_that_of_pytorch(self) -> None:
        """log(21 / 3) / log(147 / 3) * 2 is exactly 1; a logarithm that is off by one bit gives the next bucket."""
        assert find_rows(148, 6)[148 + 21] == 6 + 4

    @given(st.sampled_from([(18, 8), (40, 16), (512, 256), (100, 12), (9, 4), (33, 2)]), st.data())
    def test_rows_are_those_of_the_definition(self, sizes: tuple[int, int], data: st.DataObject) -> None:
        reach, buckets = sizes
        distance = data.draw(st.integers(-reach, reach))
        expected = min(2 * buckets - 1, max(0, find_bucket(distance, buckets, reach) + buckets))
        assert find_rows(reach, buckets)[distance + reach] == expected

    @given(st.integers(2, 40), st.integers(1, 12))
    def test_rows_never_decrease(self, reach: int, half: int) -> None:
        rows = find_rows(reach + half, 2 * half)
        assert (np.diff(rows) >= 0).all()
        assert rows.min() >= 0
        assert rows.max() < 4 * half


def test_defaults_are_those_of_transformers() -> None:
    plain = {key: value for key, value in CONFIG.items() if key not in ("relative_attention", "pos_att_type")}
    shape = read_shape(plain)
    assert (shape.positions, shape.types, shape.embedding, shape.epsilon) == (512, 0, 12, 1e-7)
    assert (shape.distances, shape.convolution, shape.activation, shape.pooled) == (None, None, "gelu", "gelu")
    assert read_shape(CONFIG | {"conv_kernel_size": 3}).convolution == Convolution(3, 1, "tanh")
    distances = read_shape(CONFIG).distances
    assert distances
    assert (distances.shared, distances.normalized, distances.embeddings, distances.reach) == (False, False, 512, 512)


@pytest.mark.parametrize(("terms", "count"), [([], 1), (["c2p"], 2), ("p2c", 2), ("c2p|p2c", 3), ("none", 1)])
@pytest.mark.parametrize("relative", [True, False])
def test_scores_shrink_with_the_number_of_terms(terms: Any, count: int, relative: bool) -> None:
    """transformers counts the terms even if relative_attention is false."""
    shape = read_shape(CONFIG | {"pos_att_type": terms, "relative_attention": relative})
    assert shape.scale == pytest.approx(1 / math.sqrt(6 * count))
    assert (shape.distances is None) == (not relative or count == 1)


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        (
            {"pos_att_type": "c2p|p2p"},
            UnsupportedModel,
            "config.json: 'pos_att_type' has 'p2p', which is not supported",
        ),
        ({"pos_att_type": 3}, DamagedFile, "config.json: 'pos_att_type' must be a list of c2p and p2c, but is 3"),
        (
            {"norm_rel_ebd": "rms"},
            UnsupportedModel,
            "config.json: 'norm_rel_ebd' 'rms' is not supported; supported are: ",
        ),
        ({"position_buckets": 7}, UnsupportedModel, "'position_buckets' 7 is not supported; only even numbers are"),
        ({"position_buckets": 1100}, DamagedFile, "'position_buckets' is 1100, which needs a max_relative_positions"),
        ({"position_buckets": None}, DamagedFile, "'position_buckets' must be a whole number, but is None"),
        ({"max_relative_positions": 2.5}, DamagedFile, "'max_relative_positions' must be a whole number, but is 2.5"),
        ({"relative_attention": "yes"}, DamagedFile, "'relative_attention' must be true or false, but is 'yes'"),
        ({"share_att_key": 1}, DamagedFile, "'share_att_key' must be true or false, but is 1"),
        ({"position_biased_input": None}, DamagedFile, "'position_biased_input' must be true or false, but is None"),
        ({"type_vocab_size": -1}, DamagedFile, "'type_vocab_size' must be a whole number from 0 up, but is -1"),
        ({"embedding_size": 0}, DamagedFile, "'embedding_size' must be a whole number above 0, but is 0"),
        ({"conv_kernel_size": 4}, DamagedFile, "'conv_kernel_size' must be odd, but is 4"),
        ({"conv_kernel_size": 3, "conv_groups": 5}, DamagedFile, "hidden_size 12 is not a multiple of conv_groups 5"),
        (
            {"conv_kernel_size": 3, "conv_act": "mish"},
            UnsupportedModel,
            "'conv_act' 'mish' is not supported; supported are:",
        ),
        (
            {"hidden_act": "mish"},
            UnsupportedModel,
            "config.json: 'hidden_act' 'mish' is not supported; supported are: ",
        ),
        (
            {"pooler_hidden_act": "mish"},
            UnsupportedModel,
            "'pooler_hidden_act' 'mish' is not supported; supported are: ",
        ),
        ({"attention_head_size": 8}, DamagedFile, "'attention_head_size' is 8, but must be 6 with hidden_size 12 and"),
        ({"pooler_hidden_size": 8}, DamagedFile, "'pooler_hidden_size' is 8, but must be 12 with hidden_size 12"),
        ({"num_attention_heads": 5}, DamagedFile, "hidden_size 12 is not a multiple of num_attention_heads 5"),
        ({"layer_norm_eps": -1}, DamagedFile, "'layer_norm_eps' must be a number above 0, but is -1"),
        ({"hidden_size": None}, DamagedFile, "'hidden_size' is missing"),
    ],
)
def test_what_is_not_supported_is_refused(changed: dict[str, Any], kind: type[CheckpointError], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        read_shape(CONFIG | changed)
