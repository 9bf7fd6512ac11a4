"""`review select`, as a user sees it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rageval_spec.cli import cli
from rageval_spec.review.forms import decode_token
from tests.answered_evaluation import answered, sample, save, value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with results: 10 bad answers and 90 good ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    details = {"judge": "strict", "claims": [{"text": "It is long.", "verdict": "supported"}]}
    numbers = [(f"q{at}", 0.1 if at < 10 else 0.95) for at in range(100)]
    values = [value(name, "faithfulness", number, details=details) for name, number in numbers]
    values += [value(name, "grounding", number, details=details) for name, number in numbers]
    save(answered(values, [sample(name) for name, _ in numbers]), tmp_path / "rageval-results")
    return tmp_path


def select(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["review", "select", *arguments])


def read(path: Path) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline=""))]


def test_by_default_a_mix_is_written_and_it_says_what_to_do_next(folder: Path) -> None:
    result = select("-o", "review.csv")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "Chose 5" in text and "of 100 answers of support-bot for review" in text
    assert "random drawn at random from all answers 100 50" in text
    assert "low a low value 10 10" in text
    assert "faithfulness: Does everything that the answer says follow from the contexts? (yes, no)" in text
    assert "Then: rageval-spec review import review.csv -o labels.csv" in text
    rows = read(folder / "review.csv")
    assert {row["probability"] for row in rows} == {"0.5", "1.0"}
    assert {row["probability"] for row in rows if "low" in row["reason"]} == {"1.0"}


def test_only_what_is_asked_for_is_chosen(folder: Path) -> None:
    assert select("-o", "a.csv", "--random", "3%").exit_code == 0
    assert [(row["reason"], row["probability"]) for row in read(folder / "a.csv")] == [("random", "0.03")] * 3
    result = select("-o", "b.csv", "--low", "--most", "5")
    assert "No answer is drawn at random" in result.output
    assert {row["reason"] for row in read(folder / "b.csv")} == {"low"}
    assert len(read(folder / "b.csv")) == 5
    select("-o", "c.csv", "--random", "100%")
    assert len(read(folder / "c.csv")) == 100


def test_metrics_that_ask_people_the_same_are_asked_once(folder: Path) -> None:
    result = select("-o", "a.csv")
    assert "grounding asks people the same as faithfulness, so it is left out" in " ".join(result.output.split())
    assert [name for name in read(folder / "a.csv")[0] if "[" in name] == ["faithfulness [yes/no]"]
    select("-o", "b.csv", "--metric", "grounding", "--scale", "1..5", "--ask", "fluency=1..3")
    assert [name for name in read(folder / "b.csv")[0] if "[" in name] == ["grounding [1..5]", "fluency [1..3]"]


def test_people_can_judge_claim_by_claim(folder: Path) -> None:
    select("-o", "a.csv", "--random", "2", "--ask", "faithfulness=claims")
    rows = read(folder / "a.csv")
    assert [row["claim"] for row in rows] == ["It is long."] * 2
    token = decode_token(rows[0]["row"])
    assert token is not None and token.claim == 0


def test_each_annotator_gets_a_file_and_all_share_some_tasks(folder: Path) -> None:
    result = select("-o", "r.csv", "--random", "40", "--annotator", "ann", "--annotator", "bob", "--overlap", "25%")
    assert "ann and bob share 10 tasks." in result.output
    ann, bob = read(folder / "r-ann.csv"), read(folder / "r-bob.csv")
    assert (len(ann), len(bob)) == (25, 25)
    shared = {row["query_id"] for row in ann} & {row["query_id"] for row in bob}
    assert len(shared) == 10
    assert {row["annotator"] for row in bob} == {"bob"}


def test_a_file_that_could_hold_peoples_work_is_not_overwritten(folder: Path) -> None:
    (folder / "review.csv").write_text("work")
    result = select("-o", "review.csv")
    assert result.exit_code == 2
    assert "review.csv exists, and people's work could be in it; name another file, or overwrite it: --force" in (
        result.output
    )
    assert (folder / "review.csv").read_text() == "work"
    assert select("-o", "review.csv", "--force").exit_code == 0


@pytest.mark.parametrize("name", ["review.xlsx", "review.json", "review.html"])
def test_the_suffix_says_the_format(folder: Path, name: str) -> None:
    assert select("-o", name, "--random", "3").exit_code == 0
    assert (folder / name).stat().st_size > 0
    assert (folder / "review.xml").exists() == (name == "review.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "review.doc"), "-o review.doc: end the name in .csv, .xlsx, .json or .html"),
        (("-o", "a.csv", "--random", "3x"), "'3x' is neither a share nor a count; write 3% or 50"),
        (("-o", "a.csv", "--random", "300%"), "is neither a share nor a count"),
        (
            ("-o", "a.csv", "--overlap", "20%", "--annotator", "ann"),
            "--overlap divides the answers among several people",
        ),
        (("-o", "a.csv", "--guidelines", "."), "--guidelines .: the file cannot be read: Is a directory"),
        (("-o", "a.csv", "--overlap", "3"), "'3' is not a share; write 20%"),
        (("-o", "a.csv", "--scale", "stars"), "'stars' is not a scale; write yes_no, claims"),
        (("-o", "a.csv", "--ask", "fluency"), "--ask fluency: write NAME=SCALE"),
        (("-o", "a.csv", "--metric", "faithfullness"), "unknown metric 'faithfullness'; did you mean 'faithfulness'?"),
        (("-o", "a.csv", "--by-slice"), "these results have no slices"),
        (("-o", "a.csv", "--regressed"), "name one: --baseline LABEL"),
        (("-o", "a.csv", "--annotator", "../x", "--annotator", "b"), "the name is part of a file's name"),
        (("-o", "a.csv", "--annotator", "b", "--annotator", "b"), "an annotator is named twice"),
        (("-o", "a.csv", "--guidelines", "missing.txt"), "--guidelines missing.txt: the file cannot be read"),
        (("-o", ".", "--format", "csv"), "is a folder; name a file"),
        (("-o", "blocked/a.csv"), "blocked/a.csv cannot be written: "),
        (("nowhere", "-o", "a.csv"), "'nowhere' is neither a results folder nor a label"),
    ],
)
def test_mistakes_are_explained(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "blocked").write_text("")
    result = select(*arguments)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert not (folder / "a.csv").exists()


def test_guidelines_of_ones_own_replace_the_usual_ones(folder: Path) -> None:
    (folder / "own.txt").write_text("Be kind.")
    select("-o", "a.json", "--random", "1", "--guidelines", "own.txt")
    assert "Be kind." in (folder / "a.xml").read_text()
    assert json.loads((folder / "a.json").read_text())[0]["data"]["question"].startswith("Question q")


def test_guidelines_that_are_no_text_are_refused(folder: Path) -> None:
    (folder / "guide.docx").write_bytes(b"PK\x03\x04\xd0\xff")
    result = select("-o", "a.csv", "--guidelines", "guide.docx")
    assert (result.exit_code, result.output.strip()) == (
        2,
        "rageval-spec: --guidelines guide.docx: the file is not UTF-8 text; save it as UTF-8",
    )
