from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.chat import LimitError
from rageval_spec.data.findings import Estimate, Failed, Finding
from rageval_spec.data.judge_calibration import StepBounds
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.judges.cascade import BANDS, Cascade, CascadeNode
from rageval_spec.judges.detector import DetectorNode
from rageval_spec.plugin import Context, NoAnswers
from rageval_spec.plugin.block_names import names_in
from tests.judge_calibrations import describe, write
from tests.judges.fakes import (
    FAITHFULNESS,
    PRECISION,
    RUBRIC,
    Scripted,
    ScriptedNode,
    context_of,
    finding_of,
    samples_for,
    scores_of,
)

BAND = {"low": 0.3, "high": 0.8}


def build(*judges: Scripted, bands: dict[str, dict[str, float]] | None = None) -> Cascade:
    names = [judge.context.name for judge in judges]
    steps = [{"judge": name, **bands[name]} if bands and name in bands else name for name in names]
    return Cascade(CascadeNode(use="cascade", steps=steps), context_of(*judges))


def test_the_next_step_gets_only_samples_that_the_first_is_unsure_about() -> None:
    cheap = Scripted("cheap", {"a": 0.3, "b": 0.31, "c": 0.79, "d": 0.8})
    dear = Scripted("dear", {"b": 0.0, "c": 1.0})
    assessment = build(cheap, dear, bands={"cheap": BAND}).assess(FAITHFULNESS, samples_for("a", "b", "c", "d"))
    assert scores_of(assessment) == [0.3, 0.0, 1.0, 0.8]
    assert [finding_of(assessment, place).decided_by for place in range(4)] == ["cheap", "dear", "dear", "cheap"]
    assert (cheap.asked, dear.asked) == ([["a", "b", "c", "d"]], [["b", "c"]])
    assert [note.message for note in assessment.written_notes] == [
        "4 samples: cheap decided 2 (50%), dear decided 2 (50%)"
    ]


def test_a_finding_says_how_far_it_lies_from_that_of_the_step_before() -> None:
    first = Scripted("first", {"a": 0.3, "b": 0.5, "c": Failed("timeout"), "d": None})
    second = Scripted("second", {"b": 0.9, "c": 0.9, "d": 0.9})
    assessment = build(first, second, bands={"first": BAND}).assess(FAITHFULNESS, samples_for("a", "b", "c", "d"))
    assert [finding_of(assessment, place).apart for place in range(4)] == [None, pytest.approx(0.4), None, None]


def test_a_judge_without_a_band_decides_everything_but_its_failures() -> None:
    first = Scripted("first", {"a": 0.5, "b": Failed("timeout"), "c": None})
    local = Scripted("local", {"b": 0.7, "c": 0.2})
    assessment = build(first, local).assess(FAITHFULNESS, samples_for("a", "b", "c"))
    assert scores_of(assessment) == [0.5, 0.7, 0.2]
    assert local.asked == [["b", "c"]]


def test_a_step_that_can_assess_nothing_passes_everything_on_and_the_last_step_raises() -> None:
    broken, local = Scripted("api", RagevalError("connection refused")), Scripted("local", {"a": 0.7})
    assert scores_of(build(broken, local).assess(FAITHFULNESS, samples_for("a"))) == [0.7]
    with pytest.raises(RagevalError, match="connection refused"):
        build(Scripted("local", {"a": Failed("x")}), broken).assess(FAITHFULNESS, samples_for("a"))


@pytest.mark.parametrize(
    "error", [LimitError("limits.max_calls: 3 of 3 calls made"), DataError("weights.onnx: damaged")]
)
def test_the_next_step_does_not_hide_limits_and_wrong_files(error: RagevalError) -> None:
    with pytest.raises(type(error)):
        build(Scripted("api", error), Scripted("local", {"a": 0.7})).assess(FAITHFULNESS, samples_for("a"))


def test_a_sample_that_all_steps_failed_on_says_why_each_failed() -> None:
    steps = Scripted("one", {"a": Failed("timeout")}), Scripted("two", {"a": Failed("no JSON", raw="hm")})
    (found,) = build(*steps).assess(FAITHFULNESS, samples_for("a")).findings
    assert found == Failed("timeout; no JSON", raw="hm")


