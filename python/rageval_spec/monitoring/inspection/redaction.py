"""What `redact:` of a spec leaves out of traces, and of what judges and alerts say about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rageval_spec.data.tables import SAMPLE_COLUMNS
from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.pipeline.results.sample_redaction import generalize

_KEYS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "messages"),
    "answer": ("answer",),
    "contexts": ("contexts", "documents"),
    "reference": ("reference",),
    "reference_contexts": ("reference_contexts",),
    "error": ("error",),
    "columns": ("metadata", "session", "user", "feedback", "model", "version", "started"),
}
"""The keys of a trace's row that each word of `redact:` leaves out."""
_READ = frozenset(one.redact for one in SAMPLE_COLUMNS if "metrics" in one.readers)
"""What metrics read, so that a reason can quote it."""
_TOLD = frozenset(one.redact for one in SAMPLE_COLUMNS if "systems" in one.readers)
"""What a system gets or gives, so that its error, its steps and what users say can quote it."""


@dataclass(frozen=True)
class Redaction:
    """The columns that a spec leaves out."""

    columns: Collection[str] = ()

    def make_row(self, trace: Trace) -> dict[str, Any]:
        """The trace as a row, without these columns and without what can quote them."""
        row = trace.to_row()
        hidden = {key for word in self.columns for key in _KEYS.get(word, ())}
        if "contexts" in self.columns and trace.documents and "context_ids" not in row:
            ids = [one.doc_id for one in trace.documents]
            row |= {} if None in ids else {"context_ids": ids}
        if not _TOLD.isdisjoint(self.columns):
            hidden.add("steps")
            row |= {"error": generalize(row["error"])} if "error" in row else {}
            row |= {"feedback": [_drop_comment(one) for one in row["feedback"]]} if "feedback" in row else {}
        for word in {"group", "condition"}.intersection(self.columns):
            row["metadata"] = {key: value for key, value in row.get("metadata", {}).items() if key != word}
        return {key: value for key, value in row.items() if key not in hidden}

    def hide_reason(self, reason: str | None) -> str | None:
        """The reason of a judged value, unless it can quote what is left out."""
        return reason if _READ.isdisjoint(self.columns) else None

    def hide_evidence(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        """What a look at the numbers found, as messages of alerts may tell it: worst answers and what moved.

        Where a trace failed, its error stands for the answer, so both words hide it.
        """
        hides_answer = not {"answer", "error"}.isdisjoint(self.columns)
        worst = tuple(
            replace(
                one,
                question="" if "question" in self.columns else one.question,
                answer="" if hides_answer else one.answer,
                reason=self.hide_reason(one.reason),
            )
            for one in evidence.get("worst", ())
        )
        moved = {part: self.hide_quotes(told) for part, told in evidence.get("moved", {}).items()}
        return {**evidence, **({"worst": worst} if worst else {}), **({"moved": moved} if moved else {})}

    def hide_quotes(self, text: str) -> str:
        """What an alert says of what moved, without what it quotes if that can be left out."""
        return text if _READ.isdisjoint(self.columns) else generalize(text)


def _drop_comment(feedback: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in feedback.items() if key != "comment"}
