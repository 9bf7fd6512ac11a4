""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onnx_from_checkpoints.configuration import (
    DenseLayer,
    PairFormat,
    find_task,
    parse_template,
    read_configuration,
)
from onnx_from_checkpoints.errors import DamagedFile, UnsupportedModel
from tests.onnx_from_checkpoints.folders import (
    BERT,
    CROSS_ENCODER,
    DENSE,
    DETECTOR,
    NORMALIZE,
    POOLING,
    TRANSFORMER,
    write_json,
)


def write(folder: Path, **files: Any) -> Path:
    """Write files given by keyword: `modules` is modules.json, `pooling` is 1_Pooling/config.json, and so on."""
    names = {
        "config": "config.json",
        "modules": "modules.json",
        "pooling": "1_Pooling/config.json",
        "dense": "2_Dense/config.json",
        "sentence": "config_sentence_transformers.json",
        "encoder": "sentence_bert_config.json",
        "tokenizer": "tokenizer_config.json",
    }
    for key, content in files.items():
        write_json(folder / names[key], content)
    return folder


def test_a_published_sentence_transformers_model(tmp_path: Path) -> None:
    found = read_configuration(
        write(
            tmp_path,
            config=BERT,
            modules=[TRANSFORMER, POOLING, NORMALIZE],
            pooling={"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            encoder={"max_seq_length": 16, "do_lower_case": True},
            sentence={"prompts": {"query": "q: ", "document": "d: "}, "similarity_fn_name": "dot", "truncate_dim": 4},
        )
    )
    assert (found.task, found.model_type, found.vocabulary, found.positions) == ("embedding", "bert", 20, 24)
    assert (found.pooling, found.normalize, found.max_length, found.lowercase) == (("cls",), True, 16, True)
    assert (found.query_prefix, found.document_prefix) == ("q: ", "d: ")
    assert (found.similarity, found.dimensions) == ("dot", 4)
    assert {path.relative_to(tmp_path).as_posix() for path in found.files} == {
        "config.json",
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    }


def test_the_key_names_of_version_6(tmp_path: Path) -> None:
    modules = [
        {**TRANSFORMER, "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {**POOLING, "type": "sentence_transformers.sentence_transformer.modules.pooling.Pooling"},
        {**NORMALIZE, "type": "sentence_transformers.base.modules.normalize.Normalize"},
    ]
    found = read_configuration(
        write(
            tmp_path,
            config=BERT,
            modules=modules,
            pooling={"embedding_dimension": 8, "pooling_mode": ["max", "mean"], "include_prompt": False},
            encoder={"transformer_task": "feature-extraction", "processor_kwargs": {"model_max_length": 10}},
            sentence={"model_type": "SentenceTransformer", "prompts": {"query": "", "document": ""}},
        )
    )
    assert (found.pooling, found.pools_prompt, found.normalize, found.max_length) == (("max", "mean"), False, True, 10)


def test_without_sentence_transformers_files_pooling_is_the_mean(tmp_path: Path) -> None:
    found = read_configuration(write(tmp_path, config=BERT, tokenizer={"model_max_length": 20}))
    assert (found.task, found.pooling, found.normalize, found.max_length) == ("embedding", ("mean",), False, 20)
    assert (found.query_prefix, found.document_prefix, found.similarity) == ("", "", "cosine")


def test_an_empty_folder_gives_defaults(tmp_path: Path) -> None:
    found = read_configuration(tmp_path)
    assert (found.task, found.model_type, found.vocabulary, found.positions, found.max_length) == (
        None,
        "",
        None,
        None,
        None,
    )
    assert found.files == ()


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "xlnet", "max_position_embeddings": -1}, None),
    ],
)
def test_positions_that_hold_text(tmp_path: Path, config: dict[str, Any], positions: int | None) -> None:
    found = read_configuration(write(tmp_path, config=config, tokenizer={"model_max_length": 1e30}))
    assert (found.positions, found.max_length) == (positions, positions)


@pytest.mark.parametrize(("gone", "where"), [("pooling", "1_Pooling"), ("dense", "2_Dense")])
def test_a_module_without_its_configuration(tmp_path: Path, gone: str, where: str) -> None:
    files: dict[str, Any] = {"pooling": {"pooling_mode_cls_token": True}, "dense": {}}
    folder = write(tmp_path, config=BERT, modules=[TRANSFORMER, POOLING, DENSE], **{**files, gone: {}})
    (folder / where / "config.json").unlink()
    with pytest.raises(DamagedFile, match=rf"{where}/config\.json: is missing, but modules\.json names its folder"):
        read_configuration(folder)


