from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rageval_spec.audit.duplicates import find_pairs
from rageval_spec.audit.question_set import AuditedQuestion
from rageval_spec.data.outcomes import write_notes
from rageval_spec.data.samples import Sample
from rageval_spec.errors import DataError
from rageval_spec.generation import chunks
from rageval_spec.generation.question_faults import AcceptedQuestions
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.judges.embedding import EmbeddingJudge, EmbeddingNode
from rageval_spec.judges.waterfall import Waterfall, WaterfallNode
from rageval_spec.judging.cosine_scale import (
    OWN,
    SCALED,
    CosineScale,
    explain_scale,
    explain_values,
    find_scale,
    foresee_scale,
    list_unrelated,
    measure_scale,
)
from rageval_spec.metrics.semantic_similarity import SemanticSimilarity, SemanticSimilarityNode
from rageval_spec.models.http import HttpModel, HttpModelNode
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.models.sentence_transformers import SentenceTransformers, SentenceTransformersNode
from rageval_spec.plugin import Context, EmbeddingModel, Embeddings, InputFile, ModelNode, Role
from rageval_spec.store.store import MemoryAnswers
from tests.judges.fakes import FAITHFULNESS, PRECISION, WordModel, context_of, finding_of
from tests.models.endpoint import Answer, Server
from tests.onnx_from_checkpoints.folders import write_encoder


class Compressed(EmbeddingModel[ModelNode]):
    """The hashed words of a text, and a constant that makes every cosine c `lift + (1 - lift) * c`."""

    similarity: Literal["cosine"] = "cosine"

    def __init__(self, lift: float = 0.0, length: float = 1.0) -> None:
        super().__init__(ModelNode(use="onnx"), Context("words"))
        self.lift, self.length = lift, length
        self.asked: list[tuple[int, Role]] = []

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.asked.append((len(texts), role))
        vectors = np.zeros((len(texts), 513))
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[zlib.crc32(word.encode()) % 512] += 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[:, :512] *= np.sqrt(1 - self.lift)
        vectors[:, 512] = np.sqrt(self.lift)
        return Embeddings((self.length * vectors).astype(np.float32), np.zeros(len(texts), np.bool_))


class Raw(Compressed):
    """The same, read as if it were MiniLM."""

    is_calibrated = True


class Same(Compressed):
    """Gives every text the same vector."""

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        return Embeddings(np.ones((len(texts), 4), np.float32), np.zeros(len(texts), np.bool_))


ANSWERS = [
    Sample("near", "Where?", answer="red cats eat green fish. old dogs never bark.", contexts=("red cats eat fish.",)),
    Sample("half", "Where?", answer="old dogs bark loudly at night.", contexts=("old dogs sleep at night.",)),
    Sample("far", "Where?", answer="nothing here is like anything else.", contexts=("red cats eat fish.",)),
]


def judge(model: EmbeddingModel[Any], **keys: Any) -> EmbeddingJudge:
    return EmbeddingJudge(EmbeddingNode(use="embedding", model="words", **keys), context_of(model))


def verdicts(model: EmbeddingModel[Any], **keys: Any) -> list[Any]:
    found = judge(model, **keys).assess(FAITHFULNESS, ANSWERS).findings
    return [[(claim.verdict, round(claim.score, 4)) for claim in getattr(one, "claims", ())] for one in found]


def test_the_map_by_hand() -> None:
    scale = CosineScale(0.7985, 0.75, 0.8388)  # crowded by (0.7985 - 0.194) / 0.806 = 0.75
    high = 0.3552 + 0.75 * (0.551 - 0.3552)  # 0.3552 is on the straight line, as 0.194 + 0.2 * 0.806
    given = np.array([0.7985, 0.8388, 1.0, 0.81865, 0.9194, 1.0000001, 0.7783])
    expected = [0.194, high, 1, (0.194 + high) / 2, (high + 1) / 2, 1, 0.194 - 0.0202 * (high - 0.194) / 0.0403]
    assert scale.read(given) == pytest.approx(np.array(expected), abs=1e-4)
    assert [scale.find_cosine(bound) for bound in expected[:5]] == pytest.approx(list(given[:5]), abs=1e-4)


