"""The APIs of chat endpoints, and the prices of tokens.

The APIs are OpenAI's `/v1/chat/completions`, Azure's variant of it, and Anthropic's `/v1/messages`. A dialect writes
the body of a call, reads the reply, and understands refusals. Models accept different parameters, and most refuse one
with status 400 and its name. The next call then leaves it out.

The prices are in `prices.json`, as the providers' own pages stated them on a certain day.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from rageval_spec.data.chat import ChatReply, ChatRequest, Message, TokenChoice
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.endpoints.addresses import complete_url
from rageval_spec.endpoints.tries import Reply, WrongReplyError
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.values import clean_text

DialectName = Literal["openai", "azure", "anthropic"]
Way = Literal["json_schema", "json_object", "tool", "none"]
"""How a reply gets the shape of a schema: the endpoint enforces the schema, or JSON; it fills in the arguments of a
tool; or only the prompt asks for it."""
StructuredName = Literal["auto", "json_schema", "json_object", "none"]
Choices = tuple[tuple[TokenChoice, ...], ...]

SCHEMA_NAME = "reply"
MOST_TOKENS = 10**9
"""The most tokens of one call; a larger number is a fault of the endpoint."""
MOST_CHOICES = (20, 5)
"""How many likely tokens to ask for at each place; endpoints that refuse 20 may accept 5."""
_TOKENS_OF_ANTHROPIC = 4096
_VERSION_OF_ANTHROPIC = "2023-06-01"
_FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "stop", "max_tokens": "length"}
"""OpenAI's words for why a reply ended, by Anthropic's."""
_TOO_LONG = compile_later(
    r"context[ _](length|window|size)|maximum context|prompt is too long|too many (input )?tokens|too long|too large"
    r"|reduce the length",
    re.IGNORECASE,
)
_UNSUPPORTED = compile_later(
    r"unsupported|not (currently )?support|n't support|unknown|unrecogni[sz]ed|unexpected|deprecated"
    r"|extra (field|input)|not (permitted|allowed|available|compatible)|incompatible|only the default"
    r"|only [\d.]+ is allowed|may only be|must be (1|unset)|cannot be (used|set)|forbidden|instead",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The settings of all calls to a model.

    Attributes:
        repeat_temperature: the temperature of requests with `repeat` > 0.
        extra: further keys of the body, which override all others.
    """

    model: str
    temperature: float | None
    repeat_temperature: float | None
    seed: int | None
    max_tokens: int | None
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model accepts, as far as is known.

    Attributes:
        ways: the ways to ask for a schema that are left, the one to use first.
        choices: how many likely tokens to ask for at each place; 0 for none.
        limit: the name of the key that limits the length of the reply; None if the model accepts none.
    """

    ways: tuple[Way, ...]
    temperature: bool = True
    seed: bool = True
    choices: int = MOST_CHOICES[0]
    limit: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"


class Complaint(NamedTuple):
    """Why an endpoint refused a call, according to its reply.

    Attributes:
        text: the message and the codes; the beginning of the reply if it has none.
        parameter: the name of the wrong parameter, where the reply has a field for it.
    """

    text: str
    parameter: str = ""

    def is_about(self, *names: str) -> bool:
        """Whether the reply names one of these parameters as wrong; `names` are regular expressions."""
        words = "|".join(names)
        return bool(re.match(rf"({words})\b", self.parameter) or re.search(rf"\b({words})\b", self.text))

    @property
    def is_about_length(self) -> bool:
        return bool(_TOO_LONG.search(self.text))

    @property
    def says_unsupported(self) -> bool:
        """Whether the reply refuses a parameter as such, not only its value."""
        return bool(_UNSUPPORTED.search(self.text))


def read_complaint(reply: Reply) -> Complaint:
    text = reply.content[:4096].decode("utf-8", "replace")
    try:
        content = json.loads(reply.content)
    except (ValueError, RecursionError):
        return Complaint(text)
    error = content.get("error", content) if isinstance(content, dict) else content
    if not isinstance(error, dict):
        return Complaint(error if isinstance(error, str) else text)
    said = [error.get(key) for key in ("message", "code", "type", "detail")]
    words = " ".join(word if isinstance(word, str) else json.dumps(word) for word in said if word)
    return Complaint(words or text, _text(error.get("param")))


class Dialect(ABC):
    """The API of a kind of chat endpoint."""

    ways: ClassVar[Mapping[StructuredName, tuple[Way, ...]]]
    """The ways to ask for a schema, by the spec's word; a later way is used if the endpoint refuses earlier ones."""

    @abstractmethod
    def url(self, base_url: str | None, model: str, api_version: str) -> str:
        """The URL to post to."""

    @abstractmethod
    def headers(self, api_key: Secret | None) -> dict[str, Secret]:
        """The headers that authenticate every call."""

    @abstractmethod
    def body(self, request: ChatRequest, settings: ChatSettings, capabilities: Capabilities) -> dict[str, Any]:
        """The body of a call."""

    @abstractmethod
    def read(self, content: Any) -> ChatReply:
        """The reply in the JSON of a response; raises `WrongReplyError` if there is none."""

    def adapt(self, body: Mapping[str, Any], complaint: Complaint, capabilities: Capabilities) -> Capabilities | None:
        """The model's capabilities after it refused `body`; None if the refusal says nothing about them."""
        if complaint.is_about_length:
            return None
        if "temperature" in body and complaint.is_about("temperature") and complaint.says_unsupported:
            return replace(capabilities, temperature=False)
        if "seed" in body and complaint.is_about("seed") and complaint.says_unsupported:
            return replace(capabilities, seed=False)
        return self._adapt(body, complaint, capabilities)

    @abstractmethod
    def _adapt(self, body: Mapping[str, Any], complaint: Complaint, known: Capabilities) -> Capabilities | None:
        """As `adapt`, for parameters that only this dialect has."""


