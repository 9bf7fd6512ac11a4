"""The cards that `.question` and `.questions` return: notebooks show one as a card, and several as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from rageval_spec.drawing.card_view import draw_card, shorten
from rageval_spec.drawing.cards import Card, CardValue
from rageval_spec.drawing.html_shell import draw_table
from rageval_spec.drawing.view import write_markdown
from rageval_spec.wording import DIGITS, count_noun

_ROWS_SHOWN = 50


class QuestionCard(Card):
    """A card that a notebook shows: question, marked answer, references, values with their reasons, documents."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return write_markdown(draw_card(self, (self.system, self.dataset)))


class QuestionCards(tuple[QuestionCard, ...]):
    """Cards in order. A notebook shows a row for each, with its values and the beginning of its answer."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No questions were chosen.</p>"
        metrics = list(dict.fromkeys(one.metric for card in self for one in card.values))
        heads = ("query_id", "system", "question", *metrics, "answer")
        table = draw_table(heads, (_list_cells(card, metrics) for card in self[:_ROWS_SHOWN]))
        rest = len(self) - _ROWS_SHOWN
        more = f"<p>{count_noun(rest, 'more question')}</p>" if rest > 0 else ""
        return f"{table}{more}"


def make_cards(cards: Iterable[Card]) -> QuestionCards:
    """The cards as notebooks show them."""
    return QuestionCards(QuestionCard(**{one.name: getattr(card, one.name) for one in fields(Card)}) for card in cards)


def _list_cells(card: Card, metrics: Iterable[str]) -> tuple[str, ...]:
    values = (_describe(card.value(metric)) for metric in metrics)
    answer = shorten(card.answer if card.answer is not None else card.error or "")
    return card.query_id, card.system, shorten(card.question), *values, answer


def _describe(value: CardValue | None) -> str:
    if value is None:
        return ""
    return value.status if value.value is None else value.shown.number(value.value, DIGITS)
