"""`generate qrels`, as a user runs it, with a scripted endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rageval_spec import kernels
from rageval_spec.endpoints.chat_questions import count_tokens
from tests.command_line import invoke
from tests.commands.generate.killed import kill_after
from tests.models.chat_endpoint import ChatServer, completion, refusal
from tests.models.endpoint import Answer

SPEC = """\
version: 1
datasets: {{golden: {{use: {dataset}}}}}
systems: {{bm25: {{use: bm25}}, old: {{use: file, path: old.run}}, bot: {{use: file, path: answers.jsonl}}}}
models: {{llm: {{use: chat, model: llama3.1:8b, base_url: "{url}", price: {{input: 1, output: 2}}}}}}
judges: {{relevance: {{use: grade, model: llm}}}}
metrics: [ndcg@10]
"""
TREC = "trec, qrels: judged.txt, queries: queries.tsv, corpus: corpus.jsonl"
WITHOUT = "jsonl, path: questions.jsonl, corpus: corpus.jsonl"
DOCUMENTS = {
    "d0": "pumps move water",
    "d1": "pumps of brass",
    "d2": "wheels turn",
    "d3": "a wheel of wood",
    "d4": " ",
    "d5": "pumps and wheels",
}
Asked = tuple[str, str]


class Grader:
    """Grades by the number of words that are in `scores`, else 1; `replies` are said instead about some texts."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.prompts: list[str] = []
        self.requests: list[str] = []
        self.replies: dict[str, Answer] = {}

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        prompt = body["messages"][1]["content"]
        question, text = (json.loads(line) for line in re.findall(r'^".*"$', prompt, re.MULTILINE))
        self.asked.append((question, text))
        self.prompts.append(prompt)
        self.requests.append("".join(one["content"] for one in body["messages"]))
        grade = 3 if text == "pumps move water" else 2 if "pumps" in text else 0
        told = {"reason": f"it is about {text.split()[0]}", "grade": grade}
        return self.replies.get(text) or Answer(completion(json.dumps(told)))


@pytest.fixture
def grader() -> Grader:
    return Grader()


def write_rows(path: Path, rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def server(grader: Grader) -> Iterator[ChatServer]:
    with closing(ChatServer(grader)) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "corpus.jsonl", ({"doc_id": one, "text": text} for one, text in DOCUMENTS.items()))
    (tmp_path / "queries.tsv").write_text("q1\tpumps\nq2\twheels\n")
    write_rows(
        tmp_path / "questions.jsonl", [{"query_id": "q1", "text": "pumps"}, {"query_id": "q2", "text": "wheels"}]
    )
    (tmp_path / "judged.txt").write_text("q1 0 d1 1\nq2 Q0 d0 0\nq9 0 d0 2\n")
    (tmp_path / "old.run").write_text("q1 Q0 d4 1 9 x\nq1 Q0 d1 2 8 x\nq1 Q0 d3 3 7 x\nq2 Q0 d3 1 9 x\n")
    answers = [{"query_id": "q2", "answer": "a", "contexts": ["wheels turn"], "context_ids": ["d2"]}]
    write_rows(tmp_path / "answers.jsonl", answers)
    (tmp_path / "url").write_text(server.url)
    write_spec()
    return tmp_path


def write_spec(dataset: str = TREC, **changes: str) -> None:
    text = SPEC.format(url=Path("url").read_text(), dataset=dataset)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    Path("spec.yaml").write_text(text)


def generate(*more: str) -> Result:
    return invoke("generate", "qrels", "spec.yaml", *more)


