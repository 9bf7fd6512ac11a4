"""What the models that write and check questions are asked, and how they are asked.

They write a question, check one, answer one without documents, or compare answers. The prompts are templates in
files, with what they say of each type of question. Which calls that would take can be foreseen without making them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rageval_spec.data.chat import ChatReply, ChatRequest, LimitError, Message
from rageval_spec.data.findings import Criterion, Estimate, Failed, Finding
from rageval_spec.dataclass import dataclass, field
from rageval_spec.endpoints.chat_questions import (
    ChatQuestion,
    ask,
    estimate_questions,
    recall,
    room_for,
    run_all,
    threads_for,
)
from rageval_spec.endpoints.replies import UnreadableReplyError
from rageval_spec.judging.language import NAMES
from rageval_spec.judging.prompts import FOLDER as JUDGING
from rageval_spec.judging.prompts import (
    REMARK,
    TEXT,
    Prompt,
    fence,
    fence_all,
    load_prompt,
    make_list_schema,
    make_schema,
)

if TYPE_CHECKING:
    from rageval_spec.data.samples import Sample
    from rageval_spec.generation.question_mix import Slot
    from rageval_spec.plugin import ChatModel, Context, Judge
    from rageval_spec.progress import Progress


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
    """

    question: str
    answer: str
    quotes: tuple[tuple[int, str], ...] = ()
    language: str = ""


class QuestionOpinion(NamedTuple):
    """What a model says of a question and passages: whether they answer it, and whether it makes sense alone."""

    answer: str
    answerable: bool
    stands_alone: bool
    reason: str


def ask_for_draft(
    slot: Slot, passages: Sequence[str], language: str | None, avoid: Sequence[str] = ()
) -> ChatQuestion[Draft | Unsuitable]:
    """The question that makes a model write one that the slot describes.

    `language` is a code, or None for that of the passages; `avoid` are questions that exist already about them.
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
        return ChatQuestion(_request("system", render("unanswerable", **variables), _UNANSWERABLE), _read_draft)
    variables |= {"difficulty": wordings["difficulties"][slot.difficulty], "count": len(passages)}
    return ChatQuestion(_request("system", render("draft", **variables), _DRAFT), _read_draft)


def ask_whether_answered(question: str, passages: Sequence[str]) -> ChatQuestion[QuestionOpinion]:
    asked = render("check", question=fence("question", question), passages=fence_all("passage", passages))
    return ChatQuestion(_request(JUDGE, asked, _CHECK), _read_opinion)


def ask_closed_book(question: str) -> ChatQuestion[str]:
    """The model's own answer to a question; "" if it knows none."""
    asked = render("closed_book", question=fence("question", question))
    request = _request(None, asked, _CLOSED_BOOK)
    return ChatQuestion(request, lambda value, _: _say(value["answer"]) if value["known"] == "yes" else "")


def ask_whether_same(question: str, reference: str, answer: str) -> ChatQuestion[bool]:
    asked = render(
        "same",
        question=fence("question", question),
        reference=fence("reference_answer", reference),
        answer=fence("answer", answer),
    )
    return ChatQuestion(_request(JUDGE, asked, _SAME), lambda value, _: bool(value["correct"] == "yes"))


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
    question, language = _require(value, "question"), _say(value["language"]).lower()
    if "answer" not in value:
        return Draft(question, "", (), language)
    quotes = tuple((one["passage"], quote) for one in value["evidence"] if (quote := one["quote"].strip()))
    return Draft(question, _require(value, "answer"), quotes, language)


def _read_opinion(value: Mapping[str, Any], _: ChatReply) -> QuestionOpinion:
    answerable, stands_alone = (value[name] == "yes" for name in ("answerable", "stands_alone"))
    return QuestionOpinion(_say(value["answer"]), answerable, stands_alone, _say(value["reason"]))


def _require(value: Mapping[str, Any], name: str) -> str:
    text = _say(value[name])
    if not text:
        raise UnreadableReplyError(f"the {name} is empty; if the passage is not suitable, 'suitable' must be false")
    return " ".join(text.split()) if name == "question" else text


def _say(text: str | None) -> str:
    return (text or "").strip()


FOLDER = Path(__file__).parent / "prompts"
WORDINGS = "wordings.toml"
PROMPT_NAMES = ("system", "draft", "unanswerable", "check", "closed_book", "same")
JUDGE = "judge"
"""The rules of whoever checks questions: those of the product's judges."""


def render(name: str, **variables: str | int) -> str:
    return load(name).render(**variables)


@cache
def load(name: str) -> Prompt:
    path = JUDGING / "system.jinja" if name == JUDGE else FOLDER / f"{name}.jinja"
    return load_prompt(name, path, path.name, is_own=True)


@cache
def read_wordings() -> Mapping[str, Mapping[str, str]]:
    """What the prompts say of each of the `types`, `difficulties` and `styles`, by its name."""
    import tomllib

    wordings: dict[str, dict[str, str]] = tomllib.loads((FOLDER / WORDINGS).read_text("utf-8"))
    return wordings


