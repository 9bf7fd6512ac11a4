"""No report of an evaluation that failed in part, or scored nothing, looks like a success."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rageval_spec import registry
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from tests.sample_evaluation import make_evaluation

WHOLE = replace(make_evaluation(), gates=())
FAILED = replace(WHOLE, failures=("bm25 on golden: line 3 has 5 columns",))
UNSCORED = replace(WHOLE, aggregates=tuple(replace(a, mean=None, interval=None, scored=0) for a in WHOLE.aggregates))


def render(word: str, evaluation: Evaluation) -> str:
    plugin = registry.load("reports", word)
    text: bytes = plugin(plugin.node_type(use=word), Context(word)).render(evaluation)
    return text.decode()


@pytest.mark.parametrize("evaluation", [FAILED, UNSCORED])
def test_the_verdict_is_error(evaluation: Evaluation) -> None:
    assert WHOLE.verdict == "pass"
    assert evaluation.verdict == "error"
    assert json.loads(render("json", evaluation))["verdict"] == "error"
    assert render("terminal", evaluation).startswith("✗ Incomplete: ")
    assert "❌ **Incomplete**: " in render("markdown", evaluation)
    assert "passed" not in render("markdown", evaluation).split("###")[0]
    assert 'errors="1"' in render("junit", evaluation)


def test_markdown_says_what_failed() -> None:
    assert "failed. bm25 on golden: line 3 has 5 columns.\n" in render("markdown", FAILED)
