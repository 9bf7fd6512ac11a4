"""`drift`, as a user sees it: a judge behind an endpoint that changes its replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.calibrate.judges_against_labels import calibrate_judges
from rageval_spec.commands.drift.frozen_answers import DriftOutput, show_drift
from rageval_spec.data.chat import LimitError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.runner import Options, run
from tests.command_line import invoke
from tests.models.chat_endpoint import ChatServer, completion, refusal
from tests.models.endpoint import Answer
from tests.tiny import write_spec

COUNT = 60


class Model:
    """Says yes to answers with an even number, except those in `changed`; `flaky` ones change with each call."""

    def __init__(self) -> None:
        self.changed: set[int] = set()
        self.flaky: set[int] = set()
        self.broken = False
        self.asked: dict[int, int] = {}

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        if self.broken:
            return refusal("no such model", 404)
        answer = int(body["messages"][-1]["content"].rpartition("number ")[2].partition(" ")[0])
        self.asked[answer] = self.asked.get(answer, 0) + 1
        odd_one = answer in self.changed or (answer in self.flaky and self.asked[answer] % 2)
        return Answer(completion("yes" if (answer % 2 == 0) != bool(odd_one) else "no"))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Any:
    running = ChatServer(model)
    yield running
    running.close()


def build(folder: Path, server: ChatServer, **limits: Any) -> Path:
    rows = [
        {"query_id": f"q{n}", "question": f"Is it {n}?", "answer": f"It is number {n} .", "contexts": ["It is."]}
        for n in range(COUNT)
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "answers.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl", "holds": "answers"}},
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "m", "retries": 0}},
        judges={"strict": {"use": "binary", "model": "gpt"}},
        metrics=[{"use": "faithfulness", "judge": "strict"}, {"use": "factual_correctness", "judge": "strict"}],
        limits=limits,
        reports=[],
    )


@pytest.fixture
def frozen(tmp_path: Path, server: ChatServer) -> Path:
    """Anchors: people say yes to even numbers, as the judge does, except for 0 to 9."""
    run(build(tmp_path, server), Options(output=tmp_path / "out", no_history=True, only=["faithfulness"]))
    rows = [f"q{n},faithfulness,{int((n % 2 == 0) != (n < 10))}" for n in range(COUNT)]
    (tmp_path / "labels.csv").write_text("\n".join(["query_id,metric,value", *rows]) + "\n")
    anchors = tmp_path / "anchors.json"
    told = calibrate_judges(str(tmp_path / "out"), [tmp_path / "labels.csv"], (), (), None, "text", freeze=anchors)
    assert "To ask the judge again: rageval-spec drift" in " ".join(told.decode().split())
    return anchors


def say_by_order(number: int, body: dict[str, Any]) -> Answer:
    """A judge that sees only what comes first: of contexts and of examples."""
    said = "\n".join(message["content"] for message in body["messages"])
    asked = body["messages"][-1]["content"]
    if "Own:" in asked:
        return Answer(completion(json.dumps({"choice": "good" if said.index("easy") < said.index("hard") else "bad"})))
    return Answer(completion("yes" if "right" in asked[asked.find("<source") :].partition("</source")[0] else "no"))


def freeze_orders(folder: Path, server: ChatServer, judge: dict[str, Any], wrong: str = "wrong {}") -> Path:
    """Anchors whose right context comes first; every fourth has no other. People like all but one of them."""
    rows = []
    for n in range(COUNT):
        contexts = [f"right {n}", wrong.format(n)] if n % 4 else [f"right {n}"]
        rows.append({"query_id": f"q{n}", "question": f"Is it {n}?", "answer": "It is.", "contexts": contexts})
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "answers.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl", "holds": "answers"}},
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "m", "retries": 0}},
        judges={"strict": {"model": "gpt", **judge}},
        metrics=[{"use": "faithfulness", "judge": "strict"}],
        reports=[],
    )
    run(spec, Options(output=folder / "out", no_history=True))
    labels = [f"q{n},faithfulness,{int(n != 1)}" for n in range(COUNT)]
    (folder / "labels.csv").write_text("\n".join(["query_id,metric,value", *labels]) + "\n")
    anchors = folder / "anchors.json"
    calibrate_judges(str(folder / "out"), [folder / "labels.csv"], (), (), None, "text", freeze=anchors)
    return anchors


@pytest.fixture
def by_order() -> Any:
    running = ChatServer(say_by_order)
    yield running
    running.close()


def show(frozen: Path, form: str = "text", **options: Any) -> DriftOutput:
    return show_drift(frozen, frozen.parent / "spec.yaml", options.pop("metric", None), form, **options)


def text_of(found: DriftOutput) -> str:
    return " ".join(found.content.decode().split())


def test_a_judge_that_says_the_same_has_not_drifted(frozen: Path, server: ChatServer) -> None:
    asked = len(server.calls)
    found = show(frozen)
    assert found.exit_code == 0
    assert "faithfulness, judge 'strict': 60 anchors, asked twice" in text_of(found)
    assert "✓ No change can be seen: 0 of 60 decisions changed (0%); asked twice now, it differs from itself in 0%" in (
        text_of(found)
    )
    assert len(server.calls) == asked + 2 * COUNT


def test_a_changed_model_is_found_although_no_accuracy_moved(frozen: Path, model: Model) -> None:
    model.changed = {*range(5), *range(20, 25)}  # five become right, five become wrong
    found = show(frozen)
    assert found.exit_code == 1
    text = text_of(found)
    assert (
        "✗ The judge has changed: 10 of 60 decisions changed (16.7%); asked twice now, it differs from itself" in text
    )
    assert "Its agreement with people shows no change, so an average would not have shown it." in text
    assert "agreement with people 83.3% → 83.3% 5 gained, 5 lost 1.0000" in text
    content = json.loads(show(frozen, "json").content)
    assert (content["flips"]["up"], content["flips"]["down"], content["has_drifted"]) == (4, 6, True)


def test_a_judge_that_always_was_noisy_has_not_drifted(frozen: Path, model: Model) -> None:
    model.flaky = {*range(20, 30)}
    found = show(frozen)
    assert found.exit_code == 0
    assert "it differs from itself in 16.7%" in text_of(found)


def test_a_judge_that_got_worse_is_found_by_its_agreement(frozen: Path, model: Model) -> None:
    model.changed = {*range(20, 40)}
    content = json.loads(show(frozen, "json").content)
    assert (content["shift"]["gained"], content["shift"]["lost"]) == (0, 20)
    assert content["shift"]["p_value"] < 1e-5


def test_the_cost_is_said_first_and_limits_hold(
    frozen: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    show(frozen)
    assert "gpt  120 calls, about" in capsys.readouterr().err
    build(frozen.parent, server, max_calls=10)
    with pytest.raises(LimitError):
        show(frozen)


def test_another_judge_is_named(frozen: Path) -> None:
    found = show(frozen, overrides=["models.gpt.model=m2"])
    assert "The anchors were made with model m of the model 'gpt', this spec has m2." in text_of(found)


def test_a_judge_that_answers_nothing_is_broken(frozen: Path, model: Model) -> None:
    model.broken = True
    found = show(frozen)
    assert found.exit_code == 3
    assert "strict gave a value to fewer than half of the 60 anchors, too few to detect drift." in text_of(found)


def test_wrong_files_and_metrics_are_explained(frozen: Path) -> None:
    with pytest.raises(DataError, match=r"labels\.csv is not a set of anchors"):
        show(frozen.parent / "labels.csv")
    with pytest.raises(DataError, match=r"none\.json cannot be read: No such file or directory"):
        show(frozen.parent / "none.json")
    with pytest.raises(UsageError, match="the spec has no metric 'x' with a judge"):
        show(frozen, metric="x")
    with pytest.raises(UsageError, match=r"labels\.csv exists and is not a set of anchors; choose another name"):
        labels = frozen.parent / "labels.csv"
        calibrate_judges(str(frozen.parent / "out"), [labels], (), (), None, "text", freeze=labels)


def test_a_judge_without_a_chat_model_must_say_exactly_the_same(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server)
    text = spec.read_text().replace("judge: strict", "judge: overlap")
    spec.write_text(text)
    run(spec, Options(output=tmp_path / "out", no_history=True, only=["faithfulness"]))
    rows = [f"q{n},faithfulness,{n % 2}" for n in range(COUNT)]
    (tmp_path / "labels.csv").write_text("\n".join(["query_id,metric,value", *rows]) + "\n")
    anchors = tmp_path / "anchors.json"
    calibrate_judges(str(tmp_path / "out"), [tmp_path / "labels.csv"], (), (), None, "text", freeze=anchors)
    found = show(anchors)
    assert found.exit_code == 0
    assert "asked once ✓ The judge gives exactly the same values as before." in text_of(found)
    content = json.loads(anchors.read_text())
    content["anchors"][3]["value"] += 0.01
    anchors.write_text(json.dumps(content))
    assert show(anchors).exit_code == 1


def test_drift_takes_anchors_and_a_spec(tmp_path: Path) -> None:
    result = invoke("drift", str(tmp_path / "anchors.json"), str(tmp_path / "spec.yaml"))
    assert result.exit_code == 3
    assert "anchors.json cannot be read: No such file or directory" in result.output
    assert invoke("drift", "--alpha", "0.9", "a.json", "s.yaml").exit_code == 2


def reverse(frozen: Path, *options: str) -> Any:
    return invoke("drift", str(frozen), str(frozen.parent / "spec.yaml"), "--reversed", *options)


def test_a_judge_that_reads_only_the_first_context_is_found(tmp_path: Path, by_order: ChatServer) -> None:
    frozen = freeze_orders(tmp_path, by_order, {"use": "binary"})
    before = len(by_order.calls)
    found = reverse(frozen)
    assert found.exit_code == 1, found.output
    assert len(by_order.calls) - before == COUNT + 45
    assert "gpt  105 calls, about" in found.stderr
    text = " ".join(found.stdout.split())
    assert "faithfulness, judge 'strict': the same answers in the reverse order" in text
    assert "Contexts reversed, 45 answers" in text
    assert "! 45 values change. Of the decisions, 100% [92.1%, 100%] flip: 0 to yes, 45 to no (adjusted p <" in text
    assert "! In the reverse order, values change by -1.000 [-1.000, -0." in text
    assert "Its mean absolute error is 0.022 in the usual order, and 0.978 in the reverse one." in text


def test_a_judge_that_reads_all_contexts_passes(tmp_path: Path, by_order: ChatServer) -> None:
    found = reverse(freeze_orders(tmp_path, by_order, {"use": "binary"}, wrong="also right {}"))
    assert found.exit_code == 0, found.output
    assert "Contexts reversed, 45 answers • No value changes." in " ".join(found.stdout.split())


def test_choices_and_examples_are_reversed(tmp_path: Path, by_order: ChatServer) -> None:
    lines = [{"answer": "easy", "value": "good"}, {"answer": "hard", "value": "bad"}]
    (tmp_path / "examples.jsonl").write_text("\n".join(map(json.dumps, lines)))
    judge = {
        "use": "prompt", "template": "Own: {{ answer }}", "value": "choice", "reason": False,
        "choices": {"good": 1, "bad": 0}, "examples": "examples.jsonl",
    }  # fmt: skip
    found = json.loads(reverse(freeze_orders(tmp_path, by_order, judge), "--format", "json").stdout)
    effects = {one["part"]: one for one in found["effects"]}
    assert (found["judge"], found["metric"]) == ("strict", "faithfulness")
    assert effects["contexts"]["changed"] == effects["choices"]["changed"] == 0
    assert effects["examples"]["to_no"] == effects["examples"]["answers"] == COUNT


def test_a_judge_that_sees_no_order_has_nothing_to_reverse(frozen: Path) -> None:
    found = reverse(frozen)
    assert found.exit_code == 2
    assert "the judge 'strict' has nothing to reverse: no answer has two contexts that it reads" in found.output


def test_a_judge_that_answers_nothing_has_no_order(tmp_path: Path, by_order: ChatServer, model: Model) -> None:
    frozen = freeze_orders(tmp_path, by_order, {"use": "binary"})
    model.broken = True
    by_order.chat = model
    found = reverse(frozen)
    assert found.exit_code == 3
    assert "45 answers could not be judged in both orders." in found.output
