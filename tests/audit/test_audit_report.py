""""""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from rageval_spec.audit.audit_findings import Audit, AuditedRow, AuditFinding, CheckContent, DatasetContent, Table
from rageval_spec.audit.audit_report import (
    MOST_IN_MARKDOWN,
    MOST_IN_TEXT,
    MOST_ON_PAGE,
    build_schema,
    describe_dataset,
    dump_audit,
    render_audit,
    render_markdown,
    render_page,
    summarize,
)
from tests.browser import open_page, start_browser

SCHEMA = Path(__file__).parent.parent.parent / "schemas" / "audit.schema.json"


def make_whole_audit() -> Audit:
    row = AuditedRow("q1", "set.jsonl:1", "Who \u202e?")
    finding = AuditFinding("leak", "warning", "it leaks", "ask again", (row,), details={"reference": "x"})
    checks = (
        CheckContent("leaks", "Leaks", (finding,), tables=(Table(("a", "b"), (("1", "2"),)),)),
        CheckContent("mix", "Mix", skipped="no column"),
        CheckContent("duplicates", "Duplicates"),
    )
    return Audit("spec", (DatasetContent("golden", 1, 1, 0, "version 3", checks),), ("last",))


def test_the_json_keeps_to_its_published_schema() -> None:
    told = "run: python -m rageval_spec.audit.audit_report > schemas/audit.schema.json"
    assert json.loads(SCHEMA.read_text()) == build_schema(), told
    content = json.loads(dump_audit(make_whole_audit()))
    jsonschema.validate(content, build_schema())
    assert content["counts"] == {"error": 0, "warning": 1, "info": 0}
    assert [check["state"] for check in content["datasets"][0]["checks"]] == ["found", "skipped", "clean"]


def test_characters_that_a_terminal_acts_on_are_escaped() -> None:
    assert "\\u202e" in dump_audit(make_whole_audit()) and "\u202e" not in dump_audit(make_whole_audit())


def test_every_check_is_in_the_table_and_findings_follow() -> None:
    text = render_markdown(make_whole_audit()).decode()
    assert text.startswith("# Audit of spec: 1 warning\n")
    assert "| Leaks | 1 found |\n| Mix | not checked: no column |\n| Duplicates | ✓ |" in text
    assert "- **warning** `set.jsonl:1`: it leaks\n  > Who" in text


def test_findings_that_say_the_same_are_one_with_a_line_for_each_row() -> None:
    findings = tuple(
        AuditFinding("solved", "info", "all", "keep", (AuditedRow(f"q{n}", f"a:{n}", f"Who {n}"),)) for n in (1, 2)
    )
    check = CheckContent("solved", "Solved", findings)
    text = render_markdown(Audit("a", (DatasetContent("b", 2, 0, 0, "", (check,)),))).decode()
    assert "- **remark** all\n  - `a:1` Who 1\n  - `a:2` Who 2\n\n  keep\n" in text


def test_texts_have_no_effect_as_markdown_or_html() -> None:
    bad = "<img src=x onerror=alert(1)> **a** | b @all"
    finding = AuditFinding("leak", "info", bad, bad, (AuditedRow("q", "a|b`.jsonl:1", bad),))
    check = CheckContent("leaks", "Leaks", (finding,) * (MOST_IN_MARKDOWN + 2), tables=(Table(("a",), ((bad,),)),))
    text = render_markdown(Audit(bad, (DatasetContent(bad, 1, 0, 0, "", (check,)),))).decode()
    assert "<img" not in text.replace("`<img src=x onerror=alert(1)> **a** \\| b @all`", "")
    assert "**a**" not in text.replace("`<img src=x onerror=alert(1)> **a** \\| b @all`", "")
    assert "... and 2 more" in text


BAD = "</style><script>alert(1)</script><img src=x onerror=alert(1)> & 'q' \"d\" \u202e"


def test_no_text_becomes_markup() -> None:
    finding = AuditFinding("leak", "error", BAD, BAD, (AuditedRow(BAD, BAD, BAD), AuditedRow("b", "c", BAD)))
    check = CheckContent("leaks", BAD, (finding,), remark=BAD, tables=(Table((BAD,), ((BAD,),)),))
    page = render_page(
        Audit(BAD, (DatasetContent(BAD, 1, 0, 0, BAD, (check, CheckContent("mix", BAD, skipped=BAD))),), (BAD,))
    )
    text = page.decode()
    assert "<script" not in text and "<img" not in text and "\u202e" not in text
    assert text.count("</style>") == 1


