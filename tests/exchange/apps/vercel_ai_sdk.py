"""Spans with the attributes that Vercel's AI SDK documents for `generateText` and `streamText` with a tool.

Written by hand from its documentation (AI SDK 5, "Telemetry"), since its packages are not Python's: the names and the
nesting are the SDK's, the values are those of the endpoint.
"""

import json

from opentelemetry.trace import Status, StatusCode

from tests.exchange.apps.corpus import search
from tests.exchange.apps.endpoint import CACHED, Reply
from tests.exchange.apps.recording import recording


def describe(operation, name):
    """The attributes of every span."""
    return {"operation.name": f"{operation} {name}", "ai.operationId": operation, "ai.telemetry.functionId": name,
            "ai.model.provider": "openai.chat", "ai.model.id": "scripted-1", "ai.settings.maxRetries": 0}  # fmt: skip


def dump(value):
    """JSON as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class RefusedError(Exception):
    """The endpoint refuses to answer."""


def call(run, tracer, messages, tools, operation):
    """One call of the model: the span `ai.generateText.doGenerate` or `ai.streamText.doStream`."""
    inner = "ai.streamText.doStream" if operation == "ai.streamText" else "ai.generateText.doGenerate"
    attributes = {**describe(inner, "library"), "ai.prompt.messages": dump(messages), "gen_ai.system": "openai.chat",
                  "gen_ai.request.model": "scripted-1", "ai.prompt.tools": [dump(tool) for tool in tools]}  # fmt: skip
    with tracer.start_as_current_span(inner, attributes=attributes) as span:
        request = {"messages": messages, "tools": tools}
        status, _ = run.endpoint.answer("/chat/completions", request)
        if status != 200:
            raise RefusedError("the model refuses")
        reply = Reply(request)
        calls = [{"type": "tool-call", "toolCallId": "call_1", "toolName": reply.tool, "input": dump(reply.arguments)}
                 ] if reply.tool else []  # fmt: skip
        span.set_attributes({
            "ai.response.finishReason": "tool-calls" if calls else "stop",
            **({"ai.response.toolCalls": dump(calls)} if calls else {"ai.response.text": reply.text}),
            "ai.response.model": "scripted-1",
            "ai.usage.promptTokens": reply.input_tokens,
            "ai.usage.completionTokens": reply.output_tokens,
            "ai.usage.cachedInputTokens": CACHED,
            "gen_ai.response.finish_reasons": ["tool-calls" if calls else "stop"],
            "gen_ai.response.model": "scripted-1",
            "gen_ai.usage.input_tokens": reply.input_tokens,
            "gen_ai.usage.output_tokens": reply.output_tokens,
        })  # fmt: skip
        return reply, calls


def answer(run, tracer, question, operation):
    """An answer in up to two calls, as `stopWhen: stepCountIs(2)` has it."""
    tools = [{"type": "function", "name": "searchLibrary", "inputSchema": {"type": "object"}}]
    asked = {"system": "Answer from the library.", "prompt": question}
    messages = [{"role": "system", "content": asked["system"]},
                {"role": "user", "content": [{"type": "text", "text": question}]}]  # fmt: skip
    attributes = {**describe(operation, "library"), "ai.prompt": dump(asked)}
    with tracer.start_as_current_span(operation, attributes=attributes) as root:
        reply, calls = call(run, tracer, messages, tools, operation)
        if calls:
            given = {**describe("ai.toolCall", "library"), "ai.toolCall.name": "searchLibrary",
                     "ai.toolCall.id": "call_1", "ai.toolCall.args": calls[0]["input"]}  # fmt: skip
            with tracer.start_as_current_span("ai.toolCall", attributes=given) as span:
                found = search(reply.arguments["query"])
                span.set_attribute("ai.toolCall.result", dump(found))
            output = {"type": "tool-result", "toolCallId": "call_1", "toolName": "searchLibrary",
                      "output": {"type": "json", "value": found}}  # fmt: skip
            messages += [{"role": "assistant", "content": calls}, {"role": "tool", "content": [output]}]
            reply, _ = call(run, tracer, messages, tools, operation)
        root.set_attributes({"ai.response.finishReason": "stop", "ai.response.text": reply.text})
        root.set_status(Status(StatusCode.UNSET))
        return reply.text


with recording("vercel_ai_sdk", ()) as run:
    tracer = run.start_tracing().get_tracer("ai")
    operations = iter(("ai.generateText", "ai.streamText", "ai.generateText", "ai.streamText", "ai.generateText"))
    run.ask(lambda question: answer(run, tracer, question, next(operations)))
