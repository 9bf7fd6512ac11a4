from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import DataError
from rageval_spec.review.document_grades import draw_pairs, find_chances, pool_pairs
from tests.command_line import invoke


def test_chances_are_in_proportion_to_weights_and_none_is_above_one() -> None:
    assert find_chances(np.array([8.0, 1.0, 1.0]), 2) == pytest.approx([1.0, 0.5, 0.5])
    assert find_chances(np.array([1.0, 3.0]), 5).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=30), st.integers(1, 30))
def test_chances_sum_to_the_count(weights: list[float], count: int) -> None:
    found = find_chances(np.array(weights), count)
    assert found.sum() == pytest.approx(min(count, len(weights)))
    assert ((found > 0) & (found <= 1 + 1e-12)).all()


def test_a_pair_has_its_best_rank_and_judged_pairs_that_nobody_found_come_last() -> None:
    runs = [
        pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", None], "rank": [3, 1]}),
        pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "rank": [2]}),
    ]
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["b"], "relevance": [1]})
    assert pool_pairs(runs, qrels, 20).rows() == [("q", "a", 2, None), ("q", "b", 21, 1)]
    with pytest.raises(DataError, match="nothing to grade"):
        draw_pairs(pool_pairs([], None, 20), 5, 1)


def test_draws_come_out_as_often_as_their_probabilities_say_and_each_query_gets_its_share() -> None:
    rows = [(f"q{query}", f"d{rank}", rank, None) for query in range(5) for rank in range(1, 11)]
    pool = pl.DataFrame(rows, ["query_id", "doc_id", "rank", "relevance"], orient="row")
    draws = [draw_pairs(pool, 12, seed) for seed in range(600)]
    assert {one.height for one in draws} == {12}
    assert {count for one in draws for count in one["query_id"].value_counts()["count"]} == {2, 3}
    together = pl.concat(draws).group_by("doc_id").agg(pl.len() / 3000, pl.first("probability"))
    assert together["len"].to_numpy() == pytest.approx(together["probability"].to_numpy(), abs=0.035)
    assert draws[0].equals(draw_pairs(pool, 12, 0))


def test_grades_come_back_as_a_file_of_grades_and_a_second_import_adds_nothing(tmp_path: Path) -> None:
    label = {
        "dataset": "d", "system": "doc7", "query_id": "q1", "answer_digest": "x", "metric": "document_relevance",
        "claim": None, "value": 2, "comment": "", "time": "t", "saw_judge": False, "reason": "", "probability": 0.25,
    }  # fmt: skip
    saved = {
        "format": "rageval-labels", "version": 1, "sheet": "s", "annotator": "ann", "labels": [label],
        "criteria": [{"name": "document_relevance", "scale": "0..3"}],
    }  # fmt: skip
    (tmp_path / "ann.json").write_text(json.dumps(saved))
    people = tmp_path / "people.csv"
    assert invoke("review", "import", str(tmp_path / "ann.json"), "-o", str(people)).exit_code == 0
    assert people.read_text() == (
        "query_id,doc_id,relevance,annotator,probability,comment,time\nq1,doc7,2,ann,0.25,,t\n"
    )
    assert "0 new" in invoke("review", "import", str(tmp_path / "ann.json"), "--into", str(people)).output
    (tmp_path / "ann.json").write_text(json.dumps({**saved, "labels": [{**label, "value": 3}]}))
    assert invoke("review", "import", str(tmp_path / "ann.json"), "--into", str(people)).exit_code == 3