@pytest.mark.parametrize(
    ("config", "stated", "positions", "max_length"),
    [
        ({"model_type": "deberta-v2", "position_biased_input": False}, None, None, 24),
        ({"model_type": "deberta-v2", "position_biased_input": False}, 100, None, 100),
        ({"model_type": "deberta-v2"}, 100, 24, 24),
        ({"model_type": "t5"}, 100, None, 100),
        ({"model_type": "bert", "position_biased_input": False}, 100, 24, 24),
    ],
)
def test_relative_positions_set_no_bound(
    tmp_path: Path, config: dict[str, Any], stated: int | None, positions: int | None, max_length: int
) -> None:
    write_json(tmp_path / "config.json", {"max_position_embeddings": 24, **config})
    write_json(tmp_path / "tokenizer_config.json", {"model_max_length": stated})
    found = read_configuration(tmp_path)
    assert (found.positions, found.max_length) == (positions, max_length)


def test_a_maximum_length_above_the_positions_is_cut(tmp_path: Path) -> None:
    folder = write(tmp_path, config=BERT, modules=[TRANSFORMER, POOLING], pooling={}, encoder={"max_seq_length": 512})
    assert read_configuration(folder).max_length == 24


@pytest.mark.parametrize("kind", ["eurobert", "modernbert", "nomic_bert"])
def test_a_stated_maximum_length_above_computed_positions_counts(tmp_path: Path, kind: str) -> None:
    config = {"model_type": kind, "max_position_embeddings": 2048, "n_positions": 8192}
    files: dict[str, Any] = {"modules": [TRANSFORMER, POOLING], "pooling": {}}
    stated = read_configuration(write(tmp_path / "stated", config=config, encoder={"max_seq_length": 8192}, **files))
    assert (stated.positions, stated.max_length) == (None, 8192)
    unstated = read_configuration(write(tmp_path / "unstated", config=config, **files))
    assert (unstated.positions, unstated.max_length) == (None, 2048)


@pytest.mark.parametrize(
    ("sentence", "query", "document"),
    [
        ({"prompts": {"query": "q ", "passage": "p "}}, "q ", "p "),
        ({"prompts": {"query": "q ", "document": "", "passage": "p "}}, "q ", "p "),
        ({"prompts": {"query": "", "document": "", "all": "a "}, "default_prompt_name": "all"}, "a ", "a "),
        ({"prompts": {"corpus": "c "}}, "", "c "),
        ({"prompts": {"all": "a "}, "default_prompt_name": "all"}, "a ", "a "),
        ({"prompts": {"query": "q "}, "default_prompt_name": "query"}, "q ", ""),
        ({"prompts": {"all": "a ", "query": "q "}, "default_prompt_name": "all"}, "q ", "a "),
        ({"prompts": {"s2s": "s "}, "default_prompt_name": None}, "", ""),
        ({"prompts": {"query": None}}, "", ""),
    ],
)
def test_prompts(tmp_path: Path, sentence: dict[str, Any], query: str, document: str) -> None:
    found = read_configuration(write(tmp_path, config=BERT, sentence=sentence))
    assert (found.query_prefix, found.document_prefix) == (query, document)


def test_a_cross_encoder_has_labels_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    labels = {"0": "contradiction", "2": "neutral", "1": "entailment"}
    found = read_configuration(write(tmp_path, config={**CROSS_ENCODER, "id2label": labels}))
    assert (found.task, found.labels) == ("classification", ("contradiction", "entailment", "neutral"))


def test_modules_of_a_cross_encoder_are_not_read_as_an_encoders(tmp_path: Path) -> None:
    found = read_configuration(
        write(tmp_path, config=CROSS_ENCODER, modules=[TRANSFORMER], sentence={"model_type": "CrossEncoder"})
    )
    assert (found.task, found.labels) == ("classification", ("LABEL_0",))


def test_a_token_classifier_has_labels(tmp_path: Path) -> None:
    found = read_configuration(write(tmp_path / "detector", config=DETECTOR))
    assert (found.task, found.labels) == ("token_classification", ("LABEL_0", "LABEL_1"))
    modules = [TRANSFORMER, POOLING]
    pooling = {"pooling_mode_mean_tokens": True}
    encoder = read_configuration(write(tmp_path / "encoder", config=DETECTOR, modules=modules, pooling=pooling))
    assert (encoder.task, encoder.labels) == ("embedding", ())


