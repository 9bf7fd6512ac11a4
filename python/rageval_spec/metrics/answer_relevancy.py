from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data import arithmetic
from rageval_spec.data.findings import Criterion, Estimate, Failed, Finding, Questions
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared import judged_metrics
from rageval_spec.metrics.shared.answer_metrics import EMPTY_ANSWER, is_blank
from rageval_spec.metrics.shared.reference_metrics import compare_meanings
from rageval_spec.plugin import EmbeddingModel, Measured, Measurement, MetricInfo, ModelName

NONCOMMITTAL = "the answer is noncommittal"


def ask_directly(kind: Literal["grade", "usefulness"]) -> Criterion:
    """What judges are asked that write no questions."""
    instruction = "How well does the answer address the question?"
    return judged_metrics.ask_about("answer_relevancy", kind, instruction, "answer")


class AnswerRelevancyNode(judged_metrics.RefusalNode):
    questions: int = Field(
        default=judged_metrics.QUESTIONS,
        ge=1,
        le=20,
        description="How many questions the judge writes for an answer, if it can, to compare with the real question.",
    )
    model: ModelName = Field(default="minilm", description="The embedding model that compares questions.")


class AnswerRelevancy(judged_metrics.RefusalAwareMetric[AnswerRelevancyNode]):
    known_as = ("relevance", "relevancy", "question_answer_relevance")
    able = (frozenset({"questions"}), frozenset({"grade"}), frozenset({"usefulness"}))
    ways = ((), (ask_directly("grade"),), (ask_directly("usefulness"),))
    info = MetricInfo(
        summary="Whether an answer addresses the question, right or wrong.",
        formula="answer_relevancy = mean cosine of the embeddings of the question and of N questions that the judge "
        "writes for the answer, times 0 if the answer is noncommittal, else times 1; with a judge that can only grade: "
        "its grade of how well the answer addresses the question, in [0, 1]; with any other judge: how similar it "
        "finds the answer to the question, in [0, 1]",
        edge_cases=(
            "noncommittal answer, such as 'I don't know': 0 with a reason; if it says nothing else, a list of phrases "
            "finds it, and no judge is asked",
            "empty answer: 0 with a reason",
            "cosine below 0: is not raised to 0",
            "cosines: as they are, comparable only with the same model; a note says what unrelated questions get",
            "fewer questions than asked for, or equal ones: the mean over those that came",
            "RAGAS: N calls, and noncommittal if all N replies say so; here one call writes all N questions and says "
            "it once",
            "judge that can grade and cannot write questions: its grade of the whole answer; the details show which "
            "way was used",
            "judge that can do neither, such as embedding or overlap: the cosine of the question with the answer or a "
            "part of it, or the share of the question's words; common without a chat model, but not comparable with "
            "the values of judges that write: an answer that repeats the question scores well",
        ),
        source="Es, James, Espinosa-Anke and Schockaert, RAGAS: Automated evaluation of retrieval augmented "
        "generation, EACL 2024 (answer relevance); RAGAS documentation, response relevancy",
        aliases=("response_relevancy", "answer_relevance"),
        bounds=(-1.0, 1.0),
    )

    def check(self) -> str | None:
        if (fault := super().check()) or not self.can("questions"):
            return fault
        return self.context.explain_model(self.node.model, EmbeddingModel, "gives no embeddings")

    def asked_models(self) -> Sequence[str]:
        return super().asked_models() if self.can("questions") else ()

    def settle(self, sample: Sample) -> Measurement | None:
        reason = EMPTY_ANSWER if is_blank(sample.answer) else self.explain_refusal(sample.answer)
        return None if reason is None else Measurement.scored(0.0, reason, {"score": 0.0})

    def ask(self, samples: Sequence[Sample]) -> Measured:
        return self._compare_questions(samples) if self.can("questions") else super().ask(samples)

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        return judged_metrics.measure_finding(findings[0], way=self.criteria()[0].kind)

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        if not self.can("questions"):
            return super().estimate_asking(samples)
        return self.estimate_questions(samples, self.node.questions)

    def _compare_questions(self, samples: Sequence[Sample]) -> Measured:
        found = self.write_questions(samples, self.node.questions)
        pairs = [
            (sample.question, question)
            for sample, one in zip(samples, found, strict=True)
            for question in _to_compare(one)
        ]
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        cosines, notes = compare_meanings(model, pairs, "query")
        given = iter(cosines)
        measurements = [_measure(one, [next(given) for _ in _to_compare(one)]) for one in found]
        return Measured(measurements, notes)


def _to_compare(found: Questions | Failed) -> tuple[str, ...]:
    """The questions whose cosines decide; empty if the answer is noncommittal."""
    if isinstance(found, Failed) or found.noncommittal:
        return ()
    return tuple(question for question in found.questions if question.strip())


def _measure(found: Questions | Failed, cosines: Sequence[float | Failed]) -> Measurement:
    if isinstance(found, Failed):
        return judged_metrics.measure_failure(found)
    details: dict[str, Any] = {"way": "questions", "noncommittal": found.noncommittal}
    if found.noncommittal:
        return Measurement.scored(0.0, NONCOMMITTAL, {**details, "questions": list(found.questions)})
    if failed := judged_metrics.first_failure(cosines):
        return judged_metrics.measure_failure(failed)
    values = [cosine for cosine in cosines if not isinstance(cosine, Failed)]
    if not values:
        return Measurement.error("the judge wrote no question", details)
    asked = zip(_to_compare(found), values, strict=True)
    details["questions"] = [{"text": question, "cosine": cosine} for question, cosine in asked]
    return Measurement.scored(arithmetic.average(values), None, details)


PLUGIN = AnswerRelevancy
