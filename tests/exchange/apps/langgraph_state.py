"""A LangGraph state graph with `question`, `documents` and `generation`, recorded by OpenInference."""

from typing import TypedDict

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langgraph", "langchain-core", "langchain-openai", "openinference-instrumentation-langchain")
PROMPT = "Answer the question from these documents.\n\n{context}\n\nQuestion: {question}"


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=found["text"], metadata={"id": found["id"]}) for found in search(query)]


class State(TypedDict):
    """What the nodes share."""

    question: str
    documents: list[Document]
    generation: str


def build(model):
    """The graph: retrieve, then generate."""
    chain = ChatPromptTemplate.from_template(PROMPT) | ChatOpenAI(model=model) | StrOutputParser()

    def retrieve(state):
        return {"documents": Library().invoke(state["question"])}

    def generate(state):
        context = "\n\n".join(document.page_content for document in state["documents"])
        return {"generation": chain.invoke({"context": context, "question": state["question"]})}

    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("generate", generate)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    return graph.compile()


if __name__ == "__main__":
    from openinference.instrumentation.langchain import LangChainInstrumentor

    with recording("langgraph_state", PACKAGES) as run:
        LangChainInstrumentor().instrument(tracer_provider=run.start_tracing())
        graph = build(run.model)
        run.ask(lambda question: graph.invoke({"question": question})["generation"])