def test_dense_layers_are_read(tmp_path: Path) -> None:
    dense = {
        "in_features": 8,
        "out_features": 4,
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    folder = write(tmp_path, config=BERT, modules=[TRANSFORMER, POOLING, DENSE], pooling={}, dense=dense)
    assert read_configuration(folder).dense == (DenseLayer("2_Dense", "Identity", bias=False),)


@pytest.mark.parametrize("kind", ["WordEmbeddings", "CNN", "LSTM", "Router", "CLIPModel", "LayerNorm"])
def test_an_unknown_module_is_named(tmp_path: Path, kind: str) -> None:
    module = {"idx": 1, "path": f"2_{kind}", "type": f"sentence_transformers.models.{kind}"}
    write(tmp_path, config=BERT, modules=[TRANSFORMER, POOLING, module], pooling={})
    with pytest.raises(
        UnsupportedModel,
        match=rf"modules\.json: the module '2_{kind}' \({kind}\) .*the package sentence-transformers runs",
    ):
        read_configuration(tmp_path)


def test_modules_in_another_order_are_refused(tmp_path: Path) -> None:
    write(tmp_path, config=BERT, modules=[TRANSFORMER, NORMALIZE, POOLING], pooling={})
    with pytest.raises(UnsupportedModel, match="2_Normalize"):
        read_configuration(tmp_path)


def test_no_module_leads_out_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path, config=BERT, modules=[TRANSFORMER, {**POOLING, "path": "../elsewhere"}])
    with pytest.raises(DamagedFile, match=r"'path' must be inside of the model's folder"):
        read_configuration(tmp_path)


@pytest.mark.parametrize("kind", ["SparseEncoder", "MultiVectorEncoder"])
def test_other_kinds_of_model_are_refused(tmp_path: Path, kind: str) -> None:
    write(tmp_path, config=BERT, modules=[TRANSFORMER], sentence={"model_type": kind})
    with pytest.raises(UnsupportedModel, match=f"a {kind} gives neither"):
        read_configuration(tmp_path)


def test_a_similarity_that_is_not_supported(tmp_path: Path) -> None:
    write(tmp_path, config=BERT, sentence={"similarity_fn_name": "manhattan"})
    with pytest.raises(UnsupportedModel, match="similarity 'manhattan' is not supported; write 'similarity: cosine'"):
        read_configuration(tmp_path)


def test_invalid_json_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert",\n "vocab_size": }', "utf-8")
    with pytest.raises(DamagedFile, match=r"config\.json:2: is not JSON: .* in column 16"):
        read_configuration(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", r"config\.json:1: must be an object, but is \[1\]"),
        (b'{"vocab_size": "many"}', r"config\.json: 'vocab_size' must be a number above 0, but is 'many'"),
        (b'{"vocab_size": NaN}', "must be a number above 0"),
        (b'{"model_type": 3}', "'model_type' must be a text, but is 3"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_invalid_values(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(DamagedFile, match=message):
        read_configuration(tmp_path)


def test_an_unknown_pooling(tmp_path: Path) -> None:
    write(tmp_path, config=BERT, modules=[TRANSFORMER, POOLING], pooling={"pooling_mode": "median"})
    with pytest.raises(DamagedFile, match="'pooling_mode' must be some of cls, max, mean"):
        read_configuration(tmp_path)


@pytest.mark.parametrize(
    ("architectures", "expected"),
    [
        (["BertForSequenceClassification"], "classification"),
        (["ModernBertForTokenClassification"], "token_classification"),
        (["BertModel"], None),
        ([], None),
        (None, None),
        ("BertForSequenceClassification", None),
    ],
)
def test_the_architectures_say_what_the_model_is_for(architectures: Any, expected: str | None) -> None:
    assert find_task(architectures) == expected


MINICHECK = "predict: {document}</s>{claim}"
HHEM = "<pad> Is it true?\n\nPremise: {document}\n\nHypothesis: {claim}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{document} only", r"must have \{document\} and \{claim\} exactly once each, but has \{document\}"),
        ("{document} {claim} {claim}", "exactly once each"),
        ("nothing", "but has neither"),
        ("{document} {claim} {question}", r"but has .*\{question\}"),
        ("{document!r} {claim}", "exactly once each"),
        ("{document:>9} {claim}", "exactly once each"),
        ("{document {claim}", "exactly once each|a brace has no partner"),
        ("{document} {claim} }", "a brace has no partner"),
    ],
)
def test_faulty_templates_are_refused(template: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_template(template)


@pytest.mark.parametrize("template", [MINICHECK, HHEM, "{claim} on {document}", "{{a}} {document} {{{claim}}}"])
def test_a_format_is_shown_as_its_template(template: str) -> None:
    assert str(parse_template(template)) == template


def test_placeholders_can_have_other_names() -> None:
    expected = PairFormat("A ", " b ", "", claim_first=True)
    assert parse_template("A {text2} b {text1}", ("text1", "text2")) == expected


@pytest.mark.parametrize("template", [MINICHECK, HHEM, "{claim} on {document}"])
def test_a_filled_template_says_where_the_two_texts_are(template: str) -> None:
    filled = parse_template(template).fill("the cat", "a {claim}")
    assert filled.text == template.format(document="the cat", claim="a {claim}")
    assert filled.text[slice(*filled.document)] == "the cat"
    assert filled.text[slice(*filled.claim)] == "a {claim}"