class OpenAI(Dialect):
    """OpenAI's API, which vLLM, Ollama, llama.cpp's server, LiteLLM and most other servers offer too."""

    ways: ClassVar[Mapping[StructuredName, tuple[Way, ...]]] = {
        "auto": ("json_schema", "json_object", "none"),
        "json_schema": ("json_schema",),
        "json_object": ("json_object",),
        "none": ("none",),
    }

    def url(self, base_url: str | None, model: str, api_version: str) -> str:  # noqa: ARG002 - as all dialects
        return complete_url(base_url or "https://api.openai.com/v1", ("chat", "completions"))

    def headers(self, api_key: Secret | None) -> dict[str, Secret]:
        return {} if api_key is None else {"Authorization": Secret(f"Bearer {api_key.reveal().strip()}")}

    def body(self, request: ChatRequest, settings: ChatSettings, capabilities: Capabilities) -> dict[str, Any]:
        way = capabilities.ways[0]
        messages = request.messages
        if request.schema is not None and way != "json_schema":
            messages = show_schema(messages, request.schema)
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            **_sampling(request, settings, capabilities),
        }
        if capabilities.seed and settings.seed is not None:
            body["seed"] = settings.seed + request.repeat
        most = request.max_tokens or settings.max_tokens
        if most is not None and capabilities.limit is not None:
            body[capabilities.limit] = most
        if request.schema is not None and way != "none":
            schema = {"name": SCHEMA_NAME, "strict": True, "schema": request.schema}
            body["response_format"] = {"type": way, **({"json_schema": schema} if way == "json_schema" else {})}
        if request.logprobs and capabilities.choices:
            body |= {"logprobs": True, "top_logprobs": capabilities.choices}
        return body | dict(settings.extra)

    def read(self, content: Any) -> ChatReply:
        items = content.get("choices") if isinstance(content, dict) else None
        if not isinstance(items, list) or not items or not isinstance(items[0], dict):
            raise WrongReplyError("with no list 'choices'")
        choice = items[0]
        message = choice.get("message")
        if not isinstance(message, dict):
            raise WrongReplyError("with a choice that has no message")
        finish = choice.get("finish_reason")
        text = _join_texts(message.get("content")) or _text(message.get("refusal")) or _read_call(message)
        usage = content.get("usage")
        return ChatReply(
            text=clean_text(text),
            input_tokens=_count(usage, "prompt_tokens"),
            output_tokens=_count(usage, "completion_tokens"),
            finish=finish if isinstance(finish, str) else None,
            choices=_read_choices(choice.get("logprobs")),
        )

    def _adapt(self, body: Mapping[str, Any], complaint: Complaint, known: Capabilities) -> Capabilities | None:
        if known.limit in body and complaint.is_about("max_tokens", "max_completion_tokens"):
            if complaint.says_unsupported:
                is_newer = known.limit == "max_tokens" and complaint.is_about("max_completion_tokens")
                return replace(known, limit="max_completion_tokens" if is_newer else None)
            return None
        if "logprobs" in body and complaint.is_about("logprobs", "top_logprobs"):
            fewer = MOST_CHOICES[1] if known.choices == MOST_CHOICES[0] and complaint.is_about("top_logprobs") else 0
            return replace(known, choices=fewer)
        is_about_form = complaint.is_about("response_format", "json_schema", "json_object")
        if "response_format" in body and is_about_form and len(known.ways) > 1:
            return replace(known, ways=known.ways[1:])
        return None


