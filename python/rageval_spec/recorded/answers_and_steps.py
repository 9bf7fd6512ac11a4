"""Reads answers in the formats of different systems, and what an agent did for an answer.

Answers have texts, contexts as texts or objects, ids and numbers. Steps of agents are thoughts, calls of tools and
what they gave, and documents that the agent retrieved. Known are chat messages with calls of tools, LangChain's
`intermediate_steps`, DeepEval's `tools_called`, records of thought, action and observation, and any list of objects
with a name, an input and an output.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.tables import LATER_ANSWERS
from rageval_spec.dataclass import dataclass, fields, replace
from rageval_spec.libraries import compile_later
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.json_path import list_keys, name_kind
from rageval_spec.recorded.messages import Turn, list_calls, read_turns

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.traces import Document, Step, StepKind


_SHOWN = 60
_MOST_NUMBERS = 10
_LATER = frozenset({*LATER_ANSWERS, "version"})
"""Fields of an answer that earlier versions did not store."""


class UnusableReplyError(ValueError):
    """A reply is not an answer; the message says why."""


class BrokenTextError(UnusableReplyError):
    """A text contains half a surrogate pair, which files and reports cannot store."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One query's answer: a row of the answers' table less its query.

    Attributes:
        seconds: how long it took. Like the other fields, it is None if unknown.
        cost: in US dollars.
        error: why there is no answer.
        steps: what an agent did, as `dump_steps` writes it.
        trace: where a tracing tool has the answer, as `TraceLink.dump` writes it.
        truncated: True if the model stopped at its token limit; None if it did not, or does not say.
        answer_columns: what else was recorded of it, as `dump_answer_columns` writes it.
        asked: when it was asked, if it was not asked now: ISO 8601, in UTC.
        context_places: where the contexts are in their documents, as `Contexts.places`.
        citations: what it cites, as `data.evidence.citations.dump_citations` writes it; None if it cites nothing.
        version: of the application, as its trace has it. It is no column of tables.
    """

    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    scores: tuple[float | None, ...] | None = None
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    error: str | None = None
    trace: str | None = None
    steps: str | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    truncated: bool | None = None
    answer_columns: str | None = None
    asked: str | None = None
    context_places: str | None = None
    citations: str | None = None
    version: str | None = None

    def pack(self) -> bytes:
        return json.dumps(self.to_dict()).encode("ascii")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON types. Fields that were added later are left out if they are None."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        known = ((key, value) for key, value in values if value is not None or key not in _LATER)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in known}

    @classmethod
    def unpack(cls, content: bytes) -> AnswerRow | None:
        """The packed row; None if the content is something else, for example because the store is damaged."""
        try:
            found = json.loads(content)
            if set(found) | _LATER != {field.name for field in fields(cls)}:
                return None
            values: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
            }
            return cls(**values)
        except (ValueError, TypeError):
            return None


def dump_answer_columns(values: Iterable[tuple[str, Any]]) -> str | None:
    """Named values of a recorded answer as a JSON object; None if there are none.

    Kept are numbers, true and false, and short texts: metrics read numbers and words from them, not documents. A short
    list of numbers is kept so that a metric can say that it is no number.
    """
    kept = {name: value for name, value in list_inner(values) if _is_plain(value)}
    return json.dumps(kept, sort_keys=True) if kept else None


def list_inner(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Named values; those of an object, and those of a list of scores with names, as `object.name`."""
    from rageval_spec.data.traces import merge_scores

    for name, value in values:
        named = [one for one in value if isinstance(one, Mapping) and "name" in one] if isinstance(value, list) else []
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        elif named:
            yield from merge_scores(name, named).items()
        else:
            yield name, value


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHOWN
    if isinstance(value, list):
        is_short = 0 < len(value) <= _MOST_NUMBERS
        return is_short and all(not isinstance(one, (str, list)) and _is_plain(one) for one in value)
    return isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value))


class Contexts(NamedTuple):
    """The texts that an answer is based on, with the ids and scores of their documents if known.

    `places` says where each is in its document: a JSON list of `[document, start, end]`, half open, or null; None if
    no context says it.
    """

    texts: tuple[str, ...]
    ids: tuple[str, ...] | None = None
    scores: tuple[float | None, ...] | None = None
    places: str | None = None