def test_calibrated_bands_depend_on_the_judges_word() -> None:
    low, high = BANDS["overlap"]["support"]
    node = ScriptedNode(use="overlap")
    cheap = Scripted("cheap", {"a": low, "b": (low + high) / 2, "c": high}, node=node)
    dear = Scripted("dear", {"b": 0.5})
    build(cheap, dear).assess(FAITHFULNESS, samples_for("a", "b", "c"))
    assert dear.asked == [["b"]]
    cheap.asked.clear()
    unsure = Scripted("cheap", dict.fromkeys("abc", 1.0), node=node)
    all_of_them = Scripted("dear", dict.fromkeys("abc", 0.5))
    build(unsure, all_of_them).assess(PRECISION, samples_for("a", "b", "c"))
    assert all_of_them.asked == [["a", "b", "c"]]


def test_a_judge_with_a_threshold_is_sure_if_no_claim_or_every_claim_is_supported() -> None:
    node = ScriptedNode(use="embedding", threshold=0.7)
    cheap = Scripted("cheap", {"a": 0.0, "b": 0.99, "c": 1.0}, node=node)
    dear = Scripted("dear", {"b": 0.5})
    assert scores_of(build(cheap, dear).assess(FAITHFULNESS, samples_for("a", "b", "c"))) == [0.0, 0.5, 1.0]


def test_a_detector_passes_on_answers_in_which_it_finds_unsupported_spans() -> None:
    node = DetectorNode(use="detector", model="lettuce")
    cheap = Scripted("cheap", {"a": 0.0, "b": 0.99, "c": 1.0}, node=node)
    dear = Scripted("dear", {"b": 0.5})
    assert scores_of(build(cheap, dear).assess(FAITHFULNESS, samples_for("a", "b", "c"))) == [0.0, 0.5, 1.0]


def test_grades_are_compared_on_the_scale_from_0_to_1() -> None:
    cheap, dear = Scripted("cheap", {"a": 4.2, "b": 4.0}), Scripted("dear", {"b": 2.0})
    found = build(cheap, dear, bands={"cheap": {"low": 0.2, "high": 0.8}}).assess(RUBRIC, samples_for("a", "b"))
    assert scores_of(found) == [4.2, 2.0]


class Asking(Scripted):
    """A judge that is built as a spec builds it, and would ask a model."""

    def __init__(self, node: Any, context: Any) -> None:
        super().__init__("dear", {"b": 0.5}, model="llm", node=node)
        self.context = context


def test_a_note_says_what_was_saved_even_if_replies_are_stored() -> None:
    class Answered(Asking):
        """Everything is answered already, but in a world that knows no answers."""

        def estimate(self, criterion: Any, samples: Any) -> Estimate:
            return super().estimate(criterion, samples) if type(self.context.answers) is NoAnswers else Estimate()

    for kind in (Asking, Answered):
        cheap = Scripted("cheap", {"a": 0.1, "b": 0.5, "c": 0.9})
        dear = kind(ScriptedNode(use="scripted"), Context("dear"))
        node = CascadeNode(use="cascade", steps=({"judge": "cheap", **BAND}, "dear"))
        cascade = Cascade(node, context_of(cheap, dear))
        (note,) = cascade.assess(FAITHFULNESS, samples_for("a", "b", "c")).written_notes
        assert note.message == (
            "3 samples: cheap decided 2 (66.7%), dear decided 1 (33.3%); saved 2 calls of llm (about 200 tokens)"
        )
        assert note.count == 2


def test_an_estimate_runs_only_the_steps_without_a_model() -> None:
    cheap = Scripted("cheap", {"a": 0.1, "b": 0.5})
    middle = Scripted("middle", {}, model="small")
    dear = Scripted("dear", {}, model="large")
    estimate = build(cheap, middle, dear, bands={"cheap": BAND, "middle": BAND}).estimate(
        FAITHFULNESS, samples_for("a", "b")
    )
    assert {model: list(calls) for model, calls in estimate.calls.items()} == {
        "small": ["faithfulness b"],
        "large": ["faithfulness b"],
    }
    fallback = build(middle, dear).estimate(FAITHFULNESS, samples_for("a", "b"))
    assert list(fallback.calls) == ["small"], "failures are not foreseen"


def test_it_assesses_what_all_steps_can_and_writes_what_any_step_can() -> None:
    cascade = build(Scripted("a", {}, ("support", "claims")), Scripted("b", {}, ("support", "grade", "questions")))
    assert cascade.abilities == {"support", "claims", "questions"}
    assert cascade.check() is None
    apart = build(Scripted("a", {}, ("usefulness",)), Scripted("b", {}, ("grade", "questions")))
    assert apart.check() == "its judges have no kind of criterion in common (a: usefulness; b: grade)"


