"""`review import`, as a user sees it, and the whole way from an evaluation to a calibrated judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rageval_spec.cli import cli
from rageval_spec.reading.label_files import read_labels
from rageval_spec.review.criteria import make_criterion
from tests.answered_evaluation import answered, sample, save, value
from tests.review.filling import fill_csv, fill_xlsx
from tests.review.form_sheets import CLAIMS, FLUENCY, make_sheet

GIVEN = {"faithfulness [yes/no]": "yes", "fluency [1..5]": "4", "annotator": "ann"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def fill(path: str, **given: Any) -> str:
    fill_csv(make_sheet(), Path(path), lambda number, row: {**GIVEN, **given})
    return path


def test_labels_are_written_and_it_says_what_to_do_next() -> None:
    result = call("review", "import", fill("a.csv"), "-o", "labels.csv")
    assert result.exit_code == 0, result.output
    assert "Read 4 labels by ann" in result.output
    assert "wrote labels.csv: 4 labels, 4 new" in result.output
    assert "rageval-spec calibrate --labels labels.csv --scale 1..5\n" in result.output
    first = read_labels([Path("labels.csv")])[0]
    assert (first.query_id, first.metric, first.value, first.reason, first.probability) == (
        "q1", "faithfulness", 1.0, "random + low", 0.25,
    )  # fmt: skip


def test_labels_without_grades_need_one_calibration() -> None:
    result = call("review", "import", fill("a.csv", **{"fluency [1..5]": ""}), "-o", "labels.csv")
    assert "rageval-spec calibrate --labels labels.csv\n" in result.output
    assert "--metric" not in result.output


def test_grades_on_several_scales_need_a_calibration_each() -> None:
    sheet = make_sheet(make_criterion("tone", "1..3"), FLUENCY)
    fill_csv(sheet, Path("a.csv"), lambda number, row: {"tone [1..3]": "2", "fluency [1..5]": "4", "annotator": "ann"})
    result = call("review", "import", "a.csv", "-o", "labels.csv")
    assert "rageval-spec calibrate --labels labels.csv --metric tone --scale 1..3\n" in result.output
    assert "rageval-spec calibrate --labels labels.csv --metric fluency --scale 1..5\n" in result.output


def test_several_forms_become_one_file_of_labels() -> None:
    fill_xlsx(make_sheet(CLAIMS), Path("b.xlsx"), lambda number, row: {
        "faithfulness [supported/contradicted/not_enough_info]": "supported", "annotator": "bob",
    })  # fmt: skip
    assert call("review", "import", fill("a.csv"), "b.xlsx", "--into", "labels.csv").exit_code == 0
    result = call("review", "import", "b.xlsx", "--into", "labels.csv")
    assert "wrote labels.csv: 8 labels, 0 new" in result.output
    assert {(label.annotator, label.claim) for label in read_labels([Path("labels.csv")])} == {
        ("ann", None), ("bob", 0), ("bob", 1),
    }  # fmt: skip


def test_a_problem_of_many_rows_is_told_once_and_nothing_is_written() -> None:
    result = call("review", "import", fill("a.csv", annotator="", **{"fluency [1..5]": "6"}), "-o", "labels.csv")
    assert result.exit_code == 3
    lines = result.output.splitlines()
    assert lines[0] == "rageval-spec: nothing was imported, because of 4 problems:"
    assert (
        lines[1]
        == "  a.csv:2 and a.csv:8, column 'annotator': write who judged, or name one for all rows: --annotator NAME"
    )
    assert lines[2].startswith(
        "  a.csv:2 and a.csv:8, column 'fluency [1..5]': '6' is not on the scale; write one of 1, 2"
    )
    assert not Path("labels.csv").exists()


def test_a_label_is_replaced_only_if_this_is_wanted() -> None:
    call("review", "import", fill("a.csv"), "-o", "labels.csv")
    before = Path("labels.csv").read_bytes()
    changed = fill("b.csv", **{"faithfulness [yes/no]": "no"})
    result = call("review", "import", changed, "--into", "labels.csv")
    assert result.exit_code == 3
    assert "'ann' judged the same thing differently at labels.csv:2" in result.output
    assert Path("labels.csv").read_bytes() == before
    assert "2 replaced" in call("review", "import", changed, "--into", "labels.csv", "--replace").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "choose where the labels go: into a new file with -o labels.csv"),
        (("-o", "x.csv", "--into", "y.csv"), "choose where the labels go"),
        (("-o", "x.xlsx"), "x.xlsx: labels are written as CSV; end the name in .csv"),
        (("-o", "old.csv"), "old.csv exists; add the labels to it with --into old.csv"),
        (("--into", "a.csv"), "a.csv is the form; name another file for the labels"),
        (("-o", "x.csv", "--results", "nowhere"), "'nowhere' is neither a results folder"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], message: str) -> None:
    Path("old.csv").write_text("query_id,value\nq1,1\n")
    result = call("review", "import", fill("a.csv"), *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_form_that_nobody_filled_in_has_no_labels() -> None:
    fill_csv(make_sheet(), Path("a.csv"), lambda number, row: {"comment": "later"})
    result = call("review", "import", "a.csv", "-o", "labels.csv")
    assert result.exit_code == 3
    assert "a.csv: no field is filled in, so there are no labels" in result.output


def test_comments_without_a_value_are_shown() -> None:
    sheet = make_sheet()
    fill_csv(sheet, Path("a.csv"), lambda number, row: GIVEN if number else {"comment": "cannot\x1b[31m decide"})
    result = call("review", "import", "a.csv", "-o", "labels.csv")
    assert "a.csv:2: a comment without a value, which is not imported: cannot\\x1b[31m decide" in result.output


def test_from_an_evaluation_to_a_calibrated_judge(folder: Path) -> None:
    # A quarter of the answers is wrong. The judge is too generous: it gives half of these 0.9, and the others 0.6.
    wrong = [at % 4 == 0 for at in range(120)]
    numbers = [0.9 if not wrong[at] or at % 8 == 0 else 0.6 for at in range(120)]
    values = [value(f"q{at}", "faithfulness", number, details={"judge": "strict"}) for at, number in enumerate(numbers)]
    samples = [sample(f"q{at}", slices=["hard" if at % 2 else "easy"]) for at in range(120)]
    save(answered(values, samples), folder / "rageval-results")
    assert call("review", "select", "-o", "review.csv", "--random", "40", "--low", "--most", "20").exit_code == 0
    for who in ("ann", "bob"):
        rows = _judge("review.csv", who, wrong)
        assert call("review", "import", rows, "--into", "labels.csv", "--results", "rageval-results").exit_code == 0
    agreement = call("review", "agreement", "labels.csv").output
    assert "people agree well enough to judge a judge by" in agreement
    told = " ".join(call("calibrate", "--labels", "labels.csv").output.split())
    assert "The labelled answers were chosen with unequal probabilities, from 0.333 to 1." in told
    (found,) = json.loads(call("calibrate", "--labels", "labels.csv", "--format", "json").output)["calibrations"]
    mean = found["mean"]
    assert mean["interval"]["low"] <= 0.75 <= mean["interval"]["high"]
    assert abs(mean["value"] - 0.75) < abs(mean["judged"] - 0.75)


def _judge(form: str, annotator: str, wrong: list[bool]) -> str:
    """The form as a person fills it in who knows what is wrong, and writes `no` in their own way."""
    import csv

    with Path(form).open(encoding="utf-8-sig", newline="") as stream:
        rows = [*csv.DictReader(stream)]
    for row in rows:
        row["faithfulness [yes/no]"] = "No" if wrong[int(row["query_id"][1:])] else "YES"
        row["annotator"] = annotator
    path = Path(f"{annotator}.csv")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0]], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)