def plan(*more: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(generate("--dry-run", "--format", "json", *more).stdout)
    return shown


def read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_the_pool_is_graded_and_peoples_judgements_are_kept(folder: Path, grader: Grader) -> None:
    done = generate("-o", "qrels.txt", "--depth", "2")
    assert done.exit_code == 3
    # the first two documents of bm25 for pumps are d5 and d1, of the recorded run d4 and d1; bot has only contexts
    assert Path("qrels.txt").read_text().splitlines() == [
        "q1 relevance d5 2",
        "q1 people d1 1",
        "q2 relevance d2 0",
        "q2 relevance d3 0",
        "q2 relevance d5 2",
        "q2 people d0 0",
        "q9 people d0 2",
    ]
    assert sorted(grader.asked) == [
        ("pumps", "pumps and wheels"),
        ("wheels", "a wheel of wood"),
        ("wheels", "pumps and wheels"),
        ("wheels", "wheels turn"),
    ]
    assert done.stdout.splitlines() == [
        "judged by people: 1 with 0, 1 with 1, 1 with 2",
        "judged by relevance: 2 with 0, 2 with 2",
        "! unjudged: q1 d4: there is no text of this document",
    ]
    assert kernels.read_qrels("qrels.txt").height == 7
    assert "two scales" not in done.stderr
    assert "answers it exactly and in full" in grader.prompts[0]
    assert "Grade from 0 (not at all) to 3 (completely)" in grader.prompts[0]


@pytest.mark.parametrize(("judged", "most"), [("q1 0 d1 1\nq2 Q0 d0 0\n", 1), ("q1 0 d1 4\n", 4)])
def test_grades_of_people_on_another_scale_are_told(folder: Path, judged: str, most: int) -> None:
    Path("judged.txt").write_text(judged)
    told = f"! people's grades go up to {most}, and the judge's to 3: metrics such as ndcg would mix two scales"
    assert told in generate("--dry-run").stderr
    assert told not in generate("--dry-run", "--also-judged").stderr


def test_the_file_is_the_next_datasets_qrels_and_judges_stay_named(folder: Path, grader: Grader) -> None:
    generate("-o", "qrels.txt", "--depth", "1", "--system", "bm25")
    assert len(grader.asked) == 2
    write_spec(TREC.replace("judged", "qrels"))
    assert "the dataset reads this file" in generate("--force").stderr
    done = generate("-o", "deeper.txt", "--depth", "2", "--system", "bm25")
    assert done.exit_code == 0, done.output
    assert len(grader.asked) == 3
    lines = Path("deeper.txt").read_text().splitlines()
    assert {*Path("qrels.txt").read_text().splitlines()} < {*lines}
    assert "q1 people d1 1" in lines
    evaluated = invoke("run", "spec.yaml", "--no-history", "--quiet", "--set", "datasets.golden.qrels=deeper.txt")
    assert evaluated.exit_code == 0, evaluated.output


def test_json_lines_have_the_reasons(folder: Path) -> None:
    assert generate("-o", "qrels.jsonl", "--system", "bm25", "--depth", "1", "--format", "json").exit_code == 0
    rows = read("qrels.jsonl")
    expected = {"query_id": "q1", "doc_id": "d5", "relevance": 2, "judged_by": "relevance"}
    assert rows[0] == {**expected, "reason": "it is about pumps"}
    assert rows[1] == {"query_id": "q1", "doc_id": "d1", "relevance": 1, "judged_by": "people"}


def test_what_people_judged_can_be_asked_again(folder: Path, grader: Grader) -> None:
    assert generate("--also-judged", "--depth", "1", "--system", "bm25").exit_code == 0
    assert Path("qrels.txt").read_text().splitlines() == [
        "q1 relevance d5 2",
        "q1 relevance d1 2",
        "q2 relevance d5 2",
        "q2 relevance d0 3",
        "q9 people d0 2",  # no question of this id, so nobody can be asked
    ]
    assert len(grader.asked) == 4


def test_holes_stay_unjudged_and_say_why(folder: Path, grader: Grader) -> None:
    grader.replies["pumps and wheels"] = Answer(completion("I cannot judge this."))
    grader.replies["wheels turn"] = Answer(completion('{"reason": "", "grade": 9}'))
    done = generate("--depth", "2", "--format", "json")
    assert done.exit_code == 3
    holes = {(one["query_id"], one["doc_id"]): one["unjudged"] for one in json.loads(done.stdout)["unjudged"]}
    assert {*holes} == {("q1", "d4"), ("q1", "d5"), ("q2", "d2"), ("q2", "d5")}
    assert "I cannot judge this." in holes["q1", "d5"]
    assert Path("qrels.txt").read_text().count("relevance") == 1
    write_rows(Path("corpus.jsonl"), [{"doc_id": "d0", "text": DOCUMENTS["d0"]}])
    done = generate("--depth", "2", "--system", "old", "--force")
    assert "! unjudged: q2 d3: there is no text of this document" in done.stdout
    assert "wrote" not in done.stderr  # nothing was judged


def test_an_endpoint_that_refuses_writes_nothing(folder: Path, grader: Grader) -> None:
    grader.replies = dict.fromkeys(DOCUMENTS.values(), refusal("no such model", 404))
    done = generate()
    assert done.exit_code == 3
    assert "no such model" in done.output
    assert not Path("qrels.txt").exists()


def test_a_plan_is_the_bill(folder: Path, grader: Grader) -> None:
    planned = plan("--depth", "2")
    assert (planned["questions"], planned["pairs"]) == (2, 5)
    assert not grader.asked and not Path("qrels.txt").exists()
    (model,) = planned["to_ask"]["models"]
    assert model["cost"] > 0
    generate("--depth", "2")
    assert len(grader.asked) == model["calls"] == 4  # the pair without a text is not asked
    assert model["input_tokens"] == pytest.approx(sum(count_tokens(len(one)) for one in grader.requests), rel=0.02)
    assert plan("--depth", "2")["to_ask"]["models"][0]["calls"] == 0
    assert "this is more than 1e-06 USD" in generate("--dry-run", "--depth", "3", "--max-cost", "0.000001").stdout


def test_a_limit_stops_it_and_the_next_run_continues(folder: Path, grader: Grader) -> None:
    stopped = generate("--depth", "2", "--max-calls", "2")
    assert stopped.exit_code == 3
    assert "run the same command again to continue" in stopped.stderr
    assert not Path("qrels.txt").exists()
    generate("--depth", "2")
    assert len(grader.asked) == 4
    once = Path("qrels.txt").read_bytes()
    generate("--depth", "2", "--no-store", "--force")
    assert Path("qrels.txt").read_bytes() == once


def test_after_a_kill_the_same_bytes_come_out(folder: Path, grader: Grader, server: ChatServer) -> None:
    command = ("generate", "qrels", "spec.yaml", "--depth", "3", "--set", "models.llm.concurrency=1")
    kill_after(3, server, *command)
    assert not Path("qrels.txt").exists()
    assert invoke(*command).exit_code == 3
    assert len(grader.asked) <= 2 * 3 + 1  # of six calls, only the one under way was made again
    again = Path("qrels.txt").read_bytes()
    assert invoke(*command, "--no-store", "--force").exit_code == 3
    assert Path("qrels.txt").read_bytes() == again


def test_documents_without_labels_and_contexts_without_a_corpus(folder: Path, grader: Grader) -> None:
    write_spec(WITHOUT)
    assert generate("--system", "bm25", "--depth", "1").exit_code == 0
    assert Path("qrels.txt").read_text() == "q1 relevance d5 2\nq2 relevance d5 2\n"
    write_spec(TREC.replace(", corpus: corpus.jsonl", ""), **{"bm25: {use: bm25}, ": ""})
    done = generate("--system", "bot", "-o", "bot.txt")
    assert done.exit_code == 0, done.output
    assert "q2 relevance d2 0" in Path("bot.txt").read_text()
    refused = generate("--system", "old", "-o", "old.txt")
    assert refused.exit_code != 0
    assert "generate qrels needs a corpus, but the dataset 'golden' has none" in refused.stderr


def test_hostile_ids(folder: Path, grader: Grader) -> None:
    for hostile in ("d 1", "d\n1", "d\t1"):
        write_rows(Path("corpus.jsonl"), [{"doc_id": hostile, "text": "pumps move water"}])
        refused = generate("--system", "bm25")
        assert refused.exit_code == 2
        assert f"TREC qrels cannot hold the doc_id {hostile!r}, which has white space" in refused.stderr
        assert "write JSON Lines: -o qrels.jsonl" in refused.stderr
        assert not grader.asked
    assert generate("--system", "bm25", "-o", "qrels.jsonl").exit_code == 0
    assert "d\t1" in [row["doc_id"] for row in read("qrels.jsonl")]
    write_rows(Path("corpus.jsonl"), [{"doc_id": "d1", "text": "pumps"}, {"doc_id": "d1", "text": "wheels"}])
    assert "corpus.jsonl:2" in generate("--system", "bm25").stderr


JUDGE = "{use: grade, model: llm}"


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("{use: binary, model: llm}", "(use: binary) does not grade in three or more levels; declare one that does"),
        ("{use: overlap}", "(use: overlap) does not grade in three or more levels"),
        ("{use: choice, model: llm, options: [{text: a, score: 0}, {text: b, score: 1}]}", "does not grade in three"),
        ("{use: prompt, model: llm, template: '{{ contexts }}'}", "does not grade in three or more levels"),
        ("{use: grade, model: llm, guide: {bad: none, good: all}}", 'guide: {"0": ..., "4": ...}'),
    ],
)
def test_a_judge_without_levels_is_refused(folder: Path, judge: str, message: str, grader: Grader) -> None:
    write_spec(TREC, **{JUDGE: judge})
    refused = generate()
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert not grader.asked


