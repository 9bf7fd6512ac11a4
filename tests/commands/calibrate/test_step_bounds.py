"""`calibrate --spec`, as a user sees it: from results to a cascade with bounds of its own.

Guarantees of judges of several steps, as a user sees them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.calibrate.step_bounds import calibrate_steps
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.runner import Options, run
from tests.checked_specs import validate
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

WORDS = [f"word{number}" for number in range(10)]


def say(number: int, body: dict[str, Any]) -> Answer:
    """Yes if the sources know the sixth word."""
    known = body["messages"][-1]["content"].partition("<answer>")[0].count("word5") > 0
    return Answer(completion("yes" if known else "no"))


@pytest.fixture
def server() -> Any:
    running = ChatServer(say)
    yield running
    running.close()


def build(folder: Path, server: ChatServer, **cascade: Any) -> Path:
    """100 answers of ten words, of which the contexts know 0 to 9."""
    rows = []
    for number in range(100):
        texts = {"answer": f"{' '.join(WORDS)}.", "contexts": [f"{' '.join(WORDS[: number % 10])} x."]}
        rows.append({"query_id": f"q{number}", "question": f"Is it {number}?", **texts})
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "answers.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl", "holds": "answers"}},
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "m", "price": {"input": 1, "output": 1}}},
        judges={
            "strict": {"use": "binary", "model": "gpt"},
            "tiers": {"use": "cascade", "steps": ["overlap", "strict"], **cascade},
        },
        metrics=[{"use": "faithfulness", "judge": "tiers"}],
        reports=[],
    )


def evaluate(spec: Path, output: str = "out") -> Any:
    return run(spec, Options(output=spec.parent / output, no_history=True)).evaluation


def show(spec: Path, labels: tuple[Path, ...] = (), form: str = "text", **options: Any) -> str:
    settled: dict[str, Any] = {"agreement": 0.9, "against": "people" if labels else "last", "metrics": ()}
    settled |= options
    metrics = settled.pop("metrics")
    told = calibrate_steps(str(spec.parent / "out"), labels, (), metrics, None, form, spec=spec, **settled)
    return told.decode()


def test_bounds_are_chosen_by_the_last_step_and_used(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server)
    evaluate(spec)
    output = tmp_path / "calibration.json"
    text = " ".join(show(spec, output=output).split())
    assert "faithfulness, cascade 'tiers': 100 answers with decisions of its last step, 'strict'" in text
    assert "'strict' need not be asked about 100% of the answers: saved 100 calls of gpt" in text
    assert "overlap 100 100 (100%) 100% [0.964, 1.000]" in text
    asked = len(server.calls)
    found = evaluate(build(tmp_path, server, calibration="calibration.json"), "again")
    assert len(server.calls) == asked
    (note,) = [one.message for one in found.notes if one.code == "cascade"]
    assert "overlap decided 100 (100%), strict decided 0 (0%)" in note
    (note,) = [one.message for one in found.notes if one.code == "calibrated"]
    assert "the judge 'tiers' is calibrated with 100 labels of its last step" in note


def test_answers_that_the_last_step_has_no_score_for_are_left_out(tmp_path: Path) -> None:
    def fail_at_one(number: int, body: dict[str, Any]) -> Answer:
        return Answer(completion("perhaps")) if "Is it 10?" in json.dumps(body) else say(number, body)

    server = ChatServer(fail_at_one)
    spec = build(tmp_path, server)
    evaluate(spec)  # overlap decides this answer by itself
    assert "99 answers with decisions of its last step" in " ".join(show(spec).split())
    server.close()


def test_labels_of_people_replace_the_last_step(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server)
    evaluate(spec)
    labels = tmp_path / "labels.csv"
    rows = [f"q{number},faithfulness,ann,{int(number % 10 >= 8)}" for number in range(100)]
    labels.write_text("\n".join(["query_id,metric,annotator,value", *rows]) + "\n")
    found = json.loads(show(spec, (labels,), "json"))
    assert found["labelled"]["by"] == "people"
    assert found["bounds"] == [{"step": 0, "low": pytest.approx(0.7, abs=0.1), "high": pytest.approx(0.7, abs=0.1)}]


def test_what_it_costs_is_said_before(tmp_path: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    spec = build(tmp_path, server)
    evaluate(spec)
    asked = len(server.calls)
    show(spec)
    said = capsys.readouterr().err
    assert f"gpt  {100 - asked} calls, about" in said
    assert "USD" in said


def test_few_answers_are_called_so(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server)
    evaluate(spec)
    labels = tmp_path / "labels.csv"
    labels.write_text("query_id,metric,value\n" + "".join(f"q{n},faithfulness,1\n" for n in range(30)))
    assert "Only 30 answers: take 50 or more" in show(spec, (labels,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agreement": None}, "steps need one of the two: --agreement 0.95, or --guarantee"),
        ({"against": "people"}, "--against people needs --labels"),
        ({"metrics": ("a", "b")}, "the steps of one judge at a time: name one metric"),
        ({"metrics": ("token_f1",)}, "the spec has no metric 'token_f1' with a judge"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, server: ChatServer, options: dict[str, Any], message: str) -> None:
    spec = build(tmp_path, server)
    evaluate(spec)
    with pytest.raises(UsageError, match=message):
        show(spec, **options)


def test_a_step_with_a_bound_of_its_own_and_a_calibration_conflict(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server)
    evaluate(spec)
    show(spec, output=tmp_path / "calibration.json")
    steps = [{"judge": "overlap", "low": 0.1}, "strict"]
    with pytest.raises(SpecError, match="the step 'overlap' has its own low or high, which the calibration would repl"):
        validate(build(tmp_path, server, steps=steps, calibration="calibration.json"))


STAGES = {"retrieval": None, "relevance": None, "answerability": {"judge": "overlap"}}


def build_promises(folder: Path, judge: dict[str, Any], count: int = 300, **design: str) -> Path:
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


def show_promises(spec: Path, form: str = "text", **options: Any) -> str:
    settled: dict[str, Any] = {"guarantee": "wrong answers sent <= 15%"} | options
    labels = settled.pop("labels", [spec.parent / "labels.csv"])
    told = calibrate_steps(str(spec.parent / "out"), labels, (), (), None, form, spec=spec, **settled)
    return told.decode()


def test_a_waterfall_gets_bounds_and_keeps_the_promise(tmp_path: Path) -> None:
    spec = build_promises(tmp_path, {"use": "waterfall", **STAGES})
    evaluate(spec)
    output = tmp_path / "calibration.json"
    text = " ".join(show_promises(spec, output=output).split())
    assert "faithfulness, judge 'tiers': 300 labelled questions" in text
    assert "✓ At most 15% of the answers that are sent are wrong, with 95% confidence." in text
    assert "75 other labels decide which bounds to relax first." in text
    assert "stage to a person below" in text
    found = evaluate(
        build_promises(tmp_path, {"use": "waterfall", **STAGES, "calibration": "calibration.json"}), "again"
    )
    labels = dict(line.split(",faithfulness,") for line in (tmp_path / "labels.csv").read_text().splitlines()[1:])
    sent = found.values.filter(found.values["value"] > 0)["query_id"].to_list()
    assert len(sent) > 40
    assert sum(labels[query_id] == "0" for query_id in sent) / len(sent) < 0.15


def test_answers_that_went_to_a_person_count_too(tmp_path: Path) -> None:
    stages = {**STAGES, "faithfulness": {"judge": "words"}}
    evaluation = evaluate(build_promises(tmp_path, {"use": "waterfall", **stages}))
    assert evaluation.values["value"].null_count() > 30
    found = json.loads(show_promises(tmp_path / "spec.yaml", "json"))
    assert found["found"]["items"] == 300


def test_one_answer_of_each_cluster_counts(tmp_path: Path) -> None:
    """Answers to questions that belong together are not independent."""
    spec = build_promises(tmp_path, {"use": "waterfall", **STAGES}, cluster="source")
    evaluate(spec)
    assert json.loads(show_promises(spec, "json"))["found"]["items"] == 100


def test_a_cascade_sends_what_the_bounds_of_its_steps_allow(tmp_path: Path) -> None:
    spec = build_promises(tmp_path, {"use": "cascade", "steps": ["overlap", "words"]})
    evaluate(spec)
    found = json.loads(show_promises(spec, "json", output=tmp_path / "calibration.json"))
    assert found["lows"] == [0.27, 1.0]
    assert [one["step"] for one in found["bounds"]] == [0, 1]
    use = {"path": "calibration.json", "score": "guarantee"}
    decided = evaluate(
        build_promises(tmp_path, {"use": "cascade", "steps": ["overlap", "words"], "calibration": use}), "again"
    )
    assert set(decided.values["value"]) == {0.0, 1.0}
    assert decided.values["value"].mean() == pytest.approx(found["found"]["wanted"]["sent"] / 225, abs=0.1)


def test_a_promise_that_cannot_be_kept_names_the_best_and_writes_nothing(tmp_path: Path) -> None:
    spec = build_promises(tmp_path, {"use": "waterfall", **STAGES}, count=120)
    evaluate(spec)
    text = " ".join(show_promises(spec, guarantee="2%", output=tmp_path / "calibration.json").split())
    assert "✗ At most 2% cannot be promised with 120 labels; the best that can be is " in text
    assert "Even if no answer were wrong, 149 labels would be needed." in text
    assert "Nothing was written, because the promise cannot be kept." in text
    assert not (tmp_path / "calibration.json").exists()


def test_conformal_risk_control_says_how_it_differs(tmp_path: Path) -> None:
    spec = build_promises(tmp_path, {"use": "waterfall", **STAGES})
    evaluate(spec)
    text = " ".join(show_promises(spec, control="crc", guarantee="5%", output=tmp_path / "calibration.json").split())
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
def test_wrong_options_of_guarantees_are_explained(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    spec = build_promises(tmp_path, {"use": "waterfall", **STAGES}, count=20)
    evaluate(spec)
    with pytest.raises(UsageError, match=message):
        show_promises(spec, **options)
