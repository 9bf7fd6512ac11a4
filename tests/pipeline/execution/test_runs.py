from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from rageval_spec import runner
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection
from rageval_spec.errors import BROKEN, RagevalError, StoreWarning
from rageval_spec.inference.stored_outputs import Batch, embed_texts
from rageval_spec.plugin import (
    EmbeddingModel,
    Embeddings,
    InputFile,
    ModelName,
    ModelNode,
    Retrieval,
    Role,
    System,
    SystemName,
    SystemNode,
)
from rageval_spec.runner import Options, RunOutcome
from tests.tiny import Counting, FailingStored, Install, install, write_spec

__all__ = ["install"]


class MergedNode(SystemNode):
    systems: tuple[SystemName, ...]


class Merged(System[MergedNode]):
    """Appends the runs of its systems in order, with a note on the number of documents."""

    node_type = MergedNode
    asked: ClassVar[list[dict[str, list[str]]]] = []

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:
        """Concatenate the runs."""
        self.asked.append({name: sorted(set(run["query_id"])) for name, run in runs.items()})
        ordered = pl.concat([runs[name] for name in self.node.systems])
        merged = ordered.unique(("query_id", "doc_id"), maintain_order=True).sort("query_id", maintain_order=True)
        ranks = pl.int_range(pl.len()).over("query_id")
        note = Note("merged", f"{merged.height} documents", count=merged.height)
        return Retrieval(merged.with_columns(score=-ranks.cast(pl.Float64)), (note,))


class CountedNode(SystemNode):
    shares: dict[SystemName, float]


