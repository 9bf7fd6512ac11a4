"""Every spec in `specs/` is valid, runs offline, and gives the results that it documents.

The chat model of `prompts.yaml` and `verifiers.yaml` is a stub on this machine, and the classifier has random weights.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rageval_spec.engines.local import Local
from rageval_spec.history.results_folder import FILES
from rageval_spec.runner import Options, RunOutcome, plan, run
from rageval_spec.spec import load, schema
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import read_yaml, to_data
from tests.embedded import is_installed, require
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.onnx_from_checkpoints.folders import CROSS_ENCODER, write_cross_encoder

FOLDER = Path(__file__).parent.parent / "specs"
SWEEP = FOLDER / "sweep.yaml"
"""Not one evaluation; `tests/sweep` runs it."""
LEFT_OUT = {"sweep"} if is_installed("multilingual") else {"sweep", "german"}
SPECS = [path for path in sorted(FOLDER.glob("*.yaml")) if path.stem not in LEFT_OUT]
QUESTIONS = {
    "golden_set": 8,
    "nuggets": 8,
    "citations": 4,
    "traces": 8,
    "german": 20,
    "passages": 8,
    "agent": 24,
    "conversations": 8,
}
"""How many questions the specs have that do not have all 40 of `support`."""
MODELINE = "# yaml-language-server: $schema=../schemas/spec.schema.json"

FAITHFULNESS = ("faithfulness", "grounding", "words", "meaning", "worst_sentence")
"""The name of this metric in the specs. One of the 40 answers only says that nothing was found: it has no claims."""


def judge_generously(number: int, body: dict[str, Any]) -> Answer:
    """The best reply that the schema allows, with the number of the call as its reason; "yes" without a schema."""
    if "response_format" not in body:
        return Answer(completion("yes"))
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    best = {key: one["enum"][0] if "enum" in one else one.get("maximum") for key, one in properties.items()}
    return Answer(completion(json.dumps(best | {"reason": f"call {number}"})))


@pytest.fixture(scope="module", autouse=True)
def chats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatServer]:
    """A chat model that replies with the best score, and a classifier that is unsure of nearly everything."""
    server = ChatServer(judge_generously)
    labels = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    classifier = write_cross_encoder(
        tmp_path_factory.mktemp("nli") / "nli", config={**CROSS_ENCODER, "id2label": labels}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLI_MODEL", str(classifier))
        patch.setenv("JUDGE_URL", server.url)
        patch.setenv("JUDGE_MODEL", "stub")
        yield server
    server.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an embedding model has computed is computed once for all tests of this file."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def run_first(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Callable[[Path], RunOutcome]:
    """The first run of a spec, after which all replies to it are stored: one for all tests of this file."""
    return cache(lambda path: run(path, Options(output=tmp_path_factory.mktemp(path.stem) / "out", store=store)))


def test_there_are_specs() -> None:
    assert {"quickstart.yaml", "regression_gate.yaml", "trec_run.yaml", "embeddings.yaml"} <= {
        path.name for path in SPECS
    }


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_spec_passes(path: Path, run_first: Callable[[Path], RunOutcome]) -> None:
    outcome = run_first(path)
    assert (outcome.exit_code, outcome.evaluation.verdict) == (0, "pass")
    assert outcome.warnings == ()
    questions = QUESTIONS.get(path.stem, 40)
    for cell in outcome.evaluation.aggregates:
        without_claims = cell.metric in FAITHFULNESS and questions == 40
        assert (cell.scored, cell.total) == (questions - without_claims, questions), cell.metric


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    current = schema(builtin_only=True)
    jsonschema.Draft7Validator.check_schema(current)
    return jsonschema.Draft7Validator(current)


@pytest.mark.parametrize("path", [*SPECS, SWEEP], ids=lambda path: path.stem)
def test_a_spec_satisfies_the_schema_that_its_first_line_names(
    path: Path, validator: jsonschema.Draft7Validator
) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0] == MODELINE
    tree, _ = read_yaml(SourceText(path.name, text))  # PyYAML would read the key `on` as true
    assert tree is not None
    validator.validate(to_data(tree))


@pytest.mark.parametrize("path", [*SPECS, SWEEP], ids=lambda path: path.stem)
def test_a_spec_is_named_after_its_file(path: Path) -> None:
    assert load(path).name == path.stem.replace("_", "-")


UNTIMED = [path for path in SPECS if path.stem != "retriever"]
"""Specs without a latency, which is another one each time."""


@pytest.mark.parametrize("path", UNTIMED, ids=lambda path: path.stem)
def test_a_spec_gives_the_same_bytes_in_parts(
    path: Path,
    tmp_path: Path,
    store: Path,
    run_first: Callable[[Path], RunOutcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def list_files(name: str) -> dict[str, bytes]:
        run(path, Options(output=tmp_path / name, store=store))
        files = (file for file in (tmp_path / name).rglob("*") if file.is_file())
        return {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in files}

    run_first(path)
    whole = list_files("whole")
    monkeypatch.setattr(Local, "count_parts", lambda *_: 7)
    assert list_files("parts") == whole


def test_quickstart_gives_the_documented_numbers(tmp_path: Path, store: Path) -> None:
    run(FOLDER / "quickstart.yaml", Options(output=tmp_path, store=store))
    results = json.loads((tmp_path / "results.json").read_bytes())
    means = {(cell["system"], cell["metric"]): round(cell["mean"], 4) for cell in results["aggregates"]}
    assert {system: means[system, "ndcg@10"] for system in results["systems"]} == {
        "bm25": 0.6671,
        "keyword": 0.6702,
        "rewrite": 0.7498,
        "assistant": 0.6748,
    }
    assert means["assistant", "faithfulness"] == 0.7894
    assert means["assistant", "completeness"] == 0.7178
    assert ("bm25", "faithfulness") not in means


def test_labels_correct_a_judge_that_is_too_strict(tmp_path: Path, store: Path) -> None:
    """The author of the answers finds all 40 of them 0.875 complete on average; 24 of these labels are in the file."""
    outcome = run(FOLDER / "labels.yaml", Options(output=tmp_path, store=store))
    corrected, judge = outcome.evaluation.aggregates
    assert corrected.correction is not None and corrected.mean is not None and corrected.interval is not None
    assert (round(corrected.mean, 3), round(judge.mean or 0, 3)) == (0.883, 0.718)
    assert corrected.interval.low < 0.875 < corrected.interval.high
    assert judge.interval is not None and judge.interval.high < 0.875
    assert (corrected.correction.labels, corrected.correction.judged) == (24, judge.mean)


def test_labels_of_pairs_correct_a_judge_that_counts_words(tmp_path: Path, store: Path) -> None:
    """People's grades of all pairs give nDCG@10 of 0.670 and 0.750; 77 of the 164 are in the file."""
    outcome = run(FOLDER / "corrected_rankings.yaml", Options(output=tmp_path, store=store))
    found = {(one.system, one.metric): one for one in outcome.evaluation.aggregates}
    for system, wanted in (("keyword", 0.670), ("rewrite", 0.750)):
        one = found[system, "ndcg@10"]
        assert one.interval is not None and one.interval.low < wanted < one.interval.high
        assert one.correction is not None and one.correction.judged == found[system, "judge_alone"].mean


