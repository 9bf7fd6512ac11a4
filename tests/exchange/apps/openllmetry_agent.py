"""LangChain's `create_agent` (LangGraph) with a tool that returns rows, recorded by OpenLLMetry."""

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langchain", "langgraph", "langchain-openai", "traceloop-sdk", "opentelemetry-instrumentation-langchain")


@tool
def search_library(query: str) -> list[dict]:
    """Search what the library knows."""
    return search(query)


with recording("openllmetry_agent", PACKAGES) as run:
    run.start_traceloop()
    agent = create_agent(ChatOpenAI(model=run.model), [search_library], system_prompt="Answer from the library.")

    def answer(question):
        return agent.invoke({"messages": [("user", question)]})["messages"][-1].content

    run.ask(answer)