class Azure(OpenAI):
    """Azure OpenAI: the path contains the deployment, and a separate header the key."""

    def url(self, base_url: str | None, model: str, api_version: str) -> str:
        version: tuple[str, ...] = ("openai", "deployments", quote(model, safe=""))
        if base_url is None:
            raise ValueError("azure needs a base_url: https://NAME.openai.azure.com")
        steps = [step for step in urlsplit(base_url).path.split("/") if step]
        ending = ("chat", "completions")
        if "deployments" in steps:
            version = ()
        elif steps[-1:] == ["openai"]:
            version = version[1:]
        url = urlsplit(complete_url(base_url, ending, version))
        if "deployments" in url.path and "api-version=" not in url.query:
            query = f"{url.query}&" if url.query else ""
            url = url._replace(query=f"{query}api-version={quote(api_version)}")
        return urlunsplit(url)

    def headers(self, api_key: Secret | None) -> dict[str, Secret]:
        return {} if api_key is None else {"api-key": Secret(api_key.reveal().strip())}


class Anthropic(Dialect):
    """Anthropic's Messages API. It has no seeds and no token probabilities."""

    ways: ClassVar[Mapping[StructuredName, tuple[Way, ...]]] = {
        "auto": ("tool", "json_schema", "none"),
        "json_schema": ("tool", "json_schema"),
        "json_object": ("none",),
        "none": ("none",),
    }

    def url(self, base_url: str | None, model: str, api_version: str) -> str:  # noqa: ARG002 - as all dialects
        return complete_url(base_url or "https://api.anthropic.com", ("messages",))

    def headers(self, api_key: Secret | None) -> dict[str, Secret]:
        version = {"anthropic-version": Secret(_VERSION_OF_ANTHROPIC, written=_VERSION_OF_ANTHROPIC)}
        return version if api_key is None else {"x-api-key": Secret(api_key.reveal().strip()), **version}

    def body(self, request: ChatRequest, settings: ChatSettings, capabilities: Capabilities) -> dict[str, Any]:
        way = capabilities.ways[0]
        shown = request.schema is not None and way == "none"
        messages = show_schema(request.messages, request.schema) if shown else request.messages
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        turns = [message for message in messages if message.role != "system"]
        if not turns:
            system, turns = "", [Message("user", system)]
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": request.max_tokens or settings.max_tokens or _TOKENS_OF_ANTHROPIC,
            "messages": [{"role": message.role, "content": message.content} for message in turns],
            **({"system": system} if system else {}),
            **_sampling(request, settings, capabilities),
        }
        if request.schema is not None and way == "tool":
            body["tools"] = [{"name": SCHEMA_NAME, "description": "Give the reply.", "input_schema": request.schema}]
            body["tool_choice"] = {"type": "tool", "name": SCHEMA_NAME}
        elif request.schema is not None and way == "json_schema":
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return body | dict(settings.extra)

    def read(self, content: Any) -> ChatReply:
        """The reply in the arguments of the tool if there are any, else in the texts."""
        blocks = content.get("content") if isinstance(content, dict) else None
        if not isinstance(blocks, list):
            raise WrongReplyError("with no list 'content'")
        inputs = [block["input"] for block in blocks if _is_block(block, "tool_use") and "input" in block]
        text = json.dumps(inputs[0], ensure_ascii=False) if inputs else _join_texts(blocks)
        usage = content.get("usage")
        read = [_count(usage, key) for key in ("cache_creation_input_tokens", "cache_read_input_tokens")]
        fresh, reason = _count(usage, "input_tokens"), content.get("stop_reason")
        return ChatReply(
            text=clean_text(text),
            input_tokens=None if fresh is None else fresh + sum(count or 0 for count in read),
            output_tokens=_count(usage, "output_tokens"),
            finish=_FINISHES.get(reason, reason) if isinstance(reason, str) else None,
        )

    def _adapt(self, body: Mapping[str, Any], complaint: Complaint, known: Capabilities) -> Capabilities | None:
        is_about_form = complaint.is_about("tool_choice", "tools?", "input_schema", "output_config", "output_format")
        if ("tools" in body or "output_config" in body) and is_about_form and len(known.ways) > 1:
            return replace(known, ways=known.ways[1:])
        return None


