from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from rageval_spec.audit.content import build_schema, dump_audit
from rageval_spec.audit.finding import Audit, Check, DatasetAudit, Finding, Row, Table

SCHEMA = Path(__file__).parent.parent.parent / "schemas" / "audit.schema.json"


def make_audit() -> Audit:
    row = Row("q1", "set.jsonl:1", "Who \u202e?")
    finding = Finding("leak", "warning", "it leaks", "ask again", (row,), details={"reference": "x"})
    checks = (
        Check("leaks", "Leaks", (finding,), tables=(Table(("a", "b"), (("1", "2"),)),)),
        Check("mix", "Mix", skipped="no column"),
        Check("duplicates", "Duplicates"),
    )
    return Audit("spec", (DatasetAudit("golden", 1, 1, 0, checks, "version 3"),), ("last",))


def test_the_json_keeps_to_its_published_schema() -> None:
    told = "run: python -m rageval_spec.audit.content > schemas/audit.schema.json"
    assert json.loads(SCHEMA.read_text()) == build_schema(), told
    content = json.loads(dump_audit(make_audit()))
    jsonschema.validate(content, build_schema())
    assert content["counts"] == {"error": 0, "warning": 1, "info": 0}
    assert [check["state"] for check in content["datasets"][0]["checks"]] == ["found", "skipped", "clean"]


def test_characters_that_a_terminal_acts_on_are_escaped() -> None:
    assert "\\u202e" in dump_audit(make_audit()) and "\u202e" not in dump_audit(make_audit())
