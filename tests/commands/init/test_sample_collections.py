"""The sample collections are complete: ids resolve, grades are in range, runs are well formed."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "python" / "rageval_spec" / "commands" / "init" / "samples" / "retrieval"


@dataclass(frozen=True)
class Sample:
    """A collection's folder and what it must contain."""

    folder: Path
    documents: int
    queries: int
    runs: tuple[str, ...]


SAMPLES = [
    pytest.param(Sample(ROOT / "specs" / "data" / "support", 61, 40, ("keyword", "rewrite")), id="support"),
    pytest.param(Sample(TEMPLATE, 8, 6, ("current",)), id="template"),
]
each_sample = pytest.mark.parametrize("sample", SAMPLES)


def read_records(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_ids(path: Path) -> list[str]:
    return [record["_id"] for record in read_records(path)]


def read_judgements(sample: Sample) -> list[tuple[str, str, int]]:
    header, *rows = (sample.folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    judgements = []
    for row in rows:
        query_id, doc_id, relevance = row.split("\t")
        judgements.append((query_id, doc_id, int(relevance)))
    return judgements


def read_run(sample: Sample, tag: str) -> list[tuple[str, str, int, float]]:
    rows = []
    for line in (sample.folder / "runs" / f"{tag}.run").read_text(encoding="utf-8").splitlines():
        query_id, literal, doc_id, rank, score, run_tag = line.split(" ")
        assert (literal, run_tag) == ("Q0", tag)
        rows.append((query_id, doc_id, int(rank), float(score)))
    return rows


@each_sample
def test_documents_and_queries_have_unique_ids_and_text(sample: Sample) -> None:
    for name, fields, count in (
        ("corpus.jsonl", {"_id", "title", "text"}, sample.documents),
        ("queries.jsonl", {"_id", "text"}, sample.queries),
    ):
        records = read_records(sample.folder / name)
        assert len(records) == len({record["_id"] for record in records}) == count
        assert len({record["text"] for record in records}) == count
        for record in records:
            assert record.keys() == fields
            assert all(value and value == value.strip() for value in record.values())


@each_sample
def test_judgements_resolve_and_are_graded_0_to_2(sample: Sample) -> None:
    documents, queries = (set(read_ids(sample.folder / name)) for name in ("corpus.jsonl", "queries.jsonl"))
    judgements = read_judgements(sample)
    assert len({(query_id, doc_id) for query_id, doc_id, _ in judgements}) == len(judgements)
    assert {query_id for query_id, _, _ in judgements} == queries
    assert {doc_id for _, doc_id, _ in judgements} <= documents
    assert {relevance for _, _, relevance in judgements} == {0, 1, 2}


@each_sample
def test_each_query_has_a_full_answer_and_a_tempting_wrong_one(sample: Sample) -> None:
    grades = defaultdict(set)
    for query_id, _, relevance in read_judgements(sample):
        grades[query_id].add(relevance)
    lacking = {query_id for query_id, found in grades.items() if 2 not in found}
    assert not lacking
    if sample.folder != TEMPLATE:
        assert not {query_id for query_id, found in grades.items() if 0 not in found}


@each_sample
def test_runs_are_ranked_by_score_and_cover_every_query(sample: Sample) -> None:
    documents, queries = (set(read_ids(sample.folder / name)) for name in ("corpus.jsonl", "queries.jsonl"))
    for tag in sample.runs:
        rankings: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
        for query_id, doc_id, rank, score in read_run(sample, tag):
            rankings[query_id].append((doc_id, rank, score))
        assert rankings.keys() == queries
        for ranking in rankings.values():
            found, ranks, scores = zip(*ranking, strict=True)
            assert len(ranking) <= 20
            assert len(set(found)) == len(found)
            assert set(found) <= documents
            assert list(ranks) == list(range(1, len(ranks) + 1))
            assert all(math.isfinite(score) and score > 0 for score in scores)
            # Equal scores stand as trec_eval orders them: doc_id descending bytewise.
            keys = [(score, doc_id.encode()) for doc_id, score in zip(found, scores, strict=True)]
            assert keys == sorted(keys, reverse=True)


@each_sample
def test_runs_contain_exact_ties(sample: Sample) -> None:
    for tag in sample.runs:
        counts = Counter((query_id, score) for query_id, _, _, score in read_run(sample, tag))
        assert max(counts.values()) > 1


@each_sample
def test_files_are_utf8_with_unix_line_ends(sample: Sample) -> None:
    for path in (path for path in sample.folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        content.decode("utf-8")
        assert b"\r" not in content, path
        assert content.endswith(b"\n"), path
        assert not content.startswith(b"\xef\xbb\xbf"), path


def test_template_spec_names_its_own_files() -> None:
    text = (TEMPLATE / "spec.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=")
    spec: dict[str, Any] = yaml.safe_load(text)
    # `init` copies the collection into `data/` beside the spec.
    assert spec["datasets"]["docs"]["path"] == "data"
    run = spec["systems"]["current"]["path"].removeprefix("data/")
    assert (TEMPLATE / run).is_file()
    assert {gate["metric"] for gate in spec["gates"]} <= set(spec["metrics"])
    named = {gate[key] for gate in spec["gates"] for key in ("system", "baseline") if key in gate}
    assert named <= spec["systems"].keys()
