""""""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from rageval_spec.audit.audit_findings import Audit, AuditedRow, AuditFinding, CheckContent, DatasetContent, Table
from rageval_spec.audit.audit_report import MOST, build_schema, describe_dataset, dump_audit, render, summarize
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


def draw(audit: Audit, form: str) -> str:
    return render(audit, form).decode()


def audit_of(*checks: CheckContent) -> Audit:
    return Audit("spec", (DatasetContent("golden", 1200, 2, 1, "version 3; created 2025-11-01", checks),))


def test_the_json_keeps_to_its_published_schema() -> None:
    told = "run: python -m rageval_spec.audit.audit_report > schemas/audit.schema.json"
    assert json.loads(SCHEMA.read_text()) == build_schema(), told
    content = json.loads(dump_audit(make_whole_audit()))
    jsonschema.validate(content, build_schema())
    assert content["counts"] == {"error": 0, "warning": 1, "info": 0}
    assert [check["state"] for check in content["datasets"][0]["checks"]] == ["found", "skipped", "clean"]


def test_characters_that_a_terminal_acts_on_are_escaped() -> None:
    assert "\\u202e" in dump_audit(make_whole_audit()) and "\u202e" not in dump_audit(make_whole_audit())


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_the_outcome_of_every_check_comes_first_and_findings_follow(form: str) -> None:
    text = draw(make_whole_audit(), form)
    assert text.lstrip("# ").startswith("Audit of spec: 1 warning\n")
    outcomes, found = text.split("Leaks (1)\n", 2)[1:]
    assert "– Mix: no column\n" in outcomes and "Duplicates\n" in outcomes
    plain = found.replace("`", "").replace("**", "")
    assert "set.jsonl:1: warning: it leaks" in plain and "u202e?" in plain
    assert "→ ask again" in found


def test_findings_that_say_the_same_are_one_with_a_line_for_each_row() -> None:
    findings = tuple(
        AuditFinding("solved", "info", "all", "keep", (AuditedRow(f"q{n}", f"a:{n}", f"Who {n}"),)) for n in (1, 2)
    )
    text = draw(audit_of(CheckContent("solved", "Solved", findings)), "markdown")
    assert "- **remark:** all \\[solved\\]<br>`a:1`: Who 1<br>`a:2`: Who 2<br>→ keep\n" in text


def test_texts_have_no_effect_as_markdown_or_html() -> None:
    bad = "<img src=x onerror=alert(1)> **a** | b @all"
    finding = AuditFinding("leak", "info", bad, bad, (AuditedRow("q", "a|b`.jsonl:1", bad),))
    check = CheckContent("leaks", "Leaks", (finding,) * (MOST["markdown"] + 2), tables=(Table(("a",), ((bad,),)),))
    text = draw(Audit(bad, (DatasetContent(bad, 1, 0, 0, "", (check,)),)), "markdown")
    assert "<img" not in text and "**a**" not in text
    assert "... and 2 more" in text


BAD = "</style><script>alert(1)</script><img src=x onerror=alert(1)> & 'q' \"d\" \u202e"


def test_no_text_becomes_markup() -> None:
    finding = AuditFinding("leak", "error", BAD, BAD, (AuditedRow(BAD, BAD, BAD), AuditedRow("b", "c", BAD)))
    check = CheckContent("leaks", BAD, (finding,), remark=BAD, tables=(Table((BAD,), ((BAD,),)),))
    checks = check, CheckContent("mix", BAD, skipped=BAD)
    text = draw(Audit(BAD, (DatasetContent(BAD, 1, 0, 0, BAD, checks),), (BAD,)), "html")
    assert "<script" not in text and "<img" not in text and "\u202e" not in text
    assert text.count("</style>") == 1


def test_the_policy_allows_the_own_style_and_nothing_else() -> None:
    text = draw(make_whole_audit(), "html")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "script-src" not in policy[1] and "http" not in re.sub("<!doctype.*?<body", "", text, flags=re.DOTALL)


