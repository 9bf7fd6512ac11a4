"""Systems that answer from memory, a judge that counts words, and a metric that asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl
from pydantic import Field

from rageval_spec.data.chat import LimitError
from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, Tokens
from rageval_spec.data.samples import Sample
from rageval_spec.data.tables import Collection, answers_table
from rageval_spec.plugin import (
    Answering,
    AnswerMetric,
    Judge,
    JudgeName,
    JudgeNode,
    Measured,
    Measurement,
    MetricInfo,
    MetricNode,
    System,
    SystemNode,
)


class CannedNode(SystemNode):
    """A system's answers by query id; each is a text or a map of columns."""

    answers: dict[str, Any] = Field(default_factory=dict)


class Canned(System[CannedNode]):
    """Returns the answers of its node, and counts the questions."""

    node_type = CannedNode
    needs = frozenset({"queries"})
    can_answer = True
    asked: ClassVar[list[str]] = []

    def answer(self, collection: Collection) -> Answering:
        """Answer the collection's queries from the node."""
        assert collection.queries is not None
        self.asked.extend(collection.queries["query_id"])
        return Answering(self._table(collection.queries["query_id"].to_list()))

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        """Only the answers to q1."""
        return self._table(["q1"])

    def _table(self, wanted: Sequence[str]) -> pl.DataFrame:
        given = {key: self.node.answers[key] for key in wanted if key in self.node.answers}
        rows = [{"query_id": k, **(row if isinstance(row, Mapping) else {"answer": row})} for k, row in given.items()]
        return answers_table(rows)


BRIEF = Criterion("brief", "grade", "Is the answer brief?")


class BriefJudge(Judge[JudgeNode]):
    """Grades an answer as 1 / words. The answer "fail" makes it fail, and "stop" reaches a limit."""

    node_type = JudgeNode
    told: ClassVar[list[Criterion]] = []

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset({"grade"})

    def expect(self, criteria: Sequence[Criterion]) -> None:
        self.told.extend(criteria)

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        if any(sample.answer == "stop" for sample in samples):
            raise LimitError("limits.max_calls: 0 of 0 calls made")
        return Assessment([self._find(criterion.text_of(sample)) for sample in samples])

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """One call of the model `chatty` for each answer."""
        calls = {criterion.text_of(sample): Tokens(len(criterion.text_of(sample)) // 4, 5) for sample in samples}
        return Estimate({"chatty": calls})

    def _find(self, text: str) -> Finding | Failed:
        if text == "fail":
            return Failed("the reply is no JSON", raw="{")
        return Finding(1 / len(text.split()) if text else None, (Claim(text, 1.0),), reason=None if text else "empty")


class BrevityNode(MetricNode):
    """Names the judge, and whether a reference is needed."""

    judge: JudgeName
    needs_reference: bool = False


class Brevity(AnswerMetric[BrevityNode]):
    """The grade that the judge gives for brevity."""

    node_type = BrevityNode
    info = MetricInfo("Brevity.", "1 / words", (), "here")

    @property
    def needs(self) -> frozenset[Any]:  # type: ignore[override]
        return frozenset({"answer", "reference"} if self.node.needs_reference else {"answer"})

    @property
    def name(self) -> str:
        return "brevity"

    def check(self) -> str | None:
        judge = self.context.judge(self.node.judge)
        return None if "grade" in judge.abilities else f"the judge '{self.node.judge}' gives no grades"

    def criteria(self) -> Sequence[Criterion]:
        return (BRIEF,)

    def judges(self) -> Sequence[Judge[Any]]:
        return (self.context.judge(self.node.judge),)

    def compute(self, samples: Sequence[Sample]) -> Measured:
        findings = self.judges()[0].assess(BRIEF, samples).findings
        return Measured([self._measure(finding) for finding in findings])

    def _measure(self, finding: Finding | Failed) -> Measurement:
        if isinstance(finding, Failed):
            return Measurement.error(finding.reason, {"raw": finding.raw})
        if finding.score is None:
            return Measurement.unscorable(finding.reason or "")
        return Measurement.scored(finding.score, details={"claims": [claim.text for claim in finding.claims]})
