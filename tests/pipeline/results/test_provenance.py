"""Where the numbers of an evaluation come from.

Where datasets come from: what is known of it, and that results, comparisons and reports say it.

What judging cost, and the prompts that judges sent, in the results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec import runner
from rageval_spec.commands.models.listing import find_models
from rageval_spec.commands.results_argument import open_results
from rageval_spec.commands.show import show
from rageval_spec.data.chat import ReplyCounts
from rageval_spec.data.datasets import MOST_DOCUMENTS, DatasetOrigin, Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Evaluation, JudgingCost
from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import SpecError
from rageval_spec.drawing.evaluation_view import draw_provenance
from rageval_spec.drawing.question_order import Filter
from rageval_spec.drawing.view import write_markdown
from rageval_spec.judging.prompts import FOLDER
from rageval_spec.pipeline.results.provenance import describe_spec, digest_data, find_dataset_origin
from rageval_spec.plugin import DatasetNode
from rageval_spec.reading.question_files import dump_columns
from rageval_spec.runner import Options, plan, run
from rageval_spec.spec import loads
from rageval_spec.store.replies import list_asked
from tests.checked_specs import validate
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

HTTP = """\
version: 1
name: bot
datasets: {d: {use: jsonl, path: d.jsonl}}
systems:
  app: {use: http, url: "http://localhost/%s", headers: {Authorization: "%s"}}
