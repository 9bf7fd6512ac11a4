"""Cards in a notebook: one question as a card, several as a table; hostile texts stay text."""

from __future__ import annotations

import re

from rageval_spec.api.question_cards import make_cards
from rageval_spec.drawing.cards import Card, CardValue

VALUES = (CardValue("faithfulness", 0.5, "scored", None), CardValue("ndcg@10", None, "unscorable", "no judgements"))


def make(query_id: str = "q1", answer: str | None = "Yes.", error: str | None = None, question: str = "Why?") -> Card:
    return Card("golden", "bot", query_id, question, "answered", answer, error, values=VALUES)


def test_one_question_is_shown_with_its_answer_values_and_reasons() -> None:
    (card,) = make_cards([make()])
    shown = card._repr_markdown_()
    assert shown.startswith("## `q1` · `bot` · `golden`\n")
    assert "**Answer:** Yes." in shown
    assert re.search(r"\| `ndcg@10` \|.*no judgements \|", shown)
    assert card == card and card.value("faithfulness") == VALUES[0]


def test_several_questions_are_a_table_with_a_column_for_each_metric() -> None:
    cards = make_cards([make(), make("q2", None, "timed out")])
    shown = cards._repr_html_()
    heads = re.findall(r"<th [^>]*>([^<]*)</th>", shown)
    assert heads == ["query_id", "system", "question", "faithfulness", "ndcg@10", "answer"]
    cells = re.findall(r"<td [^>]*>([^<]*)</td>", shown)
    assert cells[:6] == ["q1", "bot", "Why?", "0.500", "unscorable", "Yes."]
    assert cells[-1] == "timed out"
    assert isinstance(cards, tuple) and [card.query_id for card in cards] == ["q1", "q2"]


def test_texts_are_escaped_and_many_rows_are_counted() -> None:
    cards = make_cards(make(f"q{n}", "<script>alert(1)</script>", question="a\x1b[31m") for n in range(60))
    shown = cards._repr_html_()
    assert "<script" not in shown and "\x1b" not in shown
    assert shown.count("<tr>") == 51
    assert "10 more questions" in shown
    assert "<script" not in cards[0]._repr_markdown_()


def test_no_question_is_said() -> None:
    assert "No questions" in make_cards([])._repr_html_()
