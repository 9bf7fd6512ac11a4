"""An assistant of AutoGen's AgentChat with a search tool, recorded by OpenInference."""

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("autogen-agentchat", "autogen-ext", "openinference-instrumentation-autogen-agentchat")


async def search_library(query: str) -> list[dict]:
    """Search what the library knows."""
    return search(query)


with recording("autogen_agent", PACKAGES) as run:
    AutogenAgentChatInstrumentor().instrument(tracer_provider=run.start_tracing())
    info = ModelInfo(vision=False, function_calling=True, json_output=True, family="unknown", structured_output=True)
    client = OpenAIChatCompletionClient(model=run.model, base_url=run.url, api_key=run.key, model_info=info,
                                        max_retries=0)  # fmt: skip

    async def answer(question):
        agent = AssistantAgent("librarian", client, tools=[search_library], reflect_on_tool_use=True)
        return (await agent.run(task=question)).messages[-1].content

    run.ask(answer)
