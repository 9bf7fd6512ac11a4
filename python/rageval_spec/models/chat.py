"""`chat`: a chat model behind an endpoint of OpenAI, Azure, Anthropic, vLLM, Ollama, LiteLLM and others."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import Future
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec.data.chat import CallError, ChatReply, ChatRequest, InterruptedCallError
from rageval_spec.endpoints import pacing
from rageval_spec.endpoints.addresses import BaseUrl
from rageval_spec.endpoints.shared_questions import hold_claim, pack_reply, unpack_reply
from rageval_spec.endpoints.tries import EndpointNode, Limits
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import ChatModel, ModelNode
from rageval_spec.plugin.budget import Reservation
from rageval_spec.threads import floor

if TYPE_CHECKING:
    from rageval_spec.data.findings import Tokens
    from rageval_spec.endpoints.calls import Caller
    from rageval_spec.endpoints.dialects import Dialect


MOST_BYTES = 16 * 2**20
"""The most bytes of a reply; no model writes more, even with token probabilities."""


class ModelPrice(BaseModel):
    """The price of tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, description="US dollars per million tokens sent.")
    output: float = Field(ge=0, description="US dollars per million tokens in replies.")


class ChatNode(EndpointNode, ModelNode):
    """A chat model that is called over HTTP."""

    base_url: BaseUrl | None = Field(
        default=None,
        description="The URL of the endpoint, with or without `/v1` or the whole path: `http://localhost:11434`. "
        "By default OpenAI's or Anthropic's own URL; required for azure. It must not contain credentials.",
    )
    model: str = Field(
        min_length=1,
        description="The model's name at the endpoint, such as `gpt-5-mini`; for azure, the deployment's name.",
    )
    dialect: Literal["openai", "azure", "anthropic"] = Field(
        default="openai", description="The API of the endpoint; nearly all other endpoints offer `openai` too."
    )
    api_version: str = Field(
        default="2024-10-21", min_length=1, description="Azure's `api-version`, if `base_url` has none."
    )
    structured: Literal["auto", "json_schema", "json_object", "none"] = Field(
        default="auto",
        description="How replies get the shape of a schema. `auto`: the endpoint enforces the schema; if it refuses, "
        "it enforces JSON; if it refuses that too, only the prompt asks for the schema.",
    )
    temperature: float | None = Field(
        default=0,
        ge=0,
        le=2,
        description="The sampling temperature; null sends none. Models that refuse it get none.",
    )
    repeat_temperature: float | None = Field(
        default=0.7, ge=0, le=2, description="The temperature of further samples of a reply, which a panel asks for."
    )
    seed: int | None = Field(
        default=None, ge=0, description="The seed to send, if given; further samples of a reply add their number to it."
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="The most tokens of a reply, unless a question sets its own limit; by default the model's limit.",
    )
    timeout: float = Field(default=120, gt=0, le=86400, description="How many seconds a try may take.")
    concurrency: int | None = Field(
        default=None, ge=1, le=1024, description="The most calls at once; by default `limits.concurrency`."
    )
    requests_per_minute: float | None = Field(
        default=None, gt=0, description="The most calls in any minute; no limit by default."
    )
    tokens_per_minute: float | None = Field(
        default=None, gt=0, description="The most tokens in any minute, sent and received; no limit by default."
    )
    price: ModelPrice | None = Field(
        default=None,
        description="The price of tokens. By default, a dated list of OpenAI's and Anthropic's own prices is used.",
    )
    extra: dict[str, Any] = Field(
        default={},
        description="Further keys of every call's body, such as `reasoning_effort: low`; they override all others.",
    )

    @model_validator(mode="after")
    def _check_azure(self) -> Self:
        if self.dialect == "azure" and self.base_url is None:
            raise ValueError("azure needs a base_url: https://NAME.openai.azure.com")
        return self