def test_cosines_that_spread_more_than_those_of_minilm_are_moved_along_a_straight_line() -> None:
    scale = CosineScale(0.0, -0.2, 0.2)
    given = np.array([-0.5, 0.0, 0.1, 0.2, 0.6, 1.0])
    assert scale.read(given) == pytest.approx(0.194 + given * 0.806)


def test_a_scale_by_hand() -> None:
    first = np.array([[1, 0], [0, 2], [3, 3]], np.float32)
    half = 1 / np.sqrt(2)
    assert measure_scale(first, first, "m").mean == pytest.approx(2 * half / 3)
    turned = np.array([[0, 1], [5, 0], [0, 1]], np.float32)  # pairs of one text do not count
    assert measure_scale(first, turned, "m").mean == pytest.approx((1 + 0 + 1 + 1 + half + half) / 6)


@given(st.floats(-0.9, 0.99), st.floats(0, 1), st.lists(st.floats(-1, 1), min_size=2))
def test_reading_keeps_the_order_and_is_the_inverse_of_finding(mean: float, spread: float, given: list[float]) -> None:
    scale = CosineScale(mean, mean, mean + (1 - mean) * spread)
    read = scale.read(np.sort(given))
    assert np.all(np.diff(read) >= 0)
    assert scale.read(np.array([mean, 1.0])) == pytest.approx([OWN.mean, 1.0])
    if 0.01 < spread < 0.99:
        assert [scale.find_cosine(one) for one in read] == pytest.approx(np.sort(given), abs=1e-6)


def test_the_cosines_of_minilm_stay_what_they_are_and_nothing_is_embedded_for_them() -> None:
    cosines = np.array([0.1, 0.63], np.float32)
    assert OWN.read(cosines) is cosines
    assert [OWN.find_cosine(bound) for bound in (0.45, 0.63, 0.9, 0.95, 0.97)] == [0.45, 0.63, 0.9, 0.95, 0.97]
    model = WordModel()
    assert find_scale(model) == OWN and foresee_scale(model, "query", "document") == {}
    assert explain_scale(model, OWN) == explain_values(model, "query") == ()
    assert model.calls == []
    assert judge(model).content()["version"] == "4"


@pytest.mark.parametrize("lift", [0.5, 0.8, 0.93])
@pytest.mark.parametrize("keys", [{}, {"threshold": 0.5}, {"window": 2}])
def test_verdicts_are_those_of_a_model_whose_cosines_are_not_compressed(lift: float, keys: dict[str, Any]) -> None:
    plain = verdicts(Compressed(), **keys)
    found = verdicts(Compressed(lift), **keys)
    assert [[verdict for verdict, _ in claims] for claims in found] == [[one for one, _ in claims] for claims in plain]
    assert np.allclose(
        [score for claims in found for _, score in claims], [s for one in plain for _, s in one], atol=0.1
    )
    assert {verdict for claims in plain for verdict, _ in claims} == {"supported", "not_enough_info"}
    assert plain[2][0][1] < 0.3


def test_vectors_need_not_have_length_1() -> None:
    assert verdicts(Compressed(0.8, length=40)) == verdicts(Compressed(0.8))


def test_without_the_scale_the_far_answer_would_be_supported() -> None:
    assert verdicts(Raw(0.8))[2][0][0] == "supported"


def test_usefulness_compares_documents_with_queries() -> None:
    model = Compressed(0.8)
    asked = Sample("q", "where do red cats live?", contexts=("red cats live in barns.", "snow falls in winter."))
    near, far = finding_of(judge(model).assess(PRECISION, [asked])).claims
    assert (near.verdict, far.verdict) == ("supported", "not_enough_info")
    assert {role for count, role in model.asked if count == len(list_unrelated())} == {"query", "document"}


