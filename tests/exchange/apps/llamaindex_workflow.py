"""A workflow of LlamaIndex with a step that retrieves and one that answers, recorded by OpenInference."""

from llama_index.core.prompts import PromptTemplate
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("llama-index-core", "llama-index-workflows", "openinference-instrumentation-llama-index")
PROMPT = PromptTemplate("Answer from:\n{context}\n\nQuestion: {query}")


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(text=found["text"], id_=found["id"]), score=found["score"])
            for found in search(query_bundle.query_str)
        ]


class Found(Event):
    """The documents for a question."""

    query: str
    nodes: list[NodeWithScore]


class Answering(Workflow):
    """Retrieves, then answers."""

    @step
    async def retrieve(self, event: StartEvent) -> Found:
        """Find the documents."""
        return Found(query=event.query, nodes=await Library().aretrieve(event.query))

    @step
    async def answer(self, event: Found) -> StopEvent:
        """Answer from the documents."""
        context = "\n\n".join(node.text for node in event.nodes)
        said = await llm.apredict(PROMPT, context=context, query=event.query)
        return StopEvent(result=said)


with recording("llamaindex_workflow", PACKAGES) as run:
    LlamaIndexInstrumentor().instrument(tracer_provider=run.start_tracing())
    llm = OpenAILike(model=run.model, api_base=run.url, api_key=run.key, is_chat_model=True, max_retries=0)

    async def answer(question):
        return await Answering(timeout=20).run(query=question)

    run.ask(answer)
