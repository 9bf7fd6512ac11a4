""""""

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.generate.output import Summary, check_output, place_beside, write_rows, write_sides
from rageval_spec.errors import UsageError
from rageval_spec.generation.question_sets import KindShare


def test_files_lie_beside_the_questions() -> None:
    assert place_beside(Path("sets/my.golden.jsonl"), "rejected") == Path("sets/my.golden.rejected.jsonl")


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "golden.jsonl", [{"question": "é"}])
    assert path.read_text("utf-8") == '{"question": "é"}\n'
    with pytest.raises(UsageError, match="people may have edited it"):
        check_output(path, force=False)
    check_output(path, force=True)
    check_output(path, force=False, dry_run=True)
    with pytest.raises(UsageError, match=r"name a file that ends in \.jsonl"):
        check_output(tmp_path / "golden.csv", force=False)


def test_each_set_of_a_split_has_its_file_and_sets_of_an_earlier_one_are_removed(tmp_path: Path) -> None:
    output = tmp_path / "golden.jsonl"
    rows = [{"split": "test", "n": 1}, {"split": "validation", "n": 2}, {"split": "test", "n": 3}]
    assert [path.name for path in write_sides(rows, output)] == ["golden.validation.jsonl", "golden.test.jsonl"]
    assert place_beside(output, "test").read_text() == '{"split": "test", "n": 1}\n{"split": "test", "n": 3}\n'
    assert [*write_sides([{"n": 1}], output)] == []
    assert not place_beside(output, "test").exists()


def make(**parts: Any) -> Summary:
    values: dict[str, Any] = {
        "questions": 100, "wanted": 100, "chunks": 60, "all_chunks": 80, "documents": 9, "all_documents": 10,
        "shares": [KindShare("type", "factual", 60, 50), KindShare("type", "procedural", 40, 50)],
        "rejected": {"leak": 3},
        "shortages": [], "stopped": None, "cost": 0.5,
    }  # fmt: skip
    return Summary(**{**values, **parts})


def show(summary: Summary) -> str:
    text = summary.render("text", Path("golden.jsonl"), [])
    assert isinstance(text, bytes)
    return text.decode()


def test_the_mix_stands_beside_the_wanted_one_and_is_said_where_it_is_off() -> None:
    text = show(make())
    assert "100 questions about 60 of 80 chunks, from 9 of 10 documents" in text
    assert "! type factual: 60 instead of 50" in text
    assert "! type procedural: only 40 instead of 50" in text
    assert "leak" in text
    assert "      path: golden.jsonl\n" in text


def test_a_share_that_is_nearly_right_is_not_worth_a_word() -> None:
    assert "! type" not in show(make(shares=[KindShare("type", "factual", 53, 50)]))


def test_what_is_missing_and_what_stopped_it_is_said() -> None:
    short = make(questions=57, shortages=["43 questions: no chunk is left to ask about"])
    assert "57 of 100 questions" in show(short)
    assert "! missing 43 questions: no chunk is left to ask about" in show(short)
    assert short.complaint is None
    stopped = make(questions=57, stopped="limits.max_cost: 2 of 2 USD")
    assert stopped.complaint == (
        "57 of 100 questions are made: limits.max_cost: 2 of 2 USD; run the same command again to continue"
    )
    assert "to evaluate with them" not in show(stopped)
    assert make(questions=0, shares=[]).complaint == "no question could be made; the rejected ones have the reasons"


def test_json_has_everything() -> None:
    content = json.loads(make().render("json", Path("golden.jsonl"), [Path("golden.jsonl")]))
    assert (content["questions"], content["rejected"], content["files"]) == (100, {"leak": 3}, ["golden.jsonl"])
