"""An agent of pydantic-ai with a search tool, recorded by pydantic-ai itself."""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.exchange.apps.corpus import search
from tests.exchange.apps.endpoint import CACHED
from tests.exchange.apps.recording import recording

PACKAGES = ("pydantic-ai-slim", "openai")

with recording("pydantic_ai_tools", PACKAGES) as run:
    settings = InstrumentationSettings(tracer_provider=run.start_tracing())
    client = AsyncOpenAI(max_retries=0)
    model = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=client))
    abilities = [Instrumentation(settings=settings)]
    agent = Agent(model, system_prompt="Answer from the library.", capabilities=abilities, name="librarian")

    @agent.tool_plain
    def search_library(query: str) -> list[dict]:
        """Search what the library knows."""
        return search(query)

    def price(input_tokens, output_tokens, calls):
        """The price of gpt-4o-mini, which pydantic-ai knows: dollars a million tokens, fresh, cached and written."""
        cached = calls * CACHED
        return ((input_tokens - cached) * 0.15 + cached * 0.075 + output_tokens * 0.60) / 1e6

    run.ask(lambda question: agent.run_sync(question).output, price=price)
