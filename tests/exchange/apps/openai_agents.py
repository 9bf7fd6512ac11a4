"""An agent of OpenAI's Agents SDK with a function tool, over the responses API, recorded by OpenInference."""

from agents import Agent, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("openai-agents", "openai", "openinference-instrumentation-openai-agents")


@function_tool
def search_library(query: str) -> list[dict]:
    """Search what the library knows."""
    return search(query)


with recording("openai_agents", PACKAGES) as run:
    OpenAIAgentsInstrumentor().instrument(tracer_provider=run.start_tracing())
    model = OpenAIResponsesModel(run.model, AsyncOpenAI(max_retries=0))
    agent = Agent(name="librarian", instructions="Answer from the library.", tools=[search_library], model=model)

    async def answer(question):
        return (await Runner.run(agent, question)).final_output

    run.ask(answer)
