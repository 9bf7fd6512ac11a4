"""Cards as Markdown."""

from __future__ import annotations

from rageval_spec.commands.card_markdown import write_card
from rageval_spec.reports.shared.cards import Baseline, Card, build_card
from tests.answered_evaluation import BRIDGE, CLAIMS, answered, bridges, value


def card(**sample: object) -> Card:
    rows = [value("q1", "faithfulness", 0.5, details={"claims": list(CLAIMS)})]
    return build_card(answered(rows, [{**BRIDGE, **sample}]), "golden", "v1", "q1")


def test_a_card_is_a_section_with_a_table_of_values_and_one_of_documents() -> None:
    told = write_card(card(cause="generation", slices=["long"]), ["v1", "golden"])
    assert told.startswith("## `q1` · `v1` · `golden`\n\n**Question:** Question q1?\n\n**Answer:** ")
    assert "**Cause:** generation" in told
    assert "**Slices:** `long`" in told
    assert "| `faithfulness` | 0.500 |  |" in told
    assert "| 2 | 2 | `opening` | It opened in 1909. |" in told


def test_line_breaks_of_an_answer_stay_and_long_ones_are_cut() -> None:
    assert "**Answer:** One.<br>Two.\n" in write_card(card(answer="One.\r\nTwo."), [])
    assert "… (500 more characters)" in write_card(card(answer="x" * 2500), [])
    assert f"{'x' * 2453}\n" in write_card(card(answer="x" * 2500), [], full=True)


def test_changes_say_whether_they_are_good() -> None:
    told = write_card(build_card(bridges(), "golden", "v1", "q1", Baseline("main", bridges(shift=0.125))), [])
    assert "| `faithfulness` | 0.500 | 0.625 (main) | −0.125 worse |  |" in told
    assert "| `ndcg@10` | 0.600 | 0.600 (main) | = |  |" in told


def test_a_few_missing_documents_are_listed_and_the_others_counted() -> None:
    judged = [{"doc_id": f"d{at}", "relevance": 1} for at in range(8)]
    told = write_card(card(relevant=judged), [])
    assert told.count("not retrieved") == 5
    assert "and 3 more relevant documents that are not here" in told
    assert write_card(card(relevant=judged), [], full=True).count("not retrieved") == 8
