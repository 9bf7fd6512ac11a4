from __future__ import annotations

from rageval_spec.audit.finding import Audit, Check, DatasetAudit, Finding, Row
from rageval_spec.commands.audit.text import MOST_SHOWN, render_audit


def render(*checks: Check) -> str:
    return render_audit(
        Audit("spec", (DatasetAudit("golden", 1200, 2, 1, checks, "version 3; created 2025-11-01"),))
    ).decode()


def test_advice_stands_once_for_findings_that_share_it() -> None:
    findings = [Finding("leak", "warning", f"leak {n}", "ask again", (Row("q", f"a.jsonl:{n}"),)) for n in range(13)]
    text = render(Check("leaks", "Leaks", tuple(findings)))
    assert text.count("→ ask again") == 1
    assert text.count("[leak]") == MOST_SHOWN and "... and 3 more; --format json lists all." in text
    assert "! Leaks (13)" in text


def test_findings_that_say_the_same_are_one_with_a_line_for_each_row() -> None:
    findings = [Finding("solved", "info", "all", "keep", (Row(f"q{n}", f"a.jsonl:{n}", f"Who {n}?"),)) for n in (1, 2)]
    lines = render(Check("solved", "Solved", tuple(findings))).splitlines()
    start = lines.index("! Solved (2)") + 1
    assert lines[start : start + 4] == [
        "  remark: all [solved]",
        "      a.jsonl:1: Who 1?",
        "      a.jsonl:2: Who 2?",
        "      → keep",
    ]


def test_findings_of_two_rows_stay_apart() -> None:
    pair = Row("q1", "a.jsonl:1", "Who?"), Row("q2", "a.jsonl:2", "Who is it?")
    text = render(Check("duplicates", "Duplicates", (Finding("duplicate", "warning", "same", "drop", pair),) * 2))
    assert text.count("a.jsonl:1: warning: same [duplicate]") == 2


def test_neighbours_that_were_skipped_for_the_same_reason_share_a_line() -> None:
    text = render(*(Check(name, name, skipped="no results") for name in ("One", "Two")), Check("x", "Three"))
    assert "– One, Two: no results\n✓ Three" in text


def test_what_the_dataset_says_of_itself_stands_in_its_title() -> None:
    assert "1,200 questions, 2 with a reference, 1 with relevant documents; version 3; created 2025-11-01" in " ".join(
        render(Check("mix", "Mix", skipped="no column")).split()
    )


def test_control_characters_of_questions_are_escaped() -> None:
    finding = Finding("leak", "info", "it \x1b[31m", "ask \x1b", (Row("q\x1b", "", "Who \x1b]0;?"),))
    text = render(Check("leaks", "Leaks", (finding,)))
    assert "\x1b" not in text and "\\x1b" in text
