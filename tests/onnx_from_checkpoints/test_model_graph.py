from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from onnx_from_checkpoints.architectures import bert, t5
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from onnx_from_checkpoints.model_graph import (
    build_graph,
    check_buildable,
    check_weights,
    find_code,
    has_foreign_code,
    list_architectures,
)
from onnx_from_checkpoints.weights import read_weights
from tests.onnx_from_checkpoints.architectures.golden import REPLIES, list_goldens, read_golden
from tests.onnx_from_checkpoints.models import make_config, make_weights


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
    ],
)
def test_without_a_task_the_architectures_decide(head: str, output: str) -> None:
    config = make_config("bert", classifier=output == "logits")
    model = build_graph({**config, "architectures": [head]}, make_weights(config))
    assert [one.name for one in model.graph.output] == [output]


FOREIGN = (
    "linear.weight",  # ColBERT
    "cls.predictions.transform.dense.weight",  # BertForMaskedLM
    "lm_head.dense.weight",  # RobertaForMaskedLM
    "vocab_projector.weight",  # DistilBertForMaskedLM
    "qa_outputs.weight",  # every ...ForQuestionAnswering
    "generator_lm_head.bias",  # ElectraForMaskedLM
    "other_encoder.embeddings.word_embeddings.bias",  # two towers
    "encoder.adapter.weight",
)


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("golden", list_goldens(""))
def test_a_head_or_layer_that_nothing_reads_is_refused_in_each_architecture(golden: str, name: str) -> None:
    config, weights, _ = read_golden(golden)
    with pytest.raises(DamagedFile, match=f"the weights have '{re.escape(name)}', which nothing in a model with this"):
        build_graph(config, {**weights, name: np.ones((2, 2), np.float32)}, replies=REPLIES.get(golden, ()))


@pytest.mark.parametrize("golden", list_goldens(""))
def test_the_headers_of_weights_show_what_building_from_them_finds(golden: str, tmp_path: Path) -> None:
    config, weights, _ = read_golden(golden)
    files, replies = [tmp_path / "model.safetensors"], REPLIES.get(golden, ())
    save_file({name: np.ascontiguousarray(values) for name, values in weights.items()}, files[0])
    check_weights(files, None, config, replies=replies)
    norm = next(name for name in weights if "norm" in name.lower())
    for changed in ({norm: np.ones((3, 5, 7), np.float32)}, {"lm_head.dense.weight": np.ones((2, 2), np.float32)}):
        save_file({**weights, **changed}, files[0])
        with pytest.raises(DamagedFile) as told:
            build_graph(config, read_weights(files), replies=replies)
        with pytest.raises(DamagedFile, match=f"^{re.escape(told.value.problem)}$"):
            check_weights(files, None, config, replies=replies)


@pytest.mark.parametrize("golden", ["bert-labels", "roberta-tokens", "modernbert-labels", "deberta-labels", "t5-reply"])
def test_of_a_bare_encoder_the_head_beside_it_does_not_count_but_a_layer_does(golden: str) -> None:
    config, weights, _ = read_golden(golden)
    with pytest.raises(DamagedFile, match="which nothing in a model"):
        build_graph(config, weights, task="embedding")
    assert build_graph(config, weights, task="embedding", bare=True).graph.output[0].name == "last_hidden_state"
    inner = next(name for name in weights if "encoder" in name or "layers" in name)
    with pytest.raises(DamagedFile, match=f"the weights have '{re.escape(inner)}.lora', which nothing"):
        build_graph(config, {**weights, f"{inner}.lora": np.ones(2, np.float32)}, task="embedding", bare=True)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("classifier", [False, True])
def test_the_pooler_of_pretraining_may_be_there(kind: str, classifier: bool) -> None:
    config = make_config(kind, classifier=classifier)
    weights = make_weights(config)
    words = next(name for name in weights if name.endswith("embeddings.word_embeddings.weight"))
    prefix = words.removesuffix("embeddings.word_embeddings.weight")
    pooler = {f"{prefix}pooler.dense.{part}": weights[words][:16, :16] for part in ("weight", "bias")}
    expected = build_graph(config, weights)
    assert build_graph(config, pooler | weights) == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "qwen3"}, "is not an encoder that can be built: qwen3; .*the package sentence-transformers"),
        (
            {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
            "is a BertForMaskedLM, whose head gives neither",
        ),
        ({"model_type": "roberta", "architectures": ["RobertaForQuestionAnswering"]}, "is a RobertaForQuestionAns"),
        (
            {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]},
            "writes text; to classify pairs by the first word",
        ),
        ({"model_type": "electra", "architectures": ["ElectraForPreTraining"]}, "is a ElectraForPreTraining"),
    ],
)
def test_what_config_json_alone_shows_is_refused_without_the_weights(config: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        check_buildable(config)


@pytest.mark.parametrize(
    "names", [None, [], ["BertModel"], ["Contriever"], ["BertForSequenceClassification"], ["BertForMaskedLM", "X"]]
)
def test_encoders_and_known_heads_pass(names: list[str] | None) -> None:
    check_buildable({"model_type": "bert", "architectures": names})
    check_buildable({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, bare=True)


def test_the_module_of_each_model_type_builds_it() -> None:
    found = list_architectures()
    assert {model_type for model_type, module in found.items() if module.KNOWN == bert.KNOWN} >= set(bert.FAMILIES)
    hhem = {model_type for model_type in found if model_type.startswith("HHEM")}
    assert (hhem, {found[model_type] for model_type in hhem}) == (set(t5.HHEM), {found["t5"]})


@pytest.mark.parametrize(
    ("config", "code", "foreign"),
    [
        ({"model_type": "bert"}, "", False),
        ({"model_type": "bert", "auto_map": {"AutoModel": "modeling_bert.JinaBertModel"}}, "modeling_bert.Jina", True),
        ({"model_type": "bert", "auto_map": {"AutoConfig": "configuration_bert.JinaBertConfig"}}, "", False),
        ({"model_type": "nomic_bert", "auto_map": {"AutoModel": "modeling.NomicBertModel"}}, "modeling.Nomic", False),
        ({"model_type": "bert", "auto_map": "modeling.Model"}, "", False),
    ],
)
def test_code_of_the_repository_is_known_by_config_json(config: dict[str, Any], code: str, foreign: bool) -> None:
    assert find_code(config).startswith(code)
    assert bool(find_code(config)) == bool(code)
    assert has_foreign_code(config) is foreign


ACTIVATION_KEYS = {"distilbert": "activation", "modernbert": "hidden_activation", "t5": "dense_act_fn"}


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("gelu_python", "gelu"),
        ("gelu_fast", "gelu_new"),
        ("gelu_accurate", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu_new"),
        ("swish", "silu"),
    ],
)
@pytest.mark.parametrize(
    "golden", ["bert", "deberta", "distilbert", "electra", "eurobert", "modernbert", "mpnet", "t5"]
)
def test_each_name_of_an_activation_is_known_in_each_architecture(golden: str, name: str, usual: str) -> None:
    config, weights, _ = read_golden(golden)
    key = ACTIVATION_KEYS.get(config["model_type"], "hidden_act")
    assert build_graph({**config, key: name}, weights) == build_graph({**config, key: usual}, weights)


def test_each_name_of_an_activation_is_known_to_nomic_bert() -> None:
    config, weights, _ = read_golden("nomic_bert-renamed")
    for name, usual in (("gelu_python", "gelu"), ("swish", "silu")):
        assert build_graph({**config, "hidden_act": name}, weights) == build_graph(
            {**config, "hidden_act": usual}, weights
        )
