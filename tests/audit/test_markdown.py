from __future__ import annotations

from rageval_spec.audit.finding import Audit, Check, DatasetAudit, Finding, Row, Table
from rageval_spec.audit.markdown import MOST_SHOWN, render_markdown
from tests.audit.test_content import make_audit


def test_every_check_is_in_the_table_and_findings_follow() -> None:
    text = render_markdown(make_audit()).decode()
    assert text.startswith("# Audit of spec: 1 warning\n")
    assert "| Leaks | 1 found |\n| Mix | not checked: no column |\n| Duplicates | ✓ |" in text
    assert "- **warning** `set.jsonl:1`: it leaks\n  > Who" in text


def test_findings_that_say_the_same_are_one_with_a_line_for_each_row() -> None:
    findings = tuple(Finding("solved", "info", "all", "keep", (Row(f"q{n}", f"a:{n}", f"Who {n}"),)) for n in (1, 2))
    check = Check("solved", "Solved", findings)
    text = render_markdown(Audit("a", (DatasetAudit("b", 2, 0, 0, (check,)),))).decode()
    assert "- **remark** all\n  - `a:1` Who 1\n  - `a:2` Who 2\n\n  keep\n" in text


def test_texts_have_no_effect_as_markdown_or_html() -> None:
    bad = "<img src=x onerror=alert(1)> **a** | b @all"
    finding = Finding("leak", "info", bad, bad, (Row("q", "a|b`.jsonl:1", bad),))
    check = Check("leaks", "Leaks", (finding,) * (MOST_SHOWN + 2), tables=(Table(("a",), ((bad,),)),))
    text = render_markdown(Audit(bad, (DatasetAudit(bad, 1, 0, 0, (check,)),))).decode()
    assert "<img" not in text.replace("`<img src=x onerror=alert(1)> **a** \\| b @all`", "")
    assert "**a**" not in text.replace("`<img src=x onerror=alert(1)> **a** \\| b @all`", "")
    assert "... and 2 more" in text