def test_many_findings_are_cut_with_a_pointer_to_the_json() -> None:
    findings = tuple(
        AuditFinding("leak", "info", f"leak {n}", "x", (AuditedRow(str(n)),)) for n in range(MOST["html"] + 5)
    )
    text = draw(audit_of(CheckContent("leaks", "Leaks", findings)), "html")
    assert "and 5 more; --format json lists all." in text and f"leak {MOST['html']}<" not in text


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
    path.write_bytes(render(audit_of(*checks), "html"))
    with start_browser() as browser, open_page(browser, path, color_scheme=scheme) as opened:
        found = axe.run(opened.page)
        assert found.violations_count == 0, found.generate_report()
        assert opened.seen == [] and opened.requests == [path.as_uri()]
        opened.page.set_viewport_size({"width": 390, "height": 844})
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_table_scrolls_on_a_phone_and_does_not_break_its_words(tmp_path: Path) -> None:
    header = ("system", "metric", "compared with", "questions", "sd", "smallest drop")
    table = Table(header, (("assistant", "completeness", "another evaluation", "40", "0.221", "0.100"),))
    path = tmp_path / "audit.html"
    path.write_bytes(render(audit_of(CheckContent("size", "Size", tables=(table,))), "html"))
    with start_browser() as browser, open_page(browser, path) as opened:
        opened.page.set_viewport_size({"width": 390, "height": 844})
        cell = opened.page.get_by_role("cell", name="completeness").bounding_box()
        assert cell is not None and cell["height"] < 70, "the word is on one line, and its neighbour on two at most"


def test_the_summary_counts_by_severity() -> None:
    assert summarize(make_whole_audit()) == "1 warning"
    assert summarize(Audit("spec", ())) == "nothing found"


def test_a_dataset_is_described_with_its_origin() -> None:
    dataset = DatasetContent("golden", 1200, 2, 1, "version 3", ())
    assert describe_dataset(dataset) == "1,200 questions, 2 with a reference, 1 with relevant documents; version 3"


def show(*checks: CheckContent) -> str:
    return draw(audit_of(*checks), "text")


def test_advice_stands_once_for_findings_that_share_it() -> None:
    findings = [
        AuditFinding("leak", "warning", f"leak {n}", "ask again", (AuditedRow("q", f"a.jsonl:{n}"),)) for n in range(13)
    ]
    text = show(CheckContent("leaks", "Leaks", tuple(findings)))
    assert text.count("→ ask again") == 1
    assert text.count("[leak]") == MOST["text"] and "... and 3 more; --format json lists all." in text
    assert "! Leaks (13)" in text


def test_findings_that_say_the_same_are_one_in_the_text_with_a_line_for_each_row() -> None:
    findings = [
        AuditFinding("solved", "info", "all", "keep", (AuditedRow(f"q{n}", f"a.jsonl:{n}", f"Who {n}?"),))
        for n in (1, 2)
    ]
    lines = show(CheckContent("solved", "Solved", tuple(findings))).splitlines()
    start = lines.index("remark: all [solved]")
    assert lines[start : start + 4] == [
        "remark: all [solved]",
        "  a.jsonl:1: Who 1?",
        "  a.jsonl:2: Who 2?",
        "  → keep",
    ]


def test_findings_of_two_rows_stay_apart() -> None:
    pair = AuditedRow("q1", "a.jsonl:1", "Who?"), AuditedRow("q2", "a.jsonl:2", "Who is it?")
    text = show(
        CheckContent("duplicates", "Duplicates", (AuditFinding("duplicate", "warning", "same", "drop", pair),) * 2)
    )
    assert text.count("a.jsonl:1: warning: same [duplicate]") == 2


def test_neighbours_that_were_skipped_for_the_same_reason_share_a_line() -> None:
    text = show(
        *(CheckContent(name, name, skipped="no results") for name in ("One", "Two")), CheckContent("x", "Three")
    )
    assert "– One, Two: no results\n✓ Three" in text


def test_what_the_dataset_says_of_itself_stands_in_its_title() -> None:
    assert "1,200 questions, 2 with a reference, 1 with relevant documents; version 3; created 2025-11-01" in " ".join(
        show(CheckContent("mix", "Mix", skipped="no column")).split()
    )


def test_control_characters_of_questions_are_escaped() -> None:
    finding = AuditFinding("leak", "info", "it \x1b[31m", "ask \x1b", (AuditedRow("q\x1b", "", "Who \x1b]0;?"),))
    text = show(CheckContent("leaks", "Leaks", (finding,)))
    assert "\x1b" not in text and "\\x1b" in text
