"""A model's endpoint whose answers are written in advance, and a collector of spans, at one address.

It speaks OpenAI's chat completions (streamed too), responses and embeddings, and Anthropic's messages. It asks for a
tool as long as what the search finds is not in the conversation, then it answers. Every reply reports its tokens: the
words of the conversation and of the reply. So what an application spent on a question is known without its spans.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.exchange.apps.corpus import DOCUMENTS, REFUSED, Asked, find

MODEL = "scripted-1"
_CREATED = 1_790_000_000
CACHED = 3
"""Input tokens of each call that came from the cache."""
_LAST_TOOLS = ("final_answer",)


class Reply:
    """What the model says to a request: a text or the call of a tool, and its tokens."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        said = "\n".join(_texts(request.get("messages") or request.get("input")))
        self.asked: Asked | None = find(said)
        self.model = request.get("model") or MODEL
        self.tool: str | None = None
        self.text = "" if self.asked is None else self.asked.answer
        names = [name for tool in request.get("tools") or () if (name := _name(tool))]
        is_found = self.asked is not None and DOCUMENTS[self.asked.found[0]].partition("\n")[0] in said.replace(
            r"\"", '"'
        )
        if self.asked is not None and not is_found:
            self.tool = next((name for name in names if name not in _LAST_TOOLS), None)
            self.arguments = {"query": self.asked.question}
        elif self.asked is not None and "final_answer" in names:
            self.tool, self.arguments = "final_answer", {"answer": self.text}
        elif "[[ ## answer ## ]]" in said:
            self.text = f"[[ ## answer ## ]]\n{self.text}\n\n[[ ## completed ## ]]"
        self.is_refused = self.asked is REFUSED and self.tool in (None, *_LAST_TOOLS)
        self.input_tokens = len(said.split())
        self.output_tokens = 7 if self.tool else len(self.text.split())


def _texts(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from _texts(value)
    elif isinstance(found, list):
        for value in found:
            yield from _texts(value)


def _name(tool: Mapping[str, Any]) -> str | None:
    return tool.get("name") or (tool.get("function") or {}).get("name")


def complete(reply: Reply) -> dict[str, Any]:
    """A reply in the form of OpenAI's chat completions."""
    message: dict[str, Any] = {"role": "assistant", "content": None if reply.tool else reply.text}
    if reply.tool:
        call = {"name": reply.tool, "arguments": json.dumps(reply.arguments, ensure_ascii=False)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
    why = "tool_calls" if reply.tool else "stop"
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": _CREATED, "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": why}], "usage": count(reply)}  # fmt: skip


def count(reply: Reply) -> dict[str, Any]:
    return {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "prompt_tokens_details": {"cached_tokens": CACHED},
            "completion_tokens_details": {"reasoning_tokens": 1}}  # fmt: skip


def stream(reply: Reply) -> Iterator[dict[str, Any]]:
    """A reply in the pieces of OpenAI's streamed chat completions."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": _CREATED, "model": reply.model}
    message = complete(reply)["choices"][0]["message"]
    calls = message.get("tool_calls")
    if calls:
        pieces: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": [{"index": 0, **calls[0]}]}]
    else:
        words = reply.text.split(" ")
        pieces = [{"role": "assistant", "content": ""}]
        pieces += [{"content": word if place == 0 else f" {word}"} for place, word in enumerate(words)]
    for piece in pieces:
        yield {**base, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    yield {**base, "choices": [], "usage": count(reply)}


def respond(reply: Reply) -> dict[str, Any]:
    """A reply in the form of OpenAI's responses."""
    if reply.tool:
        arguments = json.dumps(reply.arguments, ensure_ascii=False)
        item: dict[str, Any] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": reply.tool,
                                "arguments": arguments, "status": "completed"}  # fmt: skip
    else:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    usage = {
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "input_tokens_details": {"cached_tokens": CACHED},
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    told = {"id": "resp_1", "object": "response", "created_at": _CREATED, "status": "completed", "model": reply.model}
    return {**told, "output": [item], "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}


def message(reply: Reply) -> dict[str, Any]:
    """A reply in the form of Anthropic's messages."""
    if reply.tool:
        content: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": reply.tool, "input": reply.arguments}
    else:
        content = {"type": "text", "text": reply.text}
    usage = {"input_tokens": reply.input_tokens - 5, "output_tokens": reply.output_tokens,
             "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 2}  # fmt: skip
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": reply.model, "content": [content],
            "stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None, "usage": usage}  # fmt: skip


class Endpoint:
    """The server.

    Attributes:
        spent: for each question its input tokens, output tokens and calls.
        requests: what exporters sent.
    """

    def __init__(self) -> None:
        self.spent: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.requests: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()

    def answer(self, path: str, request: dict[str, Any]) -> tuple[int, Any]:
        """The status and the body, or the pieces of a stream."""
        if path.endswith("/embeddings"):
            texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
            vectors = [{"object": "embedding", "index": place, "embedding": [1.0, 0.0]} for place in range(len(texts))]
            return 200, {"object": "list", "model": MODEL, "data": vectors,
                         "usage": {"prompt_tokens": 1, "total_tokens": 1}}  # fmt: skip
        reply = Reply(request)
        if reply.is_refused:
            why = {"message": "the model refuses", "type": "invalid_request_error", "code": "refused"}
            return 400, {"type": "error", "error": why}
        if reply.asked:
            spent = self.spent[reply.asked.question]
            spent[0] += reply.input_tokens
            spent[1] += reply.output_tokens
            spent[2] += 1
        if path.endswith("/responses"):
            return 200, respond(reply)
        if path.endswith("/messages"):
            return 200, message(reply)
        return 200, stream(reply) if request.get("stream") else complete(reply)

    def _make_handler(endpoint) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.headers.get("content-encoding") == "gzip":
                    content = gzip.decompress(content)
                if self.path.endswith("/traces"):
                    endpoint.requests.append(content)
                    self._send(200, b"", "application/x-protobuf")
                elif self.path.endswith(("/logs", "/metrics")):
                    self._send(200, b"", "application/x-protobuf")
                else:
                    status, body = endpoint.answer(self.path.partition("?")[0], json.loads(content))
                    if isinstance(body, Iterator):
                        pieces = [f"data: {json.dumps(piece)}\n\n" for piece in body]
                        self._send(status, "".join([*pieces, "data: [DONE]\n\n"]).encode(), "text/event-stream")
                    else:
                        self._send(status, json.dumps(body).encode(), "application/json")

            def _send(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        return Handler
