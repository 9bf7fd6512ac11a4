"""`scores`: one prompt, several metrics: a chat model scores a sample by all criteria at once, with a reason each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from pydantic import Field

from rageval_spec.assessment import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, TextPart
from rageval_spec.chat import ChatReply
from rageval_spec.judging.asking import Question, join_estimates
from rageval_spec.judging.chat_judge import (
    OUTPUT_TOKENS,
    REMARK,
    ChatJudge,
    ChatJudgeNode,
    fence_parts,
    make_list_schema,
    make_schema,
    name_part,
)
from rageval_spec.judging.grading import Scale, write_guide
from rageval_spec.judging.piecewise import rescale, settle
from rageval_spec.judging.prompts import PromptFiles
from rageval_spec.judging.replies import describe_format
from rageval_spec.judging.segments import list_pieces
from rageval_spec.plugin import Context
from rageval_spec.samples import Sample

SCALE = Scale(0, 10)
"""The scale of everything that has none of its own."""
MOST_REMEMBERED = 4096
"""Calls whose reply need not be read again for the next criterion."""


class ScoresPrompts(PromptFiles):
    """Files of prompts in the place of the judge's own."""

    scores: str | None = Field(default=None, min_length=1, description="The template that asks for all scores.")


class ScoresNode(ChatJudgeNode):
    """All criteria in one call a sample."""

    prompts: ScoresPrompts = Field(
        default=ScoresPrompts(), description="Files of prompts, relative to the spec, in the place of the judge's own."
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A criterion, and the key under which the reply has its score."""

    key: str
    criterion: Criterion

    @property
    def scale(self) -> Scale:
        """On which it is scored."""
        return Scale.of(self.criterion, SCALE) if self.criterion.kind == "grade" else SCALE


class _Call:
    """One call that several criteria share, and what it gave once it is done."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.found: Future[Mapping[str, Any] | Failed] = Future()

    def keep(self, ask: Callable[[], Mapping[str, Any] | Failed]) -> None:
        """Call, for all who wait."""
        try:
            self.found.set_result(ask())
        except BaseException as error:
            self.found.set_exception(error)


class ScoresJudge(ChatJudge[ScoresNode]):
    """Knows all criteria before the first is assessed, and so asks for all of them with one call."""

    node_type = ScoresNode
    prompt_names = ("system", "scores")
    _columns: tuple[Column, ...] = ()

    def __init__(self, node: ScoresNode, context: Context) -> None:
        """Open nothing."""
        super().__init__(node, context)
        self._lock = Lock()
        self._calls: dict[tuple[str, tuple[str, ...]], _Call] = {}

    @property
    def abilities(self) -> frozenset[Ability]:
        """Support, usefulness and grades."""
        return frozenset({"support", "usefulness", "grade"})

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Ask for all of these from now on, whichever is assessed."""
        self._columns = tuple(_name_columns(criteria))

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """A finding a sample, of one call that all expected criteria share."""
        return Assessment(self.ask_each(samples, partial(self._find, criterion)))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The calls of `assess`."""
        return join_estimates(self._estimate_sample(criterion, sample) for sample in samples)

    def _estimate_sample(self, criterion: Criterion, sample: Sample) -> Estimate:
        columns = self._list_columns(criterion, sample)
        if settle(criterion, sample) or self._find_excess(columns, sample):
            return Estimate()
        return self.estimate_questions([self._put(columns, sample)], OUTPUT_TOKENS * len(columns))

    def _find(self, criterion: Criterion, sample: Sample) -> Finding | Failed:
        columns = self._list_columns(criterion, sample)
        if known := settle(criterion, sample) or self._find_excess(columns, sample):
            return known
        found = self._share(columns, sample)
        if isinstance(found, Failed):
            return found
        column = next(column for column in columns if column.criterion == criterion)
        return _conclude(column, sample, found[column.key])

    def _share(self, columns: Sequence[Column], sample: Sample) -> Mapping[str, Any] | Failed:
        """What the one call for these criteria gave; who comes while it is under way waits for it.

        The latest calls are remembered; who comes later than that makes it again, and finds the reply in the store.
        """
        key = (sample.query_id, tuple(column.key for column in columns))
        with self._lock:
            call = self._calls.get(key)
            is_mine = call is None or call.sample != sample
            if call is None or is_mine:
                call = self._calls[key] = _Call(sample)
            if len(self._calls) > MOST_REMEMBERED:
                del self._calls[next(iter(self._calls))]
        if is_mine:
            call.keep(lambda: self.ask(self._put(columns, sample)))
        return call.found.result()

    def _find_excess(self, columns: Sequence[Column], sample: Sample) -> Failed | None:
        return next(filter(None, (self.find_excess(column.criterion, sample) for column in columns)), None)

    def _list_columns(self, criterion: Criterion, sample: Sample) -> tuple[Column, ...]:
        """The criteria that this sample is scored by: those expected that apply to it; one that is not, by itself."""
        if all(column.criterion != criterion for column in self._columns):
            return tuple(_name_columns([criterion]))
        return tuple(one for one in self._columns if one.criterion == criterion or _applies(one.criterion, sample))

    def _put(self, columns: Sequence[Column], sample: Sample) -> Question[Mapping[str, Any]]:
        schema = make_schema(**{column.key: _make_column_schema(column, sample) for column in columns})
        shown = {part for column in columns for part in (*column.criterion.shown, *_parts_of(column.criterion))}
        request = self.request(
            "scores",
            schema,
            criteria="\n".join(map(_describe, columns)),
            material=fence_parts(sample, shown),
            form=describe_format(schema),
        )
        return Question(request, _take_all)


def _parts_of(criterion: Criterion) -> Sequence[TextPart]:
    """What must be there for it to be judged."""
    return criterion.shown if criterion.kind == "grade" else (criterion.text, criterion.against)


def _applies(criterion: Criterion, sample: Sample) -> bool:
    """Whether the sample has what the criterion reads, and a model is needed to judge it."""
    lacking = (part for part in _parts_of(criterion) if part != "question" and sample.lacks(part))
    return not any(lacking) and settle(criterion, sample) is None


def _name_columns(criteria: Sequence[Criterion]) -> list[Column]:
    """Each distinct criterion under a key of its own, in an order that does not depend on theirs."""
    distinct: list[Criterion] = []
    for criterion in criteria:
        if criterion not in distinct:
            distinct.append(criterion)
    distinct.sort(key=lambda one: (one.name, repr(one)))
    keys: dict[str, int] = {}
    columns: list[Column] = []
    for criterion in distinct:
        key = re.sub(r"\W+", "_", criterion.name).strip("_") or "score"
        keys[key] = keys.get(key, 0) + 1
        columns.append(Column(key if keys[key] == 1 else f"{key}_{keys[key]}", criterion))
    return columns


def _make_column_schema(column: Column, sample: Sample) -> dict[str, Any]:
    score = column.scale.schema
    if column.criterion.kind != "usefulness":
        return make_schema(reason=REMARK, score=score)
    return make_schema(reason=REMARK, scores=make_list_schema(score, len(list_pieces(column.criterion, sample))))


def _describe(column: Column) -> str:
    low, high = column.scale.bounds
    criterion = column.criterion
    what = f"from {low} (not at all) to {high} (completely)"
    if criterion.kind == "usefulness":
        what += f", a score for each of the {name_part(criterion.text)} by itself, in their order"
    guide = "".join(f"\n  {line}" for line in write_guide(criterion).splitlines())
    return f"- {column.key}: {criterion.instruction} Score {what}.{guide}"


def _take_all(value: Mapping[str, Any], _: ChatReply) -> Mapping[str, Any]:
    return value


def _conclude(column: Column, sample: Sample, said: Mapping[str, Any]) -> Finding:
    criterion, scale, reason = column.criterion, column.scale, said["reason"] or None
    if criterion.kind != "usefulness":
        return Finding(rescale(criterion, scale.score(said["score"])), reason=reason)
    claims = tuple(
        Claim(piece.text, scale.score(score), start=piece.start, end=piece.end)
        for piece, score in zip(list_pieces(criterion, sample), said["scores"], strict=True)
    )
    return Finding(sum(claim.score for claim in claims) / len(claims), claims, reason)


PLUGIN = ScoresJudge