DIALECTS: Mapping[DialectName, Dialect] = {"openai": OpenAI(), "azure": Azure(), "anthropic": Anthropic()}


def show_schema(messages: Sequence[Message], schema: Mapping[str, Any] | None) -> tuple[Message, ...]:
    """The messages; the last one ends with the JSON Schema of the reply."""
    text = json.dumps(schema, ensure_ascii=False)
    wish = f"Reply with one JSON object and nothing else. It must fit this JSON Schema:\n{text}"
    if not messages:
        return (Message("user", wish),)
    last = messages[-1]
    return (*messages[:-1], last._replace(content=f"{last.content}\n\n{wish}"))


def _sampling(request: ChatRequest, settings: ChatSettings, capabilities: Capabilities) -> dict[str, Any]:
    temperature = settings.repeat_temperature if request.repeat else settings.temperature
    return {} if temperature is None or not capabilities.temperature else {"temperature": temperature}


def _is_block(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _join_texts(content: Any) -> str:
    """A text, or the joined texts of text blocks; a model's thoughts are left out."""
    if isinstance(content, list):
        return "".join(_text(block.get("text")) for block in content if _is_block(block, "text"))
    return _text(content)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _read_call(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else {}
    function = call.get("function")
    return _text(function.get("arguments")) if isinstance(function, dict) else ""


def _count(usage: Any, key: str) -> int | None:
    """A number of tokens; None if it is missing or impossible, such as -1, NaN, "7" or 10^400."""
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _read_choices(logprobs: Any) -> Choices | None:
    places = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(places, list) or not places:
        return None
    choices = tuple(_read_place(place) for place in places)
    return choices if all(choices) else None


def _read_place(place: Any) -> tuple[TokenChoice, ...]:
    """The chosen token and the other likely ones; empty if the place cannot be read."""
    others = place.get("top_logprobs") if isinstance(place, dict) else None
    items = [place, *(others if isinstance(others, list) else [])]
    found: dict[str, float] = {}
    for item in items:
        token, logprob = (item.get("token"), item.get("logprob")) if isinstance(item, dict) else (None, None)
        if isinstance(token, str) and isinstance(logprob, int | float):
            found.setdefault(clean_text(token), float(logprob))
    return tuple(TokenChoice(token, logprob) for token, logprob in found.items())


FILE = Path(__file__).with_name("prices.json")
_SNAPSHOT = compile_later(r"-(\d{4}-\d\d-\d\d|\d{8})$")
"""The day at the end of a model's name, `gpt-4o-mini-2024-07-18`, which does not change its price."""


def find_price(host: str, model: str) -> tuple[float, float] | None:
    """US dollars per million tokens in and out; None if the file does not have this model on exactly this host."""
    models = _read()["hosts"].get(host.lower(), {})
    price = models.get(model) or models.get(_SNAPSHOT.sub("", model))
    return None if price is None else (price[0], price[1])


@cache
def _read() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text("utf-8")))
