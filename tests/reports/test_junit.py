from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.note import Note
from rageval_spec.plugin import Context
from rageval_spec.reports.junit import JunitNode, JunitReport
from tests.reports.golden import assert_golden
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation

CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase", "system-out"},
    "testcase": {"failure", "system-out"},
    "failure": set(),
    "system-out": set(),
}


def render(evaluation: Evaluation) -> bytes:
    return JunitReport(JunitNode(use="junit"), Context("junit")).render(evaluation)


def test_golden() -> None:
    assert_golden("junit.xml", render(make_evaluation()))


@pytest.mark.parametrize("evaluation", [make_evaluation(), make_hostile_evaluation()])
def test_elements_and_counts(evaluation: Evaluation) -> None:
    root = ElementTree.fromstring(render(evaluation))
    for element in root.iter():
        assert {child.tag for child in element} <= CHILDREN[element.tag]
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    assert all(case.get("name") and case.get("classname") for case in root.iter("testcase"))


def test_a_failure_has_its_reason_and_a_warning_passes() -> None:
    passed, warned, failed = ElementTree.fromstring(render(make_evaluation())).iter("testcase")
    assert failed.find("failure") is not None
    assert failed.findtext("failure") == "ndcg@10 of bm25 is 0.412, below the minimum 0.450"
    assert warned.find("failure") is None
    assert warned.findtext("system-out") == "warning: ndcg@10 of dense is 0.488, below the target 0.500"
    assert passed.findtext("system-out") == "ndcg@10 of hybrid is 0.512, at least the minimum 0.450"


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
