"""Which part moved when scores changed: the app, the judge, the traffic or the model.

A small table decides, row by row, from what was measured:

| what moved | what it says |
|---|---|
| the judge's scores of frozen answers, asked again | the judge moved, because these answers have not changed |
| the questions | the traffic moved |
| the model's version or the length of its answers | the model moved, unless the app's version changed, too |
| scores on comparable traffic, with none of the judge and the model | the app moved |
| scores, but not those on comparable traffic | the traffic explains the change |

What was not measured excludes nothing, and the reasons say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from rageval_spec.data.alerts import Moved


class Evidence(NamedTuple):
    """What was seen to have moved: True or False, or None for what was not measured.

    Attributes:
        anchors: the judge's scores of frozen answers that it was asked about again.
        traffic: the distribution of the questions.
        comparable: the scores on comparable traffic: the same kinds of question, or questions weighted alike.
        lengths: the lengths of the model's answers.
        model_version, app_version: the version that the traces name.
    """

    anchors: bool | None = None
    traffic: bool | None = None
    comparable: bool | None = None
    lengths: bool | None = None
    model_version: bool | None = None
    app_version: bool | None = None


class Cause(NamedTuple):
    """What moved, and why one thinks so.

    Attributes:
        moved: the parts that moved; empty if what was measured names none.
        reasons: one sentence for each thing that was measured and matters, and for each that is missing.
    """

    moved: tuple[Moved, ...]
    reasons: tuple[str, ...]


def attribute_change(seen: Evidence) -> Cause:
    """The parts that moved, for scores that have changed.

    Several parts can have moved at once. The app is blamed only if scores moved on comparable traffic, and neither the
    judge nor the model explains it, or its version changed.
    """
    found = [*_judge(seen), *_traffic(seen), *_model(seen)]
    found += _app(seen, {part for part, _ in found if part is not None})
    moved = dict.fromkeys(part for part, _ in found if part is not None)
    return Cause(tuple(moved), tuple(reason for _, reason in found))


_Row: TypeAlias = tuple[Moved | None, str]


def _judge(seen: Evidence) -> Iterator[_Row]:
    if seen.anchors:
        yield "judge", "The judge scores frozen answers otherwise than before."
    elif seen.anchors is None:
        yield None, "The judge was not asked again about frozen answers, so that it may have moved."
    else:
        yield None, "The judge scores frozen answers as before."


def _traffic(seen: Evidence) -> Iterator[_Row]:
    if seen.traffic and seen.comparable is False:
        yield "traffic", "The questions have changed, and on comparable questions the scores have not."
    elif seen.traffic:
        yield "traffic", "The questions have changed."
    elif seen.traffic is None:
        yield None, "The questions were not compared with the baseline's, so that the traffic may have moved."


def _model(seen: Evidence) -> Iterator[_Row]:
    if seen.model_version:
        yield "model", "The traces name another version of the model."
    elif seen.lengths and not seen.app_version and seen.traffic is not True:
        yield "model", "Answers have another length, although neither the app's version nor the questions changed."
    elif seen.model_version is None and seen.lengths is None:
        yield None, "Neither the model's version nor the length of answers is known, so that the model may have moved."


def _app(seen: Evidence, others: set[Moved]) -> Iterator[_Row]:
    if seen.comparable is False:
        return
    explained = others & {"judge", "model"}
    if seen.app_version:
        yield "app", "The traces name another version of the app."
    elif seen.comparable and not explained:
        yield "app", "Scores have changed on comparable questions, and neither the judge nor the model explains it."
    elif seen.comparable is None and not others and seen.anchors is False and seen.traffic is False:
        yield "app", "Neither the judge nor the questions have changed."
    elif seen.comparable is None:
        yield None, "Scores on comparable questions are not known, so that the app may have moved."
