"""Says in sentences what an evaluation came to: its outcome, its gates and its notes.

`Not ready: 1 of 3 gates failed. token_f1 fell from 0.358 (v1) to 0.307 (v2).`

Every report uses the same words for outcomes and gates. Notes are grouped for people: warnings first, and one line
for a message about several metrics, systems or datasets. The JSON report has every note separately.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from rageval_spec.data.evaluation import Evaluation, Overall
from rageval_spec.data.outcomes import GateOutcome, Note, NoteLevel, Verdict
from rageval_spec.dataclass import dataclass
from rageval_spec.wording import DIGITS, count_noun, describe_taken_over, find_format, tell_apart

_TITLES: dict[Overall, str] = {
    "pass": "Ready",
    "warn": "Ready, with warnings",
    "fail": "Not ready",
    "error": "Incomplete",
}


@dataclass(frozen=True, slots=True)
class Headline:
    """The outcome in words.

    Attributes:
        verdict: the outcome as a word of the data.
        title: the outcome for people: `Not ready`.
        summary: how many gates passed or failed, without a full stop.
        reason: the worst outcome as a sentence with a full stop; "" if everything passed.
        taken_over: sentences that say how many answers were not asked now, and from when they are.
    """

    verdict: Overall
    title: str
    summary: str
    reason: str
    taken_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.title}: {self.summary}.", *filter(None, [self.reason]), *self.taken_over])


def describe_headline(evaluation: Evaluation, digits: int = DIGITS) -> Headline:
    """The outcome of an evaluation in words; without gates, the title says that the evaluation is complete."""
    verdict = evaluation.verdict
    title = _TITLES[verdict] if evaluation.gates or verdict != "pass" else "Complete"
    if verdict == "warn" and worst_first(evaluation.gates)[0].outcome == "inconclusive":
        title = "Undecided"
    taken_over = tuple(list_taken_over(evaluation))
    return Headline(verdict, title, _summarize(evaluation), _explain(evaluation, digits), taken_over)


def list_taken_over(evaluation: Evaluation) -> list[str]:
    """`app: 9 of 10 answers are taken over from ...`, a sentence for each message; the last counts those left out."""
    subjects: dict[str, list[str]] = {}
    for one in evaluation.provenance.taken_over:
        name = one.system if len(evaluation.datasets) == 1 else f"{one.system} on {one.dataset}"
        subjects.setdefault(describe_taken_over(one), []).append(name)
    told = [f"{_list_names(names)}: {message}." for message, names in subjects.items()]
    more = len(told) - _TAKEN_OVER_SHOWN
    if more <= 1:
        return told
    return [*told[:_TAKEN_OVER_SHOWN], f"{more} more systems have such answers; see taken_over in results.json."]


def _summarize(evaluation: Evaluation) -> str:
    if evaluation.failures:
        return f"{count_noun(len(evaluation.failures), 'part')} of the evaluation failed"
    if evaluation.scored_nothing:
        return "nothing could be scored"
    total = len(evaluation.gates)
    if not total:
        return "the spec has no gates"
    passed = "the only gate passed" if total == 1 else f"all {total} gates passed"
    return describe_worse(evaluation.gates) or passed


def _explain(evaluation: Evaluation, digits: int) -> str:
    if evaluation.failures:
        return _close(share_failures(evaluation)[0])
    worst = next(iter(worst_first(evaluation.gates)), None)
    if worst is None or worst.outcome == "pass":
        return ""
    fall = "" if worst.outcome == "inconclusive" else _describe_fall(evaluation, worst, digits)
    return fall or _close(worst.reason)


def _describe_fall(evaluation: Evaluation, gate: GateOutcome, digits: int) -> str:
    """`token_f1 fell from 0.358 (v1) to 0.307 (v2).` for a gate on the difference from a baseline, else ""."""
    means = _find_means(evaluation, gate)
    if means is None or means[0] == means[1]:
        return ""
    verb = "fell" if means[1] < means[0] else "rose"
    old, new = tell_apart(*means, find_format(evaluation, gate.metric).number, digits)
    graded = f", a regression of {gate.severity} severity" if gate.severity else ""
    if gate.baseline in evaluation.systems:
        return f"{gate.metric} {verb} from {old} ({gate.baseline}) to {new} ({gate.system}){graded}."
    return f"{gate.metric} of {gate.system} {verb} from {old} ({gate.baseline}) to {new}{graded}."


def _find_means(evaluation: Evaluation, gate: GateOutcome) -> tuple[float, float] | None:
    """The baseline's mean and the system's; for an earlier evaluation, those of the queries that both have."""
    if gate.baseline is None or gate.observed is None:
        return None
    before = evaluation.aggregate(gate.dataset, gate.baseline, gate.metric, gate.slice)
    now = evaluation.aggregate(gate.dataset, gate.system, gate.metric, gate.slice)
    if before is not None and now is not None and before.mean is not None and now.mean is not None:
        return before.mean, now.mean
    cell = {"dataset": gate.dataset, "system": gate.system, "metric": gate.metric}
    earlier = evaluation.base_values.filter(baseline=gate.baseline, **cell).get_column("value")
    if gate.slice is not None or earlier.is_empty():
        return None
    mean = earlier.mean()
    assert isinstance(mean, float), "base values are numbers"
    return mean, mean + gate.observed


def _close(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


MARKS: dict[Verdict, str] = {"pass": "✓", "warn": "!", "fail": "✗", "inconclusive": "?"}


def describe_verdict(evaluation: Evaluation) -> str:
    """`2 of 5 gates failed, 1 warned`; also says if there are no gates, or if the evaluation itself failed."""
    gates = "no gates to check"
    if evaluation.gates:
        gates = describe_worse(evaluation.gates) or f"{count_noun(len(evaluation.gates), 'gate')} passed"
    if evaluation.failures:
        return f"{count_noun(len(evaluation.failures), 'evaluation')} of a system failed; {gates}"
    return f"nothing could be scored; {gates}" if evaluation.scored_nothing else gates


def describe_worse(gates: Sequence[GateOutcome]) -> str:
    """`2 of 5 gates failed, 1 is inconclusive, 1 warned`; "" if all gates passed."""
    counts = Counter(gate.outcome for gate in gates)
    undecided = counts["inconclusive"]
    said = [
        (counts["fail"], "failed"),
        (undecided, "is inconclusive" if undecided == 1 else "are inconclusive"),
        (counts["warn"], "warned"),
    ]
    parts = [f"{count} {words}" for count, words in said if count]
    if not parts:
        return ""
    parts[0] = parts[0].replace(" ", f" of {count_noun(len(gates), 'gate')} ", 1)
    if any(gate.outcome == "inconclusive" and gate.counted == "fail" for gate in gates):
        return ", ".join(parts) + ("" if counts["fail"] else ", which counts as failed")
    return ", ".join(parts) + ("" if counts["fail"] else ", none failed")


def worst_first(gates: Iterable[GateOutcome]) -> list[GateOutcome]:
    """Failed gates first, then inconclusive gates, warnings and passed gates; each group in the order of the spec.

    An inconclusive gate that counts as passed comes after warnings.
    """
    return sorted(gates, key=lambda gate: gate.rank)


def worst_outcome(gates: Sequence[GateOutcome]) -> Verdict | None:
    """The worst outcome, or None if there are no gates."""
    return worst_first(gates)[0].outcome if gates else None


_TAKEN_OVER_SHOWN = 4
_FEWEST_ALIKE = 4
"""From this number on, notes that differ only in their numbers are shown as one."""
_NAMES_SHOWN = 5

_Names: TypeAlias = tuple[str, ...]


class SharedNote(NamedTuple):
    """One or more notes with the same message.

    Attributes:
        datasets, systems, metrics: the subjects of the note; empty if it concerns all of them, or none.
        message: the message; if the notes differ in their numbers, that of the note with the highest count.
        highest: that count; 0 if the message mentions no number.
        alike: the number of further notes that differ only in their numbers.
    """

    code: str
    level: NoteLevel
    datasets: _Names
    systems: _Names
    metrics: _Names
    message: str
    highest: int
    alike: int = 0

    def __str__(self) -> str:
        """`golden, bm25 and dense: 2 of 40 queries are not in the run and score 0`."""
        place = ", ".join(_list_names(names) for names in (self.datasets, self.systems, self.metrics) if names)
        more = f" (and {self.alike} similar notes with other numbers)" if self.alike else ""
        return f"{place}: {self.message}{more}" if place else f"{self.message}{more}"


def share_failures(evaluation: Evaluation) -> list[str]:
    """The failures; metrics of one system that failed for the same reason are one: a model that is down fails many."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for failure in evaluation.failures:
        subject, _, reason = failure.partition(": ")
        metric, of, system = subject.partition(" of ")
        known = of and metric in evaluation.metrics
        metrics.setdefault((f"{of}{system}", reason) if known else (failure, ""), []).append(metric if known else "")
    return [f"{_list_names(names)}{rest}: {reason}" if reason else rest for (rest, reason), names in metrics.items()]


