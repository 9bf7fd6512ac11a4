"""Makes the calls to one chat model, and posts many JSON bodies to an endpoint in parallel.

Requests to a chat model are adapted to the parameters that the model accepts. The first of many bodies that fails for
good ends all of them.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from rageval_spec.data.chat import CallError, ChatReply, ChatRequest, InterruptedCallError
from rageval_spec.data.findings import Tokens
from rageval_spec.endpoints.dialects import Capabilities, ChatSettings, Dialect, read_complaint
from rageval_spec.endpoints.endpoint import Endpoint, shorten
from rageval_spec.endpoints.pacing import CallPace, Clock, StoppedError
from rageval_spec.endpoints.tries import (
    BrokenDownError,
    Limits,
    Reply,
    Tries,
    TryBudget,
    TryError,
    TryFailure,
    WrongReplyError,
    read_reset,
)
from rageval_spec.errors import RagevalError
from rageval_spec.libraries import compile_later

CHARACTERS_A_TOKEN = 4
USUAL_REPLY = 500
"""The most tokens expected of a reply without a limit."""
GARBAGE_RETRIES = 2
"""Retries after a senseless reply with status 200; few, because a wrong URL gives the same page each time."""
_REFUSING = frozenset({400, 403, 422, 501})
"""Statuses with which endpoints refuse a parameter."""
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""Statuses that concern only this request and not the next one."""
_SPENT = compile_later(
    r"insufficient_quota|billing_hard_limit|credit balance is too low|exceeded your current quota", re.IGNORECASE
)