def test_the_texts_are_embedded_once_for_a_model() -> None:
    model = Compressed(0.8)
    for _ in range(3):
        judge(model).assess(FAITHFULNESS, ANSWERS)
    assert [count for count, _ in model.asked].count(len(list_unrelated())) == 2  # one for each side of the pairs


def test_a_note_says_how_cosines_were_read() -> None:
    (note,) = judge(Compressed(0.8)).assess(FAITHFULNESS, ANSWERS).written_notes
    assert re.fullmatch(
        r"with words, unrelated texts have a mean cosine of 0\.81 \(90% of pairs: 0\.80 to 0\.83\); judges read "
        r"cosines on the scale of minilm, where 0\.83 is 0\.50; metrics keep them as they are",
        note.message,
    ), note.message
    assert (note.code, note.level) == ("cosine_scale", "note")
    (warning,) = judge(Compressed(0.96)).assess(FAITHFULNESS, ANSWERS).written_notes
    assert warning.level == "warning" and "close to the 1 of equal texts" in warning.message


def test_what_is_stored_of_a_scaled_judge_has_its_own_version() -> None:
    assert judge(Compressed()).content()["version"] == f"4.{SCALED}"
    fall = Waterfall(WaterfallNode.model_validate({"use": "waterfall", "retrieval": {"model": "words"}}),
                     context_of(Compressed()))  # fmt: skip
    assert fall.content()["version"] == f"3.{SCALED}"
    raw = {"use": "waterfall", "retrieval": {"by": "scores"}}
    assert Waterfall(WaterfallNode.model_validate(raw), context_of(Compressed())).content()["version"] == "3"


def test_the_texts_are_those_of_the_version() -> None:
    texts = list_unrelated()
    assert len(texts) == len(set(texts)) == 80
    digest = hashlib.sha256(json.dumps([texts, OWN]).encode()).hexdigest()
    assert (SCALED, digest[:16]) == ("s1", "667e6e9cf77b621e"), "other texts give other verdicts: raise SCALED"


def test_an_estimate_counts_the_texts_only_where_cosines_are_compared() -> None:
    asked = judge(Compressed())
    ((_, reads),) = asked.estimate(FAITHFULNESS, ANSWERS[:1]).reads.items()
    assert len(reads) == len(list_unrelated()) + 3
    for blank in ([], [Sample("q", "Why?", answer=" ", contexts=("a b c.",))]):
        assert not any(asked.estimate(FAITHFULNESS, blank).reads.values())


def test_the_waterfall_estimates_and_reads_its_retrieval_stage_on_the_scale() -> None:
    keys = {"use": "waterfall", "retrieval": {"model": "words"}, "answerability": None, "relevance": None,
            "faithfulness": {"judge": "tested"}}  # fmt: skip
    samples = [Sample("near", "where do red cats live now?", answer="red cats live in barns.",
                      contexts=("red cats live in barns.",)),
               Sample("far", "where do red cats live now?", answer="red cats live in barns.",
                      contexts=("snow falls.",))]  # fmt: skip
    found = []
    for model in (Compressed(), Compressed(0.9)):
        fall = Waterfall(WaterfallNode.model_validate(keys), context_of(model, judge(model)))
        ((_, reads),) = fall.estimate(FAITHFULNESS, samples).reads.items()
        assert len(reads) == len(list_unrelated()) + 3
        found.append([one.reason for one in fall.assess(FAITHFULNESS, samples).findings])
    for near, far in found:
        assert near is None and "at retrieval: top similarity 0.1" in str(far)


