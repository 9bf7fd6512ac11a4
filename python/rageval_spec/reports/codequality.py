"""`codequality`: the gates that did not pass, each at its line of the spec, in GitLab's code quality format.

Answers that were taken over from earlier evaluations are reported as information.

GitLab shows it in a merge request as `artifacts:reports:codequality`. Without failures, warnings and the like the
report is an empty list, which GitLab needs to see what was resolved.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from rageval_spec.data.outcomes import Counted, DropSeverity, GateOutcome
from rageval_spec.diagnostics import make_visible
from rageval_spec.plugin import Report, ReportNode
from rageval_spec.wording import describe_taken_over

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_SEVERITIES: dict[Counted, str] = {"fail": "major", "warn": "minor", "pass": "info"}
"""What a gate that did not pass counts as; an inconclusive one can count as passed."""
_OF_DROPS: dict[DropSeverity, str] = {"low": "minor", "medium": "major", "high": "critical"}
"""The severity of a drop, in GitLab's words."""


class CodequalityNode(ReportNode):
    """Settings of the report `codequality`: the gates that did not pass, for GitLab's merge requests."""

    file: str | None = Field(
        default=None,
        description="The path of the spec in the repository, if the spec that is evaluated is not in it.",
    )


class CodequalityReport(Report[CodequalityNode]):
    """Renders gates as GitLab's code quality JSON."""

    known_as = ("gitlab", "code_quality", "codeclimate")
    filename: ClassVar[str | None] = "codequality.json"

    def render(self, evaluation: Evaluation) -> bytes:
        """A JSON list; an issue keeps its fingerprint as long as its gate, dataset, system and slice stay."""
        name = evaluation.name
        issues = [self._describe("evaluation", one, "critical", (name, one), 1) for one in evaluation.failures]
        for gate in evaluation.gates:
            if gate.outcome != "pass":
                names = (name, gate.metric, gate.bound, gate.dataset, gate.system, gate.slice or "")
                severity = _SEVERITIES[gate.counted] if gate.severity is None else _OF_DROPS[gate.severity]
                issues.append(self._describe("gate", gate.reason, severity, names, self._find_line(gate)))
        for one in evaluation.provenance.taken_over:
            if not one.place:
                told = f"{one.system} on {one.dataset}: {describe_taken_over(one)}"
                issues.append(self._describe("answers", told, "info", (name, one.dataset, one.system), 1))
        return f"{json.dumps(issues, indent=2, allow_nan=False)}\n".encode()

    def _describe(self, kind: str, told: str, severity: str, names: tuple[str, ...], line: int) -> dict[str, Any]:
        origin = self.context.origin
        identity = json.dumps([kind, *names])
        path = self.node.file or (make_visible(names[0]) if origin is None else origin.path)
        return {
            "description": make_visible(told),
            "check_name": f"rageval-{kind}",
            "fingerprint": hashlib.sha256(identity.encode()).hexdigest(),
            "severity": severity,
            "location": {"path": path, "lines": {"begin": line}},
        }

    def _find_line(self, gate: GateOutcome) -> int:
        lines = () if self.context.origin is None else self.context.origin.gate_lines
        return lines[gate.gate] if gate.gate < len(lines) else 1


PLUGIN = CodequalityReport
