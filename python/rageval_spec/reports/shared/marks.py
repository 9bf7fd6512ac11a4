"""Marks: the places in an answer that judges decided about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rageval_spec.data.assessment import is_supported


@dataclass(frozen=True, slots=True)
class Mark:
    """A claim of an answer, and what a judge decided about it.

    Attributes:
        start, end: the characters of the answer that hold the claim, or that it was taken from; None if unknown.
        verdict: "supported", "contradicted" or "not_enough_info"; None if the judge gives only scores.
        score: how well the claim is supported, in [0, 1]; None if unknown.
        metric: the metric that asked.
        text: the claim as the judge read it; "" if the results leave texts out.
        source: the index (from 0) of the context or reference that decided; None if unknown.
        doc_id: the document of that context; None if unknown.
        evidence: the passage that decided; None if there is none.
        reason: the judge's explanation; None if there is none.
        evidence_start: the first character of `evidence` in its source; None if unknown.
        judge: the judge that the metric asked; None if unknown.
        step: the judge that decided, if `judge` asks others.
    """

    start: int | None
    end: int | None
    verdict: str | None
    score: float | None
    metric: str
    text: str
    source: int | None = None
    doc_id: str | None = None
    evidence: str | None = None
    reason: str | None = None
    evidence_start: int | None = None
    judge: str | None = None
    step: str | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the claim is supported: by its verdict, or by its score if it has none."""
        return is_supported(self.verdict, self.score or 0.0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer, for showing it with its unsupported claims marked in place.

    Attributes:
        text: the characters of the answer; the pieces joined are the answer.
        number: the number (from 1) of the note that explains the mark; None for a part that is not marked.
        marks: the unsupported claims that lie here; empty for a part that is not marked.
    """

    text: str
    number: int | None = None
    marks: tuple[Mark, ...] = ()


def split_answer(answer: str, marks: Sequence[Mark]) -> list[Piece]:
    """Cut an answer where unsupported claims begin and end. Claims that overlap share a piece."""
    regions: list[tuple[int, int, list[Mark]]] = []
    placed = [mark for mark in marks if not mark.is_supported and mark.start is not None and mark.end is not None]
    for mark in sorted(placed, key=_place):
        start, end = max(mark.start or 0, 0), min(mark.end or 0, len(answer))
        if start >= end:
            continue
        if regions and start < regions[-1][1]:
            first, last, found = regions[-1]
            regions[-1] = (first, max(last, end), [*found, mark])
        else:
            regions.append((start, end, [mark]))
    return list(_cut(answer, regions))


def _cut(answer: str, regions: Sequence[tuple[int, int, Sequence[Mark]]]) -> Iterator[Piece]:
    at = 0
    for number, (start, end, marks) in enumerate(regions, start=1):
        if start > at:
            yield Piece(answer[at:start])
        yield Piece(answer[start:end], number, tuple(marks))
        at = end
    if at < len(answer):
        yield Piece(answer[at:])


CONTRADICTED, UNSUPPORTED = "✗", "?"
"""The signs of a claim that its source contradicts, and of one that no source supports."""


def choose_sign(marks: Sequence[Mark]) -> str:
    """The sign of the worst of some unsupported claims."""
    return CONTRADICTED if any(mark.verdict == "contradicted" for mark in marks) else UNSUPPORTED


@dataclass(frozen=True, slots=True)
class ClaimNote:
    """What judges said against one unsupported claim.

    Attributes:
        number: the number of its mark in the answer; None if it has no place there.
        claim: the claim as the judges read it; None if it is the marked text.
        marks: one for each metric that asked about the claim.
    """

    number: int | None
    claim: str | None
    marks: tuple[Mark, ...]

    @property
    def decision(self) -> str:
        """`contradicted (faithfulness)`, or `not enough info (faithfulness 0.32, grounding 0.49)`."""
        metrics: dict[str, list[str]] = {}
        for mark in self.marks:
            score = f" {mark.score:.2f}" if mark.score is not None and 0 < mark.score < 1 else ""
            metrics.setdefault((mark.verdict or "not supported").replace("_", " "), []).append(f"{mark.metric}{score}")
        return "; ".join(f"{verdict} ({', '.join(names)})" for verdict, names in metrics.items())


def list_notes(answer: str, marks: Sequence[Mark]) -> list[ClaimNote]:
    """The notes on all unsupported claims: first those that `split_answer` marks, in the order of the answer."""
    notes: dict[tuple[int | None, str], list[Mark]] = {}
    pieces = split_answer(answer, marks)
    for piece in pieces:
        for mark in piece.marks:
            notes.setdefault((piece.number, mark.text), []).append(mark)
    shown = {id(mark) for piece in pieces for mark in piece.marks}
    for mark in marks:
        if not mark.is_supported and id(mark) not in shown:
            notes.setdefault((None, mark.text), []).append(mark)
    texts = {piece.number: _fold(piece.text) for piece in pieces if piece.number is not None}
    return [
        ClaimNote(number, None if texts.get(number or 0) == _fold(claim) else claim, tuple(of))
        for (number, claim), of in notes.items()
    ]


def _fold(text: str) -> str:
    return " ".join(text.split())


def find_marks(
    values: Iterable[Mapping[str, Any]], sample: Mapping[str, Any], metrics: Sequence[str]
) -> tuple[Mark, ...]:
    """The marks on one answer, in the order of their places, then of the metrics.

    Claims of other texts, such as the reference, are no marks, and neither is what a metric says about the use of a
    statement instead of its truth.

    Args:
        values: the answer's rows of the values table.
        sample: its row of the samples table, which may be empty.
        metrics: the evaluation's metrics.
    """
    from rageval_spec.data.findings import list_findings

    places = {metric: place for place, metric in enumerate(metrics)}
    ordered = sorted(values, key=lambda row: places.get(row["metric"], len(places)))
    found = (finding for row in ordered for finding in list_findings(row, sample) if finding["part"] == "answer")
    return tuple(sorted(map(_read_mark, found), key=_place))


def _read_mark(finding: Mapping[str, Any]) -> Mark:
    known = {field.name: finding[field.name] for field in fields(Mark)}
    return Mark(**known | {"text": known["text"] or ""})


def _place(mark: Mark) -> tuple[bool, int, int]:
    return mark.start is None, mark.start or 0, mark.end or 0
