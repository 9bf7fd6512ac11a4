from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, field_validator

from rageval_spec.data.findings import Criterion, Finding
from rageval_spec.data.samples import Part
from rageval_spec.metrics.shared.judged_metrics import JudgedMetric, JudgeMetricNode, describe_finding
from rageval_spec.plugin import Measurement, MetricInfo

_ROUNDING = 1e-9


class RubricNode(JudgeMetricNode):
    name: str = Field(
        default="rubric",
        min_length=1,
        description="What is graded, in one word; it is also the metric's name, unless `as` is given. Without "
        "`criteria` it is the judge's name by default.",
    )
    criteria: str | None = Field(
        default=None,
        min_length=1,
        description="The question or instruction for the judge; a high grade means yes, or fully. Only a judge that "
        "asks a question of its own (`use: prompt`) needs none.",
    )
    scale: tuple[float, ...] = Field(
        default=(1.0, 5.0),
        min_length=2,
        max_length=2,
        description="The lowest and the highest grade; by default the scale of a judge that asks a question of its "
        "own, else 1 to 5.",
    )
    guide: dict[str, str] = Field(default={}, description="What grades mean: a description for each grade.")
    value: str | None = Field(
        default=None,
        min_length=1,
        description="Which value to take of a judge that gives several (`use: prompt` with `values`). It is also the "
        "metric's default name.",
    )
    higher_is_better: bool | None = Field(
        default=True,
        description="false if low grades are good, as for rudeness; null if neither high nor low ones are.",
    )
    shown: tuple[Literal["question", "answer", "reference", "contexts", "reference_contexts", "steps"], ...] = Field(
        default=("question", "answer"), min_length=1, description="The parts of a sample that the judge sees, in order."
    )

    @field_validator("scale")
    @classmethod
    def _check_scale(cls, scale: tuple[float, ...]) -> tuple[float, ...]:
        if not float("-inf") < scale[0] < scale[1] < float("inf"):
            raise ValueError("the lowest grade must be below the highest")
        return scale

    @field_validator("criteria")
    @classmethod
    def _check_criteria(cls, criteria: str | None) -> str | None:
        if criteria is not None and not criteria.strip():
            raise ValueError("criteria must not be blank")
        return criteria


class Rubric(JudgedMetric[RubricNode]):
    able = (frozenset({"grade"}),)
    later_keys = frozenset({"value"})
    known_as = (
        "geval", "llm_rubric", "aspect_critic", "aspect_critique", "rubrics_score", "simple_criteria",
        "toxicity", "bias", "coherence", "harmfulness", "helpfulness", "maliciousness", "tone",
        "prompt_alignment",
    )  # fmt: skip
    info = MetricInfo(
        summary="A judge's grade by your own criteria, on your own scale.",
        formula="rubric = the judge's grade on the scale; if its model gives token probabilities: the expected grade, "
        "sum of p(grade) * grade over the grades of the scale",
        edge_cases=(
            "grade outside the scale: status error, no value",
            "query without one of the parts to show: no value",
            "empty answer: graded like any other, because criteria can be about silence",
            "scale: values are on this scale and not scaled to [0, 1]; the bounds of gates are on it too",
        ),
        source="Liu, Iter, Xu, Wang, Xu and Zhu, G-Eval: NLG evaluation using GPT-4 with better human alignment, EMNLP "
        "2023",
        aliases=("g_eval",),
        bounds=(0.0, None),
    )

    @property
    def name(self) -> str:
        """The node's `name`; by default the value's or that of a judge that asks its own question, else `rubric`."""
        asks_own = self.node.criteria is None and "name" not in self.node.model_fields_set
        return self.node.value or self.node.judge if asks_own else self.node.name

    @property
    def scale(self) -> tuple[float, float]:
        """The node's scale; by default that of a judge that asks its own question."""
        judge = None if "scale" in self.node.model_fields_set else self.context.judges.get(self.node.judge)
        own = None if judge is None else judge.values.get(self.node.value or "") or judge.scale
        low, high = own or self.node.scale
        return low, high

    def recorded(self) -> dict[str, Any]:
        name = self.name if self.node.criteria is None else self.node.name
        return {**super().recorded(), "name": name, "scale": [*self.scale]}

    def check(self) -> str | None:
        if fault := super().check():
            return fault
        name, given = self.judge.context.name, self.node.criteria is not None
        if self.judge.reads_criteria and not given:
            return "'criteria' is missing; write the question for the judge: criteria: Is the answer polite?"
        if given and not self.judge.reads_criteria:
            return (
                f"the judge '{name}' does not read 'criteria'; remove it, or write {{{{ criteria }}}} in its template"
            )
        if self.node.guide and (self.judge.scale is not None or self.judge.values):
            return f"the judge '{name}' does not read 'guide'; remove it, and write what grades mean in its template"
        return None

    @property
    def higher_is_better(self) -> bool | None:
        return self.node.higher_is_better

    @property
    def bounds(self) -> tuple[float, float | None]:
        return self.scale

    @property
    def needs(self) -> frozenset[Part]:  # type: ignore[override]
        return frozenset(part for part in self.node.shown if part != "question")

    def criteria(self) -> Sequence[Criterion]:
        return (
            Criterion(
                self.node.value or self.name,
                "grade",
                self.node.criteria or "",
                text="answer",
                against="question",
                shown=self.node.shown,
                scale=self.scale,
                guide=self.node.guide,
            ),
        )

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        (finding,), (low, high) = findings, self.scale
        details = {**describe_finding(finding), "scale": [low, high]}
        if finding.score is None:
            return Measurement.unscorable(finding.reason or "the judge found nothing to grade", details)
        grade = min(max(finding.score, low), high)
        # A mean of grades at an end of the scale can lie outside it by a rounding error.
        if not abs(finding.score - grade) <= _ROUNDING * max(1.0, abs(low), abs(high)):
            return Measurement.error(f"the judge's grade {finding.score:.10g} is not from {low:g} to {high:g}", details)
        return Measurement.scored(grade, finding.reason, {**details, "score": grade})


PLUGIN = Rubric
