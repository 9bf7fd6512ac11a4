"""The JSON of `calibrate`: it has a version, and everything in it can be read back.

From labels to a calibrated gate, as a user goes.

The text of `calibrate`: what is shown of one metric, of several, and with --details.

The bars of a reliability diagram.

The table of systems and slices.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import TypeAdapter

from rageval_spec.calibration.bias import Biases
from rageval_spec.calibration.calibration_report import (
    VERSION,
    describe_diagram,
    describe_group,
    describe_slices,
    draw_bar,
    dump,
)
from rageval_spec.calibration.judge_quality import SliceCalibration, measure_judge
from rageval_spec.calibration.judge_reports import CalibrationSettings, CriterionReport, JudgeReport
from rageval_spec.calibration.labelled_items import Item, Joined
from rageval_spec.calibration.measures import CalibrationMeasure
from rageval_spec.calibration.thresholds import ThresholdCriterion, promise
from rageval_spec.commands.calibrate.judges_against_labels import calibrate_judges
from rageval_spec.data.judge_calibration import ScoreMap
from rageval_spec.data.outcomes import Interval
from rageval_spec.diagnostics import SpecError
from rageval_spec.drawing.view import write_text
from rageval_spec.errors import UsageError
from rageval_spec.runner import Options, run
from rageval_spec.statistics.raters.reliability_curves import Bin
from tests.checked_specs import validate
from tests.tiny import write_spec


def test_the_map_is_written_so_that_it_can_be_applied() -> None:
    random = np.random.default_rng(1)
    values = random.random(200)
    labels = (random.random(200) < values**3) * 1.0
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(200)]
    joined = Joined("faithfulness", tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    calibration = measure_judge(joined, resamples=100)
    groups = [CriterionReport([JudgeReport(joined, calibration, Biases(), promise(joined, 0.5, 0.95))])]
    content = json.loads(dump(groups, {"fluency": 3}))
    assert content["criteria_without_metric"] == {"fluency": 3}
    (found,) = content["calibrations"]
    assert content["version"] == VERSION
    assert calibration.map.chosen is not None
    assert TypeAdapter(ScoreMap).validate_python(found["map"]["chosen"]) == calibration.map.chosen
    assert found["reliability"]["bins"][0]["low"] == 0.0
    assert found["promise"]["items"] == 200
    assert found["biases"] == []
    assert content["comparisons"] == []
    assert "joined" not in found


WORDS = [f"word{number}" for number in range(10)]
FAITHFULNESS = {"use": "faithfulness", "judge": "fast"}


def build(folder: Path, **sections: Any) -> Path:
    """A spec with 120 answers of ten words, each with 0 to 10 of them in the context."""
    randomness = random.Random(1)
    rows = []
    for number in range(120):
        known = randomness.randint(0, 10)
        texts = {"answer": f"{' '.join(WORDS)}.", "contexts": [f"{' '.join(WORDS[:known])} x."]}
        rows.append({"query_id": f"q{number}", "question": f"Is it {number}?", **texts})
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_spec(
        folder,
        **{
            "datasets": {"golden": {"use": "jsonl", "path": "answers.jsonl"}},
            "systems": {"bot": {"use": "file", "path": "answers.jsonl", "holds": "answers"}},
            "judges": {"fast": {"use": "overlap"}},
            "metrics": [FAITHFULNESS],
            "reports": [],
            **sections,
        },
    )


def evaluate(folder: Path, spec: Path, output: str = "again") -> Any:
    return run(spec, Options(output=folder / output, no_history=True, store=folder / "store")).evaluation


@pytest.fixture
def calibrated(tmp_path: Path) -> Path:
    """A folder with the spec, its results, labels and a calibration: right is what has 7 of 10 words."""
    found = evaluate(tmp_path, build(tmp_path), "out").values
    rows = [
        f"{query_id},faithfulness,{int(value >= 0.65)}"
        for query_id, value in found.select("query_id", "value").iter_rows()
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["query_id,metric,value", *rows]) + "\n")
    show(tmp_path)
    return tmp_path


def show(folder: Path, name: str = "calibration.json", **options: Any) -> str:
    labels = [folder / "labels.csv"]
    told = calibrate_judges(str(folder / "out"), labels, (), (), None, "text", output=folder / name, **options)
    return " ".join(told.decode().split())


def use(calibration: Any = "calibration.json", **more: Any) -> dict[str, Any]:
    return {"judges": {"fast": {"use": "overlap", "calibration": calibration, **more}}}


def test_each_file_has_its_own_line(calibrated: Path) -> None:
    told = show(calibrated, freeze=calibrated / "anchors.json")
    assert "\\n" not in told
    assert "in the spec. Wrote " in told


def test_a_judge_that_is_not_declared_is_declared_first(tmp_path: Path) -> None:
    spec = build(tmp_path, judges={}, metrics=[{"use": "faithfulness", "judge": "overlap"}])
    names = evaluate(tmp_path, spec, "out").values["query_id"].to_list()
    rows = [f"{name},faithfulness,{place % 2}" for place, name in enumerate(names)]
    (tmp_path / "labels.csv").write_text("\n".join(["query_id,metric,value", *rows]) + "\n")
    assert "judges: {calibrated: {use: overlap, calibration: calibration.json}}" in show(tmp_path)


def test_a_calibration_is_written_and_the_same_each_time(calibrated: Path) -> None:
    first = (calibrated / "calibration.json").read_bytes()
    assert "Wrote " in show(calibrated)
    assert "add 'calibration: calibration.json' to the judge 'fast' in the spec." in show(calibrated)
    assert (calibrated / "calibration.json").read_bytes() == first
    assert not [path for path in calibrated.iterdir() if path.name.endswith(".part")]


def test_a_gate_on_calibrated_values(calibrated: Path) -> None:
    gate = {"metric": "faithfulness", "max": 0.5}
    plain = evaluate(calibrated, build(calibrated, gates=[gate]))
    found = evaluate(calibrated, build(calibrated, **use(), gates=[gate]))
    labels = pl.read_csv(calibrated / "labels.csv")["value"]
    (cell,), (before,) = found.aggregates, plain.aggregates
    assert (plain.gates[0].outcome, found.gates[0].outcome) == ("fail", "pass")
    assert abs(cell.mean - labels.mean()) < 0.01 < abs(before.mean - labels.mean())
    assert found.provenance.calibrations["fast"].labels == {"faithfulness": 120}
    assert "the judge 'fast' is calibrated with 120 labels of people" in [
        n.message.partition(": ")[2] for n in found.notes
    ]


def test_decisions_are_those_of_the_threshold(calibrated: Path) -> None:
    decided = {"path": "calibration.json", "score": "decision"}
    found = evaluate(calibrated, build(calibrated, **use(decided)))
    assert found.values["value"].to_list() == pl.read_csv(calibrated / "labels.csv").sort("query_id")["value"].to_list()


def fault(spec: Path) -> tuple[str, str]:
    with pytest.raises(SpecError) as caught:
        validate(spec)
    (found,) = caught.value.diagnostics
    return found.message, found.source_line.strip()


def test_a_calibration_of_another_judge_is_refused_at_its_place(calibrated: Path) -> None:
    validate(build(calibrated, **use()))
    message, line = fault(build(calibrated, **use(threshold=0.4)))
    assert message.startswith("calibration.json does not fit the judge 'fast': it was made with threshold the default")
    assert line == "calibration: calibration.json"


def test_a_calibration_for_another_question_is_refused(calibrated: Path) -> None:
    relevance = {"use": "context_precision", "with": "answer", "judge": "fast"}
    message, line = fault(build(calibrated, **use(), metrics=[relevance]))
    assert message == (
        "the calibration was made for faithfulness, but here 'fast' judges context_precision(with=answer)"
    )
    assert line == "calibration: calibration.json"
    validate(build(calibrated, **use(), metrics=[relevance, FAITHFULNESS]))


@pytest.mark.parametrize("content", ["", "{", '{"format_version": 9, "judges": []}', "[]"])
def test_a_broken_file_is_refused_at_its_place(calibrated: Path, content: str) -> None:
    (calibrated / "calibration.json").write_text(content)
    message, line = fault(build(calibrated, **use()))
    assert message.startswith("calibration.json ")
    assert line == "calibration: calibration.json"


@pytest.mark.parametrize("calibration", ["", 3, {"score": "decision"}, {"path": ""}, {"path": "a", "score": "x"}, "."])
def test_a_calibration_that_names_no_file_is_refused(calibrated: Path, calibration: Any) -> None:
    with pytest.raises(SpecError) as caught:
        validate(build(calibrated, **use(calibration)))
    lines = [found.source_line.strip().partition(":")[0] for found in caught.value.diagnostics]
    assert {*lines} <= {"calibration", "path", "score"}


def test_a_missing_file_says_how_to_write_it(calibrated: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no file 'c\.json'; write it with: rageval-spec calibrate"):
        validate(build(calibrated, **use("c.json")))


def test_another_content_is_another_step(calibrated: Path) -> None:
    plain = evaluate(calibrated, build(calibrated, **use()))
    show(calibrated, guarantee="20%")
    changed = evaluate(calibrated, build(calibrated, **use()))
    assert plain.provenance.calibrations["fast"].digest != changed.provenance.calibrations["fast"].digest
    keys = [plan_keys(calibrated, **use()), plan_keys(calibrated)]
    (calibrated / "calibration.json").write_bytes((calibrated / "calibration.json").read_bytes() + b"\n")
    assert plan_keys(calibrated, **use()) not in keys
    assert plan_keys(calibrated) == keys[1]


def plan_keys(folder: Path, **sections: Any) -> list[str]:
    from rageval_spec.pipeline.planning.plan import make_plan
    from rageval_spec.pipeline.planning.spec_plugins import build_parts
    from rageval_spec.plugin import digest_content

    spec = validate(build(folder, **sections))
    return [step.key for step in make_plan(spec, build_parts(spec), digest_content).steps if step.kind == "judge"]


def test_a_calibrated_judge_is_not_calibrated_again(calibrated: Path) -> None:
    evaluate(calibrated, build(calibrated, **use()), "out")
    with pytest.raises(UsageError, match="'fast' has a calibration already"):
        show(calibrated)


def test_nothing_but_a_calibration_is_overwritten(calibrated: Path) -> None:
    with pytest.raises(UsageError, match=r"labels\.csv exists and is not a calibration; choose another name"):
        show(calibrated, "labels.csv")
    with pytest.raises(UsageError, match=r"there is no folder .* to write c\.json to"):
        show(calibrated, "nowhere/c.json")
    (calibrated / "old.json").write_text('{"format_version": 0, "judges": []}')
    assert "Wrote" in show(calibrated, "old.json")


def measure(metric: str = "faithfulness", power: float = 1.0, limit: float | None = None) -> JudgeReport:
    """A judge whose values mean what they say for a power of 1, and are too generous for more."""
    random = np.random.default_rng(1)
    values = random.random(120)
    labels = (random.random(120) < values**power).astype(np.float64)
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(120)]
    joined = Joined(metric, tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    promised = None if limit is None else promise(joined, limit, 0.95)
    return JudgeReport(joined, measure_judge(joined, resamples=100), Biases(), promised)


def show_report(*found: JudgeReport, details: bool = False, limit: float | None = None) -> str:
    settings = CalibrationSettings(None, ThresholdCriterion(), 0.1, limit, 0.95, details=details)
    return write_text(describe_group(CriterionReport(found), settings)).decode()


DIAGRAM = "Do the values mean what they say?"


def test_a_metric_fits_on_one_screen_and_details_add_the_diagram() -> None:
    found = measure(power=4.0)
    text = show_report(found)
    assert len(text.splitlines()) <= 40
    assert DIAGRAM not in text
    assert "Its values do not mean what they say" in text
    assert "--details adds the reliability diagram" in text
    whole = show_report(found, details=True)
    assert DIAGRAM in whole
    assert "balanced accuracy" in whole
    assert "--details" not in whole


def test_weighted_means_say_so() -> None:
    found = measure()
    weighted = replace(found, joined=replace(found.joined, shares=dict.fromkeys(found.joined.items, 1.0)))
    told = "questions count as the spec's weights say"
    assert told in show_report(weighted)
    assert told not in show_report(found)


def test_details_have_the_maps_and_the_curve() -> None:
    short, whole = (show_report(measure(power=4.0), details=details) for details in (False, True))
    for only in ("Pearson's correlation", "Brier score", "Use platt.", "labels  corrected mean"):
        assert only not in short
        assert only in whole
    assert "Labels to buy" in short


def test_several_metrics_have_their_conclusions_only() -> None:
    text = show_report(measure("first"), measure("second"))
    assert "first: 120 labelled items" in text
    assert "second: 120 labelled items" in text
    assert "AUROC" not in text
    assert "AUROC" in show_report(measure("first"), measure("second"), details=True)


def test_a_promise_is_shown_of_each_metric() -> None:
    found = [measure(name, limit=0.5) for name in ("first", "second")]
    text = show_report(*found, limit=0.5)
    assert text.count("sent from") == 2
    assert "sent from" not in show_report(*found)


def test_a_promise_says_why_it_counts_fewer_answers() -> None:
    found = measure(limit=0.5)
    told = "60 of 120 labelled items count: one of each question, or of each cluster."
    assert told not in show_report(found, limit=0.5)
    pairs = tuple(("golden", "v1", f"q{row // 2}", None) for row in range(120))
    joined = replace(found.joined, items=pairs)
    assert told in show_report(replace(found, joined=joined, promise=promise(joined, 0.5, 0.95)), limit=0.5)


@pytest.mark.parametrize(
    ("value", "label", "bar"),
    [
        (0.5, 1.0, "█" * 15 + "│" + "█" * 14),
        (0.9, 0.1, "███" + "·" * 24 + "│··"),
        (1.0, 0.0, "·" * 29 + "│"),
        (0.0, 0.0, "│" + "·" * 29),
    ],
)
def test_a_bar_shows_people_and_the_judge(value: float, label: float, bar: str) -> None:
    assert draw_bar(Bin(0.0, 0.1, 1, value, label)) == bar


def test_a_row_says_what_the_judge_and_people_say() -> None:
    text = write_text([describe_diagram([Bin(0.8, 0.9, 12, 0.85, 0.5)])]).decode()
    assert "0.8 to 0.9         12  0.850   0.500  " in text


def few(name: str) -> SliceCalibration:
    return SliceCalibration("slice", name, 3, 0.5, 0.4, None, None)


def show_slices(*parts: SliceCalibration) -> str:
    return write_text(describe_slices(parts)).decode()


def test_a_row_for_each_part() -> None:
    bias = CalibrationMeasure("bias", 0.1, Interval(0.02, 0.18, 0.95, "bootstrap-bca"))
    text = show_slices(
        SliceCalibration("system", "v2", 40, 0.6, 0.5, bias, CalibrationMeasure("auroc", None, None, "why"))
    )
    assert "system v2     40  0.600   0.500  +0.100 [0.020, 0.180]" in text
    assert "fewer" not in text


def test_parts_with_few_labels_are_named() -> None:
    assert show_slices(few("a")) == "1 part has fewer than 10 labelled items: slice a (3)\n"
    text = show_slices(*map(few, "abcdefg"))
    assert text.startswith("7 parts have fewer than 10 labelled items: slice a (3), slice b (3)")
    assert "slice e (3), ..." in text.replace("\n", " ")


def test_nothing_without_parts() -> None:
    assert show_slices() == ""