def test_equal_input_gives_equal_bytes_in_any_folder_with_any_threads_and_store(tmp_path: Path) -> None:
    def list_files(name: str, **limits: int) -> dict[str, bytes]:
        """The files of a run in a copy of `specs/`, by their paths in the results folder."""
        copy, output = tmp_path / name, tmp_path / f"{name} results {len(list(tmp_path.iterdir()))}"
        if not copy.exists():
            shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns(".rageval"))
        spec = load(copy / "quickstart.yaml", overrides=[f"limits.{key}={value}" for key, value in limits.items()])
        run(spec, Options(output=output))
        return {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*") if path.is_file()}

    cold = list_files("one", threads=1)
    warm = list_files("one", threads=2)
    elsewhere = list_files("another folder", threads=2)
    about = {"manifest.json", "statement.json"}
    assert {*FILES, *about, "report.html", "report.md", "junit.xml"} == cold.keys() == warm.keys() == elsewhere.keys()
    assert [name for name in cold if not cold[name] == warm[name] == elsewhere[name]] == []


def test_embeddings_find_what_words_miss_and_hybrid_finds_more(tmp_path: Path, store: Path) -> None:
    outcome = run(FOLDER / "embeddings.yaml", Options(output=tmp_path, store=store))
    means = {cell.system: cell.mean or 0.0 for cell in outcome.evaluation.aggregates if cell.metric == "ndcg@10"}
    assert round(means["dense"], 3) == 0.785
    assert abs(means["dense_int8"] - means["dense"]) < 0.01
    assert means["bm25"] < means["hybrid"]
    assert max(means, key=lambda system: means[system]) == "weighted"


def test_multilingual_finds_german_pages_that_share_no_words_with_the_question(tmp_path: Path, store: Path) -> None:
    require("multilingual")
    outcome = run(FOLDER / "german.yaml", Options(output=tmp_path, store=store))
    means = {cell.system: cell.mean or 0.0 for cell in outcome.evaluation.aggregates if cell.metric == "ndcg@10"}
    assert round(means["bm25"], 3) == 0.558
    assert abs(means["dense"] - 0.801) < 0.005
    assert outcome.exit_code == 0


def test_own_prompts_send_what_their_templates_show_and_keep_the_scale(tmp_path: Path, chats: ChatServer) -> None:
    chats.calls.clear()
    outcome = run(FOLDER / "prompts.yaml", Options(output=tmp_path, no_store=True))
    means = {cell.metric: cell.mean for cell in outcome.evaluation.aggregates}
    own = {"complete": 1, "concise": 1, "grounded": 10, "aspects": 1, "on_topic": 1}
    assert means == {**own, "clarity": 5, "politeness": 1}
    assert {key.partition(".")[2] for key in outcome.evaluation.provenance.prompts} == {
        "system",
        "template",
        "examples",
    }
    asked = {call["messages"][-1]["content"].partition("\n")[0]: call["messages"] for call in chats.calls}
    assert len(chats.calls) == 6 * 40
    assert len(asked) == 6
    roles = [
        message["role"]
        for message in asked["How much of what a good answer to the question must say does this answer say?"]
    ]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    grounded = asked["Does the answer say only what the contexts support?"][-1]["content"]
    assert '<context number="1">' in grounded
    assert "(There are no contexts.)" not in grounded
    assert grounded.endswith('{"reason": "<text>", "score": <number from 1 to 10>}')


def test_every_prompt_names_the_procedure_that_it_follows() -> None:
    for path in sorted((FOLDER / "prompts").glob("*.jinja")):
        assert "et al." in path.read_text(encoding="utf-8").partition("#}\n{#")[2].partition("#}")[0], path.name


def test_each_verifier_gets_what_the_ones_before_leave(tmp_path: Path, chats: ChatServer) -> None:
    chats.calls.clear()
    planned = json.loads(plan(FOLDER / "verifiers.yaml", Options(no_store=True)).to_json())["to_ask"]
    assert chats.calls == []
    outcome = run(FOLDER / "verifiers.yaml", Options(output=tmp_path, no_store=True))
    [note] = [note.message for note in outcome.evaluation.notes if note.code == "cascade"]
    shares = {name: int(count) for name, count in re.findall(r"(\w+) decided (\d+)", note)}
    assert sum(shares.values()) == 39  # one of the 40 answers has no claims
    assert shares["overlap"] > 0
    assert shares["strict"] > 0
    [chat] = planned["models"]
    assert chat["calls"] >= len(chats.calls) > 0  # one call asks about one sentence
    assert {one["name"]: one["unit"] for one in planned["local"]} == {"overlap": "sample", "verifier": "pair"}
    assert all(one["seconds"] > 0 for one in planned["local"])


def test_the_verifiers_run_offline_with_the_command_that_the_spec_shows(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NLI_MODEL", "JUDGE_URL", "JUDGE_MODEL"):
        monkeypatch.delenv(name)
    [steps] = re.findall(
        r'--set "(judges\.cascade\.steps=.*?)"', (FOLDER / "verifiers.yaml").read_text(encoding="utf-8")
    )
    outcome = run(load(FOLDER / "verifiers.yaml", overrides=[steps]), Options(output=tmp_path, store=store))
    assert outcome.exit_code == 0
