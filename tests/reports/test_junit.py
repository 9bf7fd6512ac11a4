from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Note
from rageval_spec.plugin import Context
from rageval_spec.reports.junit import JunitNode, JunitReport
from tests.reports.golden import assert_golden
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation

ALLOWED: dict[str, tuple[set[str], set[str], list[str]]] = {
    "testsuites": ({"tests", "failures", "errors"}, {"name", "time"}, ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "testcase": (
        {"name", "classname"},
        {"time", "assertions", "status", "file", "line"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "failure": (set(), {"type", "message"}, []),
    "error": (set(), {"type", "message"}, []),
    "skipped": (set(), {"message"}, []),
    "system-out": (set(), set(), []),
}
"""What the published schemas of JUnit's XML say: required and optional attributes, and children in their order."""
BROKEN = replace(make_evaluation(), failures=("bm25 on golden: the disk is full",))


def render(evaluation: Evaluation) -> bytes:
    return JunitReport(JunitNode(use="junit"), Context("junit")).render(evaluation)


def test_golden() -> None:
    assert_golden("junit.xml", render(make_evaluation()))


@pytest.mark.parametrize("evaluation", [make_evaluation(), make_hostile_evaluation(), BROKEN])
def test_the_document_keeps_to_the_schema(evaluation: Evaluation) -> None:
    root = ElementTree.fromstring(render(evaluation))
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, children = ALLOWED[element.tag]
        assert required <= {*element.keys()} <= required | optional
        places = [children.index(child.tag) for child in element]
        assert places == sorted(places)
        assert all((element.get(name) or "0").isdecimal() for name in ("tests", "failures", "errors", "skipped"))


@pytest.mark.parametrize("evaluation", [make_evaluation(), make_hostile_evaluation(), BROKEN])
def test_the_counts_are_those_of_the_elements(evaluation: Evaluation) -> None:
    root = ElementTree.fromstring(render(evaluation))
    for element in (root, root[0]):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert element.get(name) == str(len([*element.iter(tag)]))


def test_each_gate_is_a_case_on_each_dataset() -> None:
    gate = make_evaluation().gates[2]
    gates = (gate, replace(gate, dataset="other", outcome="pass"))
    cases = [*ElementTree.fromstring(render(replace(make_evaluation(), gates=gates))).iter("testcase")]
    assert [case.get("classname") for case in cases] == ["golden.bm25", "other.bm25"]
    assert [case.find("failure") is not None for case in cases] == [True, False]


def test_a_failure_has_its_reason_and_a_warning_passes() -> None:
    passed, warned, failed = ElementTree.fromstring(render(make_evaluation())).iter("testcase")
    assert failed.find("failure") is not None
    assert failed.findtext("failure") == "ndcg@10 of bm25 is 0.412, below the minimum 0.450"
    assert warned.find("failure") is None
    assert warned.findtext("system-out") == "warning: ndcg@10 of dense is 0.488, below the target 0.500"
    assert passed.findtext("system-out") == "ndcg@10 of hybrid is 0.512, at least the minimum 0.450"


def test_an_inconclusive_gate_passes_unless_it_counts_as_failed() -> None:
    gate = replace(make_evaluation().gates[0], outcome="inconclusive", reason="too few queries")
    evaluation = replace(make_evaluation(), gates=(gate, replace(gate, counts_as="fail")))
    root = ElementTree.fromstring(render(evaluation))
    passed, failed = root.iter("testcase")
    assert passed.findtext("system-out") == "inconclusive: too few queries"
    assert failed.findtext("failure") == "inconclusive: too few queries"
    assert root.get("failures") == "1"


def test_characters_that_xml_cannot_hold_are_escaped() -> None:
    nasty = "".join(map(chr, range(32))) + "\x7f\x85\ud800\ufffe\uffff]]>&<\"'"
    gate = replace(make_evaluation().gates[2], reason=nasty, system=nasty)
    root = ElementTree.fromstring(render(replace(make_evaluation(), gates=(gate,), name=nasty)))
    text = root.findtext(".//failure") or ""
    assert text.startswith("\\x00\\x01")
    assert text.endswith("\\x7f\\x85\\ud800\\ufffe\\uffff]]>&<\"'")
    assert root[0].get("name") == text


def test_without_gates_there_are_no_test_cases() -> None:
    root = ElementTree.fromstring(render(replace(make_evaluation(), gates=(), notes=())))
    assert root[0].get("tests") == "0"
    assert root[0].findtext("system-out") == "no gates to check"


def test_a_system_without_values_is_an_error() -> None:
    broken = replace(make_evaluation(), failures=("bm25 on golden: the disk is full",))
    suite = ElementTree.fromstring(render(broken))[0]
    assert (suite.get("tests"), suite.get("errors")) == ("4", "1")
    assert suite.findtext("testcase/error") == "bm25 on golden: the disk is full"


def test_notes_are_in_the_output_warnings_first() -> None:
    notes = (Note("a", "a note", "golden", "bm25"), Note("b", "a warning", level="warning"))
    root = ElementTree.fromstring(render(replace(make_evaluation(), notes=notes)))
    assert (root[0].findtext("system-out") or "").splitlines()[1:] == [
        "warning: a warning",
        "note: golden, bm25: a note",
    ]


def test_gates_on_slices_are_cases_of_their_own() -> None:
    """CI systems join cases of the same name."""
    whole = make_evaluation().gates[2]
    gates = (whole, replace(whole, slice="level=easy"), replace(whole, slice="level=hard"))
    names = [
        case.get("name", "")
        for case in ElementTree.fromstring(render(replace(make_evaluation(), gates=gates))).iter("testcase")
    ]
    assert len(set(names)) == 3
    assert names[2].startswith("ndcg@10 in level=hard ")
