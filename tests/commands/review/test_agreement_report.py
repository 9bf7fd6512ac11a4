"""`review agreement`, as a user sees it.

`review preferences`: what a user reads.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.commands.review.agreement_report import describe_agreement
from rageval_spec.errors import UsageError


def write(folder: Path, rows: list[str], name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text("id,metric,annotator,value\n" + "".join(f"{row}\n" for row in rows))
    return path


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def good_labels(folder: Path) -> Path:
    rows = [f"q{number},faithfulness,{who},{number % 2}" for number in range(20) for who in ("ann", "bob")]
    return write(folder, [*rows, "q20,faithfulness,ann,1", "q20,faithfulness,bob,0"])


@pytest.mark.usefixtures("wide")
def test_reliable_labels_are_called_so(tmp_path: Path) -> None:
    text = describe_agreement([good_labels(tmp_path)], [], [], "text").decode()
    assert "Agreement on faithfulness: 21 items, 21 with two or more labels, 2 annotators" in text
    assert "✓ Krippendorff's alpha is 0.907, at least 0.7: people agree well enough to judge a judge by." in text
    assert "Rows: ann. Columns: bob." in text
    assert "q20   ann 1, bob 0" in text
    assert "Only 21 items have two labels" in text


@pytest.mark.usefixtures("wide")
def test_unreliable_labels_are_called_so_with_what_to_do(tmp_path: Path) -> None:
    rows = [f"q{number},recall,{who},{(number + shift) % 3}" for number in range(30) for shift, who in enumerate("ab")]
    text = " ".join(describe_agreement([write(tmp_path, rows)], [], [], "text").decode().split())
    assert "below 0.7: do not judge a judge by these labels yet." in text
    assert "write into the guidelines what decided each" in text
    assert "... and 20 more; --format json lists all." in text


@pytest.mark.usefixtures("wide")
def test_one_annotator_is_told_what_is_needed(tmp_path: Path) -> None:
    text = describe_agreement([write(tmp_path, ["q1,recall,ann,1"])], [], [], "text").decode()
    assert "Agreement cannot be computed: no item has two ratings." in text
    assert "Ask a second person to label at least 50 of the same items." in text


@pytest.mark.usefixtures("wide")
def test_labels_of_the_same_questions_that_name_other_answers_are_told(tmp_path: Path) -> None:
    bob = tmp_path / "bob.csv"
    bob.write_text("id,metric,system,annotator,value\nq1,recall,v1,bob,1\n")
    text = describe_agreement([write(tmp_path, ["q1,recall,ann,1"]), bob], [], [], "text").decode()
    said = " ".join(text.split())
    assert "Several people labelled the same question, but their labels differ in the dataset, the system," in said
    assert "Ask a second person" not in said


@pytest.mark.usefixtures("wide")
def test_json_has_everything(tmp_path: Path) -> None:
    (found,) = json.loads(describe_agreement([good_labels(tmp_path)], [], ["faithfulness"], "json"))
    assert (found["metric"], found["items"], found["deciding"], found["enough"]) == (
        "faithfulness",
        21,
        "alpha-nominal",
        True,
    )
    assert found["confusion"] == [[10, 0], [1, 10]]
    assert [one["annotator"] for one in found["annotators"]] == ["ann", "bob"]
    assert found["disagreements"][0]["labels"][1]["value"] == 0.0


@pytest.mark.usefixtures("wide")
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    rows = ["q\x1b[31m,recall,\x1b]0;x\x07,1", "q\x1b[31m,recall,bob,0"]
    assert "\x1b" not in describe_agreement([write(tmp_path, rows)], [], [], "text").decode()


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("columns", "metrics", "message"),
    [
        (["value"], [], "--column value: write PART=NAME, such as value=rating"),
        (["vlaue=x"], [], "a label has no 'vlaue'; did you mean 'value'?"),
        ([], ["recal"], "no label has the metric 'recal'; the labels have faithfulness"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, columns: list[str], metrics: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        describe_agreement([good_labels(tmp_path)], columns, metrics, "text")
    assert message in str(raised.value)