def place(cosine: float, lift: float, count: int) -> tuple[NDArray[np.float32], CosineScale]:
    """Vectors with this cosine between the first two and 0 between others, all of them lifted; and their scale."""
    vectors = np.eye(count + 1)
    vectors[:, count] = 0
    vectors[1, :2] = cosine, np.sqrt(1 - cosine**2)
    vectors = np.sqrt(1 - lift) * vectors[:count]
    vectors[:, count] = np.sqrt(lift)
    return vectors.astype(np.float32), CosineScale(*(lift + (1 - lift) * landmark for landmark in OWN))


@pytest.mark.parametrize("lift", [0.0, 0.9])
@pytest.mark.parametrize(("cosine", "found"), [(0.88, []), (0.92, [(1, 0, "meaning")])])
def test_an_audit_compares_questions_on_the_scale(lift: float, cosine: float, found: list[Any]) -> None:
    vectors, scale = place(cosine, lift, 2)
    texts = ("What city did the final take place in?", "Where was the final played?")
    asked = [AuditedQuestion("q", text, "", ("Santa Clara",)) for text in texts]
    pairs = find_pairs(asked, (lambda _: vectors, scale.find_cosine))
    assert [(pair.later, pair.earlier, pair.sameness) for pair in pairs] == found


def test_an_audit_of_one_question_asks_nothing() -> None:
    def fail(_: object) -> Any:
        raise AssertionError

    assert find_pairs([AuditedQuestion("q", "Who?", "", ("Ann",))], (fail, fail)) == []


@pytest.mark.parametrize("lift", [0.0, 0.9])
def test_a_generated_question_repeats_another_on_the_scale(lift: float) -> None:
    known = AcceptedQuestions(Compressed(lift))
    known.add("who painted that old yellow house?")
    assert known.find("when did the baker open her shop?") is None
    assert known.find("house? yellow old that painted who") is not None


@pytest.mark.parametrize("lift", [0.0, 0.9])
def test_chunks_say_the_same_on_the_scale(lift: float) -> None:
    texts = ("bees sleep", "drones rest", "snow falls", "rain stops")
    pieces = [chunks.Chunk(f"d{number}", f"d{number}", 0, len(text), text) for number, text in enumerate(texts)]
    for cosine, is_pair in ((0.9, True), (0.99, False)):
        vectors, scale = place(cosine, lift, len(texts))
        too_near = scale.find_cosine(chunks.TOO_NEAR)
        assert ((0, 1) in chunks.find_pairs(pieces, vectors, 1, too_near)) == is_pair


def test_values_that_are_cosines_stay_as_they_are_with_a_note(tmp_path: Path) -> None:
    model = OnnxModel(OnnxNode(use="onnx", model=str(write_encoder(tmp_path / "tiny"))), Context("tiny"))
    metric = SemanticSimilarity(SemanticSimilarityNode(use="semantic_similarity", model="tiny"), context_of(model))
    measured = metric.compute([Sample("q", "?", answer="red cats", references=("old dogs",))])
    first, second = model.embed(["red cats", "old dogs"]).vectors
    assert measured.measurements[0].value == pytest.approx(float(first @ second), abs=1e-6)
    (note,) = [one for one in write_notes(measured.notes) if one.code == "cosine_scale"]
    assert note.message.startswith("with tiny, unrelated texts have a mean cosine of ")
    endpoint = Compressed(0.8)  # any other model may cost money
    assert explain_values(endpoint, "query") == () and endpoint.asked == []


@pytest.mark.parametrize(
    ("keys", "is_calibrated"),
    [
        ({}, True), ({"precision": "int8"}, True), ({"model": "sentence-transformers/all-MiniLM-L6-v2"}, True),
        ({"dimensions": 128}, False), ({"pooling": "cls"}, False), ({"model": "intfloat/multilingual-e5-small"}, False),
    ],
)  # fmt: skip
def test_only_minilm_as_it_was_published_needs_no_scale(keys: dict[str, Any], is_calibrated: bool) -> None:
    assert OnnxModel(OnnxNode(use="onnx", **keys), Context("m")).is_calibrated == is_calibrated