def expect(request: ChatRequest, max_tokens: int | None) -> Tokens:
    """The expected tokens of a call: a quarter of its bytes, schema included, and the longest possible reply."""
    size = request.size + request.schema_characters
    return Tokens(size // CHARACTERS_A_TOKEN + 1, request.max_tokens or max_tokens or USUAL_REPLY)


class Caller:
    """Asks an endpoint until `stop`; safe to use from several threads."""

    def __init__(
        self, endpoint: Endpoint, dialect: Dialect, settings: ChatSettings, capabilities: Capabilities, limits: Limits,
        clock: Clock, make_pace: Callable[..., CallPace] | None = None,
    ) -> None:  # fmt: skip
        self._endpoint = endpoint
        self._dialect = dialect
        self._settings = settings
        self._capabilities = capabilities
        self._tries = Tries(limits, clock, self._explain, make_pace)
        self._lock = threading.Lock()

    def call(
        self, request: ChatRequest, tokens: Tokens, ledger: TryBudget, keep: Callable[[ChatReply], None]
    ) -> ChatReply:
        """The reply to a request; `CallError` if the call failed, and a retry did not or would not help.

        `keep` gets the reply before another call takes this call's slot, so a kill loses no more replies than there are
        slots.
        """

        def attempt() -> ChatReply:
            reply = self._try(request)
            keep(reply)
            return reply

        try:
            reply = self._tries.make(attempt, ledger, tokens.input + tokens.output)
        except StoppedError:
            raise self._interrupt() from None
        except BrokenDownError as error:
            raise CallError(f"{self._endpoint.where}: {error}", is_temporary=False) from None
        except TryFailure as failure:
            # To the threads that use them, closed connections look like a fault of the endpoint.
            raise (self._interrupt() if self._tries.is_stopped else self._give_up(failure)) from failure.__cause__
        if reply.input_tokens is not None and reply.output_tokens is not None:
            self._tries.correct(reply.input_tokens + reply.output_tokens - tokens.input - tokens.output)
        return reply

    def stop(self) -> None:
        self._tries.stop()
        self._endpoint.close()

    def _interrupt(self) -> InterruptedCallError:
        return InterruptedCallError(self._endpoint.explain(TryFailure("was interrupted before it replied"), 0))

    def _try(self, request: ChatRequest) -> ChatReply:
        known = self._capabilities
        body = self._dialect.body(request, self._settings, known)
        begun = perf_counter()
        try:
            with self._endpoint.exchange(json.dumps(body).encode("ascii")) as reply:
                if reply.status == 200:
                    return replace(self._read(reply), seconds=perf_counter() - begun)
                raise _judge(self._endpoint, reply)
        except TryFailure as failure:
            failure.is_lesson = self._adapt(failure.reply, body, known)
            raise

    def _read(self, reply: Reply) -> ChatReply:
        try:
            read = self._dialect.read(json.loads(reply.content))
        except WrongReplyError as error:
            raise _garbage(f"answered 200, but {error}", reply) from None
        except (ValueError, RecursionError):
            raise _garbage("answered 200 with something that is not JSON", reply) from None
        text = self._endpoint.redact(read.text)  # until it was parsed, JSON escapes could hide a key
        return read if text is read.text else read.with_text(text)

    def _adapt(self, reply: Reply | None, body: Mapping[str, Any], known: Capabilities) -> bool:
        """Whether the model accepts less than was assumed, as this refusal or another thread has shown."""
        if reply is None or reply.status not in _REFUSING:
            return False
        adapted = self._dialect.adapt(body, read_complaint(reply), known)
        if adapted in (None, known):
            return False
        with self._lock:
            if self._capabilities is known:
                self._capabilities = adapted
        return True

    def _explain(self, error: TryError) -> str:
        message = self._endpoint.explain(error, error.tries) if isinstance(error, TryFailure) else str(error)
        return message.removeprefix(f"{self._endpoint.where}: ")

    def _give_up(self, failure: TryFailure) -> CallError:
        is_dead = isinstance(failure.__cause__, ConnectionRefusedError | socket.gaierror)
        is_temporary = failure.is_temporary and not is_dead and not failure.is_exhausted
        message = self._endpoint.explain(failure, failure.tries)
        is_refused = failure.reply is not None and not failure.is_temporary
        return CallError(message, is_temporary=is_temporary, is_lasting=is_refused)


def _garbage(message: str, reply: Reply) -> TryFailure:
    return TryFailure(message, shorten(reply), is_temporary=True, most_retries=GARBAGE_RETRIES)


def _judge(endpoint: Endpoint, reply: Reply) -> TryFailure:
    failure = endpoint.judge(reply)
    failure.is_about_request = reply.status in _ABOUT_THE_REQUEST
    complaint = read_complaint(reply)
    if reply.status in (402, 403, 429) and _SPENT.search(complaint.text):
        hint = "the account has no credit left, so a retry would not help: add credit or raise its limit"
        return TryFailure(f"{failure.message}: {hint}", failure.reply)
    if failure.is_about_request and complaint.is_about_length:
        failure.message += (
            ": the request is too long for the model: use fewer or shorter contexts, "
            "or a model with a longer context window"
        )
    if failure.is_temporary and failure.wait is None and reply.status in (429, 503):
        failure.wait = read_reset(reply.headers)
    return failure


T = TypeVar("T")
R = TypeVar("R")

_PAUSE = 0.5
"""Seconds after which the waiting thread checks whether it was interrupted."""


class Batches:
    """Posts to an endpoint until `post_all` has ended, which closes the endpoint."""

    def __init__(self, endpoint: Endpoint, tries: Tries) -> None:
        self._endpoint = endpoint
        self._tries = tries

    def post(self, content: Mapping[str, Any], read: Callable[[Any], R]) -> R:
        """What `read` makes of the reply to `content`; it raises `WrongReplyError` if that is not what was asked."""
        body = json.dumps(content).encode("ascii")

        def attempt() -> R:
            with self._endpoint.exchange(body) as reply:
                return self._endpoint.read(reply, read)

        try:
            return self._tries.make(attempt)
        except TryFailure as failure:
            raise RagevalError(self._endpoint.explain(failure, failure.tries)) from failure.__cause__
        except BrokenDownError as error:
            raise RagevalError(f"{self._endpoint.where}: {error}") from None
        except StoppedError:
            raise RagevalError(f"{self._endpoint.where}: stopped, because another call failed") from None

    def post_all(self, tasks: Iterable[T], answer: Callable[[T], R], concurrency: int) -> Iterator[R]:
        """Call `answer`, which posts, for each task, up to `concurrency` at once; yield each result as soon as it is
        ready.

        If one fails, no other begins; those under way are waited for and yielded, and then the first error is raised.
        """
        waiting = iter(tasks)
        running: set[Future[R]] = set()
        failure: BaseException | None = None
        executor = ThreadPoolExecutor(concurrency, thread_name_prefix=self._endpoint.where)
        try:
            while True:
                while failure is None and len(running) < 2 * concurrency:
                    try:
                        running.add(executor.submit(answer, next(waiting)))
                    except StopIteration:
                        break
                if not running:
                    break
                done, running = wait(running, timeout=_PAUSE, return_when=FIRST_COMPLETED)
                for future in done:
                    if error := future.exception():
                        failure = failure or error
                        self._tries.stop()
                    else:
                        yield future.result()
        finally:
            self._tries.stop()
            executor.shutdown(wait=False, cancel_futures=True)
            self._endpoint.close()
        if failure is not None:
            raise failure
