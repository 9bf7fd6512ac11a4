"""A step in parts gives what the whole step gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import Collection, references_of
from rageval_spec.engines.local import Local
from rageval_spec.pipeline.execution import step_parts
from rageval_spec.pipeline.execution.step_parts import deal_evenly, list_units
from rageval_spec.runner import Options, run
from tests.answering import Brevity, BriefJudge, Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]


@given(st.lists(st.lists(st.text(), min_size=1)), st.integers(1, 20))
def test_every_question_is_dealt_once_and_units_stay_together(units: list[list[str]], count: int) -> None:
    parts = deal_evenly(units, count)
    assert [one for part in parts for one in part] == [one for unit in units for one in unit]
    assert len(parts) <= count and all(parts)
    starts = {sum(map(len, units[:place])) for place in range(len(units) + 1)}
    assert {sum(map(len, parts[:place])) for place in range(len(parts) + 1)} <= starts


def test_parts_are_of_about_equal_size() -> None:
    assert [len(part) for part in deal_evenly([[str(number)] for number in range(10)], 3)] == [4, 3, 3]


def collection(*groups: str | None) -> Collection:
    ids = [f"q{place}" for place in range(len(groups))]
    rows = [(query_id, ["x"], None, None, group, None) for query_id, group in zip(ids, groups, strict=True)]
    queries = pl.DataFrame({"query_id": ids, "text": ["?"] * len(ids)})
    return Collection("golden", load_queries=lambda: queries, load_references=lambda: references_of(rows))


def test_questions_of_a_group_are_one_unit() -> None:
    assert list_units(collection("a", None, "b", "a", "q1")) == [["q0", "q3"], ["q1"], ["q2"], ["q4"]]
    assert list_units(collection(None, None)) == [["q0"], ["q1"]]


def in_halves(units: Sequence[Sequence[str]], _: int) -> Sequence[Sequence[str]]:
    """Parts that are mixed through one another, with an empty one."""
    return [[one for unit in units[start::2] for one in unit] for start in (1, 0, len(units))]


@pytest.mark.parametrize("deal", [deal_evenly, in_halves])
def test_answers_judgements_and_rankings_have_the_same_bytes_in_parts(
    deal: Any, tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("systems", "canned", Canned)
    install("judges", "brief", BriefJudge)
    install("metrics", "brevity", Brevity)
    answers = {"q1": "yes", "q2": {"answer": "fail", "context_ids": ["d3"]}}
    spec = write_spec(
        tmp_path,
        systems={
            "bot": {"use": "canned", "answers": answers},
            "mute": {"use": "canned", "answers": {}},
            "bm25": {"use": "bm25"},
            "dense": {"use": "dense", "model": "minilm"},
            "both": {"use": "hybrid", "systems": ["bm25", "dense"]},
        },
        judges={"judge": {"use": "brief"}},
        metrics=["rr", {"use": "brevity", "judge": "judge"}, "error_rate"],
        reports=["json", "parquet", "samples", "markdown"],
    )

    def list_files(name: str) -> dict[str, bytes]:
        run(spec, Options(output=tmp_path / name, no_store=True))
        files = (file for file in (tmp_path / name).rglob("*") if file.is_file())
        return {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in files}

    whole = list_files("whole")
    monkeypatch.setattr(Local, "count_parts", lambda *_: 3)
    monkeypatch.setattr("rageval_spec.pipeline.execution.runs.deal_evenly", deal)
    assert list_files("parts") == whole
    assert step_parts.deal_evenly is deal_evenly
