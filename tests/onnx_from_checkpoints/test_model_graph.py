from __future__ import annotations

import re

import pytest

from onnx_from_checkpoints.errors import UnsupportedModel
from onnx_from_checkpoints.model_graph import build_graph
from tests.inference.models import make_config, make_weights


@pytest.mark.parametrize(
    ("model_type", "message"),
    [
        ("llama", "is not an encoder that can be built: llama; use a model with an .onnx file"),
        (None, "has no model_type"),
    ],
)
def test_an_unknown_architecture_is_refused_with_the_known_ones(model_type: str | None, message: str) -> None:
    config = {**make_config("bert"), "model_type": model_type}
    with pytest.raises(UnsupportedModel, match=f"{re.escape(message)}.* bert, .*distilbert, .*xlm-roberta"):
        build_graph(config, make_weights(make_config("bert")))


@pytest.mark.parametrize(
    ("head", "output"),
    [
        ("BertModel", "last_hidden_state"),
        ("BertForSequenceClassification", "logits"),
        ("BertForMaskedLM", "last_hidden_state"),
    ],
)
def test_without_a_task_the_architectures_decide(head: str, output: str) -> None:
    config = make_config("bert", classifier=True)
    model = build_graph({**config, "architectures": [head]}, make_weights(config))
    assert [one.name for one in model.graph.output] == [output]
