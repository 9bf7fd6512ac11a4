"""Sentences about an audit that every form of it has."""

from __future__ import annotations

from rageval_spec.audit.finding import SEVERITIES, Audit, DatasetAudit, Severity
from rageval_spec.wording import count_noun, list_names

NOUNS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "remark"}
"""What a finding of each severity is called."""
NUMERIC = frozenset(
    ("questions", "share", "wanted", "sd", "smallest drop", "ndcg@10", "bpref", "judged@10",
     "questions without a judged document")
)  # fmt: skip
"""The columns of tables that are aligned right."""


def describe_dataset(dataset: DatasetAudit) -> str:
    """How many questions it has, and what they come with."""
    parts = [count_noun(dataset.questions, "question")]
    parts += [f"{dataset.with_reference:,} with a reference", f"{dataset.with_relevant:,} with relevant documents"]
    return ", ".join(parts) + (f"; {dataset.origin}" if dataset.origin else "")


def describe_results(audit: Audit) -> str:
    """Which results the audit used: `With the values of res.`"""
    return (
        f"With the values of {list_names(audit.results)}." if audit.results else "Without the values of an evaluation."
    )


def summarize(audit: Audit) -> str:
    """How many findings there are: `2 errors and 5 warnings`."""
    counts = [(severity, audit.count(severity)) for severity in SEVERITIES]
    told = [count_noun(count, NOUNS[severity]) for severity, count in counts if count]
    return list_names(told) if told else "nothing found"
