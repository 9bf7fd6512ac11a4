"""A LangGraph state of messages that is asked with `("user", question)` tuples and streamed, by OpenInference."""

from langchain_core.documents import Document
from langchain_core.messages import SystemMessage
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langgraph", "langchain-core", "langchain-openai", "openinference-instrumentation-langchain")


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=found["text"]) for found in search(query)]


def build(model):
    """The graph of one node, which retrieves and answers."""
    chat = ChatOpenAI(model=model)

    def answer(state):
        found = Library().invoke(state["messages"][-1].content)
        context = "\n\n".join(document.page_content for document in found)
        return {"messages": [chat.invoke([SystemMessage(f"Answer from this:\n{context}"), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile()


if __name__ == "__main__":
    from openinference.instrumentation.langchain import LangChainInstrumentor

    with recording("langgraph_tuples", PACKAGES) as run:
        LangChainInstrumentor().instrument(tracer_provider=run.start_tracing())
        graph = build(run.model)

        def answer(question):
            states = list(graph.stream({"messages": [("user", question)]}, stream_mode="values"))
            return states[-1]["messages"][-1].content

        run.ask(answer)
