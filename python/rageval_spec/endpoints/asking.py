"""Asks chat models questions until a reply can be read, many at the same time.

A reply that cannot be read, not even repaired, is shown to the model together with what is wrong with it; if that does
not help, or the call itself failed, the question is put in other words, because a model without randomness repeats
itself. Then it has failed, and its last reply is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rageval_spec.data.assessment import Estimate, Failed, Tokens
from rageval_spec.data.chat import CallError, ChatReply, ChatRequest, Message, UnfinishedError
from rageval_spec.endpoints.control_tokens import defuse
from rageval_spec.endpoints.replies import UnreadableReplyError, describe_format, drop_thoughts, quote_reply, read_reply
from rageval_spec.endpoints.turns import Turns
from rageval_spec.threads import map_in_threads
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.plugin import ChatModel, Context

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST_REPLIES = 3
"""Replies to one question that are tried to be read. Calls that fail are not among them, but end with the wordings."""
CHARACTERS_PER_TOKEN = 4
"""Of English text; what an estimate goes by."""
_MOST_SHOWN = 4000

_CORRECTION = "Your reply cannot be read: {error}. Reply again, with nothing but {form}"
_WORDINGS = (
    "Reply with nothing but {form}\nNo text before or after it, no code fence, no comments; keep every text short.",
    "Be brief. The whole reply is {form}",
)
_EMPTY = "(an empty reply)"

WORDING_DIGEST = hashlib.sha256("\0".join((_CORRECTION, *_WORDINGS, _EMPTY)).encode()).hexdigest()
"""The sha256 of the words in which is asked again, in hex: findings depend on them."""


@dataclass(frozen=True, slots=True)
class Question(Generic[T_co]):
    """What is asked, and how the reply is understood.

    Attributes:
        request: the first call; its last message is the user's.
        read: makes what is wanted of the value that the reply holds, which has the shape of the request's schema (its
            text without thoughts and outer white space, where there is no schema), and of the reply itself. Raises
            `UnreadableReplyError` where the value cannot be right.
        form: what the reply must be, as the end of the sentence "Reply with nothing but ..."; by default the JSON that
            the schema describes.
        reads_by: the schema that the reply is read by, where it knows more than the one that is sent, such as what
            options mean.
    """

    request: ChatRequest
    read: Callable[[Any, ChatReply], T_co]
    form: str = ""
    reads_by: Mapping[str, Any] | None = None


def ask(model: ChatModel[Any], question: Question[T], context: Context) -> T | Failed:
    """What the reply to a question comes to; `Failed` where no reply could be read.

    With `context.budget.retry_errors`, a question that failed in an earlier evaluation is asked anew. Where the spec's
    limits allow no further call, a question that needs one is `Failed` with that reason; others go on from what is
    kept. A question on which calls of this evaluation failed is counted as one error, and is `Failed` for all who ask
    it.
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
        found = conversation.found
        if conversation.is_unread:
            context.budget.count_unread(digest)
        if not conversation.was_kept:
            # Where this is one error too many, it is the next call that is not made.
            context.budget.count_question(failed=isinstance(found, Failed))
        if isinstance(found, Failed) and not conversation.was_kept:
            turns.keep(digest, found)
        elif conversation.is_anew and conversation.understood is not None:
            turns.keep(digest, conversation.understood)
        return found


def _converse(model: ChatModel[Any], question: Question[T], context: Context) -> _Conversation[T]:
    conversation = _Conversation(model, question, model.ask)
    if isinstance(conversation.found, Failed) and conversation.was_kept and context.budget.retry_errors:
        return _Conversation(model, question, partial(model.ask, fresh=True), is_anew=True)
    return conversation


def _follow(question: Question[T], known: ChatReply | Failed) -> T | Failed:
    """The same again for another who asks: it may read it otherwise."""
    if isinstance(known, Failed):
        return known
    try:
        return _read(question, known)
    except UnreadableReplyError as error:
        return Failed(f"the reply cannot be read: {error}: {quote_reply(known.text)}", known.text)


