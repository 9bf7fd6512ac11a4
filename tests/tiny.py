"""A collection of four queries that can be worked out by hand, and systems that misbehave on purpose.

| query | judged | `good` | `tied` |
|---|---|---|---|
| q1 | d1 2, d2 1 | d1 d2 d6 | d1 and d2 tie |
| q2 | d3 1 | d3 | d1 d3 |
| q3 | d4 0 | d4 | d4 |
| q4 | d5 1 | missing | d5 |

`good` answers a query q9 that nobody judged. The qrels name the queries in the order q2, q1, q4, q3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
import yaml

from rageval_spec import registry
from rageval_spec.data.tables import Collection
from rageval_spec.plugin import MetricInfo, MetricNode, System, SystemNode, TableMetric

QRELS = "query-id\tcorpus-id\tscore\nq2\td3\t1\nq1\td1\t2\nq1\td2\t1\nq4\td5\t1\nq3\td4\t0\n"
QUERIES = {"q1": "red apple", "q2": "green pear", "q3": "blue plum", "q4": "black cherry", "q8": "unjudged red"}
CORPUS = {
    "d1": "red apple pie", "d2": "an apple", "d3": "green pear tart",
    "d4": "blue", "d5": "cherry cake", "d6": "red wine",
}  # fmt: skip
GOOD = "q1 Q0 d1 1 0.9 t\nq1 Q0 d2 2 0.8 t\nq1 Q0 d6 3 0.1 t\nq2 Q0 d3 1 0.7 t\nq3 Q0 d4 1 0.5 t\nq9 Q0 d1 1 0.5 t\n"
TIED = "q1 Q0 d2 1 0.5 t\nq1 Q0 d1 2 0.5 t\nq2 Q0 d1 1 0.9 t\nq2 Q0 d3 2 0.5 t\nq3 Q0 d4 1 0.3 t\nq4 Q0 d5 1 0.3 t\n"


def write_collection(folder: Path) -> Path:
    """Write a BEIR folder `data` with runs."""
    data = folder / "data"
    (data / "qrels").mkdir(parents=True)
    (data / "qrels" / "test.tsv").write_text(QRELS)
    (data / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": query_id, "text": text}) + "\n" for query_id, text in QUERIES.items())
    )
    (data / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": doc_id, "title": "", "text": text}) + "\n" for doc_id, text in CORPUS.items())
    )
    (data / "good.run").write_text(GOOD)
    (data / "tied.run").write_text(TIED)
    return data


def write_spec(folder: Path, name: str = "spec.yaml", **sections: Any) -> Path:
    """A spec on the collection, which is written if it does not exist; `sections` replace the default ones."""
    if not (folder / "data").exists():
        write_collection(folder)
    content: dict[str, Any] = {
        "version": 1,
        "name": "tiny",
        "datasets": {"fruit": {"use": "beir", "path": "data"}},
        "systems": {
            "good": {"use": "file", "path": "data/good.run"},
            "tied": {"use": "file", "path": "data/tied.run"},
        },
        "metrics": ["rr", "precision@1"],
        "statistics": {"resamples": 200, "permutations": 200},
        **sections,
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


Install = Callable[[registry.Section, str, type], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Add a plugin under a word, as an installed distribution would."""

    def add(section: registry.Section, word: str, plugin: type) -> None:
        words, load = registry.words, registry.load
        monkeypatch.setattr(registry, "words", lambda s: (*words(s), word) if s == section else words(s))
        monkeypatch.setattr(registry, "load", lambda s, w: plugin if (s, w) == (section, word) else load(s, w))

    return add


class BriefNode(SystemNode):
    """The node of a system with one key."""

    answer: str = "d1"


class Counting(System[BriefNode]):
    """Retrieves one document for every query, and records each call."""

    node_type = BriefNode
    needs = frozenset({"queries"})
    asked: ClassVar[list[str]] = []

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        assert collection.queries is not None
        self.asked.append(self.context.name)
        query_ids = collection.queries["query_id"]
        return pl.DataFrame({"query_id": query_ids, "doc_id": self.node.answer, "score": 1.0})


class Failing(System[BriefNode]):
    """Raises an exception at every retrieval."""

    node_type = BriefNode
    stored = False

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        raise ConnectionError("nobody at the other end")


class FailingStored(Failing):
    """Fails like `Failing`, but its run would be stored."""

    stored = True


class Length(TableMetric[MetricNode]):
    """A metric in Python: the number of retrieved documents."""

    node_type = MetricNode
    info = MetricInfo("Length of a ranking.", "number of documents", (), "here", bounds=(0.0, None))

    @property
    def name(self) -> str:
        return "length"

    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """The length, by query; none for q9, which is not requested."""
        return run.group_by("query_id").agg(
            pl.len().cast(pl.Float64).alias("value"),
            pl.lit("scored").alias("status"),
            pl.lit(None, dtype=pl.String).alias("reason"),
        )
