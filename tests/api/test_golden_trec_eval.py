"""Real runs against what the C program trec_eval v9.0.8 (commit d95ca64) printed for them.

With 17 digits: every measure, every query.
"""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rageval_spec import evaluate

OPTIONS: dict[str, dict[str, Any]] = {
    "base": {},
    "c": {"missing": "zero"},
    "l2": {"relevance_level": 2},
    "l2c": {"relevance_level": 2, "missing": "zero"},
    "J": {"judged_only": True},
    "M10": {"depth": 10},
}
TEXTS = {"runid", "relstring"}
ALL = "all"

Values = dict[str, dict[str, float]]
"""`{query: {measure: value}}`, where the query can be "all"."""

# trec_eval divides 0 by 0 where -J leaves nothing of a ranking, and its mean over the queries is then no number either.
NO_NUMBER = {
    ("bm25", "J", measure, query) for measure in ("iprec_at_recall_0.00", "11pt_avg") for query in ("1106007", ALL)
}

# With -l 2 and -c together, trec_eval sums up the documents that are relevant at level 1. Per query it heeds the level.
COUNTED_AT_LEVEL_1 = {
    (run, "l2c", "num_rel", ALL)
    for run in (
        "BRPHJ_bert",
        "bm25L_bl_run5",
        "sab20.5.metadocs_m",
        "bm25",
        "InexpC2",
        "Sel50",
        "pircRBa1",
        "rutcor03100",
    )
}


def read_expected(path: Path) -> Values:
    values: Values = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            measure, query, value = (field.strip() for field in line.split("\t"))
            if measure not in TEXTS:
                values.setdefault(query, {})[measure] = float(value)
    return values


class Printed(NamedTuple):
    run: str
    run_file: Path
    qrels_file: Path
    expected: Values


def printed(reference: Path, option: str) -> Iterator[Printed]:
    """The output of trec_eval with an option, for all runs."""
    suffix = f".{option}.908.full.gz"
    for path in sorted(reference.glob(f"expected/*/*{suffix}")):
        run, _, qrels = path.name.removesuffix(suffix).rpartition(".")
        run_file = reference / "runs" / path.parent.name / f"{run}.gz"
        yield Printed(run, run_file, reference / "qrels" / f"qrels.{qrels}.txt", read_expected(path))


def compute(case: Printed, measures: list[str], settings: dict[str, Any]) -> Values:
    results = evaluate(case.qrels_file, case.run_file, measures, **settings)
    return {**results.per_query(), ALL: results.means}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_value_equals_trec_evals(trec_eval_reference: Path, option: str) -> None:
    compared, other = Counter[str](), set()
    for case in printed(trec_eval_reference, option):
        ours = compute(case, list(case.expected[ALL]), OPTIONS[option])
        assert ours.keys() == case.expected.keys(), case.run
        for query, values in case.expected.items():
            other |= {(case.run, option, m, query) for m, value in values.items() if ours[query][m] != value}
            compared[case.run] += len(values)
    assert other == {case for case in NO_NUMBER | COUNTED_AT_LEVEL_1 if case[1] == option}
    assert len(compared) == 8
    assert sum(compared.values()) > 40_000


def test_if_judged_only_leaves_nothing_the_value_is_0(trec_eval_reference: Path) -> None:
    case = next(case for case in printed(trec_eval_reference, "J") if case.run == "bm25")
    measures = ["iprec_at_recall_0.00", "11pt_avg"]
    ours = compute(case, measures, OPTIONS["J"])
    for measure in measures:
        assert math.isnan(case.expected["1106007"][measure])
        assert ours["1106007"][measure] == 0.0
        values = [ours[query][measure] for query in ours if query != ALL]
        assert ours[ALL][measure] == pytest.approx(math.fsum(values) / len(values), rel=1e-14)


def test_relevant_documents_of_missing_queries_are_counted_at_the_level(trec_eval_reference: Path) -> None:
    for case in printed(trec_eval_reference, "l2c"):
        lines = case.qrels_file.read_text("utf-8").splitlines()
        relevances = [int(line.split()[3]) for line in lines if line.strip()]
        assert compute(case, ["num_rel"], OPTIONS["l2c"])[ALL]["num_rel"] == sum(r >= 2 for r in relevances)
        assert case.expected[ALL]["num_rel"] == sum(r >= 1 for r in relevances)