def ask_all(model: ChatModel[Any], questions: Sequence[Question[T]], context: Context) -> list[T | Failed]:
    """`ask` of each question, in their order, as many at the same time as the model takes."""
    return run_all([partial(ask, model, question, context) for question in questions], threads_for(model, context))


def run_all(tasks: Sequence[Callable[[], T]], concurrency: int) -> list[T]:
    """What each task returns, in their order; so many run at the same time, in threads.

    Where one raises, none is begun any more, and the exception is raised.
    """
    if len(tasks) < 2:
        return [task() for task in tasks]
    raised: list[BaseException] = []

    def run(task: Callable[[], T]) -> T:
        if raised:
            raise _StoppedError
        try:
            return task()
        except BaseException as error:
            raised.append(error)
            raise

    try:
        return [*map_in_threads(run, tasks, min(concurrency, len(tasks)), "judge")]
    except _StoppedError:
        raise raised[0] from None


class _StoppedError(Exception):
    """Another task failed before this one was begun."""


def threads_for(model: ChatModel[Any], context: Context) -> int:
    """How many threads ask a model: twice as many as its calls that may be under way.

    So the next question is ready when a call ends, and one that waits for its next try takes nobody's place.
    """
    return 2 * (getattr(model.node, "concurrency", None) or context.concurrency)


@dataclass(frozen=True, slots=True)
class Recalled(Generic[T_co]):
    """What earlier replies say on a question, without a call.

    Attributes:
        found: what they come to; None where a call is needed first.
        unanswered: the call that `ask` would make first; None where it would make none.
    """

    found: T_co | Failed | None
    unanswered: ChatRequest | None


def recall(model: ChatModel[Any], question: Question[T], context: Context) -> Recalled[T]:
    """What `ask` would do now. Calls nobody."""
    try:
        found = _Conversation(model, question, partial(_find, model)).found
    except _UnansweredError as error:
        return Recalled(None, error.request)
    asks_again = isinstance(found, Failed) and context.budget.retry_errors
    return Recalled(found, question.request if asks_again else None)


def estimate_questions(
    model: ChatModel[Any], name: str, questions: Iterable[Question[Any]], context: Context, output: int
) -> Estimate:
    """The calls that these questions would take now, under the model's name in the spec; makes none.

    `output` tokens are guessed of each reply. Whether a call will have to be followed by another nobody knows.
    """
    requests = [known.unanswered for question in questions if (known := recall(model, question, context)).unanswered]
    tokens = {request.digest.hex(): Tokens(count_tokens(request.characters), output) for request in requests if request}
    return Estimate({name: tokens} if tokens else {})


class _UnansweredError(Exception):
    """No reply to a request is kept."""

    def __init__(self, request: ChatRequest) -> None:
        super().__init__()
        self.request = request


def _find(model: ChatModel[Any], request: ChatRequest) -> ChatReply:
    reply = model.find(request)
    if reply is None:
        raise _UnansweredError(request)
    return replace(reply, reused=True)


def join_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """All calls of many estimates: `|` copies, and a dataset has many samples."""
    calls: dict[str, dict[str, Tokens]] = {}
    for estimate in estimates:
        for name, tokens in estimate.calls.items():
            calls.setdefault(name, {}).update(tokens)
    return Estimate(calls)


