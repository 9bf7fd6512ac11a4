"""A sheet as a project of Label Studio: tasks in JSON, and the labelling configuration in XML.

Import the tasks into a new project, and paste the configuration into its settings (Labeling interface, Code).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import quoteattr

from rageval_spec.diagnostics import dump_visible
from rageval_spec.errors import UsageError
from rageval_spec.review.criteria import ReviewCriterion
from rageval_spec.review.forms.rows import ROW, join_contexts, name_column, show
from rageval_spec.review.forms.token import Token
from rageval_spec.review.tasks import ReviewClaim, ReviewSheet, ReviewTask

VERDICT = "verdict"
"""The control for claims; the task says which metric they belong to."""
COMMENT = "comment"
SHOWS_JUDGE = "saw_judge"
"""The part of a task's data that says that people see what the judge says; a part of labels has the same name."""
CONTROLS = "controls"
"""The part of a task's data that has the criterion of each control, as the header of a form names it."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_RESERVED = (VERDICT, COMMENT, "guidelines", "question", "answer", "claim_text", "contexts", "reference", "judge")


def write_tasks(sheet: ReviewSheet) -> bytes:
    """The tasks as JSON: one for each answer, or one for each claim if people judge claim by claim.

    With the judge, its verdict on a claim is a prediction, and its values of an answer are shown.

    Raises:
        UsageError: the sheet asks about whole answers and about claims, which need different forms.
    """
    return dump_visible([*_list_tasks(sheet)]).encode("utf-8", "backslashreplace")


def write_config(sheet: ReviewSheet) -> bytes:
    """The labelling configuration of these tasks as XML."""
    return ("\n".join(_list_tags(sheet)) + "\n").encode("utf-8", "backslashreplace")


def name_controls(sheet: ReviewSheet) -> dict[str, str]:
    """The control of each criterion, by the criterion's name; a name that XML cannot have gets a number instead."""
    return {
        one.name: one.name if _NAME.fullmatch(one.name) and one.name not in _RESERVED else f"criterion_{number}"
        for number, one in enumerate(sheet.criteria, 1)
    }


def _list_tasks(sheet: ReviewSheet) -> Iterator[dict[str, Any]]:
    by_claim = _asks_claims(sheet)
    for number, task in enumerate(sheet.tasks, 1):
        if not by_claim:
            yield {"data": _describe(sheet, task, number, None)}
        for criterion, claim in sheet.questions_of(task) if by_claim else ():
            if claim is not None:
                data = {**_describe(sheet, task, number, claim), "metric": criterion.name}
                yield {"data": data, **(_predict(claim) if sheet.shows_judge else {})}


def _asks_claims(sheet: ReviewSheet) -> bool:
    kinds = {one.kind == "claims" for one in sheet.criteria}
    if len(kinds) > 1:
        claims = ", ".join(one.name for one in sheet.criteria if one.kind == "claims")
        raise UsageError(
            f"a project of Label Studio has one form: ask about whole answers, or claim by claim ({claims}), and write "
            "the other into a second file"
        )
    return True in kinds


def _describe(sheet: ReviewSheet, task: ReviewTask, number: int, claim: ReviewClaim | None) -> dict[str, Any]:
    shown = [show(task.question), show(task.answer), "" if claim is None else show(claim.text)]
    data: dict[str, Any] = {
        "no": number,
        "question": shown[0],
        "answer": shown[1],
        "contexts": show(join_contexts(task)) or "(none)",
        "reference": show("\n".join(task.references)) or "(none)",
        "dataset": task.dataset,
        "system": task.system,
        "query_id": task.query_id,
        "answer_digest": task.answer_digest,
        "slices": list(task.slices),
        "reason": task.reason,
        "probability": task.probability,
        ROW: Token.of(task, claim, shown).encode(),
    }
    if claim is not None:
        data |= {"claim": claim.number, "claim_text": shown[2]}
    else:
        controls = name_controls(sheet)
        data[CONTROLS] = {controls[one.name]: name_column(one) for one in sheet.criteria}
    if sheet.shows_judge:
        data[SHOWS_JUDGE] = "yes"
    if sheet.shows_judge and claim is None:
        told = (f"{name}: {'no value' if value is None else f'{value:.3g}'}" for name, value in task.judged.items())
        data["judge"] = ", ".join(told) or "(nothing)"
    return data


def _predict(claim: ReviewClaim) -> dict[str, Any]:
    if claim.verdict is None:
        return {}
    result = {
        "from_name": VERDICT,
        "to_name": "claim_text",
        "type": "choices",
        "value": {"choices": [claim.verdict]},
    }
    score = {} if claim.score is None else {"score": claim.score}
    return {"predictions": [{"model_version": "judge", **score, "result": [result]}]}


def _list_tags(sheet: ReviewSheet) -> Iterator[str]:
    by_claim = _asks_claims(sheet)
    target = "claim_text" if by_claim else "answer"
    yield "<View>"
    yield from _show("Question", "question")
    yield from _show("Answer", "answer")
    if by_claim:
        yield from _show("Claim", "claim_text")
    if sheet.shows_judge and not by_claim:
        yield from _show("The judge", "judge")
    yield '  <Header value="Guidelines" size="5"/>'
    yield _tell("guidelines", sheet.guidelines)
    controls = name_controls(sheet)
    asked = [(VERDICT, sheet.criteria[0])] if by_claim else [(controls[one.name], one) for one in sheet.criteria]
    for control, criterion in asked:
        yield from _ask(control, criterion, target)
    yield '  <Header value="Comment" size="5"/>'
    yield f'  <TextArea name="{COMMENT}" toName="{target}" rows="2" editable="true" maxSubmissions="1"/>'
    yield from _show("Contexts", "contexts")
    yield from _show("Reference", "reference")
    yield "</View>"


def _show(title: str, name: str) -> Iterator[str]:
    yield f'  <Header value={_quote(title)} size="5"/>'
    yield f'  <View style="white-space: pre-wrap"><Text name="{name}" value="${name}"/></View>'


def _tell(name: str, text: str) -> str:
    """A text that all tasks share, as `Text`: a `Header` would be larger than what people judge."""
    return f'  <View style="white-space: pre-wrap"><Text name="{name}" value={_quote(text)}/></View>'


def _ask(control: str, criterion: ReviewCriterion, target: str) -> Iterator[str]:
    yield f'  <Header value={_quote(criterion.question)} size="5"/>'
    yield _tell(f"about_{control}", criterion.guidelines)
    yield f'  <Choices name="{control}" toName="{target}" choice="single" showInline="true">'
    yield from (f"    <Choice value={_quote(choice)}/>" for choice in criterion.choices)
    yield "  </Choices>"


def _quote(text: str) -> str:
    """`text` as the value of an attribute. A leading `$` would name a part of the task."""
    visible = show(text)
    return quoteattr(f" {visible}" if visible.startswith("$") else visible)
