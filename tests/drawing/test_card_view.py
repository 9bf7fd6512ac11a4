"""Cards as text.

Cards as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from rageval_spec.data.tables import SampleColumn
from rageval_spec.data.traces import Step, describe_steps
from rageval_spec.drawing import card_view, cards
from rageval_spec.drawing.card_view import draw_card, draw_entry, format_change, shorten
from rageval_spec.drawing.cards import Card, Missing, build_card
from rageval_spec.drawing.question_order import BaselineValues
from rageval_spec.drawing.view import Block, write_markdown, write_text
from tests.answered_evaluation import BRIDGE, CLAIMS, answered, bridges, value


def card(*claims: dict[str, object], **sample: object) -> Card:
    rows = [value("q1", "faithfulness", 0.5, details={"claims": list(claims)})]
    return build_card(answered(rows, [{**BRIDGE, **sample}]), "golden", "v1", "q1")


def draw(blocks: Iterable[Block], width: int = 100) -> str:
    return write_text(blocks, width).decode()


def write_card(card: Card, names: Sequence[str], *, full: bool = False) -> str:
    return write_markdown(draw_card(card, names, full=full))


def test_claims_without_a_place_are_noted_below_the_answer() -> None:
    claim = {"text": "The bridge is 120 m long.", "verdict": "not_enough_info", "score": 0.0}
    told = draw(draw_card(card(claim), ["v1"]))
    assert "answer      The bridge is 120 m long. It was built in 1911.\n" in told
    assert "            ? not enough info (faithfulness): “The bridge is 120 m long.”\n" in told


def test_metrics_that_say_the_same_share_a_note() -> None:
    rows = [value("q1", name, 0.5, details={"claims": [CLAIMS[1]]}) for name in ("faithfulness", "grounding")]
    told = draw(draw_card(build_card(answered(rows, [BRIDGE]), "golden", "v1", "q1"), []))
    assert "✗1 contradicted (faithfulness, grounding)\n" in told
    assert told.count("the source says 1909") == 1


def test_nuggets_are_listed_with_what_the_answer_has_of_them() -> None:
    def rows(metric: str, *labels: str) -> dict[str, object]:
        texts = [("Open all year", "vital"), ("120 m long", "vital"), ("Built by Ada", "okay")]
        claims = [
            {"text": text, "importance": importance, "assignment": label, "verdict": "supported", "score": 1.0}
            for (text, importance), label in zip(texts, labels, strict=True)
        ]
        return value("q1", metric, 0.5, details={"claims": claims})

    values = [
        rows("nuggets", "support", "partial_support", "not_support"),
        rows("other", "support", "support", "not_support"),
    ]
    sample = {**BRIDGE, "columns": '{"level": 3, "nuggets": ["Open all year"]}'}
    lines = [
        line.split()
        for line in draw(draw_card(build_card(answered(values, [sample]), "golden", "v1", "q1"), [])).splitlines()
    ]
    assert ["Open", "all", "year", "vital", "✓", "yes"] in lines
    assert ["120", "m", "long", "vital", "in", "part:", "nuggets;", "✓", "yes:", "other"] in lines
    assert ["Built", "by", "Ada", "okay", "✗", "no"] in lines
    assert ["columns", "level:", "3"] in lines  # the nuggets are not shown twice


def test_a_cause_a_slice_and_columns_are_shown() -> None:
    told = draw(draw_card(card(cause="both", slices=["a", "b"], columns='{"level": 3}'), []))
    assert "cause       both\n" in told
    assert "slices      a, b\n" in told
    assert "columns     level: 3\n" in told


def test_an_empty_answer_is_called_empty() -> None:
    assert "answer      (empty)\n" in draw(draw_card(card(answer=" "), []))


def test_an_answer_that_was_cut_off_says_so() -> None:
    assert "q1 · cut off at the token limit" in draw(draw_card(card(truncated=True), []))
    assert "cut off" not in draw(draw_card(card(), []))


def test_a_document_that_was_retrieved_too_low_says_where() -> None:
    from dataclasses import replace

    told = draw(draw_card(replace(card(), missing=(Missing("far", 1, "Text.", 57),)), []))
    assert "–      1  far only at rank 57\n" in told


def test_evidence_from_a_context_without_an_id_names_the_context() -> None:
    told = draw(draw_card(card(CLAIMS[1], context_ids=None, contexts=["It is long.", "It opened in 1909."]), []))
    assert "nearest: context 2: “opened in 1909”\n" in told
    gold = draw(draw_card(card(CLAIMS[1], context_ids=None, contexts=["It is long.", "It is old."]), []))
    assert "nearest: “opened in 1909”\n" in gold


def test_what_was_retrieved_without_an_answer_takes_two_lines_a_document() -> None:
    told = draw(draw_card(card(answer=None, contexts=["word " * 90], context_ids=["long"]), []), 60)
    assert "1         long\n                         word word" in told
    assert max(map(len, told.splitlines())) <= 60
    assert told.count("word") <= 12


def test_an_entry_has_one_line_for_each_text() -> None:
    lines = draw([draw_entry(card(CLAIMS[1], answer="One.\n\nTwo. It was built in 1911." * 20), ["v1"], None)], 40)
    assert [len(line) for line in lines.splitlines()] == [7, 14, 40, 40]


def test_changes_have_a_sign() -> None:
    assert (format_change(0.25), format_change(-0.25)) == ("+0.250", "−0.250")


def test_a_long_text_is_cut_to_one_line() -> None:
    assert shorten("a\nb\x1b") == "a b\\x1b"
    assert shorten("x" * 500) == "x" * 400 + "…"
    assert shorten("x" * 500, full=True) == "x" * 500


def markdown_card(**sample: object) -> Card:
    rows = [value("q1", "faithfulness", 0.5, details={"claims": list(CLAIMS)})]
    return build_card(answered(rows, [{**BRIDGE, **sample}]), "golden", "v1", "q1")


def test_a_card_is_a_section_with_a_table_of_values_and_one_of_documents() -> None:
    told = write_card(markdown_card(cause="generation", slices=["long"]), ["v1", "golden"])
    assert told.startswith("## `q1` · `v1` · `golden` · 1.5 s, $0.002\n\n**Question:** Question q1?\n\n**Answer:** ")
    assert "**Cause:** generation" in told
    assert "**Slices:** `long`" in told
    assert "| `faithfulness` | **0.500** |" in told
    assert "| 2 | 2 | `opening` <br>It opened in 1909. |" in told


def test_line_breaks_of_an_answer_stay_and_long_ones_are_cut() -> None:
    assert "**Answer:** One.<br>Two.\n" in write_card(markdown_card(answer="One.\r\nTwo."), [])
    assert "… (500 more characters; show --full has them)" in write_card(markdown_card(answer="x" * 2500), [])
    assert f"{'x' * 2453}\n" in write_card(markdown_card(answer="x" * 2500), [], full=True)


def test_changes_say_whether_they_are_good() -> None:
    told = write_card(build_card(bridges(), "golden", "v1", "q1", BaselineValues("main", bridges(shift=0.125))), [])
    assert "| `faithfulness` | **0.500** | 0.625 (main) | −0.125 worse |" in told
    assert "| `ndcg@10` | **0.600** | 0.600 (main) | = |" in told


def test_a_few_missing_documents_are_listed_and_the_others_counted() -> None:
    judged = [{"doc_id": f"d{at}", "relevance": 1} for at in range(8)]
    told = write_card(markdown_card(relevant=judged), [])
    assert told.count("not retrieved") == 5
    assert "and 3 more relevant documents that are not here" in told
    assert write_card(markdown_card(relevant=judged), [], full=True).count("not retrieved") == 8


def test_a_labelled_column_without_a_place_of_its_own_is_in_the_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    column = SampleColumn("trace", label="trace")
    for module in (cards, card_view):
        monkeypatch.setattr(module, "SAMPLE_COLUMNS", (column,))
    assert "q1 · trace: abc" in draw(draw_card(card(trace="abc"), []))
    assert card().others == {}


def test_steps_say_which_calls_were_expected_and_what_is_missing() -> None:
    steps = (Step("tool", "search", '{"q": 1}', "found"), Step("model", "thought"), Step("tool", "mail"))
    states = (("search", 1, "matched"), ("mail", 3, "extra"), ("refund", None, "missing"))
    calls = [{"metric": "m", "name": name, "arguments": None, "step": n, "state": state} for name, n, state in states]
    other = [{**calls[0], "metric": "second", "state": "extra"}]
    assert [*describe_steps(steps, [*calls, *other])] == [
        '1 ✓ tool search({"q": 1}) → found',
        "2 model thought",
        "3 extra tool mail",
        "– missing refund",
    ]
