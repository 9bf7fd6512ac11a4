from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError

from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.models.sentence_transformers import SentenceTransformers, SentenceTransformersNode
from rageval_spec.plugin import Context
from rageval_spec.store.store import MemoryAnswers
from tests.embedded import require

ENCODER = {"architectures": ["BertModel"], "max_position_embeddings": 512}
CLASSIFIER = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "id2label": {"1": "contradiction", "0": "entailment", "2": "neutral"},
}


class FakeTokenizer:
    """Makes one token per word, and two special ones."""

    def __call__(self, *columns: Sequence[str], **settings: Any) -> dict[str, list[list[int]]]:
        assert settings["truncation"] is False
        rows = zip(*columns, strict=True)
        return {"input_ids": [[0] * (2 + sum(len(text.split()) for text in row)) for row in rows]}


class Pooling:
    """A module."""


class Normalize:
    """A module that makes unit vectors."""


class FakeModel(list[Any]):
    """A list of modules that counts the tokens of a text, prompt included."""

    loaded: ClassVar[list[dict[str, Any]]] = []
    batches: ClassVar[list[list[Any]]] = []
    failure: ClassVar[Exception | None] = None

    def __init__(self, path: str, **settings: Any) -> None:
        super().__init__([Pooling(), Normalize()])
        self.loaded.append({"path": path, **settings})
        self.max_seq_length = 16
        self.tokenizer = FakeTokenizer()

    def encode_query(self, texts: list[str], **settings: Any) -> Any:
        return self._encode(texts, 1.0, **settings)

    def encode_document(self, texts: list[str], **settings: Any) -> Any:
        return self._encode(texts, 2.0, **settings)

    def _encode(self, texts: list[str], role: float, prompt: str, normalize_embeddings: bool, **settings: Any) -> Any:
        assert settings["show_progress_bar"] is False
        if self.failure is not None:
            raise self.failure
        self.batches.append(texts)
        return np.array([[len(prompt), len(text), role, normalize_embeddings] for text in texts], np.float64)

    def predict(self, pairs: list[tuple[str, str]], **settings: Any) -> Any:
        self.batches.append(pairs)
        logits = np.array([[len(first), len(second), -1.5] for first, second in pairs], np.float32)
        return settings["activation_fn"](logits)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[FakeModel]:
    """A stand-in for the parts of sentence-transformers that are used."""
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = module.CrossEncoder = FakeModel  # type: ignore[attr-defined]
    module.__spec__ = ModuleSpec("sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(FakeModel, "loaded", [])
    monkeypatch.setattr(FakeModel, "batches", [])
    return FakeModel


def write_model(folder: Path, config: dict[str, Any] = ENCODER, **settings: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"weights")
    if settings:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


def build(model: Path | str, context: Context | None = None, **keys: Any) -> SentenceTransformers:
    node = SentenceTransformersNode(use="sentence_transformers", model=str(model), **keys)
    return SentenceTransformers(node, context or Context("torch"))


# Without the library, and with a broken one


def test_a_model_that_only_onnx_reads_is_refused() -> None:
    with pytest.raises(ValidationError, match="only `use: onnx` reads the embedded model multilingual; write that"):
        SentenceTransformersNode(use="sentence_transformers", model="multilingual")


def test_without_the_library_a_message_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    model = build(write_model(tmp_path))
    for ask in (model.prepare, lambda: model.embed(["a"])):
        with pytest.raises(UsageError, match=r"^models\.torch: .*pip install \"rageval-spec\[torch\]\""):
            ask()


def test_a_model_that_does_not_load_is_a_data_error(
    tmp_path: Path, library: type[FakeModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, **settings: Any) -> Any:
        raise KeyError("no tensor named pooler\nand much more")

    monkeypatch.setattr(sys.modules["sentence_transformers"], "SentenceTransformer", refuse)
    with pytest.raises(DataError, match=r"^models\.torch: cannot load '.*': .*no tensor named pooler") as caught:
        build(write_model(tmp_path)).embed(["a"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("config.json", lambda model: model.labels),
        ("config_sentence_transformers.json", lambda model: model.embed(["a"])),
        ("tokenizer_config.json", lambda model: model.labels),
    ],
)
def test_a_damaged_file_is_an_error_of_data(
    tmp_path: Path, library: type[FakeModel], name: str, ask: Callable[[SentenceTransformers], object]
) -> None:
    model = build(write_model(tmp_path, CLASSIFIER if name == "tokenizer_config.json" else ENCODER))
    (tmp_path / name).write_text("{")
    with pytest.raises(DataError, match=rf"{name}:1: is not JSON"):
        ask(model)


def test_a_damaged_list_of_prompts_is_an_error_of_data(tmp_path: Path, library: type[FakeModel]) -> None:
    model = build(write_model(tmp_path, prompts=[]))
    with pytest.raises(DataError, match=r"config_sentence_transformers\.json: 'prompts' must be an object"):
        model.embed(["a"])


def test_the_message_about_a_lack_of_memory_says_what_to_do(
    tmp_path: Path, library: type[FakeModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "failure", RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    with pytest.raises(RagevalError, match=r"out of memory.*lower 'batch' or 'max_length'"):
        build(write_model(tmp_path)).embed(["a"])


def test_without_a_network_the_message_about_a_hub_model_says_what_to_do(
    tmp_path: Path, library: type[FakeModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        RagevalError, match=r"^models\.torch: 'owner/name' is not on this machine, and HF_HUB_OFF.*model:"
    ):
        build("owner/name").prepare()


def test_a_cached_hub_model_needs_no_network(
    tmp_path: Path, library: type[FakeModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    commit = "a" * 40
    repository = tmp_path / "models--owner--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    folder = write_model(repository / "snapshots" / commit)
    with pytest.raises(RagevalError, match=r"^models\.torch: .* only partly on this machine: .* without modules\.json"):
        build("owner/name").prepare()
    (folder / "modules.json").write_text("[]")
    model = build("owner/name")
    model.prepare()
    model.embed(["a"])
    assert library.loaded[0]["path"] == str(folder)
    assert model.describe()["revision"] == commit


def test_an_unknown_model_gets_a_hint() -> None:
    with pytest.raises(UsageError, match="did you mean 'minilm'"):
        build("minilmm").inputs()


def test_a_model_is_known_by_its_id_or_by_what_its_folder_suggests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "owner").mkdir()
    assert build("owner/model", revision="old").published_name == "owner/model@old"
    assert build(write_model(tmp_path / "owner" / "model")).published_name == "owner/model"
    assert build("owner/model").fills_templates is False


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    (missing,) = build(tmp_path / "nothing").inputs()
    assert (missing.path, missing.kind) == (tmp_path / "nothing", "folder")


# Embeddings


def test_vectors_are_computed_for_the_longest_texts_first(tmp_path: Path, library: type[FakeModel]) -> None:
    model = build(write_model(tmp_path), batch=2, device="cpu")
    found = model.embed(["b", "a longer text", "bb", "b"])
    assert_array_equal(found.vectors[:, 1], [1, 13, 2, 1])
    assert found.vectors.dtype == np.float32
    assert library.batches == [["a longer text", "bb"], ["b"]]
    settings = {"device": "cpu", "trust_remote_code": False, "local_files_only": True}
    assert library.loaded == [{"path": str(tmp_path), **settings}]


def test_texts_longer_than_the_model_are_flagged(tmp_path: Path, library: type[FakeModel]) -> None:
    model = build(write_model(tmp_path))
    assert model.embed(["a b", "word " * 14, "word " * 15]).truncated.tolist() == [False, False, True]
    assert build(write_model(tmp_path), max_length=8).embed(["w " * 6, "w " * 7]).truncated.tolist() == [False, True]


def test_a_length_beyond_the_model_is_refused(tmp_path: Path, library: type[FakeModel]) -> None:
    with pytest.raises(
        UsageError, match=r"models\.torch\.max_length: 600 is more than the 512 tokens that the model can read"
    ):
        build(write_model(tmp_path), max_length=600).embed(["a"])


@pytest.mark.parametrize(
    ("settings", "keys", "query", "document"),
    [
        ({}, {}, "", ""),
        ({"prompts": {"query": "q: ", "passage": "p: ", "document": ""}}, {}, "q: ", "p: "),
        ({"prompts": {"all": "a: "}, "default_prompt_name": "all"}, {}, "a: ", "a: "),
        ({"prompts": {"query": "", "document": "", "all": "a: "}, "default_prompt_name": "all"}, {}, "a: ", "a: "),
        ({"prompts": {"query": "q: "}, "default_prompt_name": "query"}, {}, "q: ", ""),
        ({"prompts": {"query": "q: "}}, {"query_prefix": "", "document_prefix": "own "}, "", "own "),
    ],
)
def test_prefixes_come_from_the_model_unless_the_node_has_its_own(
    tmp_path: Path, library: type[FakeModel], settings: dict[str, Any], keys: dict[str, Any], query: str, document: str
) -> None:
    model = build(write_model(tmp_path, **settings), **keys)
    asked, known = model.embed(["cat"], "query").vectors[0], model.embed(["cat"], "document").vectors[0]
    assert asked.tolist() == [len(query), 3, 1, 0]
    assert known.tolist() == [len(document), 3, 2, 0]


def test_a_text_has_another_vector_in_another_role_or_with_another_prefix(
    tmp_path: Path, library: type[FakeModel]
) -> None:
    context = Context("torch", answers=MemoryAnswers())
    folder = write_model(tmp_path)
    assert build(folder, context).embed(["a b c"], "document").vectors[0].tolist() == [0, 5, 2, 0]
    found = build(folder, context).embed(["a b c"], "query")
    assert (found.reused, found.vectors[0].tolist()) == (0, [0, 5, 1, 0])
    for prefix, text in (("a ", "b c"), ("a b ", "c")):
        model = build(folder, context, query_prefix=prefix)
        assert model.embed([text], "query").vectors[0].tolist() == [len(prefix), len(text), 1, 0]
        assert model.embed([text], "query").reused == 1
    assert build(folder, context, similarity="dot").embed(["a b c"], "query").reused == 1


@pytest.mark.parametrize(
    ("keys", "asked", "left"),
    [
        ({}, 0, ["Pooling", "Normalize"]),
        ({"normalize": True}, 1, ["Pooling", "Normalize"]),
        ({"normalize": False}, 0, ["Pooling"]),
        ({"dimensions": 2}, 1, ["Pooling", "Normalize"]),
        ({"dimensions": 2, "normalize": False}, 0, ["Pooling"]),
    ],
)
def test_the_node_decides_whether_vectors_are_normalized(
    tmp_path: Path, library: type[FakeModel], keys: dict[str, Any], asked: int, left: list[str]
) -> None:
    model = build(write_model(tmp_path), **keys)
    assert model.embed(["cat"]).vectors[0, 3] == asked
    assert [type(module).__name__ for module in model._encoder] == left


@pytest.mark.parametrize(
    ("stated", "keys", "similarity"),
    [(None, {}, "cosine"), ("dot", {}, "dot"), ("dot_product", {}, "dot"), ("dot", {"similarity": "cosine"}, "cosine")],
)
def test_the_node_decides_the_similarity_before_the_configuration(
    tmp_path: Path, stated: str | None, keys: dict[str, Any], similarity: str
) -> None:
    assert build(write_model(tmp_path, similarity_fn_name=stated), **keys).similarity == similarity


def test_an_unsupported_similarity_must_be_replaced(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'euclidean' similarity; write 'similarity: cosine' or 'similarity: dot'"):
        _ = build(write_model(tmp_path, similarity_fn_name="euclidean")).similarity


def test_vectors_computed_before_a_failure_stay_stored(
    tmp_path: Path, library: type[FakeModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = MemoryAnswers()
    context = Context("torch", answers=kept)
    texts = ["one", "three", "fourteen"]

    class Failing(FakeModel):
        def encode_document(self, texts: list[str], **settings: Any) -> Any:
            if texts == ["one"]:
                raise RuntimeError("interrupted")
            return super().encode_document(texts, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["sentence_transformers"], "SentenceTransformer", Failing)
        with pytest.raises(RagevalError, match="interrupted"):
            build(write_model(tmp_path), context, batch=1).embed(texts)
    found = build(write_model(tmp_path), context, batch=1).embed(texts)
    assert found.reused == 2
    assert_array_equal(found.vectors[:, 1], [3, 5, 8])


# Pairs


def test_pairs_have_raw_logits_and_the_labels_of_the_configuration(tmp_path: Path, library: type[FakeModel]) -> None:
    model = build(write_model(tmp_path, CLASSIFIER), batch=2)
    found = model.score([("a", "bb"), ("w " * 8, "w " * 8), ("a", "bb")])
    assert_allclose(found.logits, np.array([[1, 2, -1.5], [16, 16, -1.5], [1, 2, -1.5]], np.float32))
    assert found.truncated.tolist() == [False, True, False]
    assert model.labels == ("entailment", "contradiction", "neutral")
    assert len(library.batches) == 1


def test_a_cross_encoder_gives_no_embeddings(tmp_path: Path, library: type[FakeModel]) -> None:
    with pytest.raises(UsageError, match="is a cross-encoder and gives no embeddings"):
        build(write_model(tmp_path, CLASSIFIER)).embed(["a"])


@pytest.mark.parametrize("config", [ENCODER, {"architectures": ["BertForMaskedLM"]}])
def test_an_encoder_is_not_a_cross_encoder(tmp_path: Path, library: type[FakeModel], config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is not a cross-encoder: it has no head for pairs"):
        build(write_model(tmp_path, config)).score([("a", "b")])
    assert library.loaded == []


# The key of what is kept


def test_the_key_depends_on_the_files_content_and_not_on_their_place(tmp_path: Path) -> None:
    one, other = write_model(tmp_path / "one"), write_model(tmp_path / "other")
    (other / "README.md").write_text("no part of it")
    (other / "onnx").mkdir()
    (other / "onnx" / "model.onnx").write_bytes(b"nor is this")
    assert build(one).key == build(other, batch=1, device="cpu").key
    assert build(one).key != build(one, max_length=9).key
    (other / "model.safetensors").write_bytes(b"other weights")
    assert build(one).key != build(other).key


# The real library, where it is installed


def test_the_real_library_and_onnx_agree(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers and torch", exc_type=ImportError)
    require("minilm")
    from rageval_spec.models.onnx import OnnxModel, OnnxNode

    texts = ["a cat", "", "word " * 600, "Katzen und Hunde", *(f"text {i} " * (i + 1) for i in range(60))]
    by_torch = build("minilm", device="cpu").embed(texts)
    by_onnx = OnnxModel(OnnxNode(use="onnx", model="minilm"), Context("onnx")).embed(texts)
    assert_allclose(by_torch.vectors, by_onnx.vectors, atol=1e-5)
    assert_array_equal(by_torch.truncated, by_onnx.truncated)
