"""`junit`: one test case for each gate, for the test view of a CI server.

A system or metric without values is an error, and so is an evaluation that scored nothing. A failed gate is a failure
with its reason; a gate that warns passes, with its reason as output. An inconclusive gate is what its `on_inconclusive`
says. The XML is valid against the schema that Jenkins
publishes, which other readers accept too. It holds no times and no host name, so the same evaluation gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, ClassVar

from rageval_spec.data.outcomes import Verdict
from rageval_spec.diagnostics import make_visible
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from rageval_spec.data.evaluation import Evaluation

_PREFIXES: dict[Verdict, str] = {"pass": "", "warn": "warning: ", "fail": "", "inconclusive": "inconclusive: "}
_NOT_IN_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


class JunitNode(ReportNode):
    """Settings of the report `junit`: the gates as test cases."""


class JunitReport(Report[JunitNode]):
    """Renders the gates as JUnit XML."""

    known_as = ("xml", "ci")
    filename: ClassVar[str | None] = "junit.xml"

    def render(self, evaluation: Evaluation) -> bytes:
        """The XML document in UTF-8."""
        from xml.etree import ElementTree

        failures = sum(gate.counted == "fail" for gate in evaluation.gates)
        errors = evaluation.failures or (("nothing could be scored",) if evaluation.scored_nothing else ())
        tests = len(evaluation.gates) + len(errors)
        counts = {"tests": str(tests), "failures": str(failures), "errors": str(len(errors))}
        root = ElementTree.Element("testsuites", {"name": "rageval-spec", **counts})
        suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(evaluation.name), **counts, "skipped": "0"})
        for error in errors:
            _add_case(suite, "evaluation", error, error, "error", "evaluation")
        for gate in evaluation.gates:
            classname = ".".join(part for part in (gate.dataset, gate.system) if part)
            where = f" in {gate.slice}" if gate.slice is not None else ""
            reason = _PREFIXES[gate.outcome] + _clean(gate.reason)
            result = "failure" if gate.counted == "fail" else "system-out"
            _add_case(suite, classname or "gates", f"{gate.metric}{where} {gate.bound}", reason, result, "gate")
        ElementTree.SubElement(suite, "system-out").text = "\n".join(_summarize(evaluation))
        ElementTree.indent(root)
        buffer = BytesIO()
        ElementTree.ElementTree(root).write(buffer, encoding="utf-8", xml_declaration=True)
        return buffer.getvalue() + b"\n"


def _summarize(evaluation: Evaluation) -> Iterator[str]:
    """One line for the outcome, one for each system with answers that were not asked now, and one for each note."""
    from rageval_spec.drawing.verdict import describe_verdict, list_taken_over, share_notes

    yield _clean(describe_verdict(evaluation))
    yield from map(_clean, list_taken_over(evaluation))
    for note in share_notes(evaluation):
        yield _clean(f"{note.level}: {note}")


def _add_case(suite: Element, classname: str, name: str, reason: str, result: str, kind: str) -> None:
    from xml.etree.ElementTree import SubElement

    case = SubElement(suite, "testcase", {"classname": _clean(classname), "name": _clean(name), "time": "0"})
    attributes = {} if result == "system-out" else {"type": kind, "message": _clean(reason)}
    SubElement(case, result, attributes).text = _clean(reason)


def _clean(text: str) -> str:
    return make_visible(text).translate(_NOT_IN_XML)


PLUGIN = JunitReport
