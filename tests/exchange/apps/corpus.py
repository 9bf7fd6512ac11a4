"""What the applications know, and what they are asked.

The texts have what readers of traces stumble over: quotes, line breaks, accents, an answer as a list, a question that
stands in no document. The last question fails: the model's endpoint refuses to answer it.
"""

from __future__ import annotations

from typing import NamedTuple

DOCUMENTS = {
    "d1": "The Harbour Library opens at nine on weekdays and at ten on Saturdays.",
    "d2": 'Overdue books cost twenty cents a day, "at most five euros a book".',
    "d3": "The reading room on the second floor has forty seats and eight lamps.",
    "d4": "A library card is free for children; adults pay twelve euros a year.",
    "d5": "Le café de la bibliothèque sert du thé jusqu'à dix-huit heures.",
    "d6": "The bookmobile stops at Mill Square on Tuesdays.\nIt stays for two hours.",
}


class Asked(NamedTuple):
    """A question, the ids of the documents that a search for it finds, best first, and what the model then says."""

    question: str
    found: tuple[str, ...]
    answer: str


QUESTIONS = (
    Asked("When does the Harbour Library open on Saturdays?", ("d1", "d3"), "It opens at ten."),
    Asked('How much is an overdue book, and what does "at most" mean?', ("d2", "d4"), "Twenty cents a day, up to €5."),
    Asked("Jusqu'à quelle heure le café sert-il du thé ?", ("d5", "d1", "d3"), "Jusqu'à 18 h."),
    Asked("Where does the bookmobile stop?", ("d6", "d1"), "At Mill Square:\n\n- on Tuesdays\n- for two hours"),
)
REFUSED = Asked("Who wrote the oldest book?", ("d3", "d2"), "")
ALL = (*QUESTIONS, REFUSED)
_BEST = 0.9


def find(text: str) -> Asked | None:
    """What is asked in a text: the question that it has; None if it has none."""
    return next((asked for asked in ALL if asked.question in text), None)


def search(query: str) -> list[dict[str, object]]:
    """The documents for a query, best first: `id`, `text` and `score` each."""
    asked = find(query)
    found = asked.found if asked else ()
    return [{"id": name, "text": DOCUMENTS[name], "score": round(_BEST - place / 4, 2)}
            for place, name in enumerate(found)]  # fmt: skip
