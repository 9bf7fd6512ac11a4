"""Functions under traceloop's `@workflow`, `@task` and `@tool` with calls of OpenAI's client, by OpenLLMetry."""

from openai import OpenAI
from traceloop.sdk.decorators import task, workflow

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("openai", "traceloop-sdk", "opentelemetry-instrumentation-openai")


@task(name="retrieve")
def retrieve(query):
    """Find the documents of the library."""
    return search(query)


@task(name="generate")
def generate(question, documents):
    """Answer from the documents."""
    texts = "\n\n".join(document["text"] for document in documents)
    messages = [{"role": "system", "content": "Answer from the documents."},
                {"role": "user", "content": f"Documents:\n{texts}\n\nQuestion: {question}"}]  # fmt: skip
    return client.chat.completions.create(model=run.model, messages=messages).choices[0].message.content


@workflow(name="library")
def answer(question):
    """Retrieve, then generate."""
    return generate(question, retrieve(question))


with recording("openllmetry_decorators", PACKAGES) as run:
    run.start_traceloop()
    client = OpenAI(max_retries=0)
    run.ask(answer)