def table_of(rows: Iterable[tuple[str, AnswerRow]], citations_from: int | None = None) -> pl.DataFrame:
    """The answers' table of pairs of a query's id and its row.

    `citations_from` is the number that the answers give the first context; None leaves what was found.
    """
    from rageval_spec.data.tables import answers_table

    counted = ((query_id, row if citations_from is None else _recount(row, citations_from)) for query_id, row in rows)
    return answers_table({"query_id": query_id, **row.to_dict()} for query_id, row in counted)


def _recount(row: AnswerRow, first: int) -> AnswerRow:
    from rageval_spec.data.evidence.citations import count_from, dump_citations, load_citations

    found = load_citations(row.citations)
    if found is None:
        return row
    contexts = None if row.contexts is None and row.context_ids is None else (row.contexts or row.context_ids or ())
    return replace(row, citations=dump_citations(count_from(found, None if contexts is None else len(contexts), first)))


def read_asked(found: Any) -> str | None:
    """The time at which a recorded answer was asked, in UTC with seconds; None for anything else."""
    moment = values.read_time(found)
    return None if moment is None else moment.isoformat(timespec="seconds")


def is_missing(value: Any) -> bool:
    """Whether a field of a file is empty: null, an empty text, or the NaN that data frames write for null."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def read_text(value: Any, what: str) -> str:
    """A text; a number or a boolean as in JSON. Raises UnusableReplyError: it is none, or BrokenTextError."""
    if value is None:
        raise UnusableReplyError(f"{what} is null")
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if not isinstance(value, str):
        raise UnusableReplyError(f"{what} must be text, not {name_kind(value)}: {values.show(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = ord(value[error.start])
        raise BrokenTextError(f"{what} has half a surrogate pair, \\u{half:x}, so it is not valid text") from None
    return str(value)


def read_contexts(value: Any, what: str = "contexts") -> Contexts:
    """Contexts: a text, a list of texts, or a list of objects with a text and optionally an id and a score.

    Raises UnusableReplyError: they are something else, or only some items have an id.
    """
    items = [value] if isinstance(value, (str, Mapping)) else value
    if not isinstance(items, (list, tuple)):
        raise UnusableReplyError(f"{what} must be a list of texts or of objects, not {name_kind(value)}")
    objects = [item for item in items if not isinstance(item, str)]
    if not objects:
        return Contexts(tuple(read_text(item, f"{what}[{place}]") for place, item in enumerate(items)))
    if len(objects) < len(items):
        raise UnusableReplyError(f"{what} has both texts and objects; make all of them the same")
    if wrong := [n for n, item in enumerate(items) if not isinstance(item, Mapping)]:
        raise UnusableReplyError(f"{what}[{wrong[0]}] must be text or an object, not {name_kind(items[wrong[0]])}")
    read = [*map(questions_and_answers.open_document, items)]
    texts = tuple(_text_of(item, f"{what}[{place}]") for place, item in enumerate(read))
    places = [_read_place(item, f"{what}[{place}]") for place, item in enumerate(read)]
    has_places = any(place is not None for place in places)
    keys = [key for key in questions_and_answers.ID_KEYS if not has_places or key != "document_id"]
    ids = _all_or_none(read, keys, what)
    if ids is None and has_places and all(item.get("document_id") is not None for item in read):
        ids = [item["document_id"] for item in read]
    key = next((key for key in questions_and_answers.SCORE_KEYS if any(key in item for item in read)), None)
    return Contexts(
        texts,
        None if ids is None else tuple(read_id(found, f"{what}[{place}].id") for place, found in enumerate(ids)),
        None if key is None else read_scores([item.get(key) for item in read], what, ".score"),
        json.dumps(places) if has_places else None,
    )


def _read_place(item: Mapping[str, Any], what: str) -> tuple[str, int, int] | None:
    """The document of a context and its offsets there; None if it does not say all of it."""
    metadata = item.get("metadata")
    both = {**(metadata if isinstance(metadata, Mapping) else {}), **item}
    document, start, end = both.get("document_id"), both.get("start"), both.get("end")
    if document is None or start is None or end is None:
        return None
    first, last = read_count(start, f"{what}.start"), read_count(end, f"{what}.end")
    if last < first:
        raise UnusableReplyError(f"{what}.end, {last}, is before its start, {first}")
    return read_id(document, f"{what}.document_id"), first, last


def read_scores(value: Any, what: str, part: str = "") -> tuple[float | None, ...] | None:
    """The retriever's scores of contexts, None for each that has none; None if no context has one."""
    if not isinstance(value, (list, tuple)):
        raise UnusableReplyError(f"{what} must be a list of numbers, not {name_kind(value)}")
    read = tuple(
        None if is_missing(score) else read_amount(score, f"{what}[{place}]{part}", low=-math.inf)
        for place, score in enumerate(value)
    )
    return None if all(score is None for score in read) else read