class Chat(ChatModel[ChatNode]):
    """Makes one call per question, and stores each reply before it returns it.

    Stored replies depend on the URL, the model's name, the headers and the settings that influence them, but not on the
    API key, the secrets in headers and how calls are made. The environment names proxies and certificates
    (`https_proxy`, `no_proxy`, `SSL_CERT_FILE`).
    """

    known_as = (
        "openai", "gpt", "gpt4", "gpt_4", "gpt_4o", "gpt4o", "anthropic", "claude", "azure", "azure_openai",
        "ollama", "vllm", "llama_cpp", "llamacpp", "lm_studio", "groq", "mistral", "gemini", "google", "vertex",
        "bedrock", "litellm", "openrouter", "together", "deepseek", "llm", "completion", "completions",
    )  # fmt: skip
    takes_turns = True
    """Threads that ask it leave the floor while they wait."""

    def __init__(self, node: ChatNode, context: Any) -> None:
        """Keep the validated node and the context; open nothing."""
        super().__init__(node, context)
        self._lock = threading.Lock()
        self._under_way: dict[bytes, Future[ChatReply]] = {}
        self._caller: Caller | None = None
        self._known = self._done = 0
        self._has_failed = False
        self._stopped = threading.Event()

    @cached_property
    def url(self) -> str:
        return self._dialect.url(self.node.base_url, self.node.model, self.node.api_version)

    @cached_property
    def key(self) -> str:
        return super().key

    def describe(self) -> dict[str, str]:
        return {"use": self.node.use, "model": self.node.model, "url": self.url.partition("?")[0]}

    def content(self) -> dict[str, Any]:
        dump = self.node.model_dump(
            mode="json",
            include={
                "model", "dialect", "structured", "temperature", "repeat_temperature", "seed", "max_tokens", "extra"
            },
        )  # fmt: skip
        node = {**dump, **self.node.identify_headers(), "url": self.url}
        return {"word": self.node.use, "version": self.version, "node": node}

    def check(self) -> str | None:
        if self.context.budget.max_cost is None or self.price is not None:
            return None
        return (
            f"a limit on cost needs the price of '{self.node.model}'; write it in US dollars per million tokens: "
            f"price: {{input: 0.15, output: 0.60}} (both 0 for a model of your own)"
        )

    @cached_property
    def price(self) -> tuple[float, float] | None:
        """US dollars per million tokens in and out, from the node or the dated list for this host; None if unknown."""
        from rageval_spec.endpoints.dialects import find_price

        if self.node.price is not None:
            return self.node.price.input, self.node.price.output
        return find_price(urlsplit(self.url).hostname or "", self.node.model)

    @property
    def may_have_failed(self) -> bool:
        """Whether a call has failed, or replies of an earlier evaluation are stored, whose calls can have failed.

        The failures of another process that runs at the same time are not known.
        """
        return self._has_failed or self._was_asked

    @cached_property
    def _was_asked(self) -> bool:
        return self.context.answers.has_any(self.key)

    def prepare(self) -> None:
        self._open()

    def find(self, request: ChatRequest) -> ChatReply | None:
        return self._find(request.digest)

    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        """The reply, from the store or the endpoint. An equal question that another thread asks is asked once."""
        digest = request.digest
        with self._lock:
            call = self._under_way.get(digest)
            if call is None:
                mine = self._under_way[digest] = Future()
        if call is not None:
            return _follow(call)
        try:
            reply = self._call(request, digest) if fresh else self._find_or_call(request, digest)
            mine.set_result(reply)
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[digest]
        return reply

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            caller = self._caller
        if caller is not None:
            caller.stop()

    @cached_property
    def _dialect(self) -> Dialect:
        from rageval_spec.endpoints.dialects import DIALECTS

        return DIALECTS[self.node.dialect]

    def _find(self, digest: bytes) -> ChatReply | None:
        answer = self.context.answers.find(self.key, (digest,)).get(digest)
        return None if answer is None else unpack_reply(answer)

    def _find_or_call(self, request: ChatRequest, digest: bytes) -> ChatReply:
        with hold_claim(self.context.answers, self.key, digest, lambda: self._find(digest), self._sleep) as found:
            return found or self._call(request, digest)

    def _sleep(self, seconds: float) -> None:
        with floor.rested():
            is_stopped = self._stopped.wait(seconds)
        if is_stopped:
            raise InterruptedCallError(f"models.{self.context.name}: interrupted while another process asked")

    def _call(self, request: ChatRequest, digest: bytes) -> ChatReply:
        from rageval_spec.endpoints.calls import expect

        caller = self._open()
        tokens = expect(request, self.node.max_tokens)
        with Reservation(self.context.budget, self._cost(tokens.input, tokens.output) or 0.0) as reservation:

            def keep(reply: ChatReply) -> None:
                reservation.cost = self._cost_of(reply, tokens)
                self.context.answers.keep(self.key, {digest: pack_reply(reply)})

            self._report(known=1)
            try:
                return caller.call(request, tokens, reservation, keep)
            except CallError:
                self._has_failed = True
                raise
            finally:
                self._report(done=1)

    def _cost_of(self, reply: ChatReply, expected: Tokens) -> float | None:
        """The cost of a reply, in US dollars; estimated from its length if the endpoint does not report tokens.

        None if the model has no known price.
        """
        from rageval_spec.endpoints.calls import CHARACTERS_A_TOKEN

        guess = len(reply.text) // CHARACTERS_A_TOKEN + 1
        sent, replied = reply.input_tokens, reply.output_tokens
        if self.price is not None and (sent is None or replied is None):
            self.context.budget.count_guess()
        return self._cost(expected.input if sent is None else sent, guess if replied is None else replied)

    def _cost(self, sent: int, replied: int) -> float | None:
        price = self.price
        return None if price is None else (sent * price[0] + replied * price[1]) / 1e6

    def _report(self, known: int = 0, done: int = 0) -> None:
        with self._lock:
            self._known += known
            self._done += done
            counts = self._done, self._known
        self.context.progress(*counts)

    def _open(self) -> Caller:
        """The caller; its connections are closed when the model is freed or the interpreter ends."""
        with self._lock:
            if self._caller is None:
                self._caller = self._make_caller()
                weakref.finalize(self, self._caller.stop)
            return self._caller

    def _make_caller(self) -> Caller:
        from rageval_spec.endpoints.calls import Caller
        from rageval_spec.endpoints.dialects import Capabilities, ChatSettings
        from rageval_spec.endpoints.endpoint import Endpoint

        node, shard = self.node, self.context.shard
        headers = {**self._dialect.headers(node.api_key), **node.headers}
        where = f"models.{self.context.name}"
        return Caller(
            Endpoint(self.url, where, headers=headers, timeout=node.timeout, most_bytes=MOST_BYTES),
            self._dialect,
            ChatSettings(node.model, node.temperature, node.repeat_temperature, node.seed, node.max_tokens, node.extra),
            Capabilities(self._dialect.ways[node.structured]),
            Limits(
                shard.take_at_once(node.concurrency) if node.concurrency else self.context.concurrency,
                node.retries,
                shard.take_rate(node.requests_per_minute),
                shard.take_rate(node.tokens_per_minute),
                node.patience,
            ),
            pacing.Clock(),
            self.context.make_pace(where),
        )


def _follow(call: Future[ChatReply]) -> ChatReply:
    """The reply to an equal question that another thread has asked; that thread's call counts."""
    try:
        with floor.rested():
            return replace(call.result(), reused=True)
    except RagevalError as error:
        raise copy(error) from error
    except BaseException as error:
        raise InterruptedCallError("the thread that asked this question was stopped") from error


PLUGIN = Chat
