"""The rows of a form: one for each answer, and one for each claim if people judge claim by claim.

| column | |
|---|---|
| `no` | the task's number, from 1 |
| `question`, `answer`, `claim` | what is judged; `claim` only if people judge claim by claim |
| `faithfulness [yes/no]`, ... | one for each criterion, to be filled in; the brackets have the values it can have |
| `comment`, `annotator` | to be filled in |
| `contexts`, `reference` | what it is judged by |
| `judge: faithfulness`, ... | what the judge says, if people may see it |
| `dataset`, `system`, `query_id`, `slices`, `reason`, `probability` | where the answer is from, and why it is here |
| `row` | a token: the hidden field that says what was judged |

Spreadsheets change what they take for numbers or dates: the query `007` becomes 7, `1/2` a day in January. A token is
a text that they leave alone. It also has a digest of the texts that the person saw, so that an edited text is
noticed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Literal, TypeAlias

from rageval_spec.diagnostics import make_visible
from rageval_spec.review.criteria import VERDICTS, ReviewCriterion, make_criterion
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
class FormColumn:
    """A column of a form: people read it, fill it in, or leave it alone (`keep`)."""

    name: str
    use: Use
    criterion: ReviewCriterion | None = None


@dataclass(frozen=True, slots=True)
class FormRow:
    """A row of a form: the texts by column, and the criteria that it asks about."""

    cells: Mapping[str, str | int | float]
    asked: tuple[str, ...]


def list_columns(sheet: ReviewSheet) -> list[FormColumn]:
    """The columns of a sheet's form, in their order."""
    read = [NUMBER, "question", "answer", *(["claim"] if _asks_claims(sheet) else [])]
    judge = [JUDGE + one.name for one in sheet.criteria] if sheet.shows_judge else []
    return [
        *(FormColumn(name, "read") for name in read),
        *(FormColumn(name_column(one), "fill", one) for one in sheet.criteria),
        *(FormColumn(name, "fill") for name in (COMMENT, ANNOTATOR)),
        *(FormColumn(name, "read") for name in ("contexts", "reference", *judge)),
        *(
            FormColumn(name, "keep")
            for name in ("dataset", "system", "query_id", "slices", "reason", "probability", ROW)
        ),
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


def list_rows(sheet: ReviewSheet) -> Iterator[FormRow]:
    """The rows of a sheet's form: for each task one for the whole answer, if it is asked about, then its claims."""
    for number, task in enumerate(sheet.tasks, 1):
        whole = tuple(one.name for one in sheet.criteria if one.kind != "claims")
        if whole:
            yield FormRow(_fill(sheet, task, number, None), whole)
        for criterion, claim in sheet.questions_of(task):
            if claim is not None:
                yield FormRow(_fill(sheet, task, number, claim), (criterion.name,))


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
        ROW: FormToken.of(task, claim, shown).encode(),
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


_PREFIX = "rv1."
_CHECK_LENGTH = 8


@dataclass(frozen=True, slots=True)
class FormToken:
    """What a row of a form is about.

    Attributes:
        dataset, system, query_id: whose answer to which question.
        metric, claim: the metric and the number of the claim; "" and None for the whole answer.
        answer_digest: the digest of the answer.
        reason, probability: why, and how likely, the answer was chosen; None if it is not known.
        shown: the digest of the texts that the row shows, as `digest_shown` gives it.
    """

    dataset: str
    system: str
    query_id: str
    metric: str
    claim: int | None
    answer_digest: str
    reason: str
    probability: float | None
    shown: str

    @classmethod
    def of(cls, task: ReviewTask, claim: ReviewClaim | None, shown: Sequence[str]) -> FormToken:
        """The token of a task's answer, or of one of its claims, with the texts that the row shows."""
        metric, number = ("", None) if claim is None else (claim.metric, claim.number)
        digest = digest_shown(shown)
        return cls(*task.key, metric, number, task.answer_digest, task.reason, task.probability, digest)

    def encode(self) -> str:
        """The token as a text of letters, digits, `-`, `_` and dots."""
        content = json.dumps(astuple(self), separators=(",", ":")).encode()
        return f"{_PREFIX}{base64.urlsafe_b64encode(content).decode().rstrip('=')}.{_check(content)}"


def decode_token(text: str) -> FormToken | None:
    """The token of a text; None if it is none, or damaged."""
    body, dot, check = text.strip().removeprefix(_PREFIX).rpartition(".")
    if not dot or not text.strip().startswith(_PREFIX):
        return None
    try:
        content = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        if _check(content) != check:
            return None
        return FormToken(*json.loads(content))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return None


def digest_shown(texts: Sequence[str]) -> str:
    """A digest of the texts of a row. It ignores what spreadsheets change: white space, and a `'` at the beginning."""
    folded = json.dumps([" ".join(text.split()).lstrip("' ") for text in texts])
    return hashlib.sha256(folded.encode()).hexdigest()[:_CHECK_LENGTH]


def _check(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_CHECK_LENGTH]
