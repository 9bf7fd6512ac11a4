"""Two agents of AG2 that talk, one of which may search, recorded by OpenInference, which keeps no tokens."""

from autogen import ConversableAgent, LLMConfig, register_function
from openinference.instrumentation.ag2 import AG2Instrumentor

from tests.exchange.apps.corpus import search
from tests.exchange.apps.recording import recording

PACKAGES = ("ag2", "openinference-instrumentation-ag2")


def search_library(query: str) -> list[dict]:
    """Search what the library knows."""
    return search(query)


with recording("ag2_chat", PACKAGES, unrecorded=("input_tokens", "output_tokens")) as run:
    AG2Instrumentor().instrument(tracer_provider=run.start_tracing())
    model = {"model": run.model, "base_url": run.url, "api_key": run.key, "max_retries": 0, "cache_seed": None}

    def answer(question):
        librarian = ConversableAgent("librarian", llm_config=LLMConfig(model), human_input_mode="NEVER",
                                     system_message="Answer from the library.")  # fmt: skip
        reader = ConversableAgent("reader", llm_config=False, human_input_mode="NEVER")
        register_function(search_library, caller=librarian, executor=reader, description="Search the library.")
        return reader.initiate_chat(librarian, message=question, max_turns=2, silent=True).summary

    run.ask(answer)
