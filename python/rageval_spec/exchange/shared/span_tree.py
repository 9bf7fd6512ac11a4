"""The spans of one trace as trees, and the spans among them at which a question was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rageval_spec.exchange.shared.span_values import answer_of, kind_of, question_of
from rageval_spec.exchange.shared.spans import Span

_ASKED = ("", "chain", "agent")
"""Kinds of spans that can be asked a question of their own; the others are steps of an answer."""


class SpanTree:
    """The spans of one trace, in whatever order they came, each once."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Find the children of each span. Of two spans with one id, the one that ended later counts."""
        found: dict[str, Span] = {}
        for span in spans:
            before = found.get(span.span_id)
            if before is None or span.end > before.end:
                found[span.span_id] = span
        ordered = sorted(found.values(), key=lambda span: (span.start, span.span_id))
        self._children: dict[str, list[Span]] = {}
        self.roots: list[Span] = []
        for span in ordered:
            if span.parent_id is None or span.parent_id not in found:
                self.roots.append(span)
            else:
                self._children.setdefault(span.parent_id, []).append(span)
        self.spans = ordered

    def walk(self, root: Span) -> Iterator[Span]:
        """A span and all below it, parents first; spans that are their own ancestors are passed over."""
        waiting, seen = [root], {root.span_id}
        while waiting:
            span = waiting.pop()
            yield span
            below = [child for child in self._children.get(span.span_id, ()) if child.span_id not in seen]
            seen.update(child.span_id for child in below)
            waiting.extend(reversed(below))

    def questions(self) -> list[tuple[Span, list[Span]]]:
        """Each span at which a question was asked, with all spans that belong to the question, itself included.

        That is the root, if it has an input. Otherwise the topmost chains and agents below that have an input and an
        output; if there are several, each is a question of its own, unless all ask the same: those are steps. Without
        such a span, or without a root, the trace is one question, whose first and last spans with texts are its ends.
        """
        asked = [span for root in self.roots for span in self._topmost(root)]
        if len({question_of(span) for span in asked}) > 1:
            return [(span, list(self.walk(span))) for span in asked]
        if len(asked) == 1:
            return [(asked[0], self.spans)]
        return [(self.spans[0], self.spans)] if self.spans else []

    def _topmost(self, root: Span) -> Iterator[Span]:
        """The topmost spans at or below a root that were asked something. A root may have failed to answer."""
        if kind_of(root) in _ASKED and question_of(root) is not None:
            yield root
            return
        waiting, seen = [root], {root.span_id}
        while waiting:
            span = waiting.pop()
            below = [child for child in self._children.get(span.span_id, ()) if child.span_id not in seen]
            seen.update(child.span_id for child in below)
            if span is not root and kind_of(span) in _ASKED and question_of(span) and answer_of(span):
                yield span
            else:
                waiting.extend(reversed(below))
