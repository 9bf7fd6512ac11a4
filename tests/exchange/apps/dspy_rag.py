"""A RAG module of DSPy, recorded by OpenInference, which keeps no tokens."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
from openinference.instrumentation.dspy import DSPyInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("dspy", "openinference-instrumentation-dspy")


def library(query, k=3, **_):
    """Find the documents for a query."""
    return [dspy.Example(long_text=found["text"]) for found in search(query)]


class Answering(dspy.Module):
    """Retrieves, then answers."""

    def __init__(self):
        super().__init__()
        self.retrieve = dspy.Retrieve(k=3)
        self.generate = dspy.Predict("context, question -> answer")

    def forward(self, question):
        """Answer a question."""
        return self.generate(context=self.retrieve(question).passages, question=question)


with recording("dspy_rag", PACKAGES, unrecorded=("input_tokens", "output_tokens")) as run:
    DSPyInstrumentor().instrument(tracer_provider=run.start_tracing())
    lm = dspy.LM(f"openai/{run.model}", api_base=run.url, api_key=run.key, cache=False, num_retries=0)
    dspy.configure(lm=lm, rm=library)
    module = Answering()
    run.ask(lambda question: module(question=question).answer)
