"""`scores`: a chat model scores a sample by the criteria of all metrics at once, with a reason for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from rageval_spec.data.findings import (
    Ability,
    Assessment,
    Claim,
    Criterion,
    Estimate,
    Failed,
    Finding,
    TextPart,
    read_part,
)
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import dataclass
from rageval_spec.endpoints.chat_questions import ChatQuestion, join_estimates
from rageval_spec.endpoints.replies import describe_format
from rageval_spec.judges.shared.chat_judge import ChatJudge, ChatJudgeNode
from rageval_spec.judging import prompts
from rageval_spec.judging.grade_scores import GradeScale, rescale, write_guide
from rageval_spec.judging.prompts import OWN_FILES, PromptFile, PromptFiles
from rageval_spec.judging.segments import list_pieces, score_claims
from rageval_spec.plugin import Context
from rageval_spec.threads import floor

SCALE = GradeScale(0, 10)
"""The scale of criteria without a scale of their own."""
MOST_REMEMBERED = 4096
"""Samples whose parsed reply is remembered for the next criterion; larger batches are remembered whole."""
MOST_LAYOUTS = 1024


class ScoresPrompts(PromptFiles):
    """Prompt files that replace the judge's own."""

    scores: PromptFile = Field(default=None, description="The template that asks for all scores.")


class ScoresNode(ChatJudgeNode):
    """Asks a chat model for the scores of all metrics in one call per sample."""

    prompts: Annotated[ScoresPrompts, OWN_FILES] = ScoresPrompts()


@dataclass(frozen=True, slots=True, eq=False)
class ScoreColumn:
    """A criterion, and the key of its score in the reply. Columns are compared by identity."""

    key: str
    criterion: Criterion

    @property
    def scale(self) -> GradeScale:
        """The scale on which the criterion is scored."""
        return GradeScale.of(self.criterion, SCALE) if self.criterion.kind == "grade" else SCALE


class _Layout(NamedTuple):
    """The parts of a question for several scores other than the sample's texts."""

    schema: Mapping[str, Any]
    criteria: str
    form: str
    parts: frozenset[TextPart]


@lru_cache(MOST_LAYOUTS)
def _lay_out(columns: tuple[ScoreColumn, ...], counts: tuple[int, ...]) -> _Layout:
    """The layout for columns; `counts` has how many pieces each scores one by one. Most samples share a layout."""
    schemas = {one.key: _make_column_schema(one, count) for one, count in zip(columns, counts, strict=True)}
    schema = prompts.make_schema(**schemas)
    parts = frozenset(part for one in columns for part in (*one.criterion.shown, *_parts_of(one.criterion)))
    return _Layout(schema, "\n".join(map(_describe, columns)), describe_format(schema), parts)


class _Sheet:
    """The columns by which one call scores a sample, and the result of that call."""

    def __init__(self, sample: Sample, columns: Iterable[ScoreColumn]) -> None:
        self.sample = sample
        self.columns = tuple(columns)
        self.said: Mapping[str, Any] | Failed | None = None
        self.is_taken = False
        self._lock = Lock()

    def fill(self, ask: Callable[[_Sheet], Mapping[str, Any] | Failed]) -> Mapping[str, Any] | Failed:
        """The result of the call. The first thread makes it and the others wait; if it raises, the next thread asks."""
        if not self._lock.acquire(blocking=False):
            with floor.rested():
                self._lock.acquire()
        try:
            if self.said is None:
                self.said = ask(self)
            return self.said
        finally:
            self._lock.release()


