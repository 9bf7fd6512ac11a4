"""What answers cite, from a file to the samples, the values, the page and the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.evidence.citations import Citation, load_citations
from rageval_spec.drawing.card_view import draw_card
from rageval_spec.drawing.cards import build_card
from rageval_spec.drawing.view import write_text
from rageval_spec.runner import Options, run
from tests.browser import open_page, start_browser

TOWER = {
    "id": "q1",
    "answer": "It opened in 1889 [1]. It is made of wood [2, 3].",
    "contexts": [
        {"id": "a.md", "text": "It opened in 1889."},
        {"id": "b.md", "text": "It is made of iron."},
        {"id": "c.md", "text": "Cats sleep."},
    ],
}


METRICS = [{"use": "citation_validity"}]


def evaluate(
    folder: Path, row: dict[str, Any], *metrics: dict[str, Any], reports: str = "[json]", **system: Any
) -> Evaluation:
    (folder / "questions.jsonl").write_text('{"id": "q1", "question": "What of it?"}\n', encoding="utf-8")
    (folder / "answers.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    named = json.dumps({"use": "file", "path": "answers.jsonl", **system})
    (folder / "spec.yaml").write_text(
        "version: 1\nname: cited\ndatasets: {d: {use: jsonl, path: questions.jsonl}}\n"
        f"systems: {{s: {named}}}\nmetrics: {json.dumps([*METRICS, *metrics])}\nreports: {reports}\n",
        encoding="utf-8",
    )
    return run(folder / "spec.yaml", Options(output=folder / "out", store=folder / "store")).evaluation


def cited(evaluation: Evaluation) -> tuple[Citation, ...] | None:
    return load_citations(evaluation.samples["citations"][0])


def test_citations_are_kept_in_the_samples(tmp_path: Path) -> None:
    assert cited(evaluate(tmp_path, TOWER)) == (
        Citation(0, 22, "1", (18, 21), 0),
        Citation(23, 49, "2", (42, 48), 1),
        Citation(23, 49, "3", (42, 48), 2),
    )


def test_a_system_says_where_numbers_begin(tmp_path: Path) -> None:
    found = evaluate(tmp_path, TOWER, citations_from=0)
    assert [one.context for one in cited(found) or ()] == [1, 2, None]
    assert found.values["value"].to_list() == [pytest.approx(2 / 3)]


def test_a_row_says_where_numbers_begin(tmp_path: Path) -> None:
    found = evaluate(tmp_path, TOWER | {"citations_from": 0})
    assert [one.context for one in cited(found) or ()] == [1, 2, None]


def test_an_answer_of_sentences(tmp_path: Path) -> None:
    sentences = [{"text": "It opened in 1889.", "citations": [0]}, {"text": "It is old.", "citations": [1, 5]}]
    found = evaluate(tmp_path, {"id": "q1", "references": ["a", "b"], "answer": sentences})
    assert found.samples["answer"][0] == "It opened in 1889. It is old."
    assert found.samples["context_ids"][0].to_list() == ["a", "b"]
    assert [one.context for one in cited(found) or ()] == [0, 1, None]
    assert found.values["value"].to_list() == [pytest.approx(2 / 3)]


def test_the_terminal_lists_citations(tmp_path: Path) -> None:
    found = evaluate(tmp_path, TOWER, {"use": "citation_support", "judge": "overlap", "citations": "all"})
    told = write_text(draw_card(build_card(found, "d", "s", "q1"), []), 100).decode()
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "[1] 1 a.md supported: citation_support(citations=all)" in lines
    assert "[2, 3] 2 b.md not enough info: citation_support(citations=all)" in lines


@pytest.mark.parametrize("judged", [True, False])
def test_the_page_shows_the_passage_of_a_marker(tmp_path: Path, judged: bool) -> None:
    metrics = [{"use": "citation_support", "judge": "overlap", "citations": "all"}] if judged else []
    evaluate(tmp_path, TOWER, *metrics, reports="[html]")
    with start_browser() as browser, open_page(browser, tmp_path / "out" / "report.html", "#q=q1&system=s") as opened:
        page = opened.page
        page.wait_for_selector(".claim")
        assert page.locator(".claim").all_inner_texts() == (["✓[1]", "?[2, 3]"] if judged else ["→[1]", "→[2, 3]"])
        page.locator(".claim").nth(1).click()
        told = page.locator(".finding").inner_text()
        assert "cites 2: b.md" in told
        assert "cites 3: c.md" in told
        assert page.locator(".document.source").count() == 2
        assert opened.seen == []
