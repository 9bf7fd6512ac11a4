from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.audit.finding import Audit, Check, DatasetAudit, Finding, Row, Table
from rageval_spec.audit.page import MOST_SHOWN, render_page
from tests.audit.test_content import make_audit
from tests.browser import open_page, start_browser

BAD = "</style><script>alert(1)</script><img src=x onerror=alert(1)> & 'q' \"d\" \u202e"


def test_no_text_becomes_markup() -> None:
    finding = Finding("leak", "error", BAD, BAD, (Row(BAD, BAD, BAD), Row("b", "c", BAD)))
    check = Check("leaks", BAD, (finding,), remark=BAD, tables=(Table((BAD,), ((BAD,),)),))
    page = render_page(Audit(BAD, (DatasetAudit(BAD, 1, 0, 0, (check, Check("mix", BAD, skipped=BAD)), BAD),), (BAD,)))
    text = page.decode()
    assert "<script" not in text and "<img" not in text and "\u202e" not in text
    assert text.count("</style>") == 1


def test_the_policy_allows_the_own_style_and_nothing_else() -> None:
    text = render_page(make_audit()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "script-src" not in policy[1] and "http" not in re.sub("<!doctype.*?<body", "", text, flags=re.DOTALL)


def test_many_findings_are_cut_with_a_pointer_to_the_json() -> None:
    findings = tuple(Finding("leak", "info", f"leak {n}", "x", (Row(str(n)),)) for n in range(MOST_SHOWN + 5))
    text = render_page(Audit("a", (DatasetAudit("b", 1, 0, 0, (Check("leaks", "Leaks", findings),)),))).decode()
    assert "5 more findings in the JSON" in text and f"leak {MOST_SHOWN}<" not in text


def test_findings_that_say_the_same_are_one_and_advice_stands_once() -> None:
    solved = [Finding("solved", "info", "all", "keep it", (Row(f"q{n}", f"a:{n}", f"Who {n}?"),)) for n in (1, 2)]
    other = Finding("solved", "info", "most", "keep it", (Row("q3", "a:3", "Who 3?"),))
    check = Check("solved", "Solved", (*solved, other))
    text = render_page(Audit("a", (DatasetAudit("b", 3, 0, 0, (check,)),))).decode()
    assert text.count('class="advice"') == 1 and text.count("</span> all</p>") == 1
    assert all(f"a:{n}</span>" in text and f"Who {n}?" in text for n in (1, 2, 3))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_loaded(tmp_path: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    finding = Finding("leak", "error", "it leaks " * 40, "ask again", (Row("q1", "set.jsonl:1", "Who? " * 60),))
    warning, remark = replace(finding, severity="warning"), replace(finding, severity="info", removes=True)
    table = Table(("system", "questions"), (("a" * 200, "1"),))
    checks = (
        Check("leaks", "Leaks", (finding, warning, remark), tables=(table,)),
        Check("mix", "Mix", skipped="no column"),
        Check("size", "Size", remark="large"),
        Check("duplicates", "Duplicates"),
    )
    path = tmp_path / "audit.html"
    path.write_bytes(render_page(Audit("spec", (DatasetAudit("golden", 1, 0, 0, checks),), ("last",))))
    with start_browser() as browser, open_page(browser, path, color_scheme=scheme) as opened:
        found = axe.run(opened.page)
        assert found.violations_count == 0, found.generate_report()
        assert opened.seen == [] and opened.requests == [path.as_uri()]
        listed = opened.page.locator(".checks > li")
        assert len({round(listed.nth(place).bounding_box()["height"]) for place in range(4)}) == 1  # type: ignore[index]
        opened.page.set_viewport_size({"width": 390, "height": 844})
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_table_scrolls_on_a_phone_and_does_not_break_its_words(tmp_path: Path) -> None:
    header = ("system", "metric", "compared with", "questions", "sd", "smallest drop")
    table = Table(header, (("assistant", "completeness", "another evaluation", "40", "0.221", "0.100"),))
    path = tmp_path / "audit.html"
    path.write_bytes(render_page(Audit("a", (DatasetAudit("b", 1, 0, 0, (Check("size", "Size", tables=(table,)),)),))))
    with start_browser() as browser, open_page(browser, path) as opened:
        opened.page.set_viewport_size({"width": 390, "height": 844})
        cell = opened.page.get_by_role("cell", name="completeness").bounding_box()
        assert cell is not None and cell["height"] < 60, "the word is on one line, and its neighbour on two at most"