def describe_prompts() -> dict[str, Any]:
    """The version and the sha256 of every prompt by name, and the sha256 of the wordings."""
    digest = hashlib.sha256((FOLDER / WORDINGS).read_bytes()).hexdigest()
    every = {name: load(name) for name in (*PROMPT_NAMES, JUDGE)}
    prompts: dict[str, Any] = {name: {"version": one.version, "sha256": one.digest} for name, one in every.items()}
    return prompts | {"wordings": {"sha256": digest}}


T = TypeVar("T")


@dataclass
class Steps:
    """Counts what was asked, for a display of progress. Safe to use from several threads."""

    show: Progress
    done: int = 0
    total: int = 0
    _lock: Any = field(default_factory=Lock)

    def expect(self, count: int) -> None:
        """Expect so many further steps; those that were expected before and did not happen are taken as done."""
        with self._lock:
            self.done = self.total
            self.total += count
            self.show(self.done, self.total, "steps")

    def end(self, count: int = 1) -> None:
        with self._lock:
            self.done = min(self.total, self.done + count)
            self.show(self.done, self.total, "steps")


@dataclass(frozen=True)
class GeneratorModels:
    """Who writes and who checks, and the judge that decides by `criterion` whether an answer is supported."""

    writer: ChatModel[Any]
    checker: ChatModel[Any]
    judge: Judge[Any]
    criterion: Criterion
    context: Context


class Asker(ABC):
    """Asks models. A result is None if it is not there yet, which only happens while calls are foreseen."""

    def __init__(self, models: GeneratorModels) -> None:
        self._models = models
        models.judge.expect([models.criterion])

    def write(self, questions: Sequence[ChatQuestion[T]], tokens: int) -> Sequence[T | Failed | None]:
        """Ask the model that writes; a reply has about `tokens` tokens."""
        return self._ask(self._models.writer, questions, tokens)

    def check(self, questions: Sequence[ChatQuestion[T]], tokens: int) -> Sequence[T | Failed | None]:
        """Ask the model that checks."""
        return self._ask(self._models.checker, questions, tokens)

    @abstractmethod
    def judge(self, samples: Sequence[Sample]) -> Sequence[Finding | Failed | None]:
        """Ask the judge whether the contexts of samples support their answers."""

    @abstractmethod
    def _ask(
        self, model: ChatModel[Any], questions: Sequence[ChatQuestion[T]], tokens: int
    ) -> Sequence[T | Failed | None]: ...


class RealAsker(Asker):
    """Asks the models; replies come from the store where it has them."""

    def __init__(self, models: GeneratorModels, steps: Steps) -> None:
        super().__init__(models)
        self._steps = steps

    def judge(self, samples: Sequence[Sample]) -> Sequence[Finding | Failed | None]:
        if not samples:
            return []
        try:
            findings = self._models.judge.assess(self._models.criterion, samples).findings
        except LimitError as error:
            return [self._recall(sample, error) for sample in samples]
        self._steps.end(len(samples))
        return findings

    def _recall(self, sample: Sample, error: LimitError) -> Finding | Failed:
        """What the judge has said of a sample before a limit was reached."""
        judge, criterion = self._models.judge, self._models.criterion
        if judge.estimate(criterion, [sample]).calls:
            return Failed(str(error), is_unfinished=True)
        return judge.assess(criterion, [sample]).findings[0]

    def _ask(
        self,
        model: ChatModel[Any],
        questions: Sequence[ChatQuestion[T]],
        tokens: int,  # noqa: ARG002 - as foreseen
    ) -> Sequence[T | Failed | None]:
        tasks = [partial(self._ask_one, model, question) for question in questions]
        return run_all(tasks, threads_for(model, self._models.context), room_for(model, self._models.context))

    def _ask_one(self, model: ChatModel[Any], question: ChatQuestion[T]) -> T | Failed:
        found = ask(model, question, self._models.context)
        self._steps.end()
        return found


class ForeseeingAsker(Asker):
    """Makes no call: what is stored is used, and `estimates` has the calls for the rest."""

    def __init__(self, models: GeneratorModels) -> None:
        super().__init__(models)
        self.estimates: list[Estimate] = []

    def judge(self, samples: Sequence[Sample]) -> Sequence[Finding | Failed | None]:
        judge, criterion = self._models.judge, self._models.criterion
        found: list[Finding | Failed | None] = []
        for sample in samples:
            missing = judge.estimate(criterion, [sample])
            self.estimates.append(missing)
            found.append(None if missing.calls else judge.assess(criterion, [sample]).findings[0])
        return found

    def _ask(
        self, model: ChatModel[Any], questions: Sequence[ChatQuestion[T]], tokens: int
    ) -> Sequence[T | Failed | None]:
        context = self._models.context
        self.estimates.append(estimate_questions(model, model.context.name, questions, context, tokens))
        known = [recall(model, question, context) for question in questions]
        return [None if one.unanswered is not None else one.found for one in known]
