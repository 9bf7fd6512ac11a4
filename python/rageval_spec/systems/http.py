"""`http`: a system behind a URL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from pydantic import Field, field_validator, model_validator

from rageval_spec.diagnostics import FileFault
from rageval_spec.endpoints.addresses import check_base_url
from rageval_spec.endpoints.tries import EndpointNode, Reply, Retries, TryFailure
from rageval_spec.plugin import Context
from rageval_spec.plugin.secrets import identify_headers, is_credential
from rageval_spec.recorded.answers_and_steps import AnswerRow, UnusableReplyError
from rageval_spec.recorded.http_replies import CutOffReplyError, assemble, is_stream
from rageval_spec.recorded.messages import MESSAGES
from rageval_spec.systems.shared.answering_system import RetrievingNode, TemplateSystem, check_path, check_template
from rageval_spec.systems.shared.question_templates import (
    ASKING,
    AskError,
    Received,
    Variables,
    fill_in,
    list_variables,
    write_value,
)

if TYPE_CHECKING:
    from rageval_spec.endpoints.endpoint import Endpoint

_BODY = {"question": "{{ question }}"}
_PARTS = ("answer", "contexts", "context_ids", "input_tokens", "output_tokens", "cost", "steps", "retrieves", "scores")
_READING = (*_PARTS, "last_event")
"""The keys of how a reply is read."""
_LARGEST_KEPT = 2**20
"""Bytes of a reply."""


class HttpSystemNode(RetrievingNode, EndpointNode):
    """A system that answers over HTTP: one request per question, with JSON in both directions."""

    url: str = Field(description="The URL to send questions to: `https://rag.example.org/answer`. Without credentials.")
    method: Literal["GET", "POST", "PUT"] = Field(default="POST", description="The HTTP method.")
    body: Any = Field(
        default=None,
        description=(
            "The JSON of the request. `{{ question }}`, `{{ query_id }}`, `{{ contexts }}` (the dataset's "
            "reference contexts), `{{ messages }}` (the conversation up to the question), `{{ history }}` (the turns "
            "before it) and every other column of the questions, such as `{{ category }}`, are filled in. "
            "A text that is only a variable becomes its value: a number stays a number. "
            "Default: `{question: '{{ question }}'}`; none with GET."
        ),
    )
    params: dict[str, str] = Field(
        default={}, description="The parameters after the URL's `?`, filled in like `body`: `{q: '{{ question }}'}`."
    )
    answer: str | None = Field(
        default=None,
        description=(
            "The path of the answer in the reply: `$.choices[0].message.content` or `data.answer`. In a stream of "
            "server-sent events, the path of each piece of it. Default: where OpenAI, ragas, DeepEval and LangChain "
            "put it."
        ),
    )
    contexts: str | None = Field(
        default=None,
        description=(
            "The path of the texts that the answer is based on: a list of texts, or of objects with `text`, "
            "`page_content` or `content`: `$.sources[*].text`. Default: `contexts` and similar names."
        ),
    )
    context_ids: str | None = Field(
        default=None,
        description="The path of the ids of the contexts' documents: `$.sources[*].id`. Default: next to the texts.",
    )
    input_tokens: str | None = Field(
        default=None,
        description="The path of the number of input tokens. Default: `usage.prompt_tokens` and similar names.",
    )
    output_tokens: str | None = Field(
        default=None,
        description="The path of the number of output tokens. Default: `usage.completion_tokens` and similar names.",
    )
    cost: str | None = Field(default=None, description="The path of the cost in US dollars. Default: `cost`.")
    steps: str | None = Field(
        default=None,
        description="The path of what an agent did: calls of tools, what they gave, documents that they retrieved. "
        "Default: `steps`, `intermediate_steps`, `tool_calls` and similar names.",
    )
    last_event: str | None = Field(
        default=None,
        min_length=1,
        description="The name of the event that ends an answer in a stream of server-sent events. A stream without it "
        "is an error. close: nothing but the end of the reply does. Default: `[DONE]` and the usual names.",
    )
    retries: Retries = 2

    @field_validator("url")
    @classmethod
    def _check_url(cls, text: str) -> str:
        if "{{" in text:
            raise ValueError("the url is the same for all questions; write variables in params or body")
        return check_base_url(text)

    _check_paths = field_validator(*_PARTS)(check_path)

    _check_templates = field_validator("body", "params")(check_template)

    @model_validator(mode="after")
    def _check_question(self) -> HttpSystemNode:
        if not list_variables([*self.templates.values()]) & ASKING:
            raise ValueError(
                "neither body nor params contain '{{ question }}', so the system would not know the question; add it"
            )
        return self

    @model_validator(mode="after")
    def _check_retrieves(self) -> HttpSystemNode:
        answering = [key for key in ("answer", "context_ids") if getattr(self, key) is not None]
        if self.retrieves is not None and answering:
            raise ValueError(f"a system with 'retrieves' gives no answers; remove '{answering[0]}' or 'retrieves'")
        return self

    @property
    def templates(self) -> dict[str, Any]:
        """The body, which is None if none is sent, and the parameters."""
        return {"body": _BODY if self.body is None and self.method != "GET" else self.body, "params": self.params}


class HttpSystem(TemplateSystem[HttpSystemNode]):
    """Sends questions to a URL. Any 2xx status is an answer; its body must be JSON, or server-sent events.

    Replies are stored by URL and request, and the paths are applied when they are read, so changing a path sends no
    new requests. A reply in which the paths find no answer is requested again. For a reply of more than 1 MiB, only
    the answer is stored, for the paths that found it. The stored key includes the names of headers and, unless they
    contain a secret, their values; it does not include `api_key`. Proxies and certificates are read from the
    environment (`https_proxy`, `no_proxy`, `SSL_CERT_FILE`).
    """

    known_as = ("api", "rest", "url", "endpoint", "webhook")
    not_in_answers = TemplateSystem.not_in_answers | frozenset((*_READING, "patience"))
    parts = _PARTS
    later_keys = TemplateSystem.later_keys | frozenset({"steps", "retrieves", "scores", "last_event"})

    def __init__(self, node: HttpSystemNode, context: Context) -> None:
        """Prepare the requests; no connection is opened before the first question."""
        super().__init__(node, context)
        self._endpoint: Endpoint | None = None
        self._lock = Lock()

    def content(self) -> dict[str, Any]:
        content = super().content()
        node = {key: value for key, value in content["node"].items() if key != "api_key"}
        node["headers"] = identify_headers(self.node.headers)
        return {**content, "node": node}

    def check_columns(self, list_columns: Callable[[], Sequence[str] | None]) -> Iterator[FileFault]:
        yield from super().check_columns(list_columns)
        if MESSAGES in (list_columns() or ()) and not self.variables & {MESSAGES, "history", "query_id"}:
            message = "the questions have conversations, but the request sends only the last turn of each"
            hint = "add '{{ messages }}' or '{{ history }}' to the body"
            yield FileFault(
                ("url",) if self.node.body is None else ("body",), message, hint, "unknown-variable", "warning"
            )

    def ask(self, told: Variables) -> Received:
        endpoint = self._open()
        template = self.node.templates["body"]
        body = None if template is None else json.dumps(fill_in(template, told)).encode("ascii")
        values = {key: fill_in(value, told) for key, value in self.node.params.items()}
        query = urlencode([(key, _as_parameter(value)) for key, value in values.items()], doseq=True)
        content: bytes | None = None
        try:
            with endpoint.exchange(body, method=self.node.method, query=query) as reply:
                content = reply.content
                if not 200 <= reply.status < 300:
                    raise endpoint.judge(reply)
                return Received(self._read(reply), content)
        except TryFailure as failure:
            message = endpoint.explain(failure, 1).removeprefix(self._where).lstrip(": ")
            holds_json = isinstance(failure.__cause__, UnusableReplyError)
            raise AskError(
                message,
                is_temporary=failure.is_temporary,
                wait=failure.wait,
                is_refusal=failure.is_refusal,
                reply=content if holds_json else None,
            ) from failure.__cause__

    def pack(self, row: AnswerRow, reply: bytes | None) -> bytes | None:
        """The seconds on a line, then the unchanged reply; for a large reply, only the row and the paths."""
        if reply is None:
            return None
        if len(reply) <= _LARGEST_KEPT:
            return json.dumps({"seconds": row.seconds}).encode("ascii") + b"\n" + reply
        return None if row.error else json.dumps({"paths": self._paths, "row": row.to_dict()}).encode("ascii")

    def unpack(self, content: bytes) -> AnswerRow | None:
        head, _, reply = content.partition(b"\n")
        try:
            kept = json.loads(head)
            if "row" in kept:
                # Earlier versions stored null for the paths that were not set.
                paths = {part: path for part, path in kept["paths"].items() if path is not None}
                return AnswerRow.unpack(json.dumps(kept["row"]).encode()) if paths == self._paths else None
            return replace(self._parse(reply), seconds=kept["seconds"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def close(self, *, at_once: bool = False) -> None:  # noqa: ARG002 - nothing takes long
        with self._lock:
            endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.close()

    @property
    def _where(self) -> str:
        return f"systems.{self.context.name}"

    @cached_property
    def _paths(self) -> dict[str, str]:
        """The keys of how a reply is read, without those that are not set."""
        return {part: path for part in _READING if (path := getattr(self.node, part)) is not None}

    def _open(self) -> Endpoint:
        from rageval_spec.endpoints.endpoint import Endpoint

        with self._lock:
            if self._endpoint is None:
                self._endpoint = Endpoint(
                    self.node.url,
                    self._where,
                    headers=self.node.list_headers(),
                    timeout=self.node.timeout,
                    url_key="url",
                    further_secrets=[*_list_written_keys([self.node.params, self.node.body])],
                )
            return self._endpoint

    def _read(self, reply: Reply) -> AnswerRow:
        status = f"answered {reply.status}"
        try:
            return self._parse(reply.content)
        except CutOffReplyError as error:
            raise TryFailure(f"{status}, but {error}", reply, is_temporary=True) from error
        except (UnusableReplyError, RecursionError) as error:
            raise TryFailure(f"{status}, but {error}", reply) from error
        except ValueError as error:
            raise TryFailure(f"{status} with something that is not JSON", reply) from error

    def _parse(self, content: bytes) -> AnswerRow:
        """The answer in a reply, which is JSON or a stream of events; `ValueError` if it is neither."""
        if not is_stream(content):
            try:
                parsed = json.loads(content)
            except RecursionError as error:
                raise ValueError("it is nested too deeply") from error
            return self._layout.read(parsed)
        found = assemble(content, self._layout.answer, self.node.last_event)
        return self._layout.read(found.content, found.text)


def _as_parameter(value: Any) -> str | list[str]:
    """A value of the URL's query; a list becomes several parameters of one name."""
    return [write_value(item) for item in value] if isinstance(value, (list, tuple)) else write_value(value)


def _list_written_keys(template: Any) -> Iterator[str]:
    """API keys that `params` or `body` contain in plain text under names such as `api_key`, at any depth."""
    if isinstance(template, Mapping):
        for name, value in template.items():
            if isinstance(value, str) and is_credential(value, str(name)):
                yield value
            yield from _list_written_keys(value)
    elif isinstance(template, list):
        for item in template:
            yield from _list_written_keys(item)


PLUGIN = HttpSystem