_ENDS = frozenset({"finishreason", "finishreasons", "stopreason", "donereason"})
"""Where models say why they stopped, in small letters without underscores."""
_AT_LIMIT = frozenset({"length", "maxtokens", "maxoutputtokens", "modellength", "modelcontextwindowexceeded"})
"""What they say if their token limit stopped them."""
_AROUND_ENDS = frozenset(
    {
        "choices", "candidates", "generations", "replies", "messages", "message", "delta", "output", "outputs",
        "result", "response", "data", "kwargs", "lckwargs", "meta", "details", "raw", "llmoutput", "responsemetadata",
        "generationinfo", "additionalkwargs", "metadata", "answer", "finalanswer", "finaloutput", "generation", "reply",
    }
)  # fmt: skip
_FIRST_COUNTS = frozenset({"choices", "candidates", "generations", "replies"})
"""Lists whose first item is the answer; of others, such as messages, it is the last one."""


def read_details(content: Any) -> dict[str, Any]:
    """Columns of answers that replies, files and traces name alike: fields of `AnswerRow`."""
    return {"truncated": is_truncated(content) or None}


def is_truncated(content: Any, depth: int = 0) -> bool:
    """Whether a reply or a recorded output says that the model stopped at its token limit.

    Known are `finish_reason: length` (OpenAI, LangChain, Haystack, Mistral), `stop_reason: max_tokens` (Anthropic,
    Bedrock), `finishReason: MAX_TOKENS` (Google), `done_reason: length` (Ollama), and the `incomplete_details` of
    OpenAI's responses.
    """
    content = values.open_text(content) if depth == 0 else content
    if isinstance(content, (list, tuple)):
        return bool(content) and depth < _DEEPEST_END and is_truncated(content[-1], depth + 1)
    if not isinstance(content, Mapping) or depth >= _DEEPEST_END:
        return False
    for name, value in content.items():
        key = re.sub(r"[_-]", "", str(name)).lower()
        inner = value[:1] if key in _FIRST_COUNTS and isinstance(value, (list, tuple)) else value
        if key == "incompletedetails" and isinstance(value, Mapping):
            inner, key = value.get("reason"), "finishreason"
        if key in _ENDS:
            said = inner if isinstance(inner, (list, tuple)) else [inner]
            if any(re.sub(r"[^a-z]", "", str(one).rpartition(".")[2].lower()) in _AT_LIMIT for one in said):
                return True
        elif key in _AROUND_ENDS and is_truncated(inner, depth + 1):
            return True
    return False


_DEEPEST_END = 10


def find_end(*outputs: Any) -> str | None:
    """`length` if any recorded output says that the model stopped at its token limit."""
    return "length" if any(is_truncated(output) for output in outputs) else None


def read_ids(value: Any, what: str = "context_ids") -> tuple[str, ...]:
    """A list of ids, or a single one. Each is text or a whole number, or UnusableReplyError is raised."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return tuple(read_id(item, f"{what}[{place}]") for place, item in enumerate(items))


def read_id(value: Any, what: str) -> str:
    """An id as text; `7.0` is `7`. Raises UnusableReplyError: it is neither text nor a whole number, or is empty."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, Integral)):
        raise UnusableReplyError(f"{what} must be text or a whole number, not {values.show(value)}")
    text = read_text(str(value), what)
    if not text.strip():
        raise UnusableReplyError(f"{what} is empty")
    return text


def read_count(value: Any, what: str) -> int:
    """A whole number of at least 0, also as text. Raises UnusableReplyError: it is something else, such as NaN."""
    number = read_amount(value, what)
    if not number.is_integer() or number > 2**53:
        raise UnusableReplyError(f"{what} must be a whole number, not {values.show(value)}")
    return int(number)


