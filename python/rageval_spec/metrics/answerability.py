from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data.findings import SUPPORTED_FROM, Estimate, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judging.refusals import find_refusal
from rageval_spec.metrics.shared import judged_metrics
from rageval_spec.metrics.shared.answer_metrics import EMPTY_ANSWER, is_blank
from rageval_spec.plugin import Measured, Measurement, MetricInfo

REFUSAL = judged_metrics.ask_about(
    "refusal",
    "grade",
    "Does the answer decline to answer the question, or say that it cannot be answered from what is known?",
    "answer",
)


class AnswerabilityNode(judged_metrics.OptionallyJudgedNode):
    by: Literal["judge", "phrases"] = Field(
        default="judge",
        description="How refusals are found: by a judge, or without one by a list of phrases in 16 languages.",
    )
    phrases: tuple[str, ...] = Field(
        default=(),
        description="With `by: phrases`: phrases that count as refusals besides the list, such as the words that the "
        "system is told to use.",
    )
    of: Literal["all", "answerable", "unanswerable"] = Field(
        default="all",
        description="Which questions count. unanswerable: gives the rejection rate; answerable: the share that gets an "
        "answer.",
    )


class Answerability(judged_metrics.ConditionalJudge[AnswerabilityNode]):
    version = "2"
    known_as = ("refusal", "refusal_rate", "rejection_rate", "abstention", "is_refusal")
    needs = frozenset({"answer", "answerable"})
    able = (frozenset({"questions"}), frozenset({"grade"}))
    ways = ((), (REFUSAL,))
    hidden = ("phrases",)
    info = MetricInfo(
        summary="Whether a system answers the questions that have an answer and refuses the others.",
        formula="answerability = 1 if the question is unanswerable and the system refuses, or answerable and it does "
        "not refuse; else 0. of=unanswerable: RGB's rejection rate, 1 - NoMIRACL's hallucination rate; of=answerable: "
        "1 - NoMIRACL's error rate",
        edge_cases=(
            "right or wrong: does not matter; every answer that is not a refusal counts as an answer",
            "empty answer: a refusal",
            "judge that writes questions for answers: a noncommittal answer is a refusal (the call is shared with "
            "answer_relevancy)",
            "judge that grades: a refusal from the middle of its scale up",
            "by=phrases: a refusal if the answer contains a phrase of the list anywhere, such as 'I don't know' or "
            "'the documents do not mention', in any case and with any apostrophe; RGB searches for one phrase in the "
            "same way. An answer that says what one source lacks and answers from another counts as a refusal; an "
            "answer that quotes someone else who does not know does not",
            "of=answerable, of=unanswerable: no value for the other questions",
        ),
        source="Chen, Lin, Han and Sun, Benchmarking large language models in retrieval-augmented generation (RGB), "
        "AAAI 2024 (negative rejection); Thakur et al., NoMIRACL: Knowing when you don't know for robust multilingual "
        "retrieval-augmented generation, EMNLP Findings 2024",
        aliases=("negative_rejection",),
    )

    @property
    def is_partial(self) -> bool:
        return self.node.of != "all"

    def check(self) -> str | None:
        if self.asks_judge and self.node.phrases:
            return "'phrases' has no effect with 'by: judge'; write 'by: phrases', or remove 'phrases'"
        fault = super().check()
        return f"{fault}; or write 'by: phrases', which needs no judge" if fault and self.asks_judge else fault

    def settle(self, sample: Sample) -> Measurement | None:
        if self.node.of != "all" and sample.answerable is not (self.node.of == "answerable"):
            return Measurement.unscorable(f"the question is {'un' if self.node.of == 'answerable' else ''}answerable")
        if is_blank(sample.answer):
            return _measure(sample, True, {"decided_by": EMPTY_ANSWER})
        if self.asks_judge:
            return None
        phrase = find_refusal(sample.answer or "", self.node.phrases)
        return _measure(sample, phrase is not None, {"decided_by": "phrases", "phrase": phrase})

    def ask(self, samples: Sequence[Sample]) -> Measured:
        if not self.can("questions"):
            assessment = self.judge.assess(REFUSAL, samples)
            pairs = zip(samples, assessment.findings, strict=True)
            return Measured([_measure_grade(*pair) for pair in pairs], assessment.notes)
        found = zip(samples, self.write_questions(samples, judged_metrics.QUESTIONS), strict=True)
        return Measured(
            [
                judged_metrics.measure_failure(one)
                if isinstance(one, Failed)
                else _measure(sample, one.noncommittal, {"decided_by": "noncommittal"})
                for sample, one in found
            ]
        )

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        if not self.asks_judge or not self.can("questions"):
            return super().estimate_asking(samples)
        return self.estimate_questions(samples, judged_metrics.QUESTIONS)


def _measure_grade(sample: Sample, finding: Finding | Failed) -> Measurement:
    if isinstance(finding, Failed) or finding.score is None:
        return judged_metrics.measure_finding(finding)
    return _measure(
        sample, finding.score >= SUPPORTED_FROM, {"decided_by": "grade", **judged_metrics.describe_finding(finding)}
    )


def _measure(sample: Sample, refused: bool, details: Mapping[str, Any]) -> Measurement:
    known = {key: value for key, value in details.items() if value is not None}
    facts = {"refused": refused, "answerable": sample.answerable, **known}
    return Measurement.scored(float(refused is not sample.answerable), None, facts)


PLUGIN = Answerability
