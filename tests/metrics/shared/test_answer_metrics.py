"""Operational and text metrics, from a spec to its reports."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Interval
from rageval_spec.data.samples import Sample
from rageval_spec.data.tables import ANSWERS, Collection
from rageval_spec.metrics.shared.answer_metrics import (
    explain_nothing,
    find_expectation,
    fold,
    is_blank,
    read_json,
    read_texts,
)
from rageval_spec.plugin import Answering, System, SystemNode
from rageval_spec.runner import Options, run
from tests.metrics.comparing import answer_metric
from tests.metrics.expecting import fault
from tests.tiny import Install, install


@pytest.mark.parametrize(
    ("expected", "texts"),
    [
        ("a", ("a",)),
        (["a", 3, 0.5], ("a", "3", "0.5")),
        ('["a", "b"]', ("a", "b")),
        ("[1]", ("[1]",)),
        ('["a"', ('["a"',)),
        (7, ("7",)),
    ],
)
def test_a_column_holds_one_text_or_several(expected: Any, texts: tuple[str, ...]) -> None:
    assert read_texts(expected) == texts


@pytest.mark.parametrize("expected", [{"a": 1}, [["a"]], True, [None]])
def test_a_column_that_holds_no_text_is_refused(expected: Any) -> None:
    with pytest.raises(ValueError, match="must hold text or a list of texts"):
        read_texts(expected)


def test_what_is_expected_is_in_a_column_or_the_reference() -> None:
    sample = Sample("q1", "?", references=("x", "y"), columns={"must": "a", "empty": "", "no": None})
    assert find_expectation(sample, "must") == "a"
    assert find_expectation(sample, "reference") == ["x", "y"]
    assert find_expectation(Sample("q1", "?"), "must") is None
    for name, reason in {
        "empty": "the column 'empty' is empty",
        "no": "the column 'no' is empty",
        "mist": "the query has no column 'mist'; there are empty, must, no",
    }.items():
        assert find_expectation(sample, name) is None
        assert explain_nothing(sample, name) == reason
    assert explain_nothing(Sample("q1", "?"), "must") == "the query has no column 'must'"
    assert explain_nothing(Sample("q1", "?"), "reference") == "the query has no reference"


def test_equal_texts_are_equal_in_every_form() -> None:
    assert fold("Cafe\u0301", ignore_case=False) == "Caf\u00e9"
    assert fold("STRASSE", ignore_case=True) == fold("Straße", ignore_case=True)
    assert fold("A", ignore_case=False) != fold("a", ignore_case=False)


@pytest.mark.parametrize("word", ["contains", "not_contains", "matches", "json_schema", "max_words"])
def test_the_expectation_is_in_one_place(word: str) -> None:
    key, value = {"matches": ("pattern", "a"), "json_schema": ("schema", {}), "max_words": ("value", 3)}.get(
        word, ("value", "a")
    )
    assert fault(word) == f"'{word}' needs '{key}:', or 'column:' with the name of a column of the questions"
    assert fault(word, **{key: value}, column="c") == f"'{key}' and 'column' exclude each other; remove one"
    assert fault(word, **{key: value}) is None
    assert fault(word, column="c") is None


@pytest.mark.parametrize("value", ["", [], ["a", ""]])
def test_an_empty_text_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="every answer contains an empty text"):
        answer_metric("contains", value=value)


def test_a_code_fence_can_surround_it() -> None:
    for text in ('```json\n{"a": 1}\n```', '\n```\n{"a": 1}```\n', '{"a": 1}', ' {"a": 1} '):
        assert read_json(text, unfence=True) == {"a": 1}
    with pytest.raises(ValueError, match="line 1, column 1: Expecting value"):
        read_json('```json\n{"a": 1}\n```', unfence=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the answer is empty"),
        ("```json\n\n```", "the answer is empty"),
        ("{'a': 1}", "line 1, column 2: Expecting property name enclosed in double quotes"),
        ('{"a":\n1,}', "line 2, column 3|line 2, column 2"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('Here it is: {"a": 1}', "line 1, column 1: Expecting value"),
    ],
)
def test_what_is_not_json_says_where(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_json(text, unfence=True)


def test_an_endless_number_is_json() -> None:
    assert read_json("9" * 5000, unfence=True) == math.inf


__all__ = ["install"]
COUNT = 100


class Slow(System[SystemNode]):
    """Answers with the question; the nth answer takes n / 10 seconds, and the last one fails."""

    node_type = SystemNode
    needs = frozenset({"queries"})
    can_answer = True
    stored = False

    def answer(self, collection: Collection) -> Answering:
        """One row per query."""
        assert collection.queries is not None
        rows = [
            {
                **dict.fromkeys(ANSWERS),
                "query_id": query_id,
                "answer": None if number == COUNT else text,
                "error": "timed out" if number == COUNT else None,
                "seconds": number / 10,
                "input_tokens": 1000,
                "output_tokens": 10,
            }
            for number, (query_id, text) in enumerate(collection.queries.select("query_id", "text").iter_rows(), 1)
        ]
        schema: dict[str, Any] = {
            "query_id": pl.String,
            "answer": pl.String,
            "contexts": pl.List(pl.String),
            "context_ids": pl.List(pl.String),
            "scores": pl.List(pl.Float64),
            "seconds": pl.Float64,
            "input_tokens": pl.Int64,
            "output_tokens": pl.Int64,
            "cost": pl.Float64,
            "error": pl.String,
        }
        return Answering(pl.DataFrame(rows, schema=schema))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    queries = (json.dumps({"_id": f"q{n:03}", "text": f"what is {n}"}) + "\n" for n in range(1, COUNT + 1))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text("".join(queries))
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "everything"}\n')
    rows = (f"q{n:03}\td1\t1\n" for n in range(1, COUNT + 1))
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return tmp_path


def evaluate(folder: Path, install: Install, **sections: Any) -> tuple[Evaluation, Path]:
    install("systems", "slow", Slow)
    spec = {
        "version": 1,
        "name": "operation",
        "datasets": {"golden": {"use": "beir", "path": "."}},
        "systems": {"rag": {"use": "slow"}, "other": {"use": "slow"}},
        "statistics": {"resamples": 100, "permutations": 100},
        **sections,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec))
    return run(path, Options(quiet=True, output=folder / "out")).evaluation, folder / "out"


def test_percentiles_get_from_the_spec_into_reports(folder: Path, install: Install) -> None:
    evaluation, out = evaluate(
        folder,
        install,
        metrics=["latency", {"use": "latency", "percentile": 50}, {"use": "latency", "percentile": 95, "as": "slow"}],
        gates=[{"metric": "latency@p50", "max": 5.0}, {"metric": "slow", "max": 9.0, "system": "rag"}],
        reports=["json", "markdown"],
    )
    median = evaluation.aggregate("golden", "rag", "latency@p50")
    assert median is not None
    assert (median.mean, median.scored, median.total, median.statistic) == (5.0, 99, 100, "p50")
    assert median.interval == Interval(4.0, 6.0, 0.95, "order-statistics")
    assert [gate.outcome for gate in evaluation.gates] == ["pass", "pass", "fail"]
    assert evaluation.gates[2].reason == "slow of rag is 9.410, above the maximum 9.000"
    assert {comparison.metric for comparison in evaluation.comparisons} == {"latency"}
    results = json.loads((out / "results.json").read_text())
    assert {cell["metric"]: cell["statistic"] for cell in results["aggregates"]} == {
        "latency": "mean",
        "latency@p50": "p50",
        "slow": "p95",
    }
    assert results["units"] == {"latency": "seconds", "latency@p50": "seconds", "slow": "seconds"}
    report = (out / "report.md").read_text()
    assert "unit latency, latency@p50, slow in seconds" in report
    assert "p95 slow: 95% of the queries have a value below this one" in report


def test_a_failure_costs_its_values_and_counts_as_an_error(folder: Path, install: Install) -> None:
    price = {"input": 1, "output": 100}
    evaluation, _ = evaluate(
        folder, install, metrics=["error_rate", "tokens", {"use": "cost", "price": price}], reports=["json"]
    )
    cells = {cell.metric: (cell.mean, cell.scored) for cell in evaluation.aggregates if cell.system == "rag"}
    assert cells["error_rate"] == (0.01, 100)
    assert cells["tokens"] == (1010.0, 99)
    mean, scored = cells["cost"]
    assert mean == pytest.approx(0.002)
    assert scored == 99


@pytest.mark.parametrize(
    ("texts", "blank"),
    [(None, True), ("", True), (" \n", True), ("a", False), ((), True), (("", " "), True), (("", "a"), False)],
)
def test_blank(texts: Any, blank: bool) -> None:
    assert is_blank(texts) is blank


def test_metrics_of_answers_say_what_a_failure_means() -> None:
    for word in registry.words("metrics"):
        metric = registry.load("metrics", word)
        if metric.group != "ranking" and word != "error_rate":
            assert any("failed" in case for case in metric.list_edge_cases()), word