def read_amount(value: Any, what: str, low: float = 0.0) -> float:
    """A finite number of at least `low`, also as text. Raises UnusableReplyError: it is something else, such as NaN."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, (Real, str)) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < low:
        least = "" if low == -math.inf else f" of at least {low:g}"
        raise UnusableReplyError(f"{what} must be a number{least}, not {values.show(value)}")
    return number


def _text_of(item: Mapping[str, Any], what: str) -> str:
    key = next((key for key in questions_and_answers.TEXT_KEYS if item.get(key) is not None), None)
    if key is None:
        wanted = " or ".join(repr(key) for key in questions_and_answers.TEXT_KEYS[:3])
        raise UnusableReplyError(f"{what} has no {wanted}; it has {list_keys(list(item))}")
    return read_text(item[key], f"{what}.{key}")


def _all_or_none(items: Sequence[Mapping[str, Any]], keys: Sequence[str], what: str) -> list[Any] | None:
    """The values of the first key that any item has, or None."""
    key = next((key for key in keys if any(item.get(key) is not None for item in items)), None)
    if key is None:
        return None
    absent = next((place for place, item in enumerate(items) if item.get(key) is None), None)
    if absent is not None:
        raise UnusableReplyError(f"{what}[{absent}] has no {key!r}, although others have one")
    return [item[key] for item in items]


_KINDS: Mapping[str, StepKind] = {
    "retrieval": "retrieval", "retriever": "retrieval", "retrieve": "retrieval", "search": "retrieval",
    "rerank": "rerank", "reranker": "rerank", "tool": "tool", "tool_call": "tool", "function": "tool",
    "action": "tool", "llm": "model", "model": "model", "generation": "model", "thought": "model", "chain": "agent",
    "agent": "agent", "guardrail": "guardrail", "observation": "other",
}  # fmt: skip
_NAMELESS = _KINDS.keys() - {"thought", "action", "observation"}  # that name nothing but the kind
_NAMES = ("name", "tool", "tool_name", "function")
INPUT_KEYS = ("input", "tool_input", "input_parameters", "inputParameters", "arguments", "args", "parameters", "query")
"""Where a step has what it was called with."""
_OUTPUTS = ("output", "result", "observation", "tool_output", "response", "content", "text")
_DOCUMENTS = ("documents", "docs", "results", "hits", "sources", "chunks", "contexts")
STEP_PARTS = {*_NAMES, *INPUT_KEYS, *_OUTPUTS, *_DOCUMENTS, "id", "index", "kind", "type", "description", "reasoning"}
"""Keys of a step."""
_ACTION = compile_later(r"(?P<name>\w+)\[(?P<input>.*)\]\s*", re.DOTALL)


def read_steps(value: Any, what: str = "steps") -> tuple[Step, ...]:
    """The steps of an answer, in order. Raises UnusableReplyError: the value is no list of steps."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UnusableReplyError(f"{what} must be a list of steps, not text") from error
    turns = read_turns(value)
    if turns is not None:
        return tuple(_read_conversation(turns))
    if not isinstance(value, (list, tuple)):
        raise UnusableReplyError(f"{what} must be a list of steps, not {name_kind(value)}")
    return tuple(_join_observations([_read_step(item, f"{what}[{place}]") for place, item in enumerate(value)]))


def dump_steps(steps: Sequence[Step] | None) -> str | None:
    """The steps as JSON text, which `load_steps` reads; None if they are not known."""
    dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
    return None if steps is None else dump([step.to_row() for step in steps])


def load_steps(text: str | None) -> tuple[Step, ...]:
    """The steps that `dump_steps` wrote; () for any other text."""
    from rageval_spec.data.traces import Step

    try:
        return () if text is None else tuple(map(Step.from_row, json.loads(text)))
    except (ValueError, TypeError, AttributeError):
        return ()


def list_retrieved(steps: Sequence[Step]) -> tuple[Document, ...]:
    """The documents with texts that the steps retrieved, each once, in order."""
    found: dict[tuple[str | None, str | None], Document] = {}
    for step in steps:
        if step.kind in ("retrieval", "rerank", "tool"):
            for document in step.documents or ():
                if document.text is not None:
                    found.setdefault((document.doc_id, document.text), document)
    return tuple(found.values())


def _read_conversation(turns: Sequence[Turn]) -> Iterator[Step]:
    """A step for each call of a tool, with what the tool said; the texts of a conversation are no steps."""
    from rageval_spec.data.traces import Step

    steps: list[Step] = []
    open_calls: list[tuple[str | None, int]] = []
    for turn in turns:
        for name, given, identity in list_calls(turn):
            open_calls.append((identity, len(steps)))
            steps.append(Step(_guess_kind(name, "tool"), values.clean_text(name), values.clean_text(given)))
        if turn["role"] == "tool" and open_calls:
            named = (call for call in open_calls if call[0] == turn.get("tool_call_id"))
            call = next(named, open_calls[0])
            open_calls.remove(call)
            said = values.clean_text(turn["content"])
            steps[call[1]] = _with_documents(replace(steps[call[1]], output=said), values.open_text(said))
    yield from steps