metrics: [exact_match]
"""


def described(query: str = "ask", token: str = "${secret:TOKEN}") -> str:
    spec = loads(HTTP % (query, token), environment={"TOKEN": "a-very-secret-value"}, check_files=False)
    return json.dumps(describe_spec(spec))


def test_secrets_appear_by_name() -> None:
    text = described()
    assert "${secret:TOKEN}" in text
    assert "a-very-secret-value" not in text


@pytest.mark.parametrize(
    ("query", "token"),
    [("ask", "Bearer 8fJq2LxZ0pT7vWc4Yb9N"), ("ask?api_key=8fJq2LxZ0pT7vWc4Yb9N", "none")],
)
def test_keys_in_plain_text_are_hidden(query: str, token: str) -> None:
    text = described(query, token)
    assert "8fJq2LxZ0pT7vWc4Yb9N" not in text
    assert '"***"' in text


def evaluate(folder: Path, **sections: Any) -> Evaluation:
    return run(write_spec(folder, **sections), Options(output=folder / "out", no_store=True)).evaluation


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    spec = evaluate(tmp_path).provenance.spec
    assert spec["ranking"]["ties"] == "trec_eval"
    assert spec["statistics"]["confidence"] == 0.95
    assert [*spec["systems"]] and spec["metrics"]


def test_the_number_of_threads_is_left_out_because_no_byte_depends_on_it(tmp_path: Path) -> None:
    assert not {"threads", "concurrency"} & set(evaluate(tmp_path).provenance.spec["limits"])


def test_every_metric_says_what_it_measures(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, metrics=["ndcg@10", {"use": "rr", "as": "first"}])
    assert [*evaluation.summaries] == ["ndcg@10", "first"]
    assert all(sentence.endswith(".") for sentence in evaluation.summaries.values())


def test_each_part_of_the_data_has_a_digest_that_changes_with_it(tmp_path: Path) -> None:
    before = evaluate(tmp_path).provenance.digests
    (name,) = before
    assert set(before[name]) >= {"qrels", "corpus"}
    assert evaluate(tmp_path).provenance.digests == before
    corpus = tmp_path / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("red apple pie", "red apple cake"))
    after = evaluate(tmp_path).provenance.digests
    assert {part for part in before[name] if before[name][part] != after[name][part]} == {"corpus"}


def test_parts_that_no_query_has_are_left_out() -> None:
    queries = {"q1": Fingerprint("a", None, "c"), "q2": Fingerprint("b", None, None)}
    assert [*digest_data(Fingerprints({"d": queries}))["d"]] == ["qrels", "questions"]


ABOUT = {
    "version": "2.1",
    "created": "2026-05-01",
    "generated_by": {"model": "gpt-4o", "seed": 1},
    "metadata": {"audited": "2026-05-02", "version": "0"},
    "reviewed": 2,
    "source_documents": {"handbook.pdf": {"version": "v3"}, "faq.md": "2026-04"},
}


def find(said: dict[str, Any], rows: list[dict[str, Any]] | None = None, **keys: Any) -> DatasetOrigin | None:
    columns = [{"query_id": f"q{place}", "columns": dump_columns(row)} for place, row in enumerate(rows or ())]
    collection = Collection(
        "golden", load_about=lambda: said, load_columns=lambda: pl.DataFrame(columns) if columns else None
    )
    return find_dataset_origin(DatasetNode(use="jsonl", **keys), collection)


def test_the_top_of_a_file_tells() -> None:
    origin = find(ABOUT, [{"level": 1}] * 3)
    assert origin is not None
    assert origin.documents_digest is not None
    assert origin == DatasetOrigin(
        version="2.1",
        created="2026-05-01",
        made="model gpt-4o, seed 1",
        audited="2026-05-02",
        reviewed=2,
        questions=3,
        documents={"faq.md": "2026-04", "handbook.pdf": "v3"},
        documents_digest=origin.documents_digest,
    )


def test_a_dataset_that_says_nothing_has_no_origin() -> None:
    assert find({}, [{"level": 1}]) is None
    assert find({"note": "x"}) is None


def test_the_spec_wins_over_the_file() -> None:
    origin = find(ABOUT, version=3, about={"created": "2026-06-01", "reviewed": True, "made": "by hand"})
    assert origin is not None
    assert (origin.version, origin.created, origin.made) == ("3", "2026-06-01", "by hand")


def test_rows_are_counted() -> None:
    rows: list[dict[str, Any]] = [
        {
            "made": {"model": "gpt-4o", "slot": 1, "overlap": 0.5},
            "reviewed": True,
            "sources": [{"document": "a", "version": "v2"}],
        },
        {
            "made": {"model": "gpt-4o", "slot": 2, "overlap": 0.1},
            "reviewed": "no",
            "sources": [{"document": "b", "version": None}],
        },
        {"made": "by hand", "reviewed_by": "Ada", "sources": "unreadable"},
    ]
    origin = find({"reviewed": 99}, rows)
    assert origin is not None
    assert origin.made == "model gpt-4o (2 questions) and by hand (1 question)"
    assert (origin.reviewed, origin.questions) == (2, 3)
    assert origin.documents == {"a": "v2"}
    alike = find({}, rows[:2])
    assert alike is not None and alike.made == "model gpt-4o"


@pytest.mark.parametrize(
    ("said", "count"),
    [(True, 3), (False, 0), ("120", 120), ({"count": 7, "of": 9}, 7), ("some", None), ([1], None)],
)
def test_any_way_to_say_how_many_were_reviewed(said: Any, count: int | None) -> None:
    origin = find({"version": 1, "reviewed": said}, [{"level": 1}] * 3)
    assert origin is not None and origin.reviewed == count


def test_of_many_documents_the_digest_tells_all() -> None:
    documents = {f"d{number:04}": "v1" for number in range(500)}
    origins = [find({"documents": {**documents, "d0499": version}}) for version in ("v1", "v2")]
    assert all(origin is not None and len(origin.documents) == MOST_DOCUMENTS for origin in origins)
    assert len({origin.documents_digest for origin in origins if origin}) == 2


def test_a_version_that_yaml_reads_as_a_number_is_an_error(tmp_path: Path) -> None:
    path = write_spec(tmp_path, datasets={"fruit": {"use": "beir", "path": "data", "version": 2.1}})
    with pytest.raises(SpecError, match=r"write the version in quotes, '2\.1': as a number, 2\.10 would be 2\.1"):
        validate(path)


def write_golden(folder: Path, **top: Any) -> Path:
    rows = [{"id": "q1", "query": "red?", "reference": "yes"}, {"id": "q2", "query": "blue?", "reference": "no"}]
    (folder / "golden.json").write_text(json.dumps({**ABOUT, **top, "test_cases": rows}))
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "yes"}\n{"query_id": "q2", "answer": "no"}\n')
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "golden.json"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        metrics=["token_f1"],
        reports=["json", "markdown", "html"],
    )


def test_results_reports_and_show_say_it_and_the_bytes_are_the_same_again(tmp_path: Path) -> None:
    path = write_golden(tmp_path)
    for name in ("a", "b"):
        runner.run(path, Options(output=tmp_path / name))
    results = (tmp_path / "a" / "results.json").read_bytes()
    assert results == (tmp_path / "b" / "results.json").read_bytes()
    assert json.loads(results)["origins"]["golden"]["version"] == "2.1"
    told = "version 2.1; created 2026-05-01; made: model gpt-4o, seed 1; audited 2026-05-02; 2 of 2 questions reviewed"
    assert told in (tmp_path / "a" / "report.md").read_text()
    folder = str(tmp_path / "a")
    assert b"dataset golden: version 2.1; created 2026-05-01" in show([], Filter(), "text", results=folder)
    assert b"Dataset golden: version 2" in show([], Filter(), "markdown", results=folder)
    assert json.loads(show([], Filter(), "json", results=folder))["origins"]["golden"]["reviewed"] == 2


def test_a_version_changes_no_key_of_the_store(tmp_path: Path) -> None:
    keys = []
    for version in ("2.1", "2.2"):
        path = write_spec(tmp_path, datasets={"fruit": {"use": "beir", "path": "data", "version": version}})
        runner.run(path, Options(output=tmp_path / "out"))
        keys.append(sorted(one.name for one in (tmp_path / ".rageval").rglob("*") if one.is_dir()))
    assert keys[0] == keys[1]
    assert open_results(str(tmp_path / "out")).evaluation.provenance.origins["fruit"].version == "2.2"


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


def evaluate_with_judge(
    folder: Path, server: ChatServer, model: dict[str, Any] | None = None, **changes: Any
) -> Evaluation:
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
    judging = evaluate_with_judge(tmp_path, server).provenance.judging
    assert len(server.calls) == ROWS
    assert judging == {"gpt": JudgingCost(ROWS, 7 * ROWS, 3 * ROWS, (7 * ROWS * 2 + 3 * ROWS * 10) / 1e6)}
    assert json.loads(results(tmp_path))["judging"] == {
        "gpt": {"calls": 4, "input_tokens": 28, "output_tokens": 12, "cost": 0.000176}
    }


def test_stored_replies_count_like_new_ones(tmp_path: Path, server: ChatServer) -> None:
    evaluate_with_judge(tmp_path, server)
    asked, first = len(server.calls), results(tmp_path)
    evaluate_with_judge(tmp_path, server)
    assert len(server.calls) == asked
    assert results(tmp_path) == first
    evaluate_with_judge(tmp_path, server, options={"no_store": True})
    assert len(server.calls) == 2 * asked
    assert results(tmp_path) == first


def test_metrics_that_ask_the_same_question_count_it_once(tmp_path: Path, server: ChatServer) -> None:
    twice = [{"use": "faithfulness", "judge": "strict", "as": name} for name in ("one", "two")]
    assert (
        evaluate_with_judge(tmp_path, server, metrics=twice).provenance.judging["gpt"].calls
        == len(server.calls)
        == ROWS
    )


def test_each_sample_that_a_panel_asks_for_counts(tmp_path: Path, server: ChatServer) -> None:
    judges = {
        "strict": {"use": "binary", "model": "gpt", "per": "answer"},
        "jury": {"use": "panel", "judges": ["strict"], "repeats": 3},
    }
    evaluation = evaluate_with_judge(
        tmp_path, server, judges=judges, metrics=[{"use": "faithfulness", "judge": "jury"}]
    )
    assert evaluation.provenance.judging["gpt"].calls == len(server.calls) == 3 * ROWS
    assert {name.partition(".")[0] for name in evaluation.provenance.prompts} == {"strict"}


def test_replies_that_cannot_be_read_count_until_they_are_replaced(tmp_path: Path, server: ChatServer) -> None:
    assert isinstance(server.chat, Judge)
    server.chat.unread = "What is 3?"
    assert evaluate_with_judge(tmp_path, server).provenance.judging["gpt"].calls == len(server.calls) == ROWS - 1 + 3
    server.chat.unread = ""
    assert evaluate_with_judge(tmp_path, server).provenance.judging["gpt"].calls == ROWS - 1 + 3
    assert evaluate_with_judge(tmp_path, server, options={"retry_failed": True}).provenance.judging["gpt"].calls == ROWS
    retried = results(tmp_path)
    evaluate_with_judge(tmp_path, server)
    assert results(tmp_path) == retried


def test_without_token_counts_only_the_calls_are_known(tmp_path: Path) -> None:
    server = ChatServer(Judge(has_usage=False))
    for _ in ("asked now", "from the store"):
        assert evaluate_with_judge(tmp_path, server).provenance.judging == {"gpt": JudgingCost(ROWS, None, None, None)}
    server.close()


def test_without_a_price_the_cost_is_not_known(tmp_path: Path, server: ChatServer) -> None:
    assert evaluate_with_judge(tmp_path, server, {"price": None}).provenance.judging == {
        "gpt": JudgingCost(ROWS, 7 * ROWS, 3 * ROWS, None)
    }


def test_a_model_that_no_judge_asked_is_absent(tmp_path: Path, server: ChatServer) -> None:
    evaluation = evaluate_with_judge(tmp_path, server, metrics=[{"use": "max_words", "value": 9}])
    assert (evaluation.provenance.judging, evaluation.provenance.prompts) == ({}, {})


def test_prompts_have_the_digest_of_their_file(tmp_path: Path, server: ChatServer) -> None:
    (tmp_path / "mine.jinja").write_text("{{ instruction }}\n{{ material }}\nThink twice.")
    own = {"use": "binary", "model": "gpt", "per": "answer", "prompts": {"binary": "mine.jinja"}}
    prompts = evaluate_with_judge(
        tmp_path, server, judges={"strict": own, "idle": {"use": "claims", "model": "gpt"}}
    ).provenance.prompts
    assert prompts == {
        "strict.system": hashlib.sha256((FOLDER / "system.jinja").read_bytes()).hexdigest(),
        "strict.binary": hashlib.sha256((tmp_path / "mine.jinja").read_bytes()).hexdigest(),
    }


def test_a_judge_of_its_own_model_s_answers_is_noted(tmp_path: Path, server: ChatServer) -> None:
    def notes(generator: str | None) -> list[tuple[str, str | None]]:
        bot = {"use": "file", "path": "rows.jsonl"} | ({} if generator is None else {"generator": generator})
        found = evaluate_with_judge(tmp_path, server, {"model": "gpt-4o-2024-08-06"}, systems={"bot": bot}).notes
        return [(note.level, note.system) for note in found if note.code == "self_judging"]

    assert notes("gpt-4o") == [("warning", "bot")]
    assert notes("gpt-4o-mini") == [("note", "bot")]
    assert notes("claude-3-opus") == notes(None) == []


def test_the_generator_is_no_part_of_any_key(tmp_path: Path, server: ChatServer) -> None:
    """Naming it later must not compute anything again."""
    spec = tmp_path / "spec.yaml"
    evaluate_with_judge(tmp_path, server)
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
        evaluation = evaluate_with_judge(tmp_path, server)
        assert evaluation.provenance.replies == {"gpt": ReplyCounts(first=2, later=1, never=1, repeats=3)}
        assert json.loads(results(tmp_path))["replies"] == {"gpt": {"first": 2, "later": 1, "never": 1, "repeats": 3}}
    asked = "replies of gpt: readable replies to 50% of 4 questions at first, 25% after asking again, 25% never"
    assert f"{asked} (3 more calls)" in write_markdown([draw_provenance(evaluation)])
    server.close()


def test_the_store_remembers_how_often_and_how_fast_new_replies_came(tmp_path: Path) -> None:
    server = ChatServer(Mumbler())
    store = tmp_path / ".rageval" / "store"
    for _ in ("asked now", "from the store"):
        evaluate_with_judge(tmp_path, server)
        (asked,) = list_asked(store)
        assert (asked.model, asked.calls, asked.replies) == ("tiny", len(server.calls), ReplyCounts(2, 1, 1, 3))
        assert asked.url.startswith(server.url)
        assert asked.seconds > 0
    assert "tiny" in find_models(store).to_text()
    assert "readable replies to 50% of 4 questions at first" in find_models(store).to_text()
    assert json.loads(find_models(store).to_json())["chat"][0]["replies"]["never"] == 1
    server.close()
