"""From labels to a calibrated gate, as a user goes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.commands.calibrate.command import calibrate_judges
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.preflight import validate
from rageval_spec.runner import Options, run
from tests.tiny import write_spec

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
    assert found.calibrations["fast"].labels == {"faithfulness": 120}
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
    assert plain.calibrations["fast"].digest != changed.calibrations["fast"].digest
    keys = [plan_keys(calibrated, **use()), plan_keys(calibrated)]
    (calibrated / "calibration.json").write_bytes((calibrated / "calibration.json").read_bytes() + b"\n")
    assert plan_keys(calibrated, **use()) not in keys
    assert plan_keys(calibrated) == keys[1]


def plan_keys(folder: Path, **sections: Any) -> list[str]:
    from rageval_spec.pipeline.parts import build_parts
    from rageval_spec.pipeline.plan import make_plan
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