def test_if_the_first_writer_of_claims_fails_the_next_one_writes_them() -> None:
    cascade = build(*(Scripted(name, {}, ("support", "claims")) for name in ("a", "b")))
    assert cascade.claims([("", "good"), ("", "bad")]) == [("a: good",), Failed("unreadable")]
    writers = [Scripted("none", {}), Scripted("a", {}, ("support", "claims"))]
    assert build(*writers).claims([("", "good")]) == [("a: good",)]


def test_steps_receive_the_expected_criteria_and_are_references() -> None:
    judges = Scripted("a", {}), Scripted("b", {})
    cascade = build(*judges, bands={"a": BAND})
    cascade.expect([FAITHFULNESS, RUBRIC])
    assert [judge.expected for judge in judges] == [["faithfulness", "tone"]] * 2
    assert names_in(cascade.node, "judges") == ("a", "b")


def test_invalid_keys_are_refused() -> None:
    for steps, message in (
        (["a"], "at least 2"),
        (["a", {"judge": "a"}], "'a' is listed twice"),
        (["a", {"judge": "b", "low": 0.1}], "'b' is the last"),
        ([{"judge": "a", "low": 0.9, "high": 0.1}, "b"], r"low \(0.9\) is above high"),
    ):
        with pytest.raises(ValidationError, match=message):
            CascadeNode(use="cascade", steps=steps)


def test_no_samples_give_no_notes() -> None:
    assert registry.load("judges", "cascade") is Cascade
    assessment = build(Scripted("a", {}), Scripted("b", {})).assess(FAITHFULNESS, [])
    assert (list(assessment.findings), assessment.notes) == ([], ())
    assert isinstance(
        finding_of(build(Scripted("a", {"q": 1.0}), Scripted("b", {})).assess(FAITHFULNESS, samples_for("q"))), Finding
    )


def calibrated(folder: Path, *judges: Scripted, **entry: Any) -> Cascade:
    """A cascade whose calibration says where its steps are sure about faithfulness."""
    names = [judge.context.name for judge in judges]
    context = replace(context_of(*judges), folder=folder)
    plain = Cascade(CascadeNode(use="cascade", steps=names), context)
    write(folder / "c.json", describe(plain, FAITHFULNESS, map=None, **entry))
    return Cascade(CascadeNode(use="cascade", steps=names, calibration="c.json"), context)


def test_a_calibration_says_where_steps_are_sure(tmp_path: Path) -> None:
    scores = {"a": 0.1, "b": 0.2, "c": 0.5, "d": 0.9}
    cheap, middle = Scripted("cheap", scores), Scripted("middle", {"b": 0.3, "c": 0.5})
    dear = Scripted("dear", {"c": 0.7})
    steps = (StepBounds(0, 0.1, 0.9), StepBounds(1, low=0.4))
    cascade = calibrated(tmp_path, cheap, middle, dear, steps=steps)
    assert scores_of(cascade.assess(FAITHFULNESS, samples_for("a", "b", "c", "d"))) == [0.1, 0.3, 0.7, 0.9]
    assert (middle.asked, dear.asked) == ([["b", "c"]], [["c"]])


def test_a_step_that_the_calibration_found_never_sure_decides_nothing(tmp_path: Path) -> None:
    cheap, dear = Scripted("cheap", {"a": 0.0}), Scripted("dear", {"a": 0.7})
    cascade = calibrated(tmp_path, cheap, dear, steps=(StepBounds(0),))
    assert scores_of(cascade.assess(FAITHFULNESS, samples_for("a"))) == [0.7]


def test_other_questions_keep_the_usual_bands(tmp_path: Path) -> None:
    cheap, dear = Scripted("cheap", {"a": 2.0}), Scripted("dear", {"a": 5.0})
    cascade = calibrated(tmp_path, cheap, dear, steps=(StepBounds(0),))
    assert scores_of(cascade.assess(RUBRIC, samples_for("a"))) == [2.0]


def test_a_step_with_a_bound_of_its_own_and_a_calibration_conflict() -> None:
    judges = Scripted("cheap", {}), Scripted("dear", {})
    node = CascadeNode(use="cascade", steps=[{"judge": "cheap", "low": 0.1}, "dear"], calibration="c.json")
    told = Cascade(node, context_of(*judges)).check()
    assert told == "the step 'cheap' has its own low or high, which the calibration would replace; remove one"
