"""A query engine of LlamaIndex, recorded by OpenInference; with `--stream` its answers are streamed."""

import sys

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("llama-index-core", "llama-index-llms-openai-like", "openinference-instrumentation-llama-index")
STREAM = "--stream" in sys.argv


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(text=found["text"], id_=found["id"]), score=found["score"])
            for found in search(query_bundle.query_str)
        ]


with recording("llamaindex_stream" if STREAM else "llamaindex_query", PACKAGES) as run:
    LlamaIndexInstrumentor().instrument(tracer_provider=run.start_tracing())
    llm = OpenAILike(model=run.model, api_base=run.url, api_key=run.key, is_chat_model=True, max_retries=0)
    synthesizer = get_response_synthesizer(llm=llm, streaming=STREAM)
    engine = RetrieverQueryEngine(Library(), synthesizer)

    def answer(question):
        said = engine.query(question)
        return "".join(said.response_gen) if STREAM else said.response

    run.ask(answer)
