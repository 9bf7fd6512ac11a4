"""What judging cost, and the prompts that judges sent, in the results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.models.listing import find_models
from rageval_spec.data.evaluation import Evaluation, JudgingCost
from rageval_spec.data.reply_counts import ReplyCounts
from rageval_spec.judging.prompts import FOLDER
from rageval_spec.reports.shared.evaluation_markdown import describe_provenance
from rageval_spec.runner import Options, plan, run
from rageval_spec.store.chat_models import list_asked
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer

ROWS = 4
PRICE = {"input": 2.0, "output": 10.0}


class Judge:
    """An endpoint that finds everything supported, except for replies to `unread` questions, which cannot be read."""

    def __init__(self, *, has_usage: bool = True) -> None:
        self.has_usage = has_usage
        self.unread = ""

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        is_unread = self.unread and self.unread in json.dumps(body["messages"])
        reply = completion("Well." if is_unread else "yes")
        if not self.has_usage:
            del reply["usage"]
        return Answer(reply)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer(Judge())
    yield running
    running.close()


def evaluate(folder: Path, server: ChatServer, model: dict[str, Any] | None = None, **changes: Any) -> Evaluation:
    """Two metrics that one judge of the model `gpt` decides, on four answers."""
    folder.mkdir(exist_ok=True)
    rows = [
        {"id": f"r{row}", "question": f"What is {row}?", "answer": f"It is {row}.", "contexts": [f"{row} is {row}."]}
        for row in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = changes.pop("options", {})
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "models": {
            "gpt": {"use": "chat", "base_url": server.url, "model": "tiny", "retries": 0, "price": PRICE}
            | (model or {})
        },
        "judges": {"strict": {"use": "binary", "model": "gpt", "per": "answer"}},
        "metrics": [{"use": "faithfulness", "judge": "strict"}],
        "reports": ["json"],
        **changes,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec))
    return run(path, Options(output=folder / "out", **options)).evaluation


def results(folder: Path) -> bytes:
    return (folder / "out" / "results.json").read_bytes()


def test_the_costs_of_the_replies_add_up(tmp_path: Path, server: ChatServer) -> None:
    judging = evaluate(tmp_path, server).judging
    assert len(server.calls) == ROWS
    assert judging == {"gpt": JudgingCost(ROWS, 7 * ROWS, 3 * ROWS, (7 * ROWS * 2 + 3 * ROWS * 10) / 1e6)}
    assert json.loads(results(tmp_path))["judging"] == {
        "gpt": {"calls": 4, "input_tokens": 28, "output_tokens": 12, "cost": 0.000176}
    }


def test_stored_replies_count_like_new_ones(tmp_path: Path, server: ChatServer) -> None:
    evaluate(tmp_path, server)
    asked, first = len(server.calls), results(tmp_path)
    evaluate(tmp_path, server)
    assert len(server.calls) == asked
    assert results(tmp_path) == first
    evaluate(tmp_path, server, options={"no_store": True})
    assert len(server.calls) == 2 * asked
    assert results(tmp_path) == first


def test_metrics_that_ask_the_same_question_count_it_once(tmp_path: Path, server: ChatServer) -> None:
    twice = [{"use": "faithfulness", "judge": "strict", "as": name} for name in ("one", "two")]
    assert evaluate(tmp_path, server, metrics=twice).judging["gpt"].calls == len(server.calls) == ROWS


def test_each_sample_that_a_panel_asks_for_counts(tmp_path: Path, server: ChatServer) -> None:
    judges = {
        "strict": {"use": "binary", "model": "gpt", "per": "answer"},
        "jury": {"use": "panel", "judges": ["strict"], "repeats": 3},
    }
    evaluation = evaluate(tmp_path, server, judges=judges, metrics=[{"use": "faithfulness", "judge": "jury"}])
    assert evaluation.judging["gpt"].calls == len(server.calls) == 3 * ROWS
    assert {name.partition(".")[0] for name in evaluation.prompts} == {"strict"}


def test_replies_that_cannot_be_read_count_until_they_are_replaced(tmp_path: Path, server: ChatServer) -> None:
    assert isinstance(server.chat, Judge)
    server.chat.unread = "What is 3?"
    assert evaluate(tmp_path, server).judging["gpt"].calls == len(server.calls) == ROWS - 1 + 3
    server.chat.unread = ""
    assert evaluate(tmp_path, server).judging["gpt"].calls == ROWS - 1 + 3
    assert evaluate(tmp_path, server, options={"retry_errors": True}).judging["gpt"].calls == ROWS
    retried = results(tmp_path)
    evaluate(tmp_path, server)
    assert results(tmp_path) == retried


def test_without_token_counts_only_the_calls_are_known(tmp_path: Path) -> None:
    server = ChatServer(Judge(has_usage=False))
    for _ in ("asked now", "from the store"):
        assert evaluate(tmp_path, server).judging == {"gpt": JudgingCost(ROWS, None, None, None)}
    server.close()


def test_without_a_price_the_cost_is_not_known(tmp_path: Path, server: ChatServer) -> None:
    assert evaluate(tmp_path, server, {"price": None}).judging == {"gpt": JudgingCost(ROWS, 7 * ROWS, 3 * ROWS, None)}


def test_a_model_that_no_judge_asked_is_absent(tmp_path: Path, server: ChatServer) -> None:
    evaluation = evaluate(tmp_path, server, metrics=[{"use": "max_words", "value": 9}])
    assert (evaluation.judging, evaluation.prompts) == ({}, {})


def test_prompts_have_the_digest_of_their_file(tmp_path: Path, server: ChatServer) -> None:
    (tmp_path / "mine.jinja").write_text("{{ instruction }}\n{{ material }}\nThink twice.")
    own = {"use": "binary", "model": "gpt", "per": "answer", "prompts": {"binary": "mine.jinja"}}
    prompts = evaluate(tmp_path, server, judges={"strict": own, "idle": {"use": "claims", "model": "gpt"}}).prompts
    assert prompts == {
        "strict.system": hashlib.sha256((FOLDER / "system.jinja").read_bytes()).hexdigest(),
        "strict.binary": hashlib.sha256((tmp_path / "mine.jinja").read_bytes()).hexdigest(),
    }


def test_a_judge_of_its_own_model_s_answers_is_noted(tmp_path: Path, server: ChatServer) -> None:
    def notes(generator: str | None) -> list[tuple[str, str | None]]:
        bot = {"use": "file", "path": "rows.jsonl"} | ({} if generator is None else {"generator": generator})
        found = evaluate(tmp_path, server, {"model": "gpt-4o-2024-08-06"}, systems={"bot": bot}).notes
        return [(note.level, note.system) for note in found if note.code == "self_judging"]

    assert notes("gpt-4o") == [("warning", "bot")]
    assert notes("gpt-4o-mini") == [("note", "bot")]
    assert notes("claude-3-opus") == notes(None) == []


def test_the_generator_is_no_part_of_any_key(tmp_path: Path, server: ChatServer) -> None:
    """Naming it later must not compute anything again."""
    spec = tmp_path / "spec.yaml"
    evaluate(tmp_path, server)
    before = json.loads(plan(spec).to_json())["steps"]
    bot = {"use": "file", "path": "rows.jsonl", "generator": "tiny"}
    spec.write_text(json.dumps({**json.loads(spec.read_text()), "systems": {"bot": bot}}))
    assert json.loads(plan(spec).to_json())["steps"] == before


class Mumbler(Judge):
    """An endpoint whose first reply about row 1 cannot be read, and none about row 2."""

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        text = json.dumps(body["messages"])
        asked_again = len(body["messages"]) > 2
        return Answer(completion("Well." if "It is 2." in text or ("It is 1." in text and not asked_again) else "yes"))


def test_the_results_say_how_often_replies_could_be_read(tmp_path: Path) -> None:
    server = ChatServer(Mumbler())
    for _ in ("asked now", "from the store"):
        evaluation = evaluate(tmp_path, server)
        assert evaluation.replies == {"gpt": ReplyCounts(first=2, later=1, never=1, repeats=3)}
        assert json.loads(results(tmp_path))["replies"] == {"gpt": {"first": 2, "later": 1, "never": 1, "repeats": 3}}
    asked = "replies of gpt: readable replies to 50% of 4 questions at first, 25% after asking again, 25% never"
    assert asked in describe_provenance(evaluation)
    server.close()


def test_the_store_remembers_how_often_and_how_fast_new_replies_came(tmp_path: Path) -> None:
    server = ChatServer(Mumbler())
    store = tmp_path / ".rageval" / "store"
    for _ in ("asked now", "from the store"):
        evaluate(tmp_path, server)
        (asked,) = list_asked(store)
        assert (asked.model, asked.calls, asked.replies) == ("tiny", len(server.calls), ReplyCounts(2, 1, 1, 3))
        assert asked.url.startswith(server.url)
        assert asked.seconds > 0
    assert "tiny" in find_models(store).to_text()
    assert "readable replies to 50% of 4 questions at first" in find_models(store).to_text()
    assert json.loads(find_models(store).to_json())["chat"][0]["replies"]["never"] == 1
    server.close()
