"""Which part moved when scores changed: the app, the judge, the traffic or the model.

A small table decides, row by row, from what was measured:

| what moved | what it says |
|---|---|
| the judge's scores of frozen answers, asked again | the judge moved, because these answers have not changed |
| the questions | the traffic moved |
| the model's version or the length of its answers | the model moved, unless the app's version changed, too |
| scores on comparable traffic, with none of the judge and the model | the app moved |
| scores, but not those on comparable traffic | the traffic explains the change |

What was not measured excludes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def attribute_change(seen: Evidence) -> dict[Moved, str]:
    """The parts that moved, each with why one thinks so, for scores that have changed; none if nothing names any.

    Several parts can have moved at once. The app is blamed only if scores moved on comparable traffic, and neither the
    judge nor the model explains it, or its version changed.
    """
    found = dict([*_judge(seen), *_traffic(seen), *_model(seen)])
    return found | dict(_app(seen, found))


_Row: TypeAlias = tuple[Moved, str]


def _judge(seen: Evidence) -> Iterator[_Row]:
    if seen.anchors:
        yield "judge", "it scores frozen answers otherwise than before"


def _traffic(seen: Evidence) -> Iterator[_Row]:
    if seen.traffic:
        same = ", and on comparable questions the scores have not" if seen.comparable is False else ""
        yield "traffic", f"the questions have changed{same}"


def _model(seen: Evidence) -> Iterator[_Row]:
    if seen.model_version:
        yield "model", "the traces name another version of the model"
    elif seen.lengths and not seen.app_version and seen.traffic is not True:
        parts = (("the app's version", seen.app_version), ("the questions", seen.traffic))
        same = " and ".join(name for name, moved in parts if moved is False)
        yield "model", "answers have another length" + (f", although {same} did not change" if same else "")


def _app(seen: Evidence, others: Mapping[Moved, str]) -> Iterator[_Row]:
    if seen.comparable is False:
        return
    if seen.app_version:
        yield "app", "the traces name another version of the app"
    elif seen.comparable and not others.keys() & {"judge", "model"}:
        yield "app", "scores have changed on comparable questions, and neither the judge nor the model explains it"
    elif seen.comparable is None and not others and seen.anchors is False and seen.traffic is False:
        yield "app", "neither the judge nor the questions have changed"
