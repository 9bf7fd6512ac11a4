"""An agent of Haystack with a search tool, by OpenInference, which keeps its result only as printed objects."""

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret
from openinference.instrumentation.haystack import HaystackInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("haystack-ai", "openinference-instrumentation-haystack")


@tool
def search_library(query: str) -> list:
    """Search what the library knows."""
    return search(query)


with recording("haystack_agent", PACKAGES, unrecorded=("contexts",)) as run:
    HaystackInstrumentor().instrument(tracer_provider=run.start_tracing())
    llm = OpenAIChatGenerator(Secret.from_token(run.key), run.model, api_base_url=run.url, max_retries=0)
    agent = Agent(chat_generator=llm, tools=[search_library], system_prompt="Answer from the library.")
    run.ask(lambda question: agent.run(messages=[ChatMessage.from_user(question)])["last_message"].text)
