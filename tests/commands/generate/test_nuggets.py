"""`generate nuggets`, as a user runs it, with a scripted endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rageval_spec.reading.nugget_banks import read_banks
from tests.command_line import invoke
from tests.commands.generate.killed import kill_after
from tests.models.chat_endpoint import ChatServer, completion, refusal
from tests.models.endpoint import Answer

SPEC = """\
version: 1
datasets: {{golden: {{use: trec, qrels: qrels.txt, queries: queries.tsv, corpus: corpus.jsonl}}}}
systems: {{bm25: {{use: bm25}}, bot: {{use: file, path: answers.jsonl}}}}
models: {{writer: {{use: chat, model: tiny, base_url: "{url}", price: {{input: 1, output: 2}}}}}}
metrics: [ndcg@10]
"""


class Writer:
    """Adds `passage N` for each passage to the list, keeps 30, and calls even numbers vital."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken = ""

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        asked = body["messages"][1]["content"]  # the first is the rules; later ones are corrections
        self.asked.append(body["messages"][-1]["content"])
        texts = [json.loads(line) for line in re.findall(r'^".*"$', asked, re.MULTILINE)]
        question, *rest = texts
        if self.broken and self.broken in question:
            return Answer(completion('{"facts": ["' + "word " * 13 + '"]}'))
        if "okay" in asked:
            how = ["vital" if int(text.split()[-1]) % 2 == 0 else "okay" for text in rest]
            labels = [{"fact": at, "importance": one} for at, one in enumerate(how, 1)]
            return Answer(completion(json.dumps({"labels": labels})))
        return Answer(completion(json.dumps({"facts": [text.lstrip() for text in rest][:30]})))


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def server(writer: Writer) -> Iterator[ChatServer]:
    with closing(ChatServer(writer)) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    documents = [{"doc_id": f"d{number:02}", "text": f"fact {number}"} for number in range(40)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (tmp_path / "queries.tsv").write_text("1\tpumps\n2\twheels\n3\tnothing\n")
    judged = [("1", number, 1 + (number == 11)) for number in range(12)] + [("2", 3, 1), ("3", 4, 0)]
    (tmp_path / "qrels.txt").write_text("".join(f"{query} 0 d{doc:02} {grade}\n" for query, doc, grade in judged))
    answers = [{"query_id": "2", "answer": "a", "contexts": ["fact 20", "fact 21", "fact 22"]}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    (tmp_path / "spec.yaml").write_text(SPEC.format(url=server.url))
    return tmp_path


def generate(*more: str) -> Result:
    return invoke("generate", "nuggets", "spec.yaml", *more)


def test_the_list_is_brought_up_to_date_ten_passages_at_a_time(folder: Path, writer: Writer) -> None:
    planned = json.loads(generate("--dry-run", "--format", "json").stdout)
    assert (planned["questions"], planned["passages"], planned["to_ask"]["models"][0]["calls"]) == (
        2,
        13,
        2 + 3 + 1 + 3,
    )
    assert not writer.asked and not (folder / "nuggets.jsonl").exists()
    done = generate()
    assert done.exit_code == 0, done.output
    assert done.stdout == "13 nuggets of 2 questions, 6 vital\n! 1 question without a relevant passage: '3'\n"
    assert len(writer.asked) == 2 + 2 + 1 + 1
    banks = read_banks(folder / "nuggets.jsonl")
    assert [bank.question for bank in banks.values()] == ["pumps", "wheels"]
    # the document with the highest relevance was read first, and vital nuggets come first
    assert [one.text for one in banks["1"].nuggets][:3] == ["fact 0", "fact 2", "fact 4"]
    assert banks["1"].nuggets[6].text == "fact 11"
    assert [one.importance for one in banks["1"].nuggets] == ["vital"] * 6 + ["okay"] * 6
    # each names the passages of the first call whose reply had it
    sources = {one.text: one.documents for one in banks["1"].nuggets}
    assert sources["fact 11"] == sources["fact 0"] == ("d11", *(f"d{number:02}" for number in range(9)))
    assert sources["fact 9"] == sources["fact 10"] == ("d09", "d10")
    assert [one.documents for one in banks["2"].nuggets] == [("d03",)]
    facts = next(one for one in writer.asked if '"pumps"' in one and "okay" not in one)
    assert facts.count("<passage ") == 10 and '"fact 11"' in facts


def test_stored_replies_give_the_same_bytes_and_cost_nothing(folder: Path, writer: Writer) -> None:
    assert generate().exit_code == 0
    first, calls = (folder / "nuggets.jsonl").read_bytes(), len(writer.asked)
    assert "exists, and people may have edited it" in generate().stderr
    assert generate("--force").exit_code == 0
    assert ((folder / "nuggets.jsonl").read_bytes(), len(writer.asked)) == (first, calls)
    assert json.loads(generate("--dry-run", "--format", "json").stdout)["to_ask"]["models"][0]["calls"] == 0


def test_a_run_that_was_stopped_goes_on(folder: Path, writer: Writer) -> None:
    stopped = generate("--max-calls", "2")
    assert stopped.exit_code == 3
    assert "run the same command again to continue" in stopped.stderr
    assert not (folder / "nuggets.jsonl").exists()
    assert len(writer.asked) == 2
    assert generate().exit_code == 0
    assert len(writer.asked) == 6
    whole = (folder / "nuggets.jsonl").read_bytes()
    assert generate("--no-store", "--force").exit_code == 0
    assert (folder / "nuggets.jsonl").read_bytes() == whole


def test_after_a_kill_the_same_bytes_come_out(folder: Path, writer: Writer, server: ChatServer) -> None:
    command = ("generate", "nuggets", "spec.yaml", "--set", "models.writer.concurrency=1")
    kill_after(3, server, *command)
    assert not (folder / "nuggets.jsonl").exists()
    assert invoke(*command).exit_code == 0
    assert len(writer.asked) <= 6 + 1  # of six calls, only the one under way was made again
    again = (folder / "nuggets.jsonl").read_bytes()
    assert invoke(*command, "--no-store", "--force").exit_code == 0
    assert (folder / "nuggets.jsonl").read_bytes() == again


def test_a_hybrid_reads_runs_of_systems_that_are_not_named(folder: Path) -> None:
    spec = folder / "spec.yaml"
    spec.write_text(
        spec.read_text().replace(
            "{bm25:", "{both: {use: hybrid, systems: [bm25, near]}, near: {use: bm25, k1: 0.9}, bm25:"
        )
    )
    (folder / "queries.tsv").write_text("1\tfact 25\n")
    done = generate("--system", "both", "--depth", "3")
    assert done.exit_code == 0, done.output


def test_replies_that_break_the_rules_fail_their_question(folder: Path, writer: Writer) -> None:
    writer.broken = "wheels"
    done = generate("--format", "json")
    assert done.exit_code == 3
    shown = json.loads(done.stdout)
    assert shown["questions"] == 1
    assert "a fact has 13 words, more than 12" in shown["failed"]["2"]
    assert [*read_banks(folder / "nuggets.jsonl")] == ["1"]
    assert any("Your reply cannot be read" in one for one in writer.asked)


def test_a_plan_is_not_below_the_bill(folder: Path, writer: Writer) -> None:
    planned = json.loads(generate("--dry-run", "--format", "json").stdout)["to_ask"]["models"][0]
    assert generate("--relevance", "1").exit_code == 0
    assert len(writer.asked) <= planned["calls"]
    assert sum(map(len, writer.asked)) / 4 <= planned["input_tokens"]


def test_the_documents_of_a_system(folder: Path, writer: Writer) -> None:
    done = generate("--system", "bot", "--depth", "2", "--as", "autojudge")
    assert done.exit_code == 0, done.output
    (bank,) = read_banks(folder / "nuggets.jsonl").values()
    assert (bank.query_id, [one.text for one in bank.nuggets]) == ("2", ["fact 20", "fact 21"])
    assert '"claim_bank"' in (folder / "nuggets.jsonl").read_text()
    assert [one.documents for one in bank.nuggets] == [(), ()]  # its contexts have no ids
    (folder / "queries.tsv").write_text("1\tfact 25\n")
    assert generate("--system", "bm25", "--depth", "3", "--force").exit_code == 0
    (bank,) = read_banks(folder / "nuggets.jsonl").values()
    assert "fact 25" in [one.text for one in bank.nuggets]
    assert len(bank.nuggets) == 3
    assert {len(one.documents) for one in bank.nuggets} == {3}
    assert generate("--as", "autojudge", "--force").exit_code == 0
    (bank,) = read_banks(folder / "nuggets.jsonl").values()
    assert bank.nuggets[0].documents[0] == "d11"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "other"), "--model other: the spec has writer"),
        (("--dataset", "other"), "--dataset other: the spec has golden"),
        (("--system", "other"), "--system other: the spec has bm25 and bot"),
        (("--relevance", "9"), "no question has a relevant passage with a text; lower --relevance"),
        (("-o", "nuggets.txt"), "name a file that ends in .jsonl"),
    ],
)
def test_what_cannot_be_made_says_why(folder: Path, more: tuple[str, ...], message: str) -> None:
    refused = generate(*more)
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_an_endpoint_that_refuses(folder: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "__call__", lambda self, number, body: refusal("no such model", 404))
    done = generate()
    assert done.exit_code == 3
    assert not (folder / "nuggets.jsonl").exists()
    assert "no such model" in done.output