class ScoresJudge(ChatJudge[ScoresNode]):
    """Asks for all criteria with one call per sample, because it gets them all before the first is assessed."""

    known_as = ("multi_criteria", "several")
    declared = frozenset[Ability]({"support", "usefulness", "grade"})
    _columns: tuple[ScoreColumn, ...] = ()

    def __init__(self, node: ScoresNode, context: Context) -> None:
        """Keep the node and the context."""
        super().__init__(node, context)
        self._lock = Lock()
        self._sheets: dict[tuple[Any, ...], _Sheet] = {}

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Ask for all of these criteria from now on, whichever of them is assessed."""
        with self._lock:
            self._columns = tuple(_name_columns(criteria))
            self._sheets.clear()

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """One finding per sample. The first thread that assesses a sample makes its call; other threads wait for it."""
        column = self._find_column(criterion)
        with self._lock:
            opened = self._open_all(column, samples)
            sheets = dict.fromkeys(sheet for sheet in opened if isinstance(sheet, _Sheet) and sheet.said is None)
            mine = [sheet for sheet in sheets if not sheet.is_taken]
            for sheet in mine:
                sheet.is_taken = True
        self.ask_each(mine, lambda sheet: sheet.fill(self._ask))
        for sheet in sheets:  # other threads' sheets: waiting here is enough, because those threads ask many at once
            sheet.fill(self._ask)
        return Assessment([_conclude(column, one) if isinstance(one, _Sheet) else one for one in opened])

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        """The calls that `assess` would make; criteria that share a call count it once."""
        column = self._find_column(criterion)
        with self._lock:
            opened = self._open_all(column, samples)
        sheets = (sheet for sheet in opened if isinstance(sheet, _Sheet) and self._find_excess(sheet) is None)
        return join_estimates(
            self.estimate_questions([self._put(sheet)], prompts.OUTPUT_TOKENS * len(sheet.columns)) for sheet in sheets
        )

    def _ask(self, sheet: _Sheet) -> Mapping[str, Any] | Failed:
        excess = self._find_excess(sheet)
        return self.ask(self._put(sheet)) if excess is None else excess

    def _open_all(self, column: ScoreColumn, samples: Sequence[Sample]) -> list[_Sheet | Finding]:
        """The sheet of each sample, or its finding if no call is needed. Only the latest sheets are remembered."""
        opened = [self._open(column, sample) for sample in samples]
        most = max(MOST_REMEMBERED, 2 * len(samples))
        for key in [*islice(self._sheets, max(0, len(self._sheets) - most))]:
            del self._sheets[key]
        return opened

    def _open(self, column: ScoreColumn, sample: Sample) -> _Sheet | Finding:
        if column not in self._columns:
            return prompts.settle(column.criterion, sample) or _Sheet(sample, [column])
        sheet = self._remember(sample, "", lambda: [one for one in self._columns if _applies(one.criterion, sample)])
        if column in sheet.columns:
            return sheet
        with_it = [one for one in self._columns if one is column or one in sheet.columns]
        return prompts.settle(column.criterion, sample) or self._remember(sample, column.key, lambda: with_it)

    def _remember(self, sample: Sample, forced: str, list_columns: Callable[[], Iterable[ScoreColumn]]) -> _Sheet:
        key = (forced, *_texts_of(sample))
        sheet = self._sheets.get(key)
        if sheet is None:
            sheet = self._sheets[key] = _Sheet(sample, list_columns())
        return sheet

    def _find_column(self, criterion: Criterion) -> ScoreColumn:
        """The column of a criterion; a criterion that was not expected gets a column, and a call, of its own."""
        return next((one for one in self._columns if one.criterion == criterion), None) or _name_columns([criterion])[0]

    def _find_excess(self, sheet: _Sheet) -> Failed | None:
        return next(filter(None, (self.find_excess(one.criterion, sheet.sample) for one in sheet.columns)), None)

    def _put(self, sheet: _Sheet) -> ChatQuestion[Mapping[str, Any]]:
        counts = tuple(_count_pieces(one.criterion, sheet.sample) for one in sheet.columns)
        layout = _lay_out(sheet.columns, counts)
        request = self.request(
            "scores",
            layout.schema,
            criteria=layout.criteria,
            material=prompts.fence_parts(sheet.sample, layout.parts),
            form=layout.form,
        )
        return ChatQuestion(request, lambda value, _: value)


def _texts_of(sample: Sample) -> tuple[Any, ...]:
    several = (sample.contexts, sample.reference_contexts, sample.claims)
    lists = (None if texts is None else tuple(texts) for texts in several)
    return sample.question, sample.answer, sample.reference, *lists


def _parts_of(criterion: Criterion) -> Sequence[TextPart]:
    return criterion.shown if criterion.kind == "grade" else (criterion.text, criterion.against)


def _applies(criterion: Criterion, sample: Sample) -> bool:
    """Whether the sample has the parts that the criterion reads and needs a model to be judged."""
    lacking = (part for part in _parts_of(criterion) if part != "question" and sample.lacks(part))
    return not any(lacking) and prompts.settle(criterion, sample) is None


def _name_columns(criteria: Sequence[Criterion]) -> list[ScoreColumn]:
    """The distinct criteria, each under its own key, in an order that does not depend on the order of `criteria`."""
    distinct: list[Criterion] = []
    for criterion in criteria:
        if criterion not in distinct:
            distinct.append(criterion)
    distinct.sort(key=lambda one: (one.name, repr(one)))
    keys: dict[str, int] = {}
    columns: list[ScoreColumn] = []
    for criterion in distinct:
        key = re.sub(r"\W+", "_", criterion.name).strip("_") or "score"
        keys[key] = keys.get(key, 0) + 1
        columns.append(ScoreColumn(key if keys[key] == 1 else f"{key}_{keys[key]}", criterion))
    return columns


def _count_pieces(criterion: Criterion, sample: Sample) -> int:
    """How many pieces of a sample get a score of their own; 0 if the sample is scored as a whole."""
    return len(read_part(sample, criterion.text)) if criterion.kind == "usefulness" else 0


def _make_column_schema(column: ScoreColumn, pieces: int) -> dict[str, Any]:
    score = column.scale.schema
    if column.criterion.kind != "usefulness":
        return prompts.make_schema(reason=prompts.REMARK, score=score)
    return prompts.make_schema(reason=prompts.REMARK, scores=prompts.make_list_schema(score, pieces))


def _describe(column: ScoreColumn) -> str:
    low, high = column.scale.bounds
    criterion = column.criterion
    what = f"from {low} (not at all) to {high} (completely)"
    if criterion.kind == "usefulness":
        what += f", a score for each of the {prompts.name_part(criterion.text)} by itself, in their order"
    guide = "".join(f"\n  {line}" for line in write_guide(criterion.guide).splitlines())
    return f"- {column.key}: {criterion.instruction} Score {what}.{guide}"


def _conclude(column: ScoreColumn, sheet: _Sheet) -> Finding | Failed:
    found = sheet.said
    assert found is not None, "its sheet is filled"
    if isinstance(found, Failed):
        return found
    said, sample = found[column.key], sheet.sample
    criterion, scale, reason = column.criterion, column.scale, said["reason"] or None
    if criterion.kind != "usefulness":
        return Finding(rescale(criterion, scale.score(said["score"])), reason=reason)
    claims = tuple(
        Claim(piece.text, scale.score(score), start=piece.start, end=piece.end)
        for piece, score in zip(list_pieces(criterion, sample), said["scores"], strict=True)
    )
    return Finding(score_claims(claims), claims, reason)


PLUGIN = ScoresJudge
