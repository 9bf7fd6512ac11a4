"""A RAG pipeline of Haystack (retriever, prompt, chat generator), recorded by OpenInference."""

from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from openinference.instrumentation.haystack import HaystackInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("haystack-ai", "openinference-instrumentation-haystack")
PROMPT = "Answer from:\n{% for d in documents %}{{ d.content }}\n{% endfor %}\nQuestion: {{ question }}"


@component
class LibraryRetriever:
    """Finds the documents of the library."""

    @component.output_types(documents=list[Document])
    def run(self, query: str):
        return {"documents": [Document(id=found["id"], content=found["text"], score=found["score"])
                              for found in search(query)]}  # fmt: skip


with recording("haystack_rag", PACKAGES) as run:
    HaystackInstrumentor().instrument(tracer_provider=run.start_tracing())
    pipeline = Pipeline()
    pipeline.add_component("retriever", LibraryRetriever())
    builder = ChatPromptBuilder(template=[ChatMessage.from_user(PROMPT)], required_variables="*")
    pipeline.add_component("prompt", builder)
    llm = OpenAIChatGenerator(Secret.from_token(run.key), run.model, api_base_url=run.url, max_retries=0)
    pipeline.add_component("llm", llm)
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")

    def answer(question):
        said = pipeline.run({"retriever": {"query": question}, "prompt": {"question": question}})
        return said["llm"]["replies"][0].text

    run.ask(answer)
