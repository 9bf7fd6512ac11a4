"""Asks chat models questions in parallel, each until a reply can be read.

If a reply cannot be read or repaired, the model gets it back with the error. If that does not help, or the call
itself failed, the question is asked in other words, because a model without randomness repeats itself. If that does
not help either, the question has failed, and its last reply is stored.

A text must not forge the control tokens of chat templates (`<|im_start|>`, `[INST]`, `<s>`). Many servers interpret
them in the text of a message as if the template had written them, so they are defused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rageval_spec.data.chat import CallError, ChatReply, ChatRequest, Message, UnfinishedError
from rageval_spec.data.findings import Estimate, Failed, Tokens
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.endpoints.replies import (
    GRAMMAR,
    UnreadableReplyError,
    describe_format,
    drop_thoughts,
    quote_reply,
    read_reply,
)
from rageval_spec.endpoints.shared_questions import Turns
from rageval_spec.libraries import compile_later
from rageval_spec.threads import floor, map_in_threads
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.endpoints.pacing import Slots
    from rageval_spec.plugin import ChatModel, Context


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST_REPLIES = 3
"""The most replies to one question. Failed calls do not count; they end when all wordings were tried."""
BYTES_PER_TOKEN = 4
"""Characters per token of English text, which estimates assume."""
_MOST_SHOWN = 4000

_CORRECTION = "Your reply cannot be read: {error}. Reply again, with nothing but {form}"
_WORDINGS = (
    "Reply with nothing but {form}\nNo text before or after it, no code fence, no comments; keep every text short.",
    "Be brief. The whole reply is {form}",
)
_WITHOUT_JSON = "No JSON and no reason after all: the whole reply is {form}"
_EMPTY = "(an empty reply)"

WORDING_DIGEST = hashlib.sha256(
    "\0".join((_CORRECTION, *_WORDINGS, _WITHOUT_JSON, _EMPTY, GRAMMAR)).encode()
).hexdigest()
"""The sha256, in hex, of the wordings with which questions are retried and of the grammar by which replies are read,
because findings depend on them."""


@dataclass(frozen=True, slots=True)
class ChatQuestion(Generic[T_co]):
    """A request, and how to read its reply.

    Attributes:
        request: the first call; its last message is the user's.
        read: turns the reply into the result. It gets the value in the reply, which has the shape of the request's
            schema (without a schema: the text without thoughts and outer white space), and the reply itself. It raises
            `UnreadableReplyError` if the value cannot be right.
        form: the required form of the reply, as the end of the sentence "Reply with nothing but ..."; by default the
            JSON that the schema describes.
        reads_by: the schema by which the reply is read, if it says more than the one that is sent, such as the meanings
            of options.
        word: the form of a reply without JSON, such as "one letter: A, B or C", in which the question is asked when two
            replies with JSON could not be read; "" if only JSON will do.
        salvage: the result of replies of which none can be read whole, in their order, with the failure that they are
            otherwise; without it, the question has failed.
    """

    request: ChatRequest
    read: Callable[[Any, ChatReply], T_co]
    form: str = ""
    reads_by: Mapping[str, Any] | None = None
    word: str = ""
    salvage: Callable[[Sequence[ChatReply], Failed], T_co | Failed] | None = None


def ask(model: ChatModel[Any], question: ChatQuestion[T], context: Context) -> T | Failed:
    """The result of a question; `Failed` if no reply could be read.

    With `context.budget.retry_failed`, a question that failed in an earlier evaluation is asked again. Once the spec's
    limits allow no further call, a question that needs one is `Failed` with that reason; others use stored replies. A
    question whose calls failed in this evaluation counts as one error and is `Failed` for everyone who asks it.
    """
    turns = context.budget.memory.remember(model, Turns)
    digest = question.request.digest
    with turns.take_turn(digest) as known:
        if known is not None:
            return _follow(question, known)
        try:
            conversation = _converse(model, question, context)
        except UnfinishedError as error:
            return Failed(str(error), is_unfinished=True)
        found, is_read = conversation.found, conversation.understood is not None
        usage, name = context.budget.usage, model.context.name
        usage.count(name, conversation.replies, model.sample)
        replies = [reply for _, reply in conversation.replies]
        usage.count_question(name, question.request, replies, model.sample, is_read=is_read)
        if conversation.is_unread:
            context.budget.count_unread(digest)
        if not conversation.was_kept:
            # If this error exceeds the limit, only the next call is refused.
            failed = isinstance(found, Failed)
            context.budget.count_question(failed=failed, is_lasting=failed and conversation.is_lasting)
        if not is_read and not conversation.was_kept:
            turns.keep(digest, found)
        elif conversation.is_anew and conversation.understood is not None:
            turns.keep(digest, conversation.understood)
        return found


def _converse(model: ChatModel[Any], question: ChatQuestion[T], context: Context) -> _Conversation[T]:
    conversation = _Conversation(model, question, model.ask)
    if conversation.understood is None and conversation.was_kept and context.budget.retry_failed:
        return _Conversation(model, question, partial(model.ask, fresh=True), is_anew=True)
    return conversation


def _follow(question: ChatQuestion[T], known: Any) -> T | Failed:
    """The result for another caller with the same request, which can read the reply differently."""
    if not isinstance(known, ChatReply):
        return known  # type: ignore[no-any-return]
    try:
        return _read(question, known)
    except UnreadableReplyError as error:
        return Failed(f"the reply cannot be read: {error}: {quote_reply(known.text)}", known.text)


def ask_all(model: ChatModel[Any], questions: Sequence[ChatQuestion[T]], context: Context) -> list[T | Failed]:
    """Call `ask` for each question; results are in the questions' order."""
    tasks = [partial(ask, model, question, context) for question in questions]
    return run_all(tasks, threads_for(model, context), room_for(model, context))


