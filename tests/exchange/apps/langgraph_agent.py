"""LangChain's `create_agent` (LangGraph) with a tool that retrieves, recorded by OpenInference."""

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langchain", "langgraph", "langchain-openai", "openinference-instrumentation-langchain")


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content=found["text"], id=found["id"], metadata={"source": found["id"]})
            for found in search(query)
        ]


@tool
def search_library(query: str) -> str:
    """Search what the library knows."""
    return "\n\n".join(document.page_content for document in Library().invoke(query))


with recording("langgraph_agent", PACKAGES) as run:
    LangChainInstrumentor().instrument(tracer_provider=run.start_tracing())
    agent = create_agent(ChatOpenAI(model=run.model), [search_library], system_prompt="Answer from the library.")

    def answer(question):
        return agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].content

    run.ask(answer)
