"""A tool-calling agent of smolagents with a search tool, recorded by OpenInference."""

from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import OpenAIModel, ToolCallingAgent, tool

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("smolagents", "openinference-instrumentation-smolagents")


@tool
def search_library(query: str) -> list:
    """Search what the library knows.

    Args:
        query: what to look for.
    """
    return search(query)


with recording("smolagents_tools", PACKAGES) as run:
    SmolagentsInstrumentor().instrument(tracer_provider=run.start_tracing())
    model = OpenAIModel(run.model, api_base=run.url, api_key=run.key, client_kwargs={"max_retries": 0})
    run.ask(lambda question: ToolCallingAgent(tools=[search_library], model=model, max_steps=3).run(question))
