"""The values of an evaluation, each with its trace."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.history.folder import load_record
from tests.exchange.evaluating import evaluate


def test_answers_of_another_tool_are_refused(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    target = toy.ToyTarget(toy.ToyTarget.node_type(), None)
    scores = toy.Scores(load_record(results).evaluation, "phoenix")
    with pytest.raises(UsageError, match="no answer has a trace of phoenix; their traces are of toy; evaluate answers"):
        list(scores)
    assert isinstance(target, toy.Target)
