"""A chain of LangChain that one loop of asyncio serves, by OpenLLMetry: its runs leak into the trace of the first."""

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("langchain-core", "langchain-openai", "traceloop-sdk", "opentelemetry-instrumentation-langchain")
PROMPT = "Answer the question from these documents.\n\n{context}\n\nQuestion: {question}"


class Library(BaseRetriever):
    """Finds the documents of the library."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=found["text"], metadata={"id": found["id"]}) for found in search(query)]


with recording("openllmetry_async", PACKAGES) as run:
    run.start_traceloop()
    fill = {"context": Library(), "question": RunnablePassthrough()}
    chain = fill | ChatPromptTemplate.from_template(PROMPT) | ChatOpenAI(model=run.model) | StrOutputParser()
    run.ask(chain.ainvoke)
