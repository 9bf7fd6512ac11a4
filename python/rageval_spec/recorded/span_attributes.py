"""The names of attributes of spans, by what they mean, in all conventions and versions.

OpenTelemetry's conventions for generative AI change often, and programs in production emit older ones for years. So
every name that was ever in use stays in this table. Where a span has several attributes of one meaning, the first in
the table counts. A tool with names of its own adds them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from rageval_spec.recorded.values import load_json

EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": (
        "openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type",
        "langfuse.observation.type", "mlflow.spanType", "ai.operationId",
    ),
    "input": (
        "input.value", "langfuse.observation.input", "langfuse.trace.input", "mlflow.spanInputs",
        "traceloop.entity.input", "gen_ai.tool.call.arguments", "tool.parameters", "tool_arguments",
        "gen_ai.task.input", "ai.toolCall.args", "ai.prompt",
    ),
    "output": (
        "output.value", "langfuse.observation.output", "langfuse.trace.output", "mlflow.spanOutputs",
        "traceloop.entity.output", "gen_ai.tool.call.result", "tool_response", "final_result", "gen_ai.task.output",
        "mcp.response.value", "ai.toolCall.result", "ai.response.text",
    ),
    "input_messages": (
        "gen_ai.input.messages", "llm.input_messages.N", "gen_ai.prompt.N", "gen_ai.prompt", "llm.prompts.N",
        "pydantic_ai.all_messages", "ai.prompt.messages",
    ),
    "output_messages": (
        "gen_ai.output.messages", "llm.output_messages.N", "gen_ai.completion.N", "gen_ai.completion", "llm.choices.N",
        "pydantic_ai.all_messages",
    ),
    "query": ("gen_ai.retrieval.query.text", "reranker.query"),
    "documents": ("reranker.output_documents.N", "retrieval.documents.N", "gen_ai.retrieval.documents"),
    "input_tokens": (
        "gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens",
        "ai.usage.promptTokens", "ai.usage.inputTokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens",
        "llm.usage.completion_tokens", "ai.usage.completionTokens", "ai.usage.outputTokens",
    ),
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read",
        "gen_ai.usage.cache_read_input_tokens", "ai.usage.cachedInputTokens",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens",
        "llm.token_count.prompt_details.cache_write", "gen_ai.usage.cache_creation_input_tokens",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning",
        "gen_ai.usage.reasoning_tokens", "gen_ai.usage.details.reasoning_tokens", "ai.usage.reasoningTokens",
    ),
    "finish_reason": (
        "gen_ai.response.finish_reasons", "llm.response.finish_reason", "llm.response.stop_reason",
        "ai.response.finishReason",
    ),
    "first_chunk_seconds": ("gen_ai.response.time_to_first_chunk",),
    "first_chunk_milliseconds": ("ai.response.msToFirstChunk",),
    "cost": ("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost", "operation.cost"),
    "input_cost": ("llm.cost.prompt",),
    "output_cost": ("llm.cost.completion",),
    "model": (
        "gen_ai.response.model", "llm.response.model_name", "llm.model_name", "gen_ai.request.model",
        "llm.request.model_name", "langfuse.observation.model.name", "ai.model.id",
    ),
    "session": (
        "session.id", "gen_ai.conversation.id", "langfuse.session.id", "traceloop.association.properties.session_id",
        "mlflow.trace.session",
    ),
    "user": (
        "user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id", "mlflow.trace.user",
    ),
    "name": (
        "gen_ai.tool.name", "tool.name", "gen_ai.agent.name", "agent.name", "traceloop.entity.name", "ai.toolCall.name",
    ),
    "metadata": ("metadata",),
    "tags": ("tag.tags", "langfuse.trace.tags"),
    "feedback": ("annotations.N", "evaluations.N", "trace.annotations.N", "trace.evaluations.N"),
    "project": ("openinference.project.name", "service.name"),
}  # fmt: skip
"""The attributes of each meaning, the first of which counts. `project` is an attribute of the resource.

`N` at the end: a list of objects, flattened as `llm.input_messages.0.message.role`. `docs/exchange/otel.md` says which
convention has which name, and in which of its versions.
"""

EVALUATION: Final[Mapping[str, str]] = {
    "name": "gen_ai.evaluation.name",
    "value": "gen_ai.evaluation.score.value",
    "label": "gen_ai.evaluation.score.label",
    "comment": "gen_ai.evaluation.explanation",
}
"""The attributes of the event `gen_ai.evaluation.result`, in the GenAI conventions since 1.38."""
EVALUATOR: Final[Mapping[str, str]] = {
    "id": "gen_ai.evaluation.evaluator.id",
    "version": "gen_ai.evaluation.evaluator.version",
    "kind": "gen_ai.evaluation.evaluator.type",
}
"""Who evaluated, as the conventions propose it (semantic-conventions-genai, pull request 359, October 2026)."""

PROMPT_EVENTS: Final = ("gen_ai.content.prompt", "gen_ai.user.message")
"""Events with which a span carried its input between 1.27 and 1.36."""
RESULT_EVENTS: Final = ("db.query.result", "db.search.result")
"""Events with which OpenLLMetry's spans of vector databases carry a document each."""
COMPLETION_EVENTS: Final = ("gen_ai.content.completion", "gen_ai.choice", "gen_ai.assistant.message")

KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("llm", "chat", "text_completion", "generate_content", "completion", "chat_model"), "model"),
    **dict.fromkeys(("generation", "decision"), "model"),
    **dict.fromkeys(("retriever", "retrieval", "vector_db_retrieve"), "retrieval"),
    **dict.fromkeys(("reranker", "rerank"), "rerank"),
    **dict.fromkeys(("tool", "execute_tool"), "tool"),
    **dict.fromkeys(("agent", "invoke_agent"), "agent"),
    **dict.fromkeys(("chain", "workflow", "task", "invoke_workflow", "execute_task"), "chain"),
    **{
        f"ai.{name}{part}": kind
        for name in ("generatetext", "streamtext", "generateobject", "streamobject")
        for part, kind in (("", "agent"), (".dogenerate", "model"), (".dostream", "model"))
    },
    "ai.toolcall": "tool",
    "guardrail": "guardrail",
    "evaluator": "evaluator",
    **dict.fromkeys(("embedding", "embeddings", "prompt", "parser", "memory", "create_agent"), "other"),
}
"""What a span's kind means, by its name in lower case. Other kinds mean nothing here."""

_WANTED: Final = {meaning: tuple((name, name.startswith("mlflow.")) for name in names if not name.endswith(".N"))
                  for meaning, names in NAMES.items()}  # fmt: skip
"""Each attribute that is no list, and whether its text is always JSON, as MLflow writes it."""
_LISTED: Final = {meaning: tuple((name.removesuffix(".N"), name.endswith(".N")) for name in names)
                  for meaning, names in NAMES.items()}  # fmt: skip


_MOST_KEYS, _MOST_CHARACTERS = 200, 10_000
"""Up to how many keys, with how many characters, spans are remembered: no file can fill the memory with its own."""


def find(attributes: Mapping[str, Any], meaning: str) -> Any:
    """The value of the first attribute of a meaning that is there and not empty, or None."""
    for attribute, is_json in _WANTED[meaning]:
        value = attributes.get(attribute)
        if value is not None and value != "":
            return load_json(value) if is_json else value
    return None


def find_all(attributes: Mapping[str, Any], meaning: str) -> Iterator[list[dict[str, Any]]]:
    """The lists of objects of a meaning, each list that is there: flattened, or one attribute with JSON or a list."""
    for attribute, is_prefix in _LISTED[meaning]:
        found = attributes.get(attribute)
        if isinstance(found, str) and found[:1] in "[{":
            found = load_json(found)
        if isinstance(found, Mapping):
            found = [found]
        if isinstance(found, list) and found and all(isinstance(item, Mapping) for item in found):
            yield [flatten(item) for item in found]
        elif is_prefix and (gathered := gather(attributes, f"{attribute}.")):
            yield gathered


def gather(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The objects of a flattened list, in order: `prefix0.document.id` becomes `document.id` of the first."""
    keys = tuple(attributes)
    is_usual = len(keys) <= _MOST_KEYS and sum(map(len, keys)) <= _MOST_CHARACTERS
    fields = (_list_fields if is_usual else _list_fields.__wrapped__)(keys, prefix)
    return [{field: attributes[key] for field, key in item} for item in fields]


@lru_cache(maxsize=1024)
def _list_fields(keys: tuple[str, ...], prefix: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The fields of each object of a flattened list, with their keys; spans of one kind have the same keys."""
    found: dict[int, list[tuple[str, str]]] = {}
    for key in keys:
        if key.startswith(prefix):
            index, _, field = key[len(prefix) :].partition(".")
            if index.isdecimal() and len(index) < 9:
                found.setdefault(int(index), []).append((field, key))
    return tuple(tuple(found[index]) for index in sorted(found))


def flatten(found: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the keys of a flattened one: `{"document": {"id": 1}}` becomes `{"document.id": 1}`."""
    flat: dict[str, Any] = {}
    for key, value in found.items():
        if key in ("document", "message", "annotation", "evaluation", "prompt", "completion") and isinstance(
            value, dict
        ):
            flat.update({f"{key}.{inner}": one for inner, one in value.items()})
        else:
            flat[str(key)] = value
    return flat
