"""The names of spans' attributes: which attribute means what, in which convention, from which version to which.

OpenTelemetry's conventions for generative AI change often, and programs in production emit older ones for years. So
every name that was ever in use stays in this table. Where a span has several attributes of one meaning, the first in
the table counts. A tool with names of its own adds them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from rageval_spec.recorded.values import load_json

GEN_AI, OPENINFERENCE, OPENLLMETRY = "OpenTelemetry GenAI", "OpenInference", "OpenLLMetry"
MLFLOW, LANGFUSE, COMMON = "MLflow", "Langfuse", "in common use"
VERCEL, PYDANTIC_AI = "AI SDK", "pydantic-ai"
VERSIONS: Final[Mapping[str, str]] = {GEN_AI: "1.44", OPENINFERENCE: "0.1.42"}
"""The newest version of each convention that the table knows."""
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"


class Name(NamedTuple):
    """An attribute of a span.

    Attributes:
        since: the first version of the convention that has it; "" for one without versions. The oldest that the table
            distinguishes is 1.26.
        deprecated: the first version that advises against it; "" if none does.
        is_prefix: the attribute is a list of objects, flattened as `llm.input_messages.0.message.role`.
        is_json: a text value is JSON, also if it looks like plain text.
    """

    attribute: str
    convention: str
    since: str = ""
    deprecated: str = ""
    is_prefix: bool = False
    is_json: bool = False


def _flat(attribute: str, convention: str) -> Name:
    return Name(attribute, convention, is_prefix=True)


NAMES: Final[Mapping[str, tuple[Name, ...]]] = {
    "kind": (
        Name("openinference.span.kind", OPENINFERENCE),
        Name("gen_ai.operation.name", GEN_AI, "1.27"),
        Name("traceloop.span.kind", OPENLLMETRY),
        Name("llm.request.type", OPENLLMETRY),
        Name("langfuse.observation.type", LANGFUSE),
        Name("mlflow.spanType", MLFLOW, is_json=True),
        Name("ai.operationId", VERCEL),
    ),
    "input": (
        Name("input.value", OPENINFERENCE),
        Name("langfuse.observation.input", LANGFUSE),
        Name("langfuse.trace.input", LANGFUSE),
        Name("mlflow.spanInputs", MLFLOW, is_json=True),
        Name("traceloop.entity.input", OPENLLMETRY),
        Name("gen_ai.tool.call.arguments", GEN_AI, "1.38"),
        Name("tool.parameters", OPENINFERENCE),
        Name("tool_arguments", PYDANTIC_AI),
        Name("gen_ai.task.input", OPENLLMETRY),
        Name("ai.toolCall.args", VERCEL),
        Name("ai.prompt", VERCEL),
    ),
    "output": (
        Name("output.value", OPENINFERENCE),
        Name("langfuse.observation.output", LANGFUSE),
        Name("langfuse.trace.output", LANGFUSE),
        Name("mlflow.spanOutputs", MLFLOW, is_json=True),
        Name("traceloop.entity.output", OPENLLMETRY),
        Name("gen_ai.tool.call.result", GEN_AI, "1.38"),
        Name("tool_response", PYDANTIC_AI),
        Name("final_result", PYDANTIC_AI),
        Name("gen_ai.task.output", OPENLLMETRY),
        Name("mcp.response.value", OPENLLMETRY),
        Name("ai.toolCall.result", VERCEL),
        Name("ai.response.text", VERCEL),
    ),
    "input_messages": (
        Name("gen_ai.input.messages", GEN_AI, "1.37"),
        _flat("llm.input_messages", OPENINFERENCE),
        _flat("gen_ai.prompt", OPENLLMETRY),
        Name("gen_ai.prompt", GEN_AI, "1.26", "1.28"),
        _flat("llm.prompts", OPENINFERENCE),
        Name("pydantic_ai.all_messages", PYDANTIC_AI),
        Name("ai.prompt.messages", VERCEL),
    ),
    "output_messages": (
        Name("gen_ai.output.messages", GEN_AI, "1.37"),
        _flat("llm.output_messages", OPENINFERENCE),
        _flat("gen_ai.completion", OPENLLMETRY),
        Name("gen_ai.completion", GEN_AI, "1.26", "1.28"),
        _flat("llm.choices", OPENINFERENCE),
        Name("pydantic_ai.all_messages", PYDANTIC_AI),
    ),
    "query": (
        Name("gen_ai.retrieval.query.text", GEN_AI, "1.40"),
        Name("reranker.query", OPENINFERENCE),
    ),
    "documents": (
        _flat("reranker.output_documents", OPENINFERENCE),
        _flat("retrieval.documents", OPENINFERENCE),
        Name("gen_ai.retrieval.documents", GEN_AI, "1.40"),
    ),
    "input_tokens": (
        Name("gen_ai.usage.input_tokens", GEN_AI, "1.27"),
        Name("llm.token_count.prompt", OPENINFERENCE),
        Name("gen_ai.usage.prompt_tokens", GEN_AI, "1.26", "1.27"),
        Name("llm.usage.prompt_tokens", OPENLLMETRY),
        Name("ai.usage.promptTokens", VERCEL),
        Name("ai.usage.inputTokens", VERCEL),
    ),
    "output_tokens": (
        Name("gen_ai.usage.output_tokens", GEN_AI, "1.27"),
        Name("llm.token_count.completion", OPENINFERENCE),
        Name("gen_ai.usage.completion_tokens", GEN_AI, "1.26", "1.27"),
        Name("llm.usage.completion_tokens", OPENLLMETRY),
        Name("ai.usage.completionTokens", VERCEL),
        Name("ai.usage.outputTokens", VERCEL),
    ),
    "cache_read_tokens": (
        Name("gen_ai.usage.cache_read.input_tokens", GEN_AI, "1.40"),
        Name("llm.token_count.prompt_details.cache_read", OPENINFERENCE),
        Name("gen_ai.usage.cache_read_input_tokens", OPENLLMETRY),
        Name("ai.usage.cachedInputTokens", VERCEL),
    ),
    "cache_write_tokens": (
        Name("gen_ai.usage.cache_write.input_tokens", COMMON),  # of OpenTelemetry, but in no version up to 1.44
        Name("gen_ai.usage.cache_creation.input_tokens", GEN_AI, "1.40"),
        Name("llm.token_count.prompt_details.cache_write", OPENINFERENCE),
        Name("gen_ai.usage.cache_creation_input_tokens", OPENLLMETRY),
    ),
    "reasoning_tokens": (
        Name("gen_ai.usage.reasoning.output_tokens", GEN_AI, "1.41"),
        Name("llm.token_count.completion_details.reasoning", OPENINFERENCE),
        Name("gen_ai.usage.reasoning_tokens", OPENLLMETRY),
        Name("gen_ai.usage.details.reasoning_tokens", PYDANTIC_AI),
        Name("ai.usage.reasoningTokens", VERCEL),
    ),
    "finish_reason": (
        Name("gen_ai.response.finish_reasons", GEN_AI, "1.26"),
        Name("llm.response.finish_reason", OPENLLMETRY),
        Name("llm.response.stop_reason", OPENLLMETRY),
        Name("ai.response.finishReason", VERCEL),
    ),
    "first_chunk_seconds": (Name("gen_ai.response.time_to_first_chunk", GEN_AI, "1.41"),),
    "first_chunk_milliseconds": (Name("ai.response.msToFirstChunk", VERCEL),),
    "cost": (
        Name("llm.cost.total", OPENINFERENCE),
        Name("gen_ai.usage.cost", COMMON),
        Name("gen_ai.usage.total_cost", COMMON),
        Name("operation.cost", PYDANTIC_AI),
    ),
    "input_cost": (Name("llm.cost.prompt", OPENINFERENCE),),
    "output_cost": (Name("llm.cost.completion", OPENINFERENCE),),
    "model": (
        Name("gen_ai.response.model", GEN_AI, "1.26"),
        Name("llm.response.model_name", OPENINFERENCE),
        Name("llm.model_name", OPENINFERENCE),
        Name("gen_ai.request.model", GEN_AI, "1.26"),
        Name("llm.request.model_name", OPENINFERENCE),
        Name("langfuse.observation.model.name", LANGFUSE),
        Name("ai.model.id", VERCEL),
    ),
    "session": (
        Name("session.id", OPENINFERENCE),
        Name("gen_ai.conversation.id", GEN_AI, "1.34"),
        Name("langfuse.session.id", LANGFUSE),
        Name("traceloop.association.properties.session_id", OPENLLMETRY),
        Name("mlflow.trace.session", MLFLOW, is_json=True),
    ),
    "user": (
        Name("user.id", OPENINFERENCE),
        Name("enduser.id", COMMON),
        Name("langfuse.user.id", LANGFUSE),
        Name("traceloop.association.properties.user_id", OPENLLMETRY),
        Name("mlflow.trace.user", MLFLOW, is_json=True),
    ),
    "name": (
        Name("gen_ai.tool.name", GEN_AI, "1.31"),
        Name("tool.name", OPENINFERENCE),
        Name("gen_ai.agent.name", GEN_AI, "1.31"),
        Name("agent.name", OPENINFERENCE),
        Name("traceloop.entity.name", OPENLLMETRY),
        Name("ai.toolCall.name", VERCEL),
    ),
    "metadata": (Name("metadata", OPENINFERENCE),),
    "tags": (Name("tag.tags", OPENINFERENCE), Name("langfuse.trace.tags", LANGFUSE)),
    "feedback": (
        _flat("annotations", OPENINFERENCE),
        _flat("evaluations", OPENINFERENCE),
        _flat("trace.annotations", OPENINFERENCE),
        _flat("trace.evaluations", OPENINFERENCE),
    ),
    "project": (Name("openinference.project.name", OPENINFERENCE), Name("service.name", GEN_AI, "1.26")),
}
"""The attributes of each meaning, the first of which counts. `project` is an attribute of the resource."""

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

_WANTED: Final = {meaning: tuple((name.attribute, name.is_json) for name in names if not name.is_prefix)
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
    for name in NAMES[meaning]:
        found = attributes.get(name.attribute)
        if isinstance(found, str) and found[:1] in "[{":
            found = load_json(found)
        if isinstance(found, Mapping):
            found = [found]
        if isinstance(found, list) and found and all(isinstance(item, Mapping) for item in found):
            yield [flatten(item) for item in found]
        elif name.is_prefix and (gathered := gather(attributes, f"{name.attribute}.")):
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