def count_tokens(characters: int) -> int:
    """How many tokens so many characters are, about."""
    return -(-characters // CHARACTERS_PER_TOKEN)


class _Conversation(Generic[T]):
    """One question with all that it takes until a reply can be read.

    Attributes:
        found: what it came to.
        understood: the reply that was read; None where none was.
        was_kept: whether nothing was called for, all replies being kept.
        is_anew: whether what is kept was left aside.
    """

    def __init__(
        self,
        model: ChatModel[Any],
        question: Question[T],
        get_reply: Callable[[ChatRequest], ChatReply],
        *,
        is_anew: bool = False,
    ) -> None:
        """Hold it; `get_reply` asks, or looks among what is kept."""
        self.was_kept = not is_anew
        self.is_anew = is_anew
        self.understood: ChatReply | None = None
        self._model = model
        self._question = question
        self._get_reply = get_reply
        self._tried: list[ChatRequest] = []
        self._unread = 0
        self.found = self._hold()

    @property
    def is_unread(self) -> bool:
        """Whether it has failed, and a reply that is kept is among the reasons."""
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
                reason, self.was_kept = str(error), False
                request = self._reword() if error.is_temporary else None
                continue
            self.was_kept = self.was_kept and reply.reused
            try:
                found = _read(self._question, reply)
                self.understood = reply
                return found
            except UnreadableReplyError as error:
                self._unread += 1
                raw, reason = reply.text, self._describe(error, reply.text)
                request = _correct(request, raw, str(error), self._form) if self._unread == 1 else self._reword()
        return Failed(reason, raw)

    def _prefer_kept(self, request: ChatRequest) -> ChatRequest:
        """The request, or other words that got a reply in an earlier evaluation, where its own call failed then."""
        if self.is_anew or self._model.find(request) is not None:
            return request
        return next((other for other in self._other_words() if self._model.find(other) is not None), request)

    def _reword(self) -> ChatRequest | None:
        """The question in words that were not tried; None where all were."""
        return next(self._other_words(), None)

    def _other_words(self) -> Iterator[ChatRequest]:
        others = (_reword(self._question.request, wording, self._form) for wording in _WORDINGS)
        return (other for other in others if other not in self._tried)

    def _describe(self, error: UnreadableReplyError, text: str) -> str:
        replies = count_noun(self._unread, "reply", "replies")
        failed = f"{replies} of the model '{self._model.context.name}' cannot be read; the last one: "
        if isinstance(error, _CutOffReplyError):
            return failed + error.explain()
        return f"{failed}{error}: {quote_reply(text)}" if text.strip() else f"{failed}{error}"


class _CutOffReplyError(UnreadableReplyError):
    """A reply that the model's limit has cut off; the message is for the model."""

    def __init__(self) -> None:
        super().__init__("it is cut off because it is too long; write less")

    def explain(self) -> str:
        """The same for whoever can change the limit."""
        return "it is cut off because it is too long; raise max_tokens of the model"


def _read(question: Question[T], reply: ChatReply) -> T:
    """What a reply comes to; whatever it does to its reader, it is that reply alone that is lost.

    Raises:
        UnreadableReplyError: it cannot be read.
    """
    try:
        return _read_whole(question, reply)
    except UnreadableReplyError:
        raise
    except Exception as error:
        raise UnreadableReplyError(f"it cannot be used ({type(error).__name__}: {error})") from error


def _read_whole(question: Question[T], reply: ChatReply) -> T:
    if reply.finish == "length":
        raise _CutOffReplyError
    text = drop_thoughts(reply.text)
    if not text and reply.finish not in (None, "stop"):
        raise UnreadableReplyError(f"it is empty ({reply.finish})")
    schema = question.reads_by or question.request.schema
    return question.read(text if schema is None else read_reply(reply.text, schema), reply)


def _correct(request: ChatRequest, text: str, error: str, form: str) -> ChatRequest:
    shown = text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + " ..."
    # A reply may quote what an attacker wrote.
    said = Message("assistant", defuse(shown) if shown.strip() else _EMPTY)
    demand = Message("user", _CORRECTION.format(error=defuse(error), form=form))
    return replace(request, messages=(*request.messages, said, demand))


def _reword(request: ChatRequest, wording: str, form: str) -> ChatRequest:
    *before, last = request.messages
    reminder = wording.format(form=form)
    return replace(request, messages=(*before, Message(last.role, f"{last.content}\n\n{reminder}")))