@pytest.mark.parametrize("name", ["minilm", "all-MiniLM-L6-v2", "e5"])
@pytest.mark.parametrize(
    ("model", "node"), [(OnnxModel, OnnxNode), (SentenceTransformers, SentenceTransformersNode)]
)  # fmt: skip
def test_the_weights_say_whether_a_folder_has_minilm(tmp_path: Path, model: Any, node: Any, name: str) -> None:
    folder, digests, read = write_encoder(tmp_path / name), [EMBEDDED["minilm"].sha256, "0" * 64], []

    def fingerprint(file: InputFile) -> str:
        read.append(file.path)
        return digests[len(read) - 1]

    context = Context("m", tmp_path, fingerprint=fingerprint)
    keys = {"use": "onnx" if node is OnnxNode else "sentence_transformers", "model": f"./{name}"}
    assert model(node(**keys), context).is_calibrated
    assert not model(node(**keys), context).is_calibrated
    for other in ({"dimensions": 8}, {"query_prefix": "q: "}, {"document_prefix": "d: "}):
        assert not model(node(**keys, **other), context).is_calibrated
    assert read == [folder / "model.safetensors"] * 2, "only where the keys do not say it"


def test_a_model_that_cannot_tell_texts_apart_is_refused() -> None:
    with pytest.raises(DataError, match=r"models.words: gives nearly the same vector for all texts: the mean cosine"):
        judge(Same()).assess(FAITHFULNESS, ANSWERS)
    with pytest.raises(DataError, match=r"m: .*row 1"):
        measure_scale(np.array([[1, 0], [0, 0]], np.float32), np.array([[1, 0], [1, 0]], np.float32), "m")


def test_a_negative_mean_is_a_scale_too() -> None:
    opposite = np.array([[1, 0], [-1, 0]], np.float32)
    scale = measure_scale(opposite, opposite, "m")
    assert scale.mean == -1
    assert scale.read(np.array([-1.0, 0.0, 1.0])) == pytest.approx([OWN.mean, (OWN.mean + 1) / 2, 1])


@pytest.mark.parametrize("count", [0, 1])
def test_one_text_makes_no_scale(count: int) -> None:
    vectors = np.ones((count, 3), np.float32)
    with pytest.raises(ValueError, match=f"needs two texts or more, not {count}"):
        measure_scale(vectors, vectors, "m")


def test_an_endpoint_is_asked_for_the_texts_once_and_only_where_a_threshold_needs_them() -> None:
    def answer(_: int, texts: list[str]) -> Answer:
        rows = enumerate(Compressed(0.8).embed(texts).vectors.tolist())
        return Answer({"data": [{"index": place, "embedding": row} for place, row in rows]})

    server, answers = Server(answer), MemoryAnswers()

    def build() -> HttpModel:
        return HttpModel(HttpModelNode(use="http", base_url=server.url, model="m"), Context("far", answers=answers))

    def count() -> int:
        return sum(len(call["input"]) for call in server.calls)

    try:
        metric = SemanticSimilarity(SemanticSimilarityNode(use="semantic_similarity", model="far"), context_of(build()))
        metric.compute([Sample("q", "?", answer="red cats", references=("old dogs",))])
        assert count() == 2
        for _ in range(2):  # the second model finds the vectors in the store
            near = EmbeddingJudge(EmbeddingNode(use="embedding", model="far"), context_of(build()))
            near.assess(FAITHFULNESS, ANSWERS[1:2])
        assert count() == 2 + 2 + len(list_unrelated())
    finally:
        server.close()


def test_another_model_in_a_folder_called_minilm_needs_a_scale(tmp_path: Path) -> None:
    write_encoder(tmp_path / "minilm")
    assert not OnnxModel(OnnxNode(use="onnx", model="./minilm"), Context("m", tmp_path)).is_calibrated
    with_prefix = OnnxNode(use="onnx", model="minilm", query_prefix="query: ")
    assert not OnnxModel(with_prefix, Context("m", tmp_path)).is_calibrated
