"""Bare calls of Anthropic's client in two turns with a tool, under a span of the application, by OpenInference.

Anthropic counts the tokens that came from its cache, or went there, beside the input tokens. OpenInference adds them.
"""

import json

from anthropic import Anthropic
from openinference.instrumentation.anthropic import AnthropicInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("anthropic", "openinference-instrumentation-anthropic")
TOOL = {"name": "search_library", "description": "Search the library.",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}}}  # fmt: skip

with recording("anthropic_client", PACKAGES) as run:
    provider = run.start_tracing()
    AnthropicInstrumentor().instrument(tracer_provider=provider)
    tracer = provider.get_tracer("library")
    client = Anthropic(base_url=run.endpoint.url, api_key=run.key, max_retries=0)

    def answer(question):
        messages = [{"role": "user", "content": question}]
        with tracer.start_as_current_span("answer", attributes={"openinference.span.kind": "AGENT"}):
            for _ in range(2):
                said = client.messages.create(model=run.model, max_tokens=99, messages=messages, tools=[TOOL])
                part = said.content[0]
                if part.type == "text":
                    return part.text
                attributes = {"openinference.span.kind": "TOOL", "tool.name": part.name,
                              "input.value": json.dumps(part.input), "input.mime_type": "application/json"}  # fmt: skip
                with tracer.start_as_current_span(part.name, attributes=attributes) as span:
                    found = json.dumps(search(part.input["query"]), ensure_ascii=False)
                    span.set_attributes({"output.value": found, "output.mime_type": "application/json"})
                result = {"type": "tool_result", "tool_use_id": part.id, "content": found}
                messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": [result]}]
            return None

    run.ask(answer)
