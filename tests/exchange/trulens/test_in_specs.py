"""A spec that reads from and writes to the tool."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import invoke
from tests.exchange.blocks import list_gold, open_dataset, render_report
from tests.exchange.traced_evaluation import evaluate
from tests.exchange.trulens.database import add_older, make_database, query
from tests.exchange.trulens.reading import read

SPEC = """
version: 1
datasets: {prod: {use: trulens, path: t.sqlite}}
systems: {bot: {use: trulens, path: t.sqlite, app: support}}
metrics: [is_json, latency@p50]
reports: [{use: trulens, database: t.sqlite}]
"""


def test_records_are_evaluated_and_their_values_written_back(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite")
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert f"trulens: sent 6 feedback rows to {path}" in done.output, done.output
    assert query(path, "SELECT count(*) FROM trulens_events") == [(10 + 12,)]


def test_a_dataset_in_the_place_of_answers_is_an_error_at_its_key(tmp_path: Path) -> None:
    make_database(tmp_path / "t.sqlite")
    (tmp_path / "spec.yaml").write_text(SPEC.replace("app: support", "dataset: golden"))
    output = invoke("validate", tmp_path / "spec.yaml").output
    assert "spec.yaml:4:56: 'dataset': a dataset has no answers; write it under 'datasets:'" in output


def test_ground_truths_are_questions(tmp_path: Path) -> None:
    add_older(make_database(tmp_path / "t.sqlite"))
    collection = open_dataset(tmp_path, use="trulens", path="t.sqlite", dataset="golden")
    assert [row[:2] for row in list_gold(collection)] == [("q1", "Why?")]
    assert collection.qrels is not None and collection.qrels.rows() == [("q1", "d1", 1)]


def test_the_report_says_what_it_wrote_and_where_the_copy_is(tmp_path: Path) -> None:
    path = make_database(tmp_path / "t.sqlite", 1)
    assert render_report(evaluate(read(path)), tmp_path, use="trulens", database="t.sqlite") == (
        f"trulens: sent 2 feedback rows to {path}\n{path}.before-rageval is the database as it was before\n"
    )
