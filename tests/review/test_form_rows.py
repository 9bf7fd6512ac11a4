"""The rows and columns of a form.

What a row is about survives a spreadsheet, and damage is noticed.
"""

from __future__ import annotations

import re

import pytest

from rageval_spec.data.labels import digest_answer
from rageval_spec.review.forms import (
    MOST_CHARACTERS,
    FormToken,
    decode_token,
    digest_shown,
    list_columns,
    list_rows,
    name_column,
    read_column,
    show,
)
from tests.review.form_sheets import CLAIMS, FAITHFULNESS, FLUENCY, make_sheet, make_task
from tests.sample_evaluation import HOSTILE


def test_an_answer_has_a_row_with_a_column_for_each_criterion() -> None:
    sheet = make_sheet()
    assert [column.name for column in list_columns(sheet) if column.use == "fill"] == [
        "faithfulness [yes/no]", "fluency [1..5]", "comment", "annotator",
    ]  # fmt: skip
    first, second = list_rows(sheet)
    assert (first.cells["no"], second.cells["no"], second.cells["query_id"]) == (1, 2, "007")
    assert first.cells["contexts"] == "[1] length\nIt is 120 m long.\n\n[2]\nIt opened in 1909."
    assert (first.cells["reason"], first.cells["probability"]) == ("random + low", 0.25)
    token = decode_token(str(first.cells["row"]))
    assert token is not None
    assert (token.query_id, token.claim, token.probability) == ("q1", None, 0.25)
    assert token.answer_digest == digest_answer(make_task().answer)


def test_each_claim_has_a_row_of_its_own() -> None:
    rows = [*list_rows(make_sheet(CLAIMS, FLUENCY))]
    assert [(row.cells["no"], row.cells["claim"], row.asked) for row in rows[:3]] == [
        (1, "", ("fluency",)),
        (1, "It is 120 m long.", ("faithfulness",)),
        (1, "It was built in 1911.", ("faithfulness",)),
    ]
    assert [decode_token(str(row.cells["row"])).claim for row in rows[:3]] == [None, 0, 1]  # type: ignore[union-attr]


def test_the_judge_is_shown_only_if_it_is_asked_for() -> None:
    hidden = make_sheet(CLAIMS)
    assert not any("judge" in column.name for column in list_columns(hidden))
    assert not any("contradicted" in str(cell) for row in list_rows(hidden) for cell in row.cells.values())
    shown = [*list_rows(make_sheet(CLAIMS, FLUENCY, shows_judge=True))]
    assert [row.cells["judge: faithfulness"] for row in shown[:3]] == ["", "supported", "contradicted"]
    (row, _) = list_rows(make_sheet(shows_judge=True))
    assert (row.cells["judge: faithfulness"], row.cells["judge: fluency"]) == (0.5, "")


@pytest.mark.parametrize("criterion", [FAITHFULNESS, FLUENCY, CLAIMS])
def test_a_header_says_what_can_be_entered(criterion: object) -> None:
    found = read_column(f" {name_column(criterion)} ")  # type: ignore[arg-type]
    assert found is not None
    assert (found.name, found.choices) == (criterion.name, criterion.choices)  # type: ignore[attr-defined]


def test_other_headers_name_no_criterion() -> None:
    assert [read_column(name) for name in ("comment", "notes [mine]", "[1..5]", "x [9..1]", "")] == [None] * 5


def test_a_cell_shows_everything_and_never_too_much() -> None:
    assert show("a\r\nb\tc\x1b[31m\u202e") == "a\nb\tc\\x1b[31m\\u202e"
    long = show("x" * 50_000)
    assert len(long) == MOST_CHARACTERS
    assert long.endswith("… [cut: the text has 50,000 characters]")


TOKEN = FormToken("golden", "v1", "007", "faithfulness", 3, "0123456789abcdef", "low + random", 0.25, "89abcdef")


@pytest.mark.parametrize("query_id", ["007", "1/2", "ä ", HOSTILE, "\ud800"])
def test_a_token_comes_back(query_id: str) -> None:
    token = FormToken("golden", "v1", query_id, "", None, "0", "random", 1 / 3, "0")
    assert decode_token(f" {token.encode()}\n") == token


def test_a_spreadsheet_takes_it_for_text() -> None:
    assert re.fullmatch(r"rv1\.[A-Za-z0-9_-]+\.[0-9a-f]{8}", TOKEN.encode())


@pytest.mark.parametrize("text", ["", "7", "rv1.", "rv1..", "rv1.W10.4f53cda1", "rv1.[].x", "rv1.%%%.00000000"])
def test_what_is_no_token_is_none(text: str) -> None:
    assert decode_token(text) is None


def test_every_damage_is_noticed() -> None:
    text = TOKEN.encode()
    for at in range(len(text)):
        assert decode_token(text[:at] + text[at + 1 :]) is None
        assert decode_token(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]) is None


def test_the_digest_of_the_texts_ignores_what_spreadsheets_change() -> None:
    assert digest_shown(["a b\nc", "=1"]) == digest_shown([" a  b\r\nc ", "'=1"])
    assert digest_shown(["a", "b"]) != digest_shown(["a b", ""])
    assert digest_shown(["1909"]) != digest_shown(["1911"])