@pytest.mark.parametrize(
    ("judge", "shown", "said", "relevance"),
    [
        ('{use: grade, model: llm, guide: {"0": nothing, "2": partly, "4": all of it}}', "0: nothing", {"grade": 4}, 4),
        ("{use: scores, model: llm}", "it has nothing to do with", {"relevance": {"reason": "", "score": 3}}, 3),
        ("{use: choice, model: llm}", "Mostly.", {"choice": "B"}, 2),
        (
            "{use: choice, model: llm, options: [{text: all, score: 1}, {text: much, score: 0.75}, "
            "{text: part, score: 0.5}, {text: some, score: 0.25}, {text: none, score: 0}]}",
            "A: all",
            {"choice": "B"},
            3,
        ),
        (
            "{use: prompt, model: llm, scale: [0, 3], template: 'Mine: {{ question }} {{ contexts }}'}",
            "Mine:",
            {"score": 2.5},
            3,
        ),
    ],
)
def test_levels_of_its_own(
    folder: Path, grader: Grader, judge: str, shown: str, said: dict[str, Any], relevance: int
) -> None:
    grader.replies["pumps and wheels"] = Answer(completion(json.dumps({"reason": "", **said})))
    write_spec(TREC, **{JUDGE: judge})
    assert generate("--system", "bm25", "--depth", "1", "-o", "own.txt").exit_code in (0, 3)
    assert shown in grader.prompts[0]
    assert f"q1 relevance d5 {relevance}\n" in Path("own.txt").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--judge", "other"), "--judge other: the spec has relevance"),
        (("--system", "other"), "--system other: the spec has bm25, old and bot"),
        (("--dataset", "other"), "--dataset other: the spec has golden"),
        (("-o", "judged.txt", "--force"), "-o judged.txt: the dataset reads this file; name another one"),
        (("-o", "spec.yaml"), "spec.yaml exists; name another file, or replace it with --force"),
    ],
)
def test_what_cannot_be_made_says_why(folder: Path, more: tuple[str, ...], message: str) -> None:
    refused = generate(*more)
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_specs_that_cannot_be_judged_say_why(folder: Path) -> None:
    write_spec(TREC, **{f"{{relevance: {JUDGE}}}": "{}"})
    assert "--judge is missing; the spec has no judge for it" in generate().stderr
    for name in ("people", "Q0"):
        write_spec(TREC, **{"{relevance:": f"{{{name}:"})
        assert f"--judge '{name}': the name means that people judged" in generate().stderr
    write_spec(TREC, **{"{relevance:": "{my judge:"})
    assert "--judge 'my judge': the name has a space" in generate().stderr
    write_rows(Path("answers.jsonl"), [{"query_id": "q2", "answer": "a", "contexts": ["wheels turn"]}])
    write_spec()
    refused = generate("--system", "bot")
    assert "the contexts of 'bot' have no ids" not in refused.stdout
    assert "no system finds a document for any query" in refused.stderr


def test_a_judge_of_the_family_of_a_ranker_is_told(folder: Path) -> None:
    assert "of the same family" not in generate("--dry-run").stderr
    write_spec(TREC, **{"answers.jsonl}": "answers.jsonl, generator: meta-llama/Llama-3.1-70B-Instruct}"})
    told = generate("--dry-run").stderr
    assert "the judge 'relevance' asks llama3.1:8b, and 'bot' works with meta-llama/Llama-3.1-70B-Instruct" in told


def test_a_hybrid_reads_runs_that_are_not_pooled(folder: Path) -> None:
    write_spec(TREC, **{"systems: {bm25": "systems: {both: {use: hybrid, systems: [bm25, old]}, bm25"})
    assert generate("--system", "both", "--depth", "2").exit_code in (0, 3)
    assert "q1 relevance d5 2" in Path("qrels.txt").read_text()
