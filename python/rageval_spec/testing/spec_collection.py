"""A spec as a file of tests: one for the evaluation itself, and one for each gate.

A failed gate's message is its reason and the card of the question that did worst.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from rageval_spec.diagnostics import SpecError, make_visible
from rageval_spec.errors import RagevalError

if TYPE_CHECKING:
    from pathlib import Path

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.outcomes import GateOutcome
    from rageval_spec.runner import RunOutcome


class GateFailedError(Exception):
    """A gate failed, or the evaluation did; the message is all that a reader needs."""


class SpecFile(pytest.File):
    """A spec. It is evaluated once, when the first of its tests runs."""

    def collect(self) -> Iterator[pytest.Item]:
        from rageval_spec.pipeline.gating.gate_outcomes import describe_bound
        from rageval_spec.spec import load

        spec = load(self.path)
        yield EvaluationItem.from_parent(self, name="evaluation")
        names: dict[str, int] = {}
        percent = {one.name for one in spec.metrics if one.node.show_as == "percent"}
        for index, gate in enumerate(spec.gates):
            bound = describe_bound(gate, is_percent=gate.metric in percent)
            places = (gate.metric, gate.system, gate.dataset, gate.slice, bound)
            name = " ".join(filter(None, places))
            names[name] = names.get(name, 0) + 1
            number = f" ({names[name]})" if names[name] > 1 else ""
            yield GateItem.from_parent(self, name=f"{name}{number}", gate=index)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any) -> Any:
        """Every diagnostic of a wrong spec, without a traceback."""
        if isinstance(excinfo.value, SpecError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *arguments)

    @cached_property
    def outcome(self) -> RunOutcome | RagevalError:
        """The outcome, or the error that ended the evaluation; reports are not made."""
        from rageval_spec.runner import Options, run

        try:
            return run(self.path, Options(output=None, limit=self.config.getoption("--rageval-limit")))
        except RagevalError as error:
            return error


class _Item(pytest.Item):
    parent: SpecFile

    def find_outcome(self) -> RunOutcome:
        outcome = self.parent.outcome
        if isinstance(outcome, RagevalError):
            raise GateFailedError(str(outcome)) from None
        return outcome

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any) -> Any:
        """The message of a failed gate, without a traceback of this package."""
        if isinstance(excinfo.value, GateFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *arguments)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


class EvaluationItem(_Item):
    """Passes if no part of the evaluation failed and something was scored."""

    def runtest(self) -> None:
        outcome = self.find_outcome()
        if outcome.failures:
            raise GateFailedError("\n".join(map(str, outcome.failures)))
        if outcome.evaluation.scored_nothing:
            raise GateFailedError("no metric could be scored for any query")


class GateItem(_Item):
    """Passes if a gate passes on every dataset and system; is skipped if it is inconclusive."""

    def __init__(self, *, gate: int, **keys: Any) -> None:
        super().__init__(**keys)
        self.gate = gate

    def runtest(self) -> None:
        evaluation = self.find_outcome().evaluation
        outcomes = [one for one in evaluation.gates if one.gate == self.gate]
        failed = [one for one in outcomes if one.counted == "fail"]
        if failed:
            raise GateFailedError("\n\n".join(explain_gate(evaluation, one) for one in failed))
        told = [f"{one.outcome}: {one.reason}" for one in outcomes if one.outcome != "pass"]
        if told:
            self.add_report_section("call", "rageval-spec", "\n".join(told))
        undecided = [one.reason for one in outcomes if one.outcome == "inconclusive" and one.counted != "pass"]
        if undecided:
            pytest.skip(f"inconclusive: {'; '.join(undecided)}")


def explain_gate(evaluation: Evaluation, gate: GateOutcome) -> str:
    """The reason of a gate's outcome, and the worst question of its dataset, system, metric and slice, if any."""
    reason = make_visible(gate.reason)
    card = draw_worst(evaluation, gate)
    return f"{reason}\n\n{card}" if card else reason


def draw_worst(evaluation: Evaluation, gate: GateOutcome) -> str:
    """The card of the question with the worst value, else of one that failed; "" if there is no question."""
    from rageval_spec.drawing.card_view import draw_card
    from rageval_spec.drawing.cards import select_cards
    from rageval_spec.drawing.question_order import Filter
    from rageval_spec.drawing.view import write_text

    if gate.metric not in evaluation.metrics or not gate.system or not gate.dataset:
        return ""
    wanted = Filter(metric=gate.metric, system=gate.system, dataset=gate.dataset, slice=gate.slice, limit=1)
    cards = select_cards(evaluation, replace(wanted, below=math.inf)) or select_cards(evaluation, wanted)
    if not cards:
        return ""
    (card,) = cards
    text = write_text(draw_card(card, [card.system, card.dataset]))
    return text.decode().rstrip()
