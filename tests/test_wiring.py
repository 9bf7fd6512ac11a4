"""Blocks that do not fit one another, said before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.wiring import validate
from tests.tiny import write_spec

CHAT = {"use": "chat", "base_url": "http://127.0.0.1:1/v1", "model": "m"}


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"use": "dense", "model": "gpt"}, "the model 'gpt' (use: chat) is none that embeds texts; name an embedding"),
        (
            {"use": "rerank", "system": "good", "model": "gpt"},
            "is none that reads pairs of texts; name a cross-encoder",
        ),
    ],
)
def test_a_model_of_another_kind(tmp_path: Path, system: dict[str, Any], message: str) -> None:
    systems = {"good": {"use": "file", "path": "data/good.run"}, "other": system}
    path = write_spec(tmp_path, systems=systems, models={"gpt": CHAT})
    with pytest.raises(SpecError) as caught:
        validate(path)
    (fault,) = caught.value.diagnostics
    assert message in fault.message
    assert path.read_text().splitlines()[fault.position.line - 1].strip() == "other:"


def test_a_limit_on_cost_without_a_price(tmp_path: Path) -> None:
    path = write_spec(tmp_path, models={"gpt": CHAT}, limits={"max_cost": 1})
    with pytest.raises(SpecError, match=r"limits\.max_cost needs to know what 'm' costs"):
        validate(path)
    validate(path, ["limits.max_cost=null"])
    validate(path, ["models.gpt.price={input: 1, output: 2}"])


def test_all_that_do_not_fit_are_said_at_once_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red"}\n')
    metrics = [{"use": "faithfulness", "judge": "j"}, {"use": "noise_sensitivity", "judge": "grader"}]
    judges = {"j": {"use": "claims", "model": "minilm"}, "grader": {"use": "grade", "model": "gpt"}}
    path = write_spec(
        tmp_path,
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        models={"gpt": CHAT},
        judges=judges,
        metrics=metrics,
    )
    with pytest.raises(SpecError) as caught:
        validate(path)
    assert [fault.position.line for fault in caught.value.diagnostics] == sorted(
        fault.position.line for fault in caught.value.diagnostics
    )
    messages = [fault.message for fault in caught.value.diagnostics]
    assert any("'minilm' (use: onnx) writes no replies" in message for message in messages)
    assert any("'grader'" in message for message in messages)
