"""The cards that `.question` and `.questions` return: notebooks show one as a card, and several as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from html import escape
from typing import Any

from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.card_text import shorten, write_card
from rageval_spec.drawing.cards import Card
from rageval_spec.wording import count_noun, format_number

_CELL = 'style="text-align:left;padding:.2em .8em .2em 0;vertical-align:top"'
_ROWS_SHOWN = 50


class QuestionCard(Card):
    """A card that a notebook shows: question, marked answer, references, values with their reasons, documents."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return write_card(self, (self.system, self.dataset))


class QuestionCards(tuple[QuestionCard, ...]):
    """Cards in order. A notebook shows a row for each, with its values and the beginning of its answer."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No questions were chosen.</p>"
        metrics = list(dict.fromkeys(one.metric for card in self for one in card.values))
        head = "".join(f'<th scope="col" {_CELL}>{_show(name)}</th>' for name in _list_heads(metrics))
        rows = "".join(_draw_row(card, metrics) for card in self[:_ROWS_SHOWN])
        rest = len(self) - _ROWS_SHOWN
        more = f"<p>{count_noun(rest, 'more question')}</p>" if rest > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def make_cards(cards: Iterable[Card]) -> QuestionCards:
    """The cards as notebooks show them."""
    return QuestionCards(QuestionCard(**{one.name: getattr(card, one.name) for one in fields(Card)}) for card in cards)


def _list_heads(metrics: Iterable[str]) -> list[str]:
    return ["query_id", "system", "question", *metrics, "answer"]


def _draw_row(card: Card, metrics: Iterable[str]) -> str:
    values = (_describe(card.value(metric)) for metric in metrics)
    answer = shorten(card.answer if card.answer is not None else card.error or "")
    cells = (card.query_id, card.system, shorten(card.question), *values, answer)
    return f"<tr>{''.join(f'<td {_CELL}>{_show(cell)}</td>' for cell in cells)}</tr>"


def _describe(value: Any) -> str:
    if value is None:
        return ""
    return value.status if value.value is None else format_number(value.value)


def _show(text: str) -> str:
    return escape(make_visible(text))
