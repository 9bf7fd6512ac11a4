"""The command `generate`, as a user runs it."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rageval_spec.commands.generate.command import DATASET, build_spec
from rageval_spec.errors import UsageError
from tests.command_line import invoke, start
from tests.generation.conftest import workshop as workshop
from tests.generation.writing import Workshop
from tests.models.chat_endpoint import refusal


def arguments(workshop: Workshop, *more: str, count: int = 6) -> list[str]:
    folder = workshop.folder
    return [
        "generate", str(folder / "corpus"), "-o", str(folder / "golden.jsonl"), "--model", "tiny",
        "--base-url", workshop.server.url, "--store", str(folder / "store"), "--count", str(count), *more,
    ]  # fmt: skip


def generate(workshop: Workshop, *more: str, count: int = 6) -> Result:
    return invoke(*arguments(workshop, *more, count=count))


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_test_set_is_written_that_a_spec_evaluates_without_any_mapping(workshop: Workshop) -> None:
    done = generate(workshop, "--unanswerable", "20%", "--style", "plain,informal", "--price", "1/2", count=10)
    assert done.exit_code == 0, done.output
    assert "10 questions about 8 of 20 chunks, from 10 of 20 documents" in done.output
    assert re.search(r"tiny +28 calls, about [\d,]+ tokens in .*USD", done.stderr)
    assert "made 28 calls, about" in done.stderr
    assert len(read_rows(workshop.folder / "golden.jsonl")) == 10
    spec = workshop.folder / "evaluation.yaml"
    spec.write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl, corpus: golden.corpus.jsonl}}\n"
        "systems: {bm25: {use: bm25}}\nmetrics: [ndcg@10, target_rank]\nslices: [{by: type}]\n"
    )
    evaluated = invoke("run", str(spec), "--no-history", "-o", str(workshop.folder / "results"))
    assert evaluated.exit_code == 0, evaluated.output
    assert "1.000" in evaluated.output


def test_only_the_cost_is_shown(workshop: Workshop) -> None:
    shown = generate(workshop, "--dry-run", "--price", "1/2")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("20 documents, 20 chunks\n")
    assert "18 calls" in shown.stdout
    assert "USD" in shown.stdout
    assert not workshop.writer.bodies
    assert not (workshop.folder / "golden.jsonl").exists()
    content = json.loads(generate(workshop, "--dry-run", "--format", "json").stdout)
    assert content["to_ask"]["models"][0]["calls"] == 18


def test_what_was_rejected_is_written_with_its_reason(workshop: Workshop) -> None:
    write = workshop.writer.draft
    workshop.writer.draft = lambda asked: (  # type: ignore[method-assign]
        {**write(asked), "question": "What does the passage say?"} if "Ember" in asked else write(asked)
    )
    done = generate(workshop, count=20)
    assert "1 question rejected:" in done.output
    assert re.search(r"1 +not_standalone +the question does not make sense without the passage", done.output)
    (rejected,) = read_rows(workshop.folder / "golden.rejected.jsonl")
    assert (rejected["reason"], rejected["question"]) == ("not_standalone", "What does the passage say?")


def test_a_limit_writes_what_is_done_beside_and_a_second_run_completes_it(workshop: Workshop) -> None:
    whole, part = workshop.folder / "golden.jsonl", workshop.folder / "golden.partial.jsonl"
    first = generate(workshop, "--per-chunk", "1", "--max-calls", "50", "--concurrency", "1", count=24)
    assert first.exit_code == 3, first.output
    assert re.search(r"\d+ of 24 questions are made: .*max_calls.*; run the same command again", first.stderr)
    assert not whole.exists()
    assert len(read_rows(part)) == 10
    second = generate(workshop, "--per-chunk", "1", count=24)
    assert second.exit_code == 0
    assert "missing 4 questions: no chunk is left to ask about" in second.output
    assert len(read_rows(whole)) == 20
    assert not part.exists()
    assert len(workshop.writer.bodies) == 60, "nothing was paid twice"


def test_a_killed_run_goes_on_where_it_was(workshop: Workshop) -> None:
    check = workshop.writer.check

    def slow(asked: str) -> Any:
        time.sleep(0.05)
        return check(asked)

    workshop.writer.check = slow  # type: ignore[method-assign]
    process = start(*arguments(workshop, "--concurrency", "1", count=12))
    while workshop.writer.count("check") < 3 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (workshop.folder / "golden.jsonl").exists()
    assert generate(workshop, count=12).exit_code == 0
    assert 36 <= len(workshop.writer.bodies) <= 39, "at most the calls under way were repeated"


def test_two_processes_with_one_store_pay_once(workshop: Workshop) -> None:
    first = start(*arguments(workshop, count=8))
    second = start(*[one.replace("golden.jsonl", "other.jsonl") for one in arguments(workshop, count=8)])
    for process in (first, second):
        _, told = process.communicate()
        assert process.returncode == 0, told
    assert len(workshop.writer.bodies) == 24
    assert (workshop.folder / "golden.jsonl").read_bytes() == (workshop.folder / "other.jsonl").read_bytes()


def test_an_endpoint_that_refuses_is_reported(workshop: Workshop) -> None:
    workshop.writer.draft = lambda asked: refusal("no such model: tiny", 404)  # type: ignore[method-assign]
    done = generate(workshop)
    assert done.exit_code == 3
    assert "no such model: tiny" in done.stderr
    assert not (workshop.folder / "golden.jsonl").exists()


def test_models_judges_and_limits_come_from_a_spec(workshop: Workshop) -> None:
    spec = workshop.folder / "models.yaml"
    spec.write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\nmetrics: [ndcg@10]\n"
        "systems: {mine: {use: file, path: not-yet.jsonl}}\n"
        f'models: {{writer: {{use: chat, base_url: "{workshop.server.url}", model: tiny}}}}\n'
        "judges: {strict: {use: binary, model: writer, per: answer}}\nlimits: {max_calls: 4}\n"
    )
    output = ("-o", str(workshop.folder / "golden.jsonl"), "--count", "2")
    common = ("generate", str(workshop.folder / "corpus"), *output, "--spec", str(spec))
    limited = invoke(*common, "--model", "writer", "--judge", "strict")
    assert limited.exit_code == 3
    assert "limits.max_calls" in limited.stderr
    done = invoke(*common, "--model", "writer", "--judge", "strict", "--set", "limits.max_calls=100")
    assert done.exit_code == 0, done.output
    wrong = invoke(*common, "--model", "wirter", "--force")
    assert wrong.exit_code == 2
    assert "--model: " in wrong.stderr
    assert "has no model 'wirter'; did you mean 'writer'?" in wrong.stderr
    both = invoke(*common, "--model", "writer", "--force", "--base-url", "http://localhost:1")
    assert "--base-url describes a model; with --spec, write it in the block of the model" in both.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--types", "factual:40,analytical:20"), "--types: the shares sum to 60, and must sum to 100"),
        (("--multi-hop", "some"), "--multi-hop: 'some' is not a share of the questions"),
        (("--multi-hop", "60", "--unanswerable", "60%"), "sum to more than 100%"),
        (("--max-cost", "1"), "--max-cost needs the price of 'tiny'; give it in US dollars per million tokens in and "
         "out: --price 0.15/0.60"),
        (("--price", "cheap"), "--price: 'cheap' is not a price"),
        (("--judge", "claims"), "--judge: 'claims' is not a judge that needs no settings"),
        (("--set", "models.a.model=b"), "--set overrides values of a spec; give --spec too"),
        (("-o", "golden.csv"), "-o golden.csv: the questions are written as JSON Lines"),
        (("--api-key-env", "NO_SUCH_KEY"), "the variable NO_SUCH_KEY with the key of the endpoint is not set"),
        (("--dialect", "azure", "--base-url", "x"), "base_url"),
    ],
)  # fmt: skip
def test_a_wrong_option_says_what_to_write(workshop: Workshop, more: tuple[str, ...], message: str) -> None:
    done = generate(workshop, *more)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not workshop.writer.bodies


def test_without_an_endpoint_the_key_of_openai_is_needed(workshop: Workshop) -> None:
    command = ("generate", str(workshop.folder / "corpus"), "--model", "gpt-5-mini", "--dry-run")
    done = invoke(*command, env={"OPENAI_API_KEY": ""})
    assert "the variable OPENAI_API_KEY with the key of the endpoint is not set" in done.stderr
    shown = invoke(*command, "--store", str(workshop.folder / "store"), env={"OPENAI_API_KEY": "secret-key"})
    assert shown.exit_code == 0, shown.output
    assert "gpt-5-mini" in shown.stdout
    assert "secret-key" not in shown.output


def test_a_file_that_exists_is_not_replaced(workshop: Workshop) -> None:
    path = workshop.folder / "golden.jsonl"
    path.write_text("mine\n")
    done = generate(workshop)
    assert done.exit_code == 2
    assert "exists, and people may have edited it" in done.stderr
    assert (path.read_text(), workshop.writer.bodies) == ("mine\n", [])
    assert generate(workshop, "--force").exit_code == 0


def test_a_corpus_that_is_not_there_or_empty_is_said(workshop: Workshop, tmp_path: Path) -> None:
    command = ("--model", "tiny", "--base-url", workshop.server.url, "-o", str(tmp_path / "x.jsonl"))
    assert "there is no such file or folder" in invoke("generate", str(tmp_path / "absent"), *command).stderr
    (tmp_path / "empty").mkdir()
    assert "there is nothing to read" in invoke("generate", str(tmp_path / "empty"), *command).stderr


def test_a_split_divides_the_questions_by_their_documents(workshop: Workshop) -> None:
    done = generate(workshop, "--split", "30:70", count=10)
    assert done.exit_code == 0, done.output
    sides = {side: read_rows(workshop.folder / f"golden.{side}.jsonl") for side in ("validation", "test")}
    documents = [{source["document"] for row in rows for source in row["sources"]} for rows in sides.values()]
    assert documents[0].isdisjoint(documents[1])
    assert (len(sides["validation"]), len(sides["test"])) == (3, 7)


def test_the_plan_says_what_it_costs_and_whether_that_is_allowed(workshop: Workshop) -> None:
    dear = ("--dry-run", "--price", "1000/2000")
    lines = generate(workshop, *dear).stdout.splitlines()
    assert lines[0] == "20 documents, 20 chunks"
    assert re.search(r"about [\d.]+ USD", lines[2])
    assert lines[-1] == "each question that fails a check is replaced, which costs about as much again"
    lines = generate(workshop, *dear, "--max-cost", "0.1").stdout.splitlines()
    assert lines[-1] == "this is more than 0.1 USD: it will stop there, and another run continues"
    assert generate(workshop, "--price", "1/2").exit_code == 0
    assert generate(workshop, "--dry-run", "--price", "1/2").stdout.splitlines()[-1].endswith("no calls")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("A text.")
    return tmp_path


def build(corpus: Path, **options: Any) -> Any:
    return build_spec(corpus, **{"model": "tiny", "base_url": "http://localhost:1", **options})


def test_the_command_line_describes_the_whole_spec(corpus: Path) -> None:
    spec = build(corpus, checker="large", embedding="minilm", price="0.15/0.6", max_cost=2.0)
    node = spec.datasets[DATASET]
    assert (node.model, node.checker, node.embedding, node.path) == ("tiny", "large", "minilm", str(corpus))
    assert {name: spec.models[name].model for name in ("tiny", "large")} == {"tiny": "tiny", "large": "large"}
    assert (spec.models["tiny"].price.input, spec.models["tiny"].price.output) == (0.15, 0.6)
    assert spec.models["tiny"].api_key is None, "a key is not sent to any other endpoint"
    assert spec.limits.max_cost == 2
    assert "minilm" in spec.models


def test_names_that_cannot_be_names_of_blocks_are_names_of_models(corpus: Path) -> None:
    spec = build(corpus, model="meta/llama-3.1:8b", judge="overlap")
    assert spec.datasets[DATASET].model == "model"
    assert spec.models["model"].model == "meta/llama-3.1:8b"
    assert "overlap" in spec.judges


def test_claude_is_asked_at_its_own_endpoint(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    spec = build(corpus, model="claude-sonnet-4-5", base_url=None)
    assert spec.models["claude-sonnet-4-5"].dialect == "anthropic"
    assert str(spec.models["claude-sonnet-4-5"].api_key) == "${secret:ANTHROPIC_API_KEY}"


def test_azure_needs_an_address(corpus: Path) -> None:
    with pytest.raises(UsageError, match="--dialect azure needs --base-url"):
        build(corpus, base_url=None, dialect="azure")


def test_shares_are_read_under_the_names_of_their_options(corpus: Path) -> None:
    spec = build(corpus, types="factual:50,procedural:50", multi_hop="25%", count=7, language=None)
    node = spec.datasets[DATASET]
    assert (node.types, node.multi_hop, node.count) == ({"factual": 50, "procedural": 50}, 25, 7)
    with pytest.raises(UsageError, match="--difficulty: unknown name 'eazy'; did you mean 'easy'"):
        build(corpus, difficulty="eazy:100")
