from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from rageval_spec import registry
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.metrics.semantic_similarity import SemanticSimilarity, SemanticSimilarityNode
from rageval_spec.plugin import Context, EmbeddingModel, Embeddings, Measured, Model, ModelNode, Role
from tests.embedded import require

VECTORS = {
    "east": (2.0, 0.0),
    "north": (0.0, 3.0),
    "north-east": (1.0, 1.0),
    "west": (-5.0, 0.0),
    "nowhere": (0.0, 0.0),
}


class Compass(EmbeddingModel[ModelNode]):
    """Knows five texts; none of its vectors has length 1."""

    def __init__(self, truncates: str = "") -> None:
        super().__init__(ModelNode(use="compass"), Context("compass"))
        self.truncates = truncates
        self.asked: list[list[str]] = []

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return "dot"

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.asked.append(list(texts))
        vectors = np.array([VECTORS[text] for text in texts], dtype=np.float32)
        return Embeddings(vectors, np.array([text == self.truncates for text in texts]))


def metric(model: Model[Any] | None = None) -> SemanticSimilarity:
    node = SemanticSimilarityNode(use="semantic_similarity", model="compass")
    return SemanticSimilarity(node, Context("similarity", models={} if model is None else {"compass": model}))


def sample(answer: str, *references: str) -> Sample:
    return Sample("q", "where?", answer=answer, references=references)


def measure(*samples: Sample, model: Compass | None = None) -> Measured:
    return metric(model or Compass()).compute(samples)


def value_of(answer: str, *references: str) -> float | None:
    return measure(sample(answer, *references)).measurements[0].value


def test_hand_worked() -> None:
    assert value_of("east", "north-east") == pytest.approx(1 / math.sqrt(2))
    assert value_of("east", "north") == 0.0
    assert value_of("east", "west") == -1.0  # negative values are kept
    assert value_of("north-east", "north-east") == pytest.approx(1, abs=1e-15)


def test_the_nearest_reference_counts() -> None:
    assert value_of("east", "west", "north", "north-east") == pytest.approx(1 / math.sqrt(2))
    assert value_of("east", "", "west") == -1.0


def test_all_samples_are_embedded_at_once_and_in_order() -> None:
    model = Compass()
    samples = [
        sample("east", "east", "west"),
        sample("", "north"),
        sample("west"),
        sample("north", "west", "north-east"),
    ]
    measured = measure(*samples, model=model)
    assert model.asked == [["east", "north", "east", "west", "west", "north-east"]]
    assert [m.value for m in measured.measurements] == [1.0, 0.0, None, pytest.approx(1 / math.sqrt(2))]
    assert [m.status for m in measured.measurements] == ["scored", "scored", "unscorable", "scored"]


def test_an_empty_answer_scores_0_with_a_reason() -> None:
    model = Compass()
    (measurement,) = measure(sample(" ", "north"), model=model).measurements
    assert (measurement.value, measurement.reason) == (0.0, "the answer is empty")
    assert model.asked == []


def test_a_zero_vector_has_no_similarity() -> None:
    measured = measure(sample("nowhere", "east"), sample("east", "nowhere"), sample("east", "nowhere", "west"))
    assert [m.value for m in measured.measurements] == [None, None, -1.0]
    assert "vector of zeros" in (measured.measurements[0].reason or "")


def test_texts_that_are_cut_are_counted() -> None:
    measured = measure(sample("east", "north"), sample("north", "west"), model=Compass(truncates="west"))
    message = "1 of 4 answers and references is longer than compass reads and was cut"
    assert measured.written_notes == (Note("texts_truncated", message, count=1),)


def test_a_model_of_another_kind_is_reported_before_anything_runs() -> None:
    class Silent(Model[ModelNode]):
        pass

    silent = Silent(ModelNode(use="silent"), Context("silent"))
    assert metric(Compass()).check() is None
    assert metric(silent).check() == "the model 'compass' (use: silent) gives no embeddings"
    with pytest.raises(UsageError, match="is not an embedding model"):
        metric(silent).compute([sample("east", "east")])


def test_name_and_range() -> None:
    assert metric().name == "semantic_similarity"
    assert metric().info.bounds == (-1.0, 1.0)
    assert SemanticSimilarityNode(use="semantic_similarity").model == "minilm"


# sentence-transformers 6.2: util.cos_sim of the vectors of all-MiniLM-L6-v2.
OF_SENTENCE_TRANSFORMERS = {
    ("The Eiffel Tower is in Paris.", "Paris is where the Eiffel Tower stands."): 0.9546481967,
    ("He paid with a card.", "Receipts are under Settings > Billing."): 0.3415224850,
    ("The invoice was paid.", "The invoice was not paid."): 0.8147507309,
}


def test_the_default_model_equals_sentence_transformers() -> None:
    require("minilm")
    onnx = registry.load("models", "onnx")
    minilm = onnx(onnx.node_type(use="onnx", model="minilm"), Context("minilm"))
    node = SemanticSimilarityNode(use="semantic_similarity")
    similarity = SemanticSimilarity(node, Context("similarity", models={"minilm": minilm}))
    measured = similarity.compute([sample(*texts) for texts in OF_SENTENCE_TRANSFORMERS])
    values = [measurement.value for measurement in measured.measurements]
    assert values == pytest.approx(list(OF_SENTENCE_TRANSFORMERS.values()), abs=1e-5)