class Counted(System[CountedNode]):
    """Returns the run of the system with the largest weight."""

    node_type = CountedNode

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Return that run."""
        return runs[max(self.node.shares, key=lambda name: self.node.shares[name])]


class VowelsNode(ModelNode):
    path: str = "weights.txt"
    fetched: bool = True


class Vowels(EmbeddingModel[VowelsNode]):
    """Embeds a text as its counts of vowels."""

    node_type = VowelsNode
    computed: ClassVar[list[str]] = []

    @property
    def similarity(self) -> Any:
        return "dot"

    def inputs(self) -> Sequence[InputFile]:
        return (InputFile(self.context.resolve(self.node.path), ("path",)),)

    def prepare(self) -> None:
        if not self.node.fetched:
            raise RagevalError("models.vowels: cannot be fetched")

    def describe(self) -> dict[str, str]:
        return {"use": "vowels", "revision": "abc"}

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        return embed_texts(self, texts, self._compute)

    def _compute(self, texts: Sequence[str]) -> Iterator[Batch]:
        for position, text in enumerate(texts):
            self.computed.append(text)
            vector = np.array([[text.count(vowel) for vowel in "aeiou"]], np.float32)
            yield Batch(np.array([position]), vector, np.array([len(text) > 10]))


class NearNode(SystemNode):
    model: ModelName
    depth: int = 3


class Near(System[NearNode]):
    """Ranks documents by the dot product."""

    node_type = NearNode
    needs = frozenset({"queries", "corpus"})

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:
        queries, corpus = collection.queries, collection.corpus
        assert queries is not None and corpus is not None
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        asked, documents = model.embed(queries["text"].to_list(), "query"), model.embed(corpus["text"].to_list())
        scores = asked.vectors @ documents.vectors.T
        rows = [
            (query_id, corpus["doc_id"][int(row)], float(scores[index, row]))
            for index, query_id in enumerate(queries["query_id"])
            for row in np.argsort(-scores[index], kind="stable")[: self.node.depth]
        ]
        run = pl.DataFrame(rows, schema=("query_id", "doc_id", "score"), orient="row")
        return Retrieval(run, (), asked.reused + documents.reused)


@pytest.fixture(autouse=True)
def plugins(install: Install) -> None:
    for word, plugin in {
        "counting": Counting,
        "merged": Merged,
        "counted": Counted,
        "near": Near,
        "failing": FailingStored,
    }.items():
        install("systems", word, plugin)
    install("models", "vowels", Vowels)
    Counting.asked.clear()
    Merged.asked.clear()
    Vowels.computed.clear()


SYSTEMS: dict[str, Any] = {
    "both": {"use": "merged", "systems": ["one", "two"]},
    "one": {"use": "counting", "answer": "d1"},
    "two": {"use": "counting", "answer": "d2"},
}
NEAR: dict[str, Any] = {
    "systems": {"near": {"use": "near", "model": "vowels"}},
    "models": {"vowels": {"use": "vowels"}},
}


def run(folder: Path, options: Options | None = None, **sections: Any) -> RunOutcome:
    return runner.run(write_spec(folder, **sections), options or Options(output=folder / "out"))


def mean(outcome: RunOutcome, system: str, metric: str = "rr") -> float | None:
    aggregate = outcome.evaluation.aggregate("fruit", system, metric)
    assert aggregate is not None
    return aggregate.mean


def test_a_system_reads_the_runs_that_it_names_in_any_order_of_the_spec(tmp_path: Path) -> None:
    outcome = run(tmp_path, systems=SYSTEMS)
    assert outcome.exit_code == 0
    assert sorted(Counting.asked) == ["one", "two"]
    assert Merged.asked == [{"one": ["q1", "q2", "q3", "q4"], "two": ["q1", "q2", "q3", "q4"]}]
    assert outcome.evaluation.systems == ("both", "one", "two")
    assert mean(outcome, "both") == 0.25


def test_notes_name_the_system_and_are_restored_from_the_store(tmp_path: Path) -> None:
    first = run(tmp_path, systems=SYSTEMS)
    again = run(tmp_path, systems=SYSTEMS)
    (note,) = [note for note in first.evaluation.notes if note.code == "merged"]
    assert (note.dataset, note.system, note.count) == ("fruit", "both", 8)
    assert again.evaluation.notes == first.evaluation.notes
    assert len(Merged.asked) == 1
    assert len(Counting.asked) == 2


def test_timings_tell_computed_runs_from_stored_ones(tmp_path: Path) -> None:
    first = {timing.system: timing for timing in run(tmp_path, systems=SYSTEMS).timings}
    again = {timing.system: timing for timing in run(tmp_path, systems=SYSTEMS).timings}
    assert [timing.stored for timing in first.values()] == [False] * 3
    assert [timing.stored for timing in again.values()] == [True] * 3
    assert again["both"].seconds == first["both"].seconds
    both = first["both"]
    assert both.total == pytest.approx(both.seconds + first["one"].seconds + first["two"].seconds)
    assert (first["one"].queries, first["one"].documents) == (4, 0)


def test_a_source_that_is_read_twice_counts_once_in_the_time(tmp_path: Path) -> None:
    twice = {"use": "merged", "systems": ["one", "both"]}
    found = {timing.system: timing for timing in run(tmp_path, systems={**SYSTEMS, "twice": twice}).timings}
    parts = ("one", "two", "both", "twice")
    assert found["twice"].total == pytest.approx(sum(found[name].seconds for name in parts))
    again = {timing.system: timing for timing in run(tmp_path, systems={**SYSTEMS, "twice": twice}).timings}
    assert again["twice"].total == found["twice"].total


def test_a_run_whose_record_is_damaged_is_made_again_once(tmp_path: Path) -> None:
    run(tmp_path, systems=SYSTEMS)
    for manifest in (tmp_path / ".rageval" / "store" / "tables").glob("*/manifest.json"):
        content = json.loads(manifest.read_bytes())
        del content["record"]
        manifest.write_text(json.dumps(content))
    assert not any(timing.stored for timing in run(tmp_path, systems=SYSTEMS).timings)
    assert all(timing.stored for timing in run(tmp_path, systems=SYSTEMS).timings)


def test_documents_are_those_that_a_system_or_its_sources_search(tmp_path: Path) -> None:
    systems = {
        "bm25": {"use": "bm25"},
        "first": {"use": "file", "path": "data/good.run"},
        "second": {"use": "file", "path": "data/tied.run"},
        "files": {"use": "merged", "systems": ["first", "second"]},
        "mixed": {"use": "merged", "systems": ["first", "bm25"]},
    }
    documents = {timing.system: timing.documents for timing in run(tmp_path, systems=systems).timings}
    assert (documents["bm25"], documents["files"], documents["mixed"]) == (6, 0, 6)


def test_only_selected_systems_are_evaluated_and_their_sources_are_retrieved(tmp_path: Path) -> None:
    outcome = run(tmp_path, Options(only=["both"], output=tmp_path), systems=SYSTEMS)
    assert outcome.evaluation.systems == ("both",)
    assert mean(outcome, "both") == 0.25
    run(tmp_path, systems=SYSTEMS)
    assert sorted(Counting.asked) == ["one", "two"]


def test_notes_on_a_source_are_kept_though_it_is_not_evaluated(tmp_path: Path) -> None:
    systems = {**SYSTEMS, "more": {"use": "merged", "systems": ["both", "one"]}}
    for _ in range(2):
        outcome = run(tmp_path, Options(only=["more"], output=tmp_path), systems=systems)
        remarks = [(note.system, note.count) for note in outcome.evaluation.notes if note.code == "merged"]
        assert remarks == [("both", 8), ("more", 8)]


@pytest.mark.parametrize("cut", [None, 2])
def test_a_run_that_cannot_be_stored_is_still_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int | None
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rageval_spec.store.store.write_flushed", fail)
    with pytest.warns(
        StoreWarning, match=r"the run of \w+ is used but could not be stored: store: cannot write to .* No space"
    ):
        outcome = run(tmp_path, Options(limit=cut, output=tmp_path), systems={**SYSTEMS}, reports=["terminal"])
    assert outcome.exit_code == 0
    assert len(Counting.asked) == 2
    assert len(Merged.asked) == 1
    assert mean(outcome, "both") is not None


def test_a_source_is_not_retrieved_for_a_stored_run(tmp_path: Path) -> None:
    run(tmp_path, Options(only=["both"], output=tmp_path), systems=SYSTEMS)
    planned = runner.plan(tmp_path / "spec.yaml")
    plan, store = planned.plan, planned.store
    (both,) = [step for step in plan.of("retrieve") if step.system == "both"]
    for step in plan.of("retrieve"):
        if step is not both:
            store.forget(step.key)
    run(tmp_path, Options(only=["both"], output=tmp_path), systems=SYSTEMS)
    assert len(Counting.asked) == 2


def test_a_run_from_a_file_gives_only_its_judged_queries(tmp_path: Path) -> None:
    systems = {"good": {"use": "file", "path": "data/good.run"}, "more": {"use": "merged", "systems": ["good"]}}
    run(tmp_path, systems=systems)
    assert Merged.asked == [{"good": ["q1", "q2", "q3"]}]


def test_with_a_limit_a_source_has_the_same_queries(tmp_path: Path) -> None:
    systems = {"good": {"use": "file", "path": "data/good.run"}, "more": {"use": "merged", "systems": ["good"]}}
    run(tmp_path, Options(limit=2, output=tmp_path), systems=systems)
    assert Merged.asked == [{"good": ["q1", "q2"]}]


def test_a_system_whose_source_fails_says_so_and_the_others_continue(tmp_path: Path) -> None:
    outcome = run(tmp_path, systems={**SYSTEMS, "two": {"use": "failing"}})
    assert outcome.exit_code == BROKEN
    assert {failure.system: failure.message for failure in outcome.failures} == {
        "both": "reads the run of 'two', which could not be made: ConnectionError: nobody at the other end",
        "two": "ConnectionError: nobody at the other end",
    }
    assert mean(outcome, "one") == 0.25
    assert mean(outcome, "both") is None


def test_renaming_a_source_or_a_model_computes_nothing_again(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    run(tmp_path, systems=SYSTEMS)
    run(tmp_path, **NEAR)
    renamed = {
        "eins": SYSTEMS["one"],
        "zwei": SYSTEMS["two"],
        "beide": {"use": "merged", "systems": ["eins", "zwei"]},
        "nah": {"use": "near", "model": "vokale"},
    }
    asked = list(Vowels.computed)
    outcome = run(tmp_path, systems=renamed, models={"vokale": {"use": "vowels"}})
    assert all(timing.stored for timing in outcome.timings)
    assert (len(Counting.asked), len(Merged.asked), Vowels.computed) == (2, 1, asked)


def test_two_names_of_one_system_share_a_run(tmp_path: Path) -> None:
    outcome = run(tmp_path, systems={"one": SYSTEMS["one"], "twin": SYSTEMS["one"]})
    assert len(Counting.asked) == 1
    assert mean(outcome, "one") == mean(outcome, "twin") == 0.25
    failed = run(tmp_path, systems={"one": {"use": "failing"}, "twin": {"use": "failing"}})
    assert [failure.system for failure in failed.failures] == ["one", "twin"]


def test_weights_by_name_count_for_the_system_and_not_for_the_name(tmp_path: Path) -> None:
    """Swapping the names without the weights gives another fusion, and so does changing a weight."""
    one, two = SYSTEMS["one"], {"use": "counting", "answer": "d6"}
    weights = {"a": 0.1, "b": 0.9}
    hybrid = {"use": "hybrid", "method": "weighted", "systems": ["a", "b"], "weights": weights}
    first = run(tmp_path, systems={"h": hybrid, "a": one, "b": two})
    swapped = run(tmp_path, systems={"h": {**hybrid, "systems": ["b", "a"]}, "b": one, "a": two})
    renamed = {**hybrid, "systems": ["x", "y"], "weights": {"y": 0.9, "x": 0.1}}
    same = run(tmp_path, systems={"h": renamed, "x": one, "y": two})
    assert [outcome.timings[0].stored for outcome in (first, swapped, same)] == [False, False, True]
    assert mean(swapped, "h") != mean(first, "h") == mean(same, "h")


def test_a_map_by_name_with_other_values_is_another_run(tmp_path: Path) -> None:
    one, two = SYSTEMS["one"], {"use": "counting", "answer": "d6"}
    first = run(tmp_path, systems={"c": {"use": "counted", "shares": {"a": 0.3, "b": 0.7}}, "a": one, "b": two})
    other = run(tmp_path, systems={"c": {"use": "counted", "shares": {"a": 0.9, "b": 0.1}}, "a": one, "b": two})
    renamed = run(tmp_path, systems={"c": {"use": "counted", "shares": {"b": 0.9, "a": 0.1}}, "b": one, "a": two})
    assert [outcome.timings[0].stored for outcome in (first, other, renamed)] == [False, False, True]
    assert mean(first, "c") != mean(other, "c") == mean(renamed, "c")


def test_the_order_of_sources_makes_another_run(tmp_path: Path) -> None:
    run(tmp_path, systems=SYSTEMS)
    outcome = run(tmp_path, systems={**SYSTEMS, "both": {"use": "merged", "systems": ["two", "one"]}})
    assert [timing.system for timing in outcome.timings if not timing.stored] == ["both"]


def test_a_second_run_asks_no_model_and_another_depth_embeds_nothing(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    first = run(tmp_path, **NEAR)
    assert len(Vowels.computed) == len(set(Vowels.computed)) == 10
    run(tmp_path, **NEAR)
    deeper = run(tmp_path, **{**NEAR, "systems": {"near": {"use": "near", "model": "vowels", "depth": 6}}})
    assert len(Vowels.computed) == 10
    assert ([t.reused for t in first.timings], [t.reused for t in deeper.timings]) == ([0], [10])


def test_other_weights_are_another_model(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    run(tmp_path, **NEAR)
    (tmp_path / "weights.txt").write_text("other weights")
    outcome = run(tmp_path, **NEAR)
    assert not outcome.timings[0].stored
    assert len(Vowels.computed) == 20


def test_results_name_their_models(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    assert run(tmp_path, **NEAR).evaluation.provenance.models == {"vowels": {"use": "vowels", "revision": "abc"}}


def test_an_unavailable_model_stops_the_evaluation_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    models = {"vowels": {"use": "vowels", "fetched": False}}
    with pytest.raises(RagevalError, match="cannot be fetched"):
        run(tmp_path, **{**NEAR, "models": models, "systems": {**NEAR["systems"], "one": SYSTEMS["one"]}})
    assert Counting.asked == []


def test_without_a_store_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    for _ in range(2):
        run(tmp_path, Options(no_store=True, output=tmp_path / "out"), **NEAR)
    assert len(Vowels.computed) == 20
    assert not (tmp_path / ".rageval" / "store").exists()


def test_an_unused_model_is_neither_fetched_nor_listed(tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("w")
    models = {"vowels": {"use": "vowels", "fetched": False}}
    outcome = run(tmp_path, systems={"one": SYSTEMS["one"]}, models=models)
    assert outcome.exit_code == 0
    assert outcome.evaluation.provenance.models == {}
