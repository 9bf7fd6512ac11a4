"""A chat engine of LlamaIndex with a memory, recorded by OpenInference."""

from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("llama-index-core", "llama-index-llms-openai-like", "openinference-instrumentation-llama-index")


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(text=found["text"], id_=found["id"]), score=found["score"])
            for found in search(query_bundle.query_str)
        ]


with recording("llamaindex_chat", PACKAGES) as run:
    LlamaIndexInstrumentor().instrument(tracer_provider=run.start_tracing())
    llm = OpenAILike(model=run.model, api_base=run.url, api_key=run.key, is_chat_model=True, max_retries=0)

    def answer(question):
        memory = ChatMemoryBuffer.from_defaults(token_limit=3000, llm=llm)
        return ContextChatEngine.from_defaults(retriever=Library(), llm=llm, memory=memory).chat(question).response

    run.ask(answer)
