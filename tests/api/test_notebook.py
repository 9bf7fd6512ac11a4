from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from rageval_spec.api.finished import FinishedEvaluation
from rageval_spec.data.note import Note
from tests.sample_evaluation import HOSTILE, make_evaluation


class Tags(HTMLParser):
    """Collects the tags, their attributes and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.open += [] if tag == "br" else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def test_it_shows_the_outcome_and_the_means_with_intervals_and_gates() -> None:
    evaluation = make_evaluation()
    shown = Tags(FinishedEvaluation(evaluation)._repr_html_())
    assert shown.open == []
    assert shown.tags <= {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td", "br", "small",
                          "ul", "li"}  # fmt: skip
    assert shown.attributes <= {"scope", "style"}
    for text in ("support-bot", "ndcg@10", "hybrid", "0.412", "[", *evaluation.systems, *evaluation.metrics):
        assert text in shown.text
    assert "queries scored" in shown.text


def test_texts_stay_texts() -> None:
    evaluation = replace(
        make_evaluation((HOSTILE,), (HOSTILE, "b"), {HOSTILE: (0.5, 0.25)}),
        name=HOSTILE,
        notes=(Note("n", HOSTILE, system=HOSTILE),),
        failures=(HOSTILE,),
    )
    html = FinishedEvaluation(evaluation, lost_reports=[HOSTILE])._repr_html_()
    shown = Tags(html)
    assert "script" not in shown.tags
    assert html.isprintable()
    assert shown.text.count("<script>=cmd() `x` \\x1b[31m @everyone") >= 6


def test_many_notes_are_counted_and_warnings_come_first() -> None:
    notes = [Note("n", f"note {index}") for index in range(14)] + [Note("w", "mind this", level="warning")]
    shown = Tags(FinishedEvaluation(replace(make_evaluation(), notes=tuple(notes), failures=()))._repr_html_())
    assert "mind this" in shown.text
    assert "note 8" in shown.text
    assert "note 9" not in shown.text
    assert "5 more notes: see `.notes`" in shown.text
