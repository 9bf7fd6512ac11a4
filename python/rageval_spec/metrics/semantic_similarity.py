"""`semantic_similarity`: the cosine of the embeddings of an answer and a reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import EMPTY_ANSWER, FAILED_SYSTEM, NO_REFERENCE
from rageval_spec.metrics.shared.reference_metrics import ReferenceMetric
from rageval_spec.plugin import (
    EmbeddingModel,
    Embeddings,
    Measured,
    Measurement,
    MetricInfo,
    MetricNode,
    ModelName,
    note_truncated,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


NO_DIRECTION = "the model gives the answer, or every reference, a vector of zeros, which has no direction"


class SemanticSimilarityNode(MetricNode):
    """Measures how similar answers are to a reference, by the cosine of their embeddings."""

    model: ModelName = Field(default="minilm", description="The embedding model: the name of a block under `models:`.")


class SemanticSimilarity(ReferenceMetric[SemanticSimilarityNode]):
    """Cosine of the embeddings of an answer and a reference."""

    node_type = SemanticSimilarityNode
    known_as = ("similar", "embedding_similarity", "cosine_similarity", "bert_score", "bertscore")
    info = MetricInfo(
        summary="How similar in meaning the answer is to a reference, by the cosine of their embeddings.",
        formula="semantic_similarity = max over references of cos(embedding of the answer, embedding of the reference)",
        edge_cases=(
            "range: dissimilar texts seldom get 0, and values of different models are not comparable",
            "contradiction: texts that say the opposite in similar words are similar; this does not measure "
            "correctness",
            "several references: the most similar one counts; empty ones are left out",
            "long texts: cut where the model stops reading; a note counts them",
            "empty answer: 0, with that reason, and the model is not asked",
            "vector of zeros: unscorable",
            NO_REFERENCE + "; also if all references are empty",
            FAILED_SYSTEM,
        ),
        source="Reimers and Gurevych, Sentence-BERT: sentence embeddings using siamese BERT-networks, EMNLP 2019; as "
        "RAGAS's semantic similarity: Es et al., RAGAs: automated evaluation of retrieval augmented generation, EACL "
        "2024",
        aliases=("answer_similarity",),
        bounds=(-1.0, 1.0),
    )

    def check(self) -> str | None:
        return self.context.explain_model(self.node.model, EmbeddingModel, "gives no embeddings")

    def compute(self, samples: Sequence[Sample]) -> Measured:
        references = [self.usable_references(sample) for sample in samples]
        asked = [bool(own) and _has_answer(sample) for sample, own in zip(samples, references, strict=True)]
        answers = [sample.answer or "" for sample, wanted in zip(samples, asked, strict=True) if wanted]
        compared = [own for own, wanted in zip(references, asked, strict=True) if wanted]
        if not answers:
            return Measured([self._without_model(own) for own in references])
        embeddings = self._embed([*answers, *(text for own in compared for text in own)])
        nearest = iter(_find_nearest(embeddings.vectors, len(answers), [len(own) for own in compared]))
        return Measured(
            [
                _measure(next(nearest)) if wanted else self._without_model(own)
                for own, wanted in zip(references, asked, strict=True)
            ],
            note_truncated(
                int(embeddings.truncated.sum()),
                len(embeddings.truncated),
                self.node.model,
                "answer or reference",
                "answers and references",
                code="texts",
            ),
        )

    def _embed(self, texts: Sequence[str]) -> Embeddings:
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        return model.embed(texts)

    def _without_model(self, references: Sequence[str]) -> Measurement:
        if not references:
            return Measurement.unscorable(self.no_reference)
        return Measurement.scored(0.0, EMPTY_ANSWER)


def _has_answer(sample: Sample) -> bool:
    return bool(sample.answer and sample.answer.strip())


def _measure(cosine: float | None) -> Measurement:
    return Measurement.unscorable(NO_DIRECTION) if cosine is None else Measurement.scored(cosine)


def _find_nearest(vectors: NDArray[np.float32], answers: int, counts: Sequence[int]) -> Iterator[float | None]:
    """For each answer, its highest cosine with a reference; None if no pair has a cosine.

    `vectors` has the vectors of the answers, then `counts[i]` vectors of references for each answer i.
    """
    import numpy as np

    exact = vectors.astype(np.float64)
    first = answers
    for answer, count in zip(exact, counts, strict=False):
        references = exact[first : first + count]
        first += count
        lengths = np.linalg.norm(references, axis=1) * np.linalg.norm(answer)
        cosines = (references @ answer)[lengths > 0] / lengths[lengths > 0]
        yield float(np.clip(cosines.max(), -1, 1)) if len(cosines) else None


PLUGIN = SemanticSimilarity
