"""A spec as a file of tests: one for the evaluation itself, and one for each gate."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import RagevalError
from rageval_spec.testing.explaining import explain_gate

if TYPE_CHECKING:
    from pathlib import Path

    from rageval_spec.runner import Outcome


class GateFailedError(Exception):
    """A gate failed, or the evaluation did; the message is all that a reader needs."""


class SpecFile(pytest.File):
    """A spec. It is evaluated once, when the first of its tests runs."""

    def collect(self) -> Iterator[pytest.Item]:
        """The tests, in the order of the gates."""
        from rageval_spec.pipeline.gates import describe_bound
        from rageval_spec.spec import load

        spec = load(self.path)
        yield EvaluationItem.from_parent(self, name="evaluation")
        names: dict[str, int] = {}
        for index, gate in enumerate(spec.gates):
            places = (gate.metric, gate.system, gate.dataset, gate.slice, describe_bound(gate))
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
    def outcome(self) -> Outcome | RagevalError:
        """The outcome, or the error that ended the evaluation; reports are not made."""
        from rageval_spec.runner import Options, run

        try:
            return run(self.path, Options(output=None, limit=self.config.getoption("--rageval-limit")))
        except RagevalError as error:
            return error


class _Item(pytest.Item):
    """What the tests of a spec share."""

    parent: SpecFile

    def find_outcome(self) -> Outcome:
        """The outcome of the evaluation.

        Raises:
            GateFailedError: the evaluation could not be made.
        """
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
        """The file and the name of the test."""
        return self.path, None, f"{self.path.name}: {self.name}"


class EvaluationItem(_Item):
    """Passes if no part of the evaluation failed and something was scored."""

    def runtest(self) -> None:
        """Evaluate."""
        outcome = self.find_outcome()
        if outcome.failures:
            raise GateFailedError("\n".join(map(str, outcome.failures)))
        if outcome.evaluation.scored_nothing:
            raise GateFailedError("no metric could be scored for any query")


class GateItem(_Item):
    """Passes if a gate passes on every dataset and system; is skipped if it is inconclusive."""

    def __init__(self, *, gate: int, **keys: Any) -> None:
        """Keep the number of the gate in the spec."""
        super().__init__(**keys)
        self.gate = gate

    def runtest(self) -> None:
        """Evaluate, unless another test of the spec did, and look at the outcomes of the gate."""
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
