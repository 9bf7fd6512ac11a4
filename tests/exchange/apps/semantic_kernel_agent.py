"""An agent of Semantic Kernel with a plugin that searches, recorded by Semantic Kernel itself."""

import os

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"] = "true"
os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "true"

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("semantic-kernel", "openai")


class Library:
    """The plugin."""

    @kernel_function
    def search_library(self, query: str) -> list[dict]:
        """Search what the library knows."""
        return search(query)


with recording("semantic_kernel_agent", PACKAGES) as run:
    run.start_tracing()
    service = OpenAIChatCompletion(run.model, async_client=AsyncOpenAI(max_retries=0))
    agent = ChatCompletionAgent(service=service, name="librarian", instructions="Answer from the library.",
                                plugins=[Library()])  # fmt: skip

    async def answer(question):
        return str((await agent.get_response(question)).content)

    run.ask(answer)
