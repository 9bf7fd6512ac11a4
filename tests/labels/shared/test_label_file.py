"""Labels in a spec: every format gives the same labels, and what is wrong with a file shows before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from rageval_spec import registry
from rageval_spec.data.labels import Label, LabelScale
from rageval_spec.labels.shared.label_file import LabelColumns
from rageval_spec.plugin import Context
from rageval_spec.reading.label_files import LABEL_COLUMNS
from tests.checked_specs import validate
from tests.command_line import invoke

ROWS: list[dict[str, Any]] = [
    {"id": "7", "metric": "relevance", "rating": 4, "rater": "ann", "comment": "", "adjudicated": "no"},
    {"id": "7", "metric": "relevance", "rating": 2, "rater": "bob", "comment": "off topic", "adjudicated": ""},
    {"id": "7", "metric": "relevance", "rating": 3, "rater": "eve", "comment": "", "adjudicated": "yes"},
    {"id": "8", "metric": "relevance", "rating": None, "rater": "ann", "comment": "", "adjudicated": ""},
]


def write(folder: Path, word: str) -> str:
    """The rows in the format that a word reads; the file's name."""
    names = [*ROWS[0]]
    if word == "csv":
        lines = [",".join(names), *(",".join("" if v is None else str(v) for v in row.values()) for row in ROWS)]
        (folder / "labels.csv").write_text("\n".join(lines))
        return "labels.csv"
    if word == "jsonl":
        (folder / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
        return "labels.jsonl"
    if word == "xlsx":
        with xlsxwriter.Workbook(str(folder / "labels.xlsx")) as workbook:
            sheet = workbook.add_worksheet()
            sheet.write_row(0, 0, names)
            for place, row in enumerate(ROWS, 1):
                sheet.write_row(place, 0, [int(row["id"]), *list(row.values())[1:]])
        return "labels.xlsx"
    tasks = [
        {
            "id": place,
            "data": {"id": row["id"]},
            "annotations": [
                {
                    "completed_by": {"email": row["rater"]},
                    "ground_truth": row["adjudicated"] == "yes",
                    "result": [
                        {"from_name": "relevance", "type": "rating", "value": {"rating": row["rating"]}},
                        {"from_name": "why", "type": "textarea", "value": {"text": [row["comment"]]}},
                    ],
                }
            ],
        }
        for place, row in enumerate(ROWS, 1)
        if row["rating"] is not None
    ]
    (folder / "labels.json").write_text(json.dumps(tasks))
    return "labels.json"


def read(folder: Path, **block: Any) -> list[Label]:
    plugin = registry.load("labels", block["use"])
    return list(plugin(plugin.node_type(**block), Context("people", folder)).read())


def spec(folder: Path, labels: str) -> Path:
    (folder / "golden.jsonl").write_text('{"id": "7", "question": "Why?", "reference": "So."}\n')
    (folder / "answers.jsonl").write_text('{"id": "7", "answer": "So."}\n')
    path = folder / "spec.yaml"
    path.write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {bot: {use: file, path: answers.jsonl, holds: answers}}\n"
        f"labels:\n  people: {labels}\nmetrics: [token_f1]\n"
    )
    return path


@pytest.mark.parametrize("word", ["csv", "jsonl", "xlsx", "label_studio"])
def test_every_format_gives_the_same_labels(tmp_path: Path, word: str) -> None:
    assert word in registry.words("labels")
    labels = read(tmp_path, use=word, path=write(tmp_path, word))
    assert [(one.query_id, one.metric, one.value, one.annotator, one.comment, one.adjudicated) for one in labels] == [
        ("7", "relevance", 4.0, "ann", "", False),
        ("7", "relevance", 2.0, "bob", "off topic", False),
        ("7", "relevance", 3.0, "eve", "", True),
    ]


@pytest.mark.parametrize("word", ["csv", "jsonl", "xlsx", "label_studio"])
def test_the_command_line_reads_the_same_files(tmp_path: Path, word: str) -> None:
    done = invoke("review", "agreement", tmp_path / write(tmp_path, word), "--format", "json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert (found["metric"], found["items"], len(found["annotators"])) == ("relevance", 1, 2)  # without eve's decision


def test_columns_scale_and_path_are_those_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "l.csv").write_text("Nr;Urteil\n7;4\n")
    block = {"path": "in/l.csv", "separator": ";", "columns": {"query_id": "Nr", "value": "Urteil"}, "scale": [1, 5]}
    assert [(one.query_id, one.value) for one in read(tmp_path, use="csv", **block)] == [("7", 4.0)]
    plugin = registry.load("labels", "csv")
    assert plugin(plugin.node_type(use="csv", **block), Context("people", tmp_path)).scale == LabelScale(1, 5)


def test_every_part_of_a_label_can_be_mapped() -> None:
    assert {*LabelColumns.model_fields} == {*LABEL_COLUMNS}


@pytest.mark.parametrize(
    ("labels", "file", "message"),
    [
        ("{use: csv, path: none.csv}", None, "spec.yaml:5:28: there is no file 'none.csv'"),
        ("{use: csv, path: l.csv}", "id,value\n7,\n", "l.csv: no row has a value, so there are no labels"),
        ("{use: csv, path: l.csv}", "id,value\n7,1\n7,0\n", "l.csv:3: the same annotator judged 7 already at "),
        (
            "{use: csv, path: l.csv}",
            "id,value,adjudicated\n7,1,yes\n7,0,yes\n",
            "l.csv:3: 7 was adjudicated already at ",
        ),
        ("{use: csv, path: l.csv}", "id,value,adjudicated\n7,1,maybe\n", "adjudicated is 'maybe'; write yes or no"),
        ("{use: csv, path: l.csv}", "Frage,Urteil\n7,1\n", "Name it: columns: {query_id: "),
        ("{use: csv, path: l.csv, columns: {valu: x}}", "id,value\n7,1\n", "did you mean 'value'?"),
        ("{use: csv, path: l.csv, columns: {value: x}}", "id,value\n7,1\n", "there is no column 'x' for value"),
        ("{use: csv, path: l.csv, scale: [1, 1]}", "id,value\n7,1\n", "two different numbers, the worst first"),
        (
            "{use: xlsx, path: l.csv}",
            "id,value\n7,1\n",
            "l.csv: this is text, not an Excel workbook (.xlsx); write the format",
        ),
        ("{use: label_studio, path: l.csv}", '{"id": 1}\n', "this is not a task of Label Studio"),
        ("{use: pdf, path: l.csv}", "id,value\n7,1\n", "unknown source of labels 'pdf'"),
    ],
)
def test_what_is_wrong_shows_at_its_place_before_anything_runs(
    tmp_path: Path, labels: str, file: str | None, message: str
) -> None:
    if file is not None:
        (tmp_path / "l.csv").write_text(file)
    done = invoke("validate", spec(tmp_path, labels))
    assert done.exit_code == 2
    assert message in done.output
    assert "spec.yaml:5:" in done.output and "^" in done.output


def test_right_labels_are_valid_and_nobody_must_use_them(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("id,value\n7,1\n")
    assert [*validate(spec(tmp_path, "{use: csv, path: l.csv}")).labels] == ["people"]


def test_a_file_is_read_once_for_all_that_use_its_labels(tmp_path: Path) -> None:
    plugin = registry.load("labels", "csv")
    source = plugin(plugin.node_type(use="csv", path=write(tmp_path, "csv")), Context("people", tmp_path))
    first = [label.value for label in source.read()]
    (tmp_path / "labels.csv").unlink()
    assert [label.value for label in source.read()] == first == [4.0, 2.0, 3.0]
