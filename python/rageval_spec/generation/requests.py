"""What the models are asked: to write a question, to check one, to answer one without documents, to compare answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.chat import ChatReply, ChatRequest, Message
from rageval_spec.endpoints.asking import Question
from rageval_spec.endpoints.replies import UnreadableReplyError
from rageval_spec.generation.prompts import JUDGE, load, read_wordings, render
from rageval_spec.judging.forms import REMARK, TEXT, make_list_schema, make_schema
from rageval_spec.judging.language import NAMES
from rageval_spec.judging.prompts import fence, fence_all

if TYPE_CHECKING:
    from rageval_spec.generation.mixes import Slot

YES_OR_NO: Mapping[str, Any] = {"type": "string", "enum": ["yes", "no"]}
DRAFT_TOKENS, CHECK_TOKENS, ANSWER_TOKENS, COMPARISON_TOKENS = 180, 80, 60, 40
"""The tokens that an estimate assumes for each kind of reply."""
_QUOTE = make_schema(passage={"type": "integer"}, quote=TEXT)
_COMMON: Mapping[str, Any] = {"suitable": {"type": "boolean"}, "why_not": REMARK, "question": REMARK}
_DRAFT = make_schema(**_COMMON, answer=REMARK, evidence=make_list_schema(_QUOTE), language=REMARK)
_UNANSWERABLE = make_schema(**_COMMON, missing=REMARK, language=REMARK)
_CHECK = make_schema(answer=REMARK, reason=REMARK, answerable=YES_OR_NO, stands_alone=YES_OR_NO)
_CLOSED_BOOK = make_schema(answer=REMARK, known=YES_OR_NO)
_SAME = make_schema(reason=REMARK, correct=YES_OR_NO)


class Unsuitable(NamedTuple):
    """A passage about which the model could not write a question of the type, and why."""

    reason: str


class Draft(NamedTuple):
    """A question that a model wrote.

    Attributes:
        answer: its answer; "" if the question is to be unanswerable.
        quotes: the number of a passage, from 1, and what the model says stands in it.
        language: the code of its language, as the model says; "" if it does not say.
        missing: what the passage does not tell, for an unanswerable question.
    """

    question: str
    answer: str
    quotes: tuple[tuple[int, str], ...] = ()
    language: str = ""
    missing: str = ""


class Opinion(NamedTuple):
    """What a model says of a question and passages: whether they answer it, and whether it makes sense alone."""

    answer: str
    answerable: bool
    stands_alone: bool
    reason: str


def ask_for_draft(
    slot: Slot, passages: Sequence[str], language: str | None, avoid: Sequence[str] = ()
) -> Question[Draft | Unsuitable]:
    """The question that makes a model write one that the slot describes.

    Args:
        slot: what the question should be like.
        passages: the texts to ask about, with their titles.
        language: the code of the language to write in; None for that of the passages.
        avoid: questions that exist already about these passages.
    """
    wordings = read_wordings()
    variables: dict[str, str | int] = {
        "type": wordings["types"][slot.type],
        "style": wordings["styles"][slot.style],
        "language": _name_language(language),
        "avoid": fence_all("question", avoid) if avoid else "",
        "passages": fence_all("passage", passages),
    }
    if slot.kind == "unanswerable":
        request = _request("system", render("unanswerable", **variables), _UNANSWERABLE)
        return Question(request, _read_unanswerable)
    variables |= {"difficulty": wordings["difficulties"][slot.difficulty], "count": len(passages)}
    return Question(_request("system", render("draft", **variables), _DRAFT), _read_draft)


def ask_whether_answered(question: str, passages: Sequence[str]) -> Question[Opinion]:
    """Whether passages answer a question, and whether it makes sense without them."""
    asked = render("check", question=fence("question", question), passages=fence_all("passage", passages))
    return Question(_request(JUDGE, asked, _CHECK), _read_opinion)


def ask_closed_book(question: str) -> Question[str]:
    """The model's own answer to a question; "" if it knows none."""
    asked = render("closed_book", question=fence("question", question))
    return Question(_request(None, asked, _CLOSED_BOOK), _read_own)


def ask_whether_same(question: str, reference: str, answer: str) -> Question[bool]:
    """Whether an answer says what the reference answer says."""
    asked = render(
        "same",
        question=fence("question", question),
        reference=fence("reference_answer", reference),
        answer=fence("answer", answer),
    )
    return Question(_request(JUDGE, asked, _SAME), lambda value, _: bool(value["correct"] == "yes"))


def _request(rules: str | None, asked: str, schema: Mapping[str, Any]) -> ChatRequest:
    before = () if rules is None else (Message("system", load(rules).render()),)
    return ChatRequest((*before, Message("user", asked)), schema)


def _name_language(code: str | None) -> str:
    if code is None:
        return "the language of the passages"
    name = NAMES.get(code.split("-")[0].lower())
    return f"{name} ({code})" if name else code


def _read_draft(value: Mapping[str, Any], _: ChatReply) -> Draft | Unsuitable:
    if not value["suitable"]:
        return Unsuitable(_say(value["why_not"]) or "the model gives no reason")
    question, answer = _require(value, "question"), _require(value, "answer")
    quotes = tuple((one["passage"], quote) for one in value["evidence"] if (quote := one["quote"].strip()))
    return Draft(question, answer, quotes, _say(value["language"]).lower())


def _read_unanswerable(value: Mapping[str, Any], _: ChatReply) -> Draft | Unsuitable:
    if not value["suitable"]:
        return Unsuitable(_say(value["why_not"]) or "the model gives no reason")
    language, missing = _say(value["language"]).lower(), _say(value["missing"])
    return Draft(_require(value, "question"), "", (), language, missing)


def _read_opinion(value: Mapping[str, Any], _: ChatReply) -> Opinion:
    answerable, stands_alone = (value[name] == "yes" for name in ("answerable", "stands_alone"))
    return Opinion(_say(value["answer"]), answerable, stands_alone, _say(value["reason"]))


def _read_own(value: Mapping[str, Any], _: ChatReply) -> str:
    return _say(value["answer"]) if value["known"] == "yes" else ""


def _require(value: Mapping[str, Any], name: str) -> str:
    text = _say(value[name])
    if not text:
        raise UnreadableReplyError(f"the {name} is empty; if the passage is not suitable, 'suitable' must be false")
    return " ".join(text.split()) if name == "question" else text


def _say(text: str | None) -> str:
    return (text or "").strip()
