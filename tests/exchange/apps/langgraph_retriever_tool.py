"""LangChain's `create_agent` with `create_retriever_tool`, streamed in one loop of asyncio, by OpenInference."""

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langchain", "langgraph", "langchain-openai", "openinference-instrumentation-langchain")


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=found["text"], metadata={"source": found["id"]}) for found in search(query)]


with recording("langgraph_retriever_tool", PACKAGES) as run:
    LangChainInstrumentor().instrument(tracer_provider=run.start_tracing())
    tool = create_retriever_tool(Library(), "search_library", "Search what the library knows.")
    agent = create_agent(ChatOpenAI(model=run.model), [tool])

    async def answer(question):
        asked = {"messages": [{"role": "user", "content": question}]}
        states = [state async for state in agent.astream(asked, stream_mode="values")]
        return states[-1]["messages"][-1].content

    run.ask(answer)
