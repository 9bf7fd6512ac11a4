"""A RAG module of DSPy, recorded by OpenInference, which keeps no tokens."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
from openinference.instrumentation.dspy import DSPyInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("dspy", "openinference-instrumentation-dspy")


class Library(dspy.Retrieve):
    """Finds the documents of the library."""

    def forward(self, query, k=None):
        """Find the documents for a query."""
        return dspy.Prediction(passages=[found["text"] for found in search(query)])


class Answering(dspy.Module):
    """Retrieves, then answers."""

    def __init__(self):
        super().__init__()
        self.retrieve = Library()
        self.generate = dspy.Predict("context, question -> answer")

    def forward(self, question):
        """Answer a question."""
        return self.generate(context=self.retrieve(question).passages, question=question)


with recording("dspy_rag", PACKAGES, unrecorded=("input_tokens", "output_tokens")) as run:
    DSPyInstrumentor().instrument(tracer_provider=run.start_tracing())
    dspy.configure(lm=dspy.LM(f"openai/{run.model}", api_base=run.url, api_key=run.key, cache=False, num_retries=0))
    module = Answering()
    run.ask(lambda question: module(question=question).answer)
