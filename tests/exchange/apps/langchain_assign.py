"""A chain of LangChain that assigns `context` and `answer` to its input, streamed, recorded by OpenInference."""

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langchain-core", "langchain-openai", "openinference-instrumentation-langchain")


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=found["text"], metadata={"source": found["id"]}) for found in search(query)]


with recording("langchain_assign", PACKAGES) as run:
    LangChainInstrumentor().instrument(tracer_provider=run.start_tracing())
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from:\n{context}"), ("human", "{input}")])
    find = RunnablePassthrough.assign(context=lambda asked: Library().invoke(asked["input"]))
    chain = find | RunnablePassthrough.assign(answer=prompt | ChatOpenAI(model=run.model) | StrOutputParser())

    def answer(question):
        pieces = chain.stream({"input": question, "chat_history": []})
        return "".join(piece.get("answer", "") for piece in pieces)

    run.ask(answer)