def _read_step(item: Any, what: str) -> Step:
    from rageval_spec.data.traces import Step

    if isinstance(item, str):
        return Step("other", output=values.clean_text(item))
    if isinstance(item, (list, tuple)) and len(item) == 2:  # LangChain: the action, and what was observed
        action = _read_step(item[0], what)
        return _with_documents(replace(action, output=_as_text(item[1])), item[1])
    if not isinstance(item, Mapping):
        raise UnusableReplyError(f"{what} must be an object, not {name_kind(item)}")
    function = item.get("function")
    fields = {**item, **function} if isinstance(function, Mapping) else item
    said = fields.get("kind", fields.get("type"))
    name = next((fields[key] for key in _NAMES if isinstance(fields.get(key), str)), "")
    is_call = any(key in fields for key in INPUT_KEYS) or {*fields} <= {*_NAMES, "description", "reasoning"}
    default: StepKind = "tool" if name and is_call else "other"
    kind = _guess_kind(said, _guess_kind(name, default)) if isinstance(said, str) else _guess_kind(name, default)
    output = _first(fields, _OUTPUTS)
    listed = _first(fields, _DOCUMENTS)
    step = Step(
        kind,
        values.clean_text(name) or (said if isinstance(said, str) and said not in _NAMELESS else ""),
        _as_text(_first(fields, INPUT_KEYS)),
        _as_text(output),
        seconds=float(seconds) if isinstance(seconds := fields.get("seconds"), (int, float)) else None,
        error=_as_text(fields.get("error")),
    )
    return _with_documents(step, output if listed is None else listed, is_named="documents" in fields)


def _guess_kind(word: str, default: StepKind) -> StepKind:
    if word.lower() in _KINDS:
        return _KINDS[word.lower()]
    return "retrieval" if default == "tool" and questions_and_answers.retrieves(word) else default


def _join_observations(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, with each action and the observation after it as one: `Search[Ada]` is a call of the tool Search."""
    from rageval_spec.data.traces import Step

    waiting: Step | None = None
    for step in steps:
        if waiting is not None:
            if step.name == "observation":
                yield _complete(replace(waiting, output=step.output), step)
                waiting = None
                continue
            yield waiting
            waiting = None
        action = _ACTION.fullmatch(step.output or "") if step.name == "action" else None
        if action is not None:
            waiting = Step(_guess_kind(action["name"], "tool"), action["name"], action["input"])
        else:
            yield step
    if waiting is not None:
        yield waiting


def _complete(step: Step, observation: Step) -> Step:
    """A call with what it gave; the text that a retrieval gave is a document."""
    from rageval_spec.data.traces import Document

    if observation.documents is not None:
        return replace(step, documents=observation.documents)
    is_text = step.kind == "retrieval" and (step.output or "").strip()
    return replace(step, documents=(Document(text=step.output),)) if is_text else step


def _with_documents(step: Step, value: Any, *, is_named: bool = False) -> Step:
    """The step with its documents, if the value is a list of them; else unchanged.

    An empty one is a retrieval that found nothing, where the step is a retrieval or the list `is_named` so.
    """
    documents = [_read_document(item, step.kind) for item in value] if isinstance(value, (list, tuple)) else [None]
    if None in documents or not (documents or is_named or step.kind in ("retrieval", "rerank")):
        return step
    kind = "retrieval" if step.kind in ("tool", "other") else step.kind
    return replace(step, kind=kind, output=None, documents=tuple(one for one in documents if one is not None))


def _read_document(item: Any, kind: StepKind) -> Document | None:
    from rageval_spec.data.traces import Document

    if isinstance(item, str):
        return Document(text=values.clean_text(item)) if kind in ("retrieval", "rerank") else None
    if not isinstance(item, Mapping):
        return None
    found = questions_and_answers.read_document(item)
    return None if found is None or (found.text is None and kind not in ("retrieval", "rerank")) else found


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _as_text(value: Any) -> str | None:
    if value is None:
        return None
    return values.clean_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
