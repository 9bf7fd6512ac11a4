import json
from pathlib import Path
from typing import Any

from rageval_spec.commands.generate.summary import Summary
from rageval_spec.generation.question_sets import Share


def make(**parts: Any) -> Summary:
    values: dict[str, Any] = {
        "questions": 100, "wanted": 100, "chunks": 60, "all_chunks": 80, "documents": 9, "all_documents": 10,
        "shares": [Share("type", "factual", 60, 50), Share("type", "procedural", 40, 50)], "rejected": {"leak": 3},
        "shortages": [], "stopped": None, "cost": 0.5,
    }  # fmt: skip
    return Summary(**{**values, **parts})


def show(summary: Summary) -> str:
    text = summary.render("text", Path("golden.jsonl"), [])
    assert isinstance(text, bytes)
    return text.decode()


def test_the_mix_stands_beside_the_wanted_one_and_is_said_where_it_is_off() -> None:
    text = show(make())
    assert "100 questions about 60 of 80 chunks, from 9 of 10 documents" in text
    assert "! type factual: 60 instead of 50" in text
    assert "! type procedural: only 40 instead of 50" in text
    assert "leak" in text
    assert "      path: golden.jsonl\n" in text


def test_a_share_that_is_nearly_right_is_not_worth_a_word() -> None:
    assert "! type" not in show(make(shares=[Share("type", "factual", 53, 50)]))


def test_what_is_missing_and_what_stopped_it_is_said() -> None:
    short = make(questions=57, shortages=["43 questions: no chunk is left to ask about"])
    assert "57 of 100 questions" in show(short)
    assert "! missing 43 questions: no chunk is left to ask about" in show(short)
    assert short.complaint is None
    stopped = make(questions=57, stopped="limits.max_cost: 2 of 2 USD")
    assert stopped.complaint == (
        "57 of 100 questions are made: limits.max_cost: 2 of 2 USD; run the same command again to continue"
    )
    assert "to evaluate with them" not in show(stopped)
    assert make(questions=0, shares=[]).complaint == "no question could be made; the rejected ones say why"


def test_json_has_everything() -> None:
    content = json.loads(make().render("json", Path("golden.jsonl"), [Path("golden.jsonl")]))
    assert (content["questions"], content["rejected"], content["files"]) == (100, {"leak": 3}, ["golden.jsonl"])