def run_all(tasks: Sequence[Callable[[], T]], concurrency: int, room: Slots | None = None) -> list[T]:
    """The results of the tasks, in their order. If a task raises, no other begins and the exception is raised.

    With a `room`, so many tasks are under way as it has slots, whoever else uses it, and they take turns to work.
    """
    if len(tasks) < 2:
        return [task() for task in tasks]
    waiting, found = iter(enumerate(tasks)), dict[int, T]()
    raised: list[BaseException] = []

    def work(_: int) -> None:
        with nullcontext() if room is None else floor.joined(room):
            while not raised and (numbered := next(waiting, None)) is not None:
                number, task = numbered
                try:
                    found[number] = task()
                except BaseException as error:
                    raised.append(error)
                floor.give_way()

    threads = min(concurrency, len(tasks))
    try:
        for _ in map_in_threads(work, range(threads), threads, "judge"):
            pass
    except BaseException as error:
        raised.append(error)
    if raised:
        raise raised[0]
    return [found[number] for number in range(len(tasks))]


def room_for(model: ChatModel[Any], context: Context) -> Slots | None:
    """Room for as many tasks as a model's calls under way, whoever asks it; None for models that do not take turns."""
    if context.pace is not None or not getattr(model, "takes_turns", False):
        return None
    return context.budget.memory.remember(model, Turns).find_room(threads_for(model, context) // 2)


def threads_for(model: ChatModel[Any], context: Context) -> int:
    """Twice the number of a model's calls under way, so that a question is ready when a call ends."""
    return 2 * (getattr(model.node, "concurrency", None) or context.concurrency)


@dataclass(frozen=True, slots=True)
class Recalled(Generic[T_co]):
    """What stored replies say about a question, without a call.

    Attributes:
        found: the result of the question; None if it needs a call.
        unanswered: the first call that `ask` would make; None if it would make none.
    """

    found: T_co | Failed | None
    unanswered: ChatRequest | None


def recall(model: ChatModel[Any], question: ChatQuestion[T], context: Context) -> Recalled[T]:
    """What `ask` would do now. Makes no call."""
    try:
        conversation = _Conversation(model, question, partial(_find, model))
    except _UnansweredError as error:
        return Recalled(None, error.request)
    asks_again = conversation.understood is None and context.budget.retry_failed
    return Recalled(conversation.found, question.request if asks_again else None)


def estimate_questions(
    model: ChatModel[Any], name: str, questions: Iterable[ChatQuestion[Any]], context: Context, output: int
) -> Estimate:
    """The calls that these questions would take now, with `output` tokens a reply. Makes no call."""
    requests = [known.unanswered for question in questions if (known := recall(model, question, context)).unanswered]
    tokens = {request.digest.hex(): Tokens(count_tokens(request.size), output) for request in requests if request}
    return Estimate({name: tokens} if tokens else {})


class _UnansweredError(Exception):
    """No reply to a request is stored."""

    def __init__(self, request: ChatRequest) -> None:
        super().__init__()
        self.request = request


def _find(model: ChatModel[Any], request: ChatRequest) -> ChatReply:
    reply = model.find(request)
    if reply is None:
        raise _UnansweredError(request)
    return replace(reply, reused=True)


def join_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of many estimates. `|` would copy the calls once for every sample."""
    calls: dict[str, dict[str, Tokens]] = {}
    for estimate in estimates:
        for name, tokens in estimate.calls.items():
            calls.setdefault(name, {}).update(tokens)
    return Estimate(calls)


def count_tokens(size: int) -> int:
    """About how many tokens a text of so many bytes of UTF-8 has."""
    return -(-size // BYTES_PER_TOKEN)


class _Conversation(Generic[T]):
    """One question, with all calls until a reply can be read.

    Attributes:
        found: the result.
        replies: every reply, with its request, whether it could be read or not.
        understood: the reply that was read; None if no reply could be read.
        was_kept: whether all replies came from the store.
        is_anew: whether the stored replies were ignored.
        is_lasting: whether the last call that failed would fail again in the next evaluation.
    """

    def __init__(
        self,
        model: ChatModel[Any],
        question: ChatQuestion[T],
        get_reply: Callable[[ChatRequest], ChatReply],
        *,
        is_anew: bool = False,
    ) -> None:
        self.was_kept = not is_anew
        self.is_anew = is_anew
        self.is_lasting = False
        self.replies: list[tuple[ChatRequest, ChatReply]] = []
        self.understood: ChatReply | None = None
        self._model = model
        self._question = question
        self._get_reply = get_reply
        self._tried: list[ChatRequest] = []
        self._unread = 0
        self.found = self._hold()

    @property
    def is_unread(self) -> bool:
        """Whether the question has failed and a stored reply is among the reasons."""
        return self.understood is None and self._unread > 0

    @cached_property
    def _form(self) -> str:
        return self._question.form or f"JSON in this form: {describe_format(self._question.request.schema or {})}"

    def _hold(self) -> T | Failed:
        request: ChatRequest | None = self._question.request
        raw, reason = None, ""
        while request is not None and self._unread < MOST_REPLIES:
            request = self._prefer_kept(request)
            self._tried.append(request)
            try:
                reply = self._get_reply(request)
            except CallError as error:
                reason, self.was_kept, self.is_lasting = str(error), False, error.is_lasting
                request = self._reword() if error.is_temporary else None
                continue
            self.replies.append((request, reply))
            self.was_kept = self.was_kept and reply.reused
            try:
                found = _read(self._question, reply)
                self.understood = reply
                return found
            except UnreadableReplyError as error:
                self._unread += 1
                raw, reason = reply.text, self._describe(error, reply.text)
                request = _correct(request, raw, str(error), self._form) if self._unread == 1 else self._reword()
        failed, salvage = Failed(reason, raw), self._question.salvage
        return salvage([reply for _, reply in self.replies], failed) if salvage and self.replies else failed

    def _prefer_kept(self, request: ChatRequest) -> ChatRequest:
        """The request; if its own call failed in an earlier evaluation, the rewording that got a reply then."""
        if self.is_anew or not self._model.may_have_failed or self._model.find(request) is not None:
            return request
        return next((other for other in self._other_words() if self._model.find(other) is not None), request)

    def _reword(self) -> ChatRequest | None:
        """The question in a wording that was not tried yet; None if all were tried."""
        return next(self._other_words(), None)

    def _other_words(self) -> Iterator[ChatRequest]:
        request, word = self._question.request, self._question.word
        others = [_reword(request, wording, self._form) for wording in _WORDINGS]
        if word and self._unread > 1:
            others.insert(0, replace(_reword(request, _WITHOUT_JSON, word), schema=None))
        return (other for other in others if other not in self._tried)

    def _describe(self, error: UnreadableReplyError, text: str) -> str:
        replies = count_noun(self._unread, "reply", "replies")
        failed = f"{replies} of the model '{self._model.context.name}' cannot be read; the last one: "
        if isinstance(error, _CutOffReplyError):
            return f"{failed}it is cut off because it is too long; raise max_tokens of the model"
        return f"{failed}{error}: {quote_reply(text)}" if text.strip() else f"{failed}{error}"


class _CutOffReplyError(UnreadableReplyError):
    """A reply that the model's token limit has cut off; the message is written for the model."""


def _read(question: ChatQuestion[T], reply: ChatReply) -> T:
    """The result of a reply. Any exception while reading it makes only this reply unreadable."""
    try:
        return _read_whole(question, reply)
    except UnreadableReplyError:
        raise
    except Exception as error:
        raise UnreadableReplyError(f"it cannot be used ({type(error).__name__}: {error})") from error


def _read_whole(question: ChatQuestion[T], reply: ChatReply) -> T:
    if reply.finish == "length":
        raise _CutOffReplyError("it is cut off because it is too long; write less")
    text = drop_thoughts(reply.text)
    if not text and reply.finish not in (None, "stop"):
        raise UnreadableReplyError(f"it is empty ({reply.finish})")
    schema = question.reads_by or question.request.schema
    return question.read(text if schema is None else read_reply(reply.text, schema), reply)


def _correct(request: ChatRequest, text: str, error: str, form: str) -> ChatRequest:
    shown = text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + " ..."
    # A reply can quote an attacker's text.
    said = Message("assistant", defuse(shown) if shown.strip() else _EMPTY)
    demand = Message("user", _CORRECTION.format(error=defuse(error), form=form))
    return replace(request, messages=(*request.messages, said, demand))


def _reword(request: ChatRequest, wording: str, form: str) -> ChatRequest:
    *before, last = request.messages
    reminder = wording.format(form=form)
    return replace(request, messages=(*before, Message(last.role, f"{last.content}\n\n{reminder}")))


BRACKETED = r"\[(?=/?[a-z]?[A-Z][A-Z0-9_]{2,}\])"
"""The opening of `[INST]`, `[SYSTEM_PROMPT]`, `[gMASK]`: any word in capitals, because each model has its own."""
DRAWN = "◁"
"""The opening of Kimi's control tokens."""
FULL_WIDTH = "<(?=[｜▁])"
"""The opening of DeepSeek's control tokens."""
_TOKEN = compile_later(
    rf"{BRACKETED}|{DRAWN}|{FULL_WIDTH}|<(?=\||</?SYS>>|/?(?:s|bos|eos|pad|unk|sop|eop)>|(?:start|end)_of_\w+>)"
)


def defuse(text: str) -> str:
    """The text with a space after each opening of a control token, which is then not one any more."""
    return _TOKEN.sub(lambda found: f"{found.group()} ", text)