def share_notes(evaluation: Evaluation) -> list[SharedNote]:
    """The grouped notes of an evaluation, warnings first, otherwise in their order.

    Many notes that differ only in their numbers and subjects are the one with the highest count.
    """
    notes = [_read(note, evaluation.metrics) for note in evaluation.notes]
    for axis in ("metrics", "systems", "datasets"):
        notes = _join(notes, axis)
    groups: dict[tuple[str, NoteLevel, str], list[SharedNote]] = {}
    for note in notes:
        groups.setdefault((note.code, note.level, re.sub(r"\d+(\.\d+)?", "#", note.message)), []).append(note)
    shown: list[SharedNote] = []
    for group in groups.values():
        is_short = len({(note.datasets, note.systems, note.metrics) for note in group}) < _FEWEST_ALIKE
        most = max(group, key=lambda note: note.highest)
        shown += group if is_short else [most._replace(alike=len(group) - 1)]
    return sorted(shown, key=lambda note: note.level != "warning")


def _read(note: Note, metrics: Sequence[str]) -> SharedNote:
    """A single note; if its message begins with the name of a metric, that moves to `metrics`."""
    metric = next((name for name in metrics if note.message.startswith(f"{name}: ")), None)
    return SharedNote(
        note.code,
        note.level,
        (note.dataset,) if note.dataset else (),
        (note.system,) if note.system else (),
        (metric,) if metric else (),
        note.message.removeprefix(f"{metric}: ") if metric else note.message,
        note.count or 0,
    )


def _join(notes: Sequence[SharedNote], axis: str) -> list[SharedNote]:
    """Merge notes that differ only in the names of one axis; the merged note takes the place of the first."""
    found: dict[SharedNote, list[str]] = {}
    for note in notes:
        names = getattr(note, axis)
        changes: dict[str, Any] = {axis: ("",) if names else ()}
        found.setdefault(note._replace(**changes), []).extend(names)
    return [note._replace(**{axis: tuple(dict.fromkeys(names))}) for note, names in found.items()]  # type: ignore[arg-type]


def _list_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b, c, d, e and 5 others`."""
    shown = list(names[:_NAMES_SHOWN])
    more = len(names) - len(shown)
    last = f"{more} others" if more > 1 else names[-1] if more else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last
