"""The rows of a form: one for each answer, and one for each claim if people judge claim by claim.

| column | |
|---|---|
| `no` | the task's number, from 1 |
| `question`, `answer`, `claim` | what is judged; `claim` only if people judge claim by claim |
| `faithfulness [yes/no]`, ... | one for each criterion, to be filled in; the brackets have the values it can have |
| `comment`, `annotator` | to be filled in |
| `contexts`, `reference` | what it is judged by |
| `judge: faithfulness`, ... | what the judge says, if people may see it |
| `dataset`, `system`, `query_id`, `slices`, `reason`, `probability` | where the answer comes from, and why it is here |
| `row` | a token that identifies the row, see `token.py` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rageval_spec.diagnostics import make_visible
from rageval_spec.review.criteria import VERDICTS, ReviewCriterion, make_criterion
from rageval_spec.review.forms.token import Token
from rageval_spec.review.tasks import ReviewClaim, ReviewSheet, ReviewTask
from rageval_spec.wording import count_noun

Use: TypeAlias = Literal["read", "fill", "keep"]
NUMBER, COMMENT, ANNOTATOR, ROW = "no", "comment", "annotator", "row"
SHOWN = ("question", "answer", "claim")
"""The columns whose texts a token has a digest of."""
KEPT = "\n\t"
JUDGE = "judge: "
"""How the headers of the columns begin that have what the judge says."""
_HEADER = re.compile(r"(.+) \[(.+)\]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a form: people read it, fill it in, or leave it alone (`keep`)."""

    name: str
    use: Use
    criterion: ReviewCriterion | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a form: the texts by column, and the criteria that it asks about."""

    cells: Mapping[str, str | int | float]
    asked: tuple[str, ...]


def list_columns(sheet: ReviewSheet) -> list[Column]:
    """The columns of a sheet's form, in their order."""
    read = [NUMBER, "question", "answer", *(["claim"] if _asks_claims(sheet) else [])]
    judge = [JUDGE + one.name for one in sheet.criteria] if sheet.shows_judge else []
    return [
        *(Column(name, "read") for name in read),
        *(Column(name_column(one), "fill", one) for one in sheet.criteria),
        *(Column(name, "fill") for name in (COMMENT, ANNOTATOR)),
        *(Column(name, "read") for name in ("contexts", "reference", *judge)),
        *(Column(name, "keep") for name in ("dataset", "system", "query_id", "slices", "reason", "probability", ROW)),
    ]


def name_column(criterion: ReviewCriterion) -> str:
    """The header of a criterion's column: `faithfulness [yes/no]`, `fluency [1..5]`."""
    scale = criterion.scale if criterion.kind == "rating" else "/".join(criterion.choices)
    return f"{criterion.name} [{scale}]"


def read_column(header: str) -> ReviewCriterion | None:
    """The criterion that a header names; None if it names none."""
    found = _HEADER.fullmatch(header.strip())
    if found is None:
        return None
    scale = {"yes/no": "yes_no", "/".join(VERDICTS): "claims"}.get(found[2], found[2])
    try:
        return make_criterion(found[1], scale)
    except ValueError:
        return None


def list_rows(sheet: ReviewSheet) -> Iterator[Row]:
    """The rows of a sheet's form: for each task one for the whole answer, if it is asked about, then its claims."""
    for number, task in enumerate(sheet.tasks, 1):
        whole = tuple(one.name for one in sheet.criteria if one.kind != "claims")
        if whole:
            yield Row(_fill(sheet, task, number, None), whole)
        for criterion, claim in sheet.questions_of(task):
            if claim is not None:
                yield Row(_fill(sheet, task, number, claim), (criterion.name,))


def _asks_claims(sheet: ReviewSheet) -> bool:
    return any(one.kind == "claims" for one in sheet.criteria)


def _fill(sheet: ReviewSheet, task: ReviewTask, number: int, claim: ReviewClaim | None) -> dict[str, str | int | float]:
    shown = [show(task.question), show(task.answer), "" if claim is None else show(claim.text)]
    cells: dict[str, str | int | float] = {
        NUMBER: number,
        **dict(zip(SHOWN, shown, strict=True)),
        COMMENT: "",
        ANNOTATOR: show(sheet.annotator),
        "contexts": show(join_contexts(task)),
        "reference": show("\n".join(task.references)),
        "dataset": show(task.dataset),
        "system": show(task.system),
        "query_id": show(task.query_id),
        "slices": show(", ".join(task.slices)),
        "reason": task.reason,
        "probability": task.probability,
        ROW: Token.of(task, claim, shown).encode(),
    }
    for criterion in sheet.criteria if sheet.shows_judge else ():
        cells[JUDGE + criterion.name] = _tell(task, criterion, claim)
    return cells


def _tell(task: ReviewTask, criterion: ReviewCriterion, claim: ReviewClaim | None) -> str | float:
    """What the judge says of an answer, or of a claim."""
    if claim is None:
        value = task.judged.get(criterion.name)
        return "" if value is None or criterion.kind == "claims" else value
    if claim.metric != criterion.name:
        return ""
    return show(claim.verdict or "") or ("" if claim.score is None else claim.score)


def join_contexts(task: ReviewTask) -> str:
    """The contexts in one text, each with its number and its document."""
    parts = (
        f"[{number}]{f' {one.doc_id}' if one.doc_id else ''}\n{one.text}" for number, one in enumerate(task.contexts, 1)
    )
    return "\n\n".join(parts)


def show(text: str) -> str:
    """`text` as a cell holds it: characters that cannot be seen are escaped, and a text that is too long is cut."""
    visible = make_visible(text.replace("\r\n", "\n"), keep=KEPT)
    if len(visible) <= MOST_CHARACTERS:
        return visible
    note = f"… [cut: the text has {count_noun(len(visible), 'character')}]"
    return visible[: MOST_CHARACTERS - len(note)] + note


MOST_CHARACTERS = 32_000
"""The most characters of a cell; spreadsheets hold 32,767 UTF-16 units."""
