"""Where the numbers of an evaluation come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.pipeline.provenance import describe_spec, digest_data
from rageval_spec.runner import Options, run
from rageval_spec.spec import loads
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
    spec = evaluate(tmp_path).spec
    assert spec["ranking"]["ties"] == "trec_eval"
    assert spec["statistics"]["confidence"] == 0.95
    assert [*spec["systems"]] and spec["metrics"]


def test_the_number_of_threads_is_left_out_because_no_byte_depends_on_it(tmp_path: Path) -> None:
    assert not {"threads", "concurrency"} & set(evaluate(tmp_path).spec["limits"])


def test_every_metric_says_what_it_measures(tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, metrics=["ndcg@10", {"use": "rr", "as": "first"}])
    assert [*evaluation.summaries] == ["ndcg@10", "first"]
    assert all(sentence.endswith(".") for sentence in evaluation.summaries.values())


def test_each_part_of_the_data_has_a_digest_that_changes_with_it(tmp_path: Path) -> None:
    before = evaluate(tmp_path).digests
    (name,) = before
    assert set(before[name]) >= {"qrels", "corpus"}
    assert evaluate(tmp_path).digests == before
    corpus = tmp_path / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("red apple pie", "red apple cake"))
    after = evaluate(tmp_path).digests
    assert {part for part in before[name] if before[name][part] != after[name][part]} == {"corpus"}


def test_parts_that_no_query_has_are_left_out() -> None:
    queries = {"q1": Fingerprint("a", None, "c"), "q2": Fingerprint("b", None, None)}
    assert [*digest_data(Fingerprints({"d": queries}))["d"]] == ["qrels", "questions"]
