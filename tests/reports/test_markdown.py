from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from markdown_it import MarkdownIt

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.markdown import MarkdownNode, MarkdownReport
from tests.reports.golden import assert_golden
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation


def render(evaluation: Evaluation) -> str:
    return MarkdownReport(MarkdownNode(use="markdown"), Context("markdown")).render(evaluation).decode()


def to_html(markdown: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))


def test_golden() -> None:
    assert_golden("report.md", render(make_evaluation()).encode())


def test_the_verdict_comes_first_and_failed_gates_before_the_table() -> None:
    text = render(make_evaluation())
    places = [
        text.index(part)
        for part in (
            "## `support-bot`",
            "❌ **Not ready**: 1 of 3 gates failed, 1 warned.",
            "❌ ndcg@10 of bm25 is 0.412, below",
            "⚠️ ndcg@10 of dense",
            "| metric |",
            "<details><summary>Passed gates (1)",
        )
    ]
    assert places == sorted(places)


def test_a_table_has_a_column_for_each_system() -> None:
    html = to_html(render(make_evaluation(("golden", "scifact"))))
    first = html[html.index("<table>") : html.index("</table>")]
    assert len(re.findall("<th>", first)) == 5
    assert len(re.findall("<td>", first)) == 5 * 5
    assert "<td><strong>0.512</strong> [0.461, 0.564] ▲ ✅</td>" in first
    assert "▲ 37/40" in first
    assert html.count("<h3>") == 2


def test_hostile_names_stay_names() -> None:
    html = to_html(render(make_hostile_evaluation()))
    tags = Counter(re.findall(r"<(\w+)", html))
    harmless = {
        *("h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
        *("code", "pre", "strong", "br", "details", "summary"),
    }
    assert set(tags) <= harmless
    assert tags["table"] == 2
    first = html[html.index("<table>") : html.index("</table>")]
    assert len(re.findall("<th>", first)) == 4
    assert len(re.findall("<td>", first)) == 2 * 4
    shown = "a|b\\n&lt;script&gt;=cmd() `x` \\x1b[31m @everyone \U0001f600 \\x00"
    assert f"<code>{shown}</code>" in first
    outside_code = re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"(?<!\w)@\w", outside_code)
    assert shown.replace("@", "@<!-- -->") in outside_code


def test_a_name_cannot_close_the_marker() -> None:
    first_line = render(replace(make_evaluation(), name="a --> <b>\n")).splitlines()[0]
    assert first_line == "<!-- rageval-spec: a-b -->"


def test_details_that_would_be_too_long_are_cut() -> None:
    systems = tuple(f"system-with-a-long-name-{number}" for number in range(40))
    metrics = {f"metric-with-a-long-name@{number}": (0.1, 0.2) for number in range(12)}
    text = render(make_evaluation(systems=systems, metrics=metrics))
    assert len(text) < 65_536
    assert "Comparisons (468)" in text
    assert "rows: too long for a comment; see the results." in text
    assert "Versions and settings" in text


def test_without_gates_the_report_says_so() -> None:
    text = render(replace(make_evaluation(), gates=()))
    assert "## `support-bot`\n\n**Complete**: the spec has no gates.\n" in text