def test_the_policy_allows_the_own_style_and_nothing_else() -> None:
    text = render_page(make_whole_audit()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "script-src" not in policy[1] and "http" not in re.sub("<!doctype.*?<body", "", text, flags=re.DOTALL)


def test_many_findings_are_cut_with_a_pointer_to_the_json() -> None:
    findings = tuple(
        AuditFinding("leak", "info", f"leak {n}", "x", (AuditedRow(str(n)),)) for n in range(MOST_ON_PAGE + 5)
    )
    text = render_page(
        Audit("a", (DatasetContent("b", 1, 0, 0, "", (CheckContent("leaks", "Leaks", findings),)),))
    ).decode()
    assert "5 more findings in the JSON" in text and f"leak {MOST_ON_PAGE}<" not in text


def test_findings_that_say_the_same_are_one_and_advice_stands_once() -> None:
    solved = [
        AuditFinding("solved", "info", "all", "keep it", (AuditedRow(f"q{n}", f"a:{n}", f"Who {n}?"),)) for n in (1, 2)
    ]
    other = AuditFinding("solved", "info", "most", "keep it", (AuditedRow("q3", "a:3", "Who 3?"),))
    check = CheckContent("solved", "Solved", (*solved, other))
    text = render_page(Audit("a", (DatasetContent("b", 3, 0, 0, "", (check,)),))).decode()
    assert text.count('class="advice"') == 1 and text.count("</span> all</p>") == 1
    assert all(f"a:{n}</span>" in text and f"Who {n}?" in text for n in (1, 2, 3))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_loaded(tmp_path: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    finding = AuditFinding(
        "leak", "error", "it leaks " * 40, "ask again", (AuditedRow("q1", "set.jsonl:1", "Who? " * 60),)
    )
    warning, remark = replace(finding, severity="warning"), replace(finding, severity="info", removes=True)
    table = Table(("system", "questions"), (("a" * 200, "1"),))
    checks = (
        CheckContent("leaks", "Leaks", (finding, warning, remark), tables=(table,)),
        CheckContent("mix", "Mix", skipped="no column"),
        CheckContent("size", "Size", remark="large"),
        CheckContent("duplicates", "Duplicates"),
    )
    path = tmp_path / "audit.html"
    path.write_bytes(render_page(Audit("spec", (DatasetContent("golden", 1, 0, 0, "", checks),), ("last",))))
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
    path.write_bytes(
        render_page(Audit("a", (DatasetContent("b", 1, 0, 0, "", (CheckContent("size", "Size", tables=(table,)),)),)))
    )
    with start_browser() as browser, open_page(browser, path) as opened:
        opened.page.set_viewport_size({"width": 390, "height": 844})
        cell = opened.page.get_by_role("cell", name="completeness").bounding_box()
        assert cell is not None and cell["height"] < 60, "the word is on one line, and its neighbour on two at most"


def test_the_summary_counts_by_severity() -> None:
    assert summarize(make_whole_audit()) == "1 warning"
    assert summarize(Audit("spec", ())) == "nothing found"


def test_a_dataset_is_described_with_its_origin() -> None:
    dataset = DatasetContent("golden", 1200, 2, 1, "version 3", ())
    assert describe_dataset(dataset) == "1,200 questions, 2 with a reference, 1 with relevant documents; version 3"


def render(*checks: CheckContent) -> str:
    return render_audit(
        Audit("spec", (DatasetContent("golden", 1200, 2, 1, "version 3; created 2025-11-01", checks),))
    ).decode()


def test_advice_stands_once_for_findings_that_share_it() -> None:
    findings = [
        AuditFinding("leak", "warning", f"leak {n}", "ask again", (AuditedRow("q", f"a.jsonl:{n}"),)) for n in range(13)
    ]
    text = render(CheckContent("leaks", "Leaks", tuple(findings)))
    assert text.count("→ ask again") == 1
    assert text.count("[leak]") == MOST_IN_TEXT and "... and 3 more; --format json lists all." in text
    assert "! Leaks (13)" in text


def test_findings_that_say_the_same_are_one_in_the_text_with_a_line_for_each_row() -> None:
    findings = [
        AuditFinding("solved", "info", "all", "keep", (AuditedRow(f"q{n}", f"a.jsonl:{n}", f"Who {n}?"),))
        for n in (1, 2)
    ]
    lines = render(CheckContent("solved", "Solved", tuple(findings))).splitlines()
    start = lines.index("! Solved (2)") + 1
    assert lines[start : start + 4] == [
        "  remark: all [solved]",
        "      a.jsonl:1: Who 1?",
        "      a.jsonl:2: Who 2?",
        "      → keep",
    ]


def test_findings_of_two_rows_stay_apart() -> None:
    pair = AuditedRow("q1", "a.jsonl:1", "Who?"), AuditedRow("q2", "a.jsonl:2", "Who is it?")
    text = render(
        CheckContent("duplicates", "Duplicates", (AuditFinding("duplicate", "warning", "same", "drop", pair),) * 2)
    )
    assert text.count("a.jsonl:1: warning: same [duplicate]") == 2


def test_neighbours_that_were_skipped_for_the_same_reason_share_a_line() -> None:
    text = render(
        *(CheckContent(name, name, skipped="no results") for name in ("One", "Two")), CheckContent("x", "Three")
    )
    assert "– One, Two: no results\n✓ Three" in text


def test_what_the_dataset_says_of_itself_stands_in_its_title() -> None:
    assert "1,200 questions, 2 with a reference, 1 with relevant documents; version 3; created 2025-11-01" in " ".join(
        render(CheckContent("mix", "Mix", skipped="no column")).split()
    )


def test_control_characters_of_questions_are_escaped() -> None:
    finding = AuditFinding("leak", "info", "it \x1b[31m", "ask \x1b", (AuditedRow("q\x1b", "", "Who \x1b]0;?"),))
    text = render(CheckContent("leaks", "Leaks", (finding,)))
    assert "\x1b" not in text and "\\x1b" in text
