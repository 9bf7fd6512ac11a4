"""Where datasets come from: what is known of it, and that results, comparisons and reports say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec import runner
from rageval_spec.commands.results import open_results
from rageval_spec.commands.show import Request, show
from rageval_spec.data.origin import MOST_DOCUMENTS, Origin
from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import SpecError
from rageval_spec.pipeline.origins import find_origin
from rageval_spec.pipeline.preflight import validate
from rageval_spec.plugin import DatasetNode
from rageval_spec.reading.other_columns import dump_columns
from rageval_spec.reports.shared.cards import Filter
from rageval_spec.runner import Options
from tests.tiny import write_spec

ABOUT = {
    "version": "2.1",
    "created": "2026-05-01",
    "generated_by": {"model": "gpt-4o", "seed": 1},
    "metadata": {"audited": "2026-05-02", "version": "0"},
    "reviewed": 2,
    "source_documents": {"handbook.pdf": {"version": "v3"}, "faq.md": "2026-04"},
}


def find(said: dict[str, Any], rows: list[dict[str, Any]] | None = None, **keys: Any) -> Origin | None:
    columns = [{"query_id": f"q{place}", "columns": dump_columns(row)} for place, row in enumerate(rows or ())]
    collection = Collection(
        "golden", load_about=lambda: said, load_columns=lambda: pl.DataFrame(columns) if columns else None
    )
    return find_origin(DatasetNode(use="jsonl", **keys), collection)


def test_the_top_of_a_file_tells() -> None:
    origin = find(ABOUT, [{"level": 1}] * 3)
    assert origin is not None
    assert origin.documents_digest is not None
    assert origin == Origin(
        version="2.1",
        created="2026-05-01",
        made="model gpt-4o, seed 1",
        audited="2026-05-02",
        reviewed=2,
        questions=3,
        documents={"faq.md": "2026-04", "handbook.pdf": "v3"},
        documents_digest=origin.documents_digest,
    )


def test_a_dataset_that_says_nothing_has_no_origin() -> None:
    assert find({}, [{"level": 1}]) is None
    assert find({"note": "x"}) is None


def test_the_spec_wins_over_the_file() -> None:
    origin = find(ABOUT, version=3, about={"created": "2026-06-01", "reviewed": True, "made": "by hand"})
    assert origin is not None
    assert (origin.version, origin.created, origin.made) == ("3", "2026-06-01", "by hand")


def test_rows_are_counted() -> None:
    rows: list[dict[str, Any]] = [
        {
            "made": {"model": "gpt-4o", "slot": 1, "overlap": 0.5},
            "reviewed": True,
            "sources": [{"document": "a", "version": "v2"}],
        },
        {
            "made": {"model": "gpt-4o", "slot": 2, "overlap": 0.1},
            "reviewed": "no",
            "sources": [{"document": "b", "version": None}],
        },
        {"made": "by hand", "reviewed_by": "Ada", "sources": "unreadable"},
    ]
    origin = find({"reviewed": 99}, rows)
    assert origin is not None
    assert origin.made == "model gpt-4o (2 questions) and by hand (1 question)"
    assert (origin.reviewed, origin.questions) == (2, 3)
    assert origin.documents == {"a": "v2"}
    alike = find({}, rows[:2])
    assert alike is not None and alike.made == "model gpt-4o"


@pytest.mark.parametrize(
    ("said", "count"),
    [(True, 3), (False, 0), ("120", 120), ({"count": 7, "of": 9}, 7), ("some", None), ([1], None)],
)
def test_any_way_to_say_how_many_were_reviewed(said: Any, count: int | None) -> None:
    origin = find({"version": 1, "reviewed": said}, [{"level": 1}] * 3)
    assert origin is not None and origin.reviewed == count


def test_of_many_documents_the_digest_tells_all() -> None:
    documents = {f"d{number:04}": "v1" for number in range(500)}
    origins = [find({"documents": {**documents, "d0499": version}}) for version in ("v1", "v2")]
    assert all(origin is not None and len(origin.documents) == MOST_DOCUMENTS for origin in origins)
    assert len({origin.documents_digest for origin in origins if origin}) == 2


def test_a_version_that_yaml_reads_as_a_number_is_an_error(tmp_path: Path) -> None:
    path = write_spec(tmp_path, datasets={"fruit": {"use": "beir", "path": "data", "version": 2.1}})
    with pytest.raises(SpecError, match=r"write the version in quotes, '2\.1': as a number, 2\.10 would be 2\.1"):
        validate(path)


def write_golden(folder: Path, **top: Any) -> Path:
    rows = [{"id": "q1", "query": "red?", "reference": "yes"}, {"id": "q2", "query": "blue?", "reference": "no"}]
    (folder / "golden.json").write_text(json.dumps({**ABOUT, **top, "test_cases": rows}))
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "yes"}\n{"query_id": "q2", "answer": "no"}\n')
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "golden.json"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        metrics=["token_f1"],
        reports=["json", "markdown", "html"],
    )


def test_results_reports_and_show_say_it_and_the_bytes_are_the_same_again(tmp_path: Path) -> None:
    path = write_golden(tmp_path)
    for name in ("a", "b"):
        runner.run(path, Options(output=tmp_path / name))
    results = (tmp_path / "a" / "results.json").read_bytes()
    assert results == (tmp_path / "b" / "results.json").read_bytes()
    assert json.loads(results)["origins"]["golden"]["version"] == "2.1"
    told = "version 2.1; created 2026-05-01; made: model gpt-4o, seed 1; audited 2026-05-02; 2 of 2 questions reviewed"
    assert told in (tmp_path / "a" / "report.md").read_text()
    request = Request([], str(tmp_path / "a"), None, Filter())
    assert b"dataset golden: version 2.1; created 2026-05-01" in show(request, "text")
    assert b"Dataset golden: version 2" in show(request, "markdown")
    assert json.loads(show(request, "json"))["origins"]["golden"]["reviewed"] == 2


def test_a_version_changes_no_key_of_the_store(tmp_path: Path) -> None:
    keys = []
    for version in ("2.1", "2.2"):
        path = write_spec(tmp_path, datasets={"fruit": {"use": "beir", "path": "data", "version": version}})
        runner.run(path, Options(output=tmp_path / "out"))
        keys.append(sorted(one.name for one in (tmp_path / ".rageval").rglob("*") if one.is_dir()))
    assert keys[0] == keys[1]
    assert open_results(str(tmp_path / "out")).evaluation.origins["fruit"].version == "2.2"
