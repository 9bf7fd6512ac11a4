"""A crew of CrewAI with one agent and a search tool, by OpenInference, which keeps tokens only inside outputs."""

import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="false")

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from openinference.instrumentation.crewai import CrewAIInstrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("crewai", "openinference-instrumentation-crewai")


@tool("search_library")
def search_library(query: str) -> list:
    """Search what the library knows."""
    return search(query)


with recording("crewai_crew", PACKAGES, unrecorded=("input_tokens", "output_tokens")) as run:
    CrewAIInstrumentor().instrument(tracer_provider=run.start_tracing())
    llm = LLM(model=f"openai/{run.model}", base_url=run.url, api_key=run.key, max_retries=0)

    def answer(question):
        librarian = Agent(role="Librarian", goal="Answer questions", backstory="You know the library.", llm=llm,
                          tools=[search_library], max_retry_limit=0)  # fmt: skip
        task = Task(description="{question}", expected_output="A short answer.", agent=librarian)
        return Crew(agents=[librarian], tasks=[task]).kickoff(inputs={"question": question}).raw

    run.ask(answer)
