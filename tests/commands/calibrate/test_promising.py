"""Guarantees of judges of several steps, as a user sees them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.calibrate.steps import calibrate_steps
from rageval_spec.errors import UsageError
from rageval_spec.runner import Options, run
from tests.tiny import write_spec

WORDS = [f"word{number}" for number in range(10)]
STAGES = {"retrieval": None, "relevance": None, "answerability": {"judge": "overlap"}}


def build(folder: Path, judge: dict[str, Any], count: int = 300, **design: str) -> Path:
    """Answers of which the contexts know 0 to 10 words; the question names two words that they know or not."""
    chance = random.Random(1)
    rows, labels = [], []
    for number in range(count):
        known = chance.randint(0, 10)
        rows.append(
            {
                "query_id": f"q{number}",
                "source": f"page {number // 3}",
                "question": f"What about {WORDS[chance.randint(0, 9)]} and {WORDS[0]}?",
                "answer": f"{' '.join(WORDS)}.",
                "contexts": [f"{' '.join(WORDS[:known])} x."],
            }
        )
        labels.append(f"q{number},faithfulness,{int(chance.random() < known / 8)}")
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "labels.csv").write_text("\n".join(["query_id,metric,value", *labels]) + "\n")
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "answers.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl", "holds": "answers"}},
        judges={"words": {"use": "overlap"}, "tiers": judge},
        metrics=[{"use": "faithfulness", "judge": "tiers"}],
        reports=[],
        **design,
    )


def evaluate(spec: Path, output: str = "out") -> Any:
    return run(spec, Options(output=spec.parent / output, no_history=True)).evaluation


def show(spec: Path, form: str = "text", **options: Any) -> str:
    settled: dict[str, Any] = {"guarantee": "wrong answers sent <= 15%"} | options
    labels = settled.pop("labels", [spec.parent / "labels.csv"])
    told = calibrate_steps(str(spec.parent / "out"), labels, (), (), None, form, spec=spec, **settled)
    return told.decode()


def test_a_waterfall_gets_bounds_and_keeps_the_promise(tmp_path: Path) -> None:
    spec = build(tmp_path, {"use": "waterfall", **STAGES})
    evaluate(spec)
    output = tmp_path / "calibration.json"
    text = " ".join(show(spec, output=output).split())
    assert "faithfulness, judge 'tiers': 300 labelled questions" in text
    assert "✓ At most 15% of the answers that are sent are wrong, with 95% confidence." in text
    assert "75 other labels say which bounds to relax first." in text
    assert "stage to a person below" in text
    found = evaluate(build(tmp_path, {"use": "waterfall", **STAGES, "calibration": "calibration.json"}), "again")
    labels = dict(line.split(",faithfulness,") for line in (tmp_path / "labels.csv").read_text().splitlines()[1:])
    sent = found.values.filter(found.values["value"] > 0)["query_id"].to_list()
    assert len(sent) > 40
    assert sum(labels[query_id] == "0" for query_id in sent) / len(sent) < 0.15


def test_answers_that_went_to_a_person_count_too(tmp_path: Path) -> None:
    stages = {**STAGES, "faithfulness": {"judge": "words"}}
    evaluation = evaluate(build(tmp_path, {"use": "waterfall", **stages}))
    assert evaluation.values["value"].null_count() > 30
    found = json.loads(show(tmp_path / "spec.yaml", "json"))
    assert found["found"]["labels"] == 300


def test_one_answer_of_each_cluster_counts(tmp_path: Path) -> None:
    """Answers to questions that belong together are not independent."""
    spec = build(tmp_path, {"use": "waterfall", **STAGES}, cluster="source")
    evaluate(spec)
    assert json.loads(show(spec, "json"))["found"]["labels"] == 100


def test_a_cascade_sends_what_the_bounds_of_its_steps_allow(tmp_path: Path) -> None:
    spec = build(tmp_path, {"use": "cascade", "steps": ["overlap", "words"]})
    evaluate(spec)
    found = json.loads(show(spec, "json", output=tmp_path / "calibration.json"))
    assert found["lows"] == [0.27, 1.0]
    assert [one["step"] for one in found["bounds"]] == [0, 1]
    use = {"path": "calibration.json", "score": "guarantee"}
    decided = evaluate(build(tmp_path, {"use": "cascade", "steps": ["overlap", "words"], "calibration": use}), "again")
    assert set(decided.values["value"]) == {0.0, 1.0}
    assert decided.values["value"].mean() == pytest.approx(found["found"]["wanted"]["sent"] / 225, abs=0.1)


def test_a_promise_that_cannot_be_kept_names_the_best_and_writes_nothing(tmp_path: Path) -> None:
    spec = build(tmp_path, {"use": "waterfall", **STAGES}, count=120)
    evaluate(spec)
    text = " ".join(show(spec, guarantee="2%", output=tmp_path / "calibration.json").split())
    assert "✗ Not possible with 120 labels: the best that can be promised is " in text
    assert "Even if no answer were wrong, 149 labels would be needed." in text
    assert "Nothing was written, because the promise cannot be kept." in text
    assert not (tmp_path / "calibration.json").exists()


def test_conformal_risk_control_says_how_it_differs(tmp_path: Path) -> None:
    spec = build(tmp_path, {"use": "waterfall", **STAGES})
    evaluate(spec)
    text = " ".join(show(spec, control="crc", guarantee="5%", output=tmp_path / "calibration.json").split())
    assert "✓ On average, at most 5% of all answers are wrong and sent." in text
    assert "This limits the mean over sets of labels, and wrong answers among all answers." in text
    (entry,) = json.loads((tmp_path / "calibration.json").read_text())["judges"]
    assert entry["guarantee"]["control"] == "crc"
    assert "confidence" not in entry["guarantee"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": []}, "a guarantee needs the labels of people: --labels labels.csv"),
        ({"against": "last"}, "a guarantee needs the labels of people: --labels labels.csv"),
        ({"agreement": 0.9}, "steps need one of the two: --agreement 0.95, or --guarantee"),
        ({"guarantee": "x"}, "write the largest share of wrong answers, such as 2%"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    spec = build(tmp_path, {"use": "waterfall", **STAGES}, count=20)
    evaluate(spec)
    with pytest.raises(UsageError, match=message):
        show(spec, **options)
