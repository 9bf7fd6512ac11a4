"""Says in text why a gate failed: its reason, and the card of the question that did worst."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rageval_spec.wording import make_visible

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation, GateOutcome


def explain_gate(evaluation: Evaluation, gate: GateOutcome) -> str:
    """The reason of a gate's outcome, and the worst question of its dataset, system, metric and slice, if any."""
    reason = make_visible(gate.reason)
    card = draw_worst(evaluation, gate)
    return f"{reason}\n\n{card}" if card else reason


def draw_worst(evaluation: Evaluation, gate: GateOutcome) -> str:
    """The card of the question with the worst value, else of one that failed; "" if there is no question."""
    from rageval_spec.reports.shared.card_text import draw_card
    from rageval_spec.reports.shared.cards import Filter, select_cards
    from rageval_spec.reports.shared.console import render_text

    if gate.metric not in evaluation.metrics or not gate.system or not gate.dataset:
        return ""
    wanted = Filter(metric=gate.metric, system=gate.system, dataset=gate.dataset, slice=gate.slice, limit=1)
    cards = select_cards(evaluation, replace(wanted, below=math.inf)) or select_cards(evaluation, wanted)
    if not cards:
        return ""
    (card,) = cards
    text = render_text(lambda _: draw_card(card, [card.system, card.dataset]))
    return text.decode().rstrip()
