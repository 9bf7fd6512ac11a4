"""Bare calls of OpenAI's client after a span for the retrieval, by OpenTelemetry's instrumentation of that client.

The prompt holds the contexts and the question in one text; the question alone stands at the retrieval's span.
"""

import json
import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"

from openai import OpenAI
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("openai", "opentelemetry-instrumentation-openai-v2")

with recording("openai_client", PACKAGES) as run:
    provider = run.start_tracing()
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = provider.get_tracer("library")
    client = OpenAI(max_retries=0)

    def answer(question):
        with tracer.start_as_current_span("answer"):
            with tracer.start_as_current_span("retrieval library") as span:
                found = search(question)
                span.set_attributes({
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.data_source.id": "library",
                    "gen_ai.retrieval.query.text": question,
                    "gen_ai.retrieval.documents": json.dumps(found, ensure_ascii=False),
                })  # fmt: skip
            texts = "\n\n".join(one["text"] for one in found)
            prompt = f"Answer from these documents:\n{texts}\n\nQuestion: {question}"
            messages = [{"role": "user", "content": prompt}]
            return client.chat.completions.create(model=run.model, messages=messages).choices[0].message.content

    run.ask(answer)
