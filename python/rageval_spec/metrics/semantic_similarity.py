from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from rageval_spec.data.outcomes import AnyNote
from rageval_spec.data.samples import Sample
from rageval_spec.judging.cosine_scale import explain_values
from rageval_spec.libraries import np
from rageval_spec.metrics.shared.answer_metrics import EMPTY_ANSWER
from rageval_spec.metrics.shared.reference_metrics import ReferenceMetric
from rageval_spec.plugin import EmbeddingModel, Measured, Measurement, MetricInfo, MetricNode, ModelName, note_truncated

if TYPE_CHECKING:
    from numpy.typing import NDArray


NO_DIRECTION = "the model gives the answer, or every reference, a vector of zeros, which has no direction"


class SemanticSimilarityNode(MetricNode):
    model: ModelName = Field(default="minilm", description="The embedding model: the name of a block under `models:`.")


class SemanticSimilarity(ReferenceMetric[SemanticSimilarityNode]):
    known_as = ("similar", "embedding_similarity", "cosine_similarity", "bert_score", "bertscore")
    info = MetricInfo(
        summary="How similar in meaning the answer is to a reference, by the cosine of their embeddings.",
        formula="semantic_similarity = max over references of cos(embedding of the answer, embedding of the reference)",
        edge_cases=(
            "range: dissimilar texts seldom get 0, and values of different models are not comparable; with a local "
            "model other than minilm, a note says what texts without anything in common get",
            "contradiction: texts that say the opposite in similar words are similar; this does not measure "
            "correctness",
            "several references: the most similar one counts; empty ones are left out",
            "long texts: cut where the model stops reading; a note counts them",
            "empty answer: 0, with that reason, and the model is not asked",
            "vector of zeros: unscorable",
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
        """Embed all texts of all samples at once, and compare each answer with its references."""
        texts = [(sample.answer or "", self.usable_references(sample)) for sample in samples]
        asked = [(answer, references) for answer, references in texts if references and answer.strip()]
        nearest, notes = self._compare(asked) if asked else (iter(()), ())
        return Measured([self._measure(*one, nearest) for one in texts], notes)

    def _compare(self, asked: Sequence[tuple[str, list[str]]]) -> tuple[Iterator[float | None], tuple[AnyNote, ...]]:
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        embeddings = model.embed([*(answer for answer, _ in asked), *(text for _, own in asked for text in own)])
        cut, nouns = int(embeddings.truncated.sum()), ("answer or reference", "answers and references")
        notes = note_truncated(cut, len(embeddings.truncated), self.node.model, *nouns, code="texts")
        told = explain_values(model, "document")
        return _find_nearest(embeddings.vectors, [len(own) for _, own in asked]), (*notes, *told)

    def _measure(self, answer: str, references: Sequence[str], nearest: Iterator[float | None]) -> Measurement:
        if not references:
            return Measurement.unscorable(self.no_reference)
        if not answer.strip():
            return Measurement.scored(0.0, EMPTY_ANSWER)
        cosine = next(nearest)
        return Measurement.unscorable(NO_DIRECTION) if cosine is None else Measurement.scored(cosine)


def _find_nearest(vectors: NDArray[np.float32], counts: Sequence[int]) -> Iterator[float | None]:
    """For each answer, its highest cosine with a reference; None if no pair has a cosine.

    `vectors` has the vectors of the answers, then `counts[i]` vectors of references for each answer i.
    """
    exact = vectors.astype(np.float64)
    first = len(counts)
    for answer, count in zip(exact, counts, strict=False):
        references = exact[first : first + count]
        first += count
        lengths = np.linalg.norm(references, axis=1) * np.linalg.norm(answer)
        cosines = (references @ answer)[lengths > 0] / lengths[lengths > 0]
        yield float(np.clip(cosines.max(), -1, 1)) if len(cosines) else None


PLUGIN = SemanticSimilarity
