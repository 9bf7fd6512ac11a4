"""Reads what an agent did for an answer: thoughts, calls of tools and what they gave, documents that it retrieved.

Known are chat messages with calls of tools, LangChain's `intermediate_steps`, DeepEval's `tools_called`, records of
thought, action and observation, and any list of objects with a name, an input and an output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rageval_spec.data.conversation import Turn, list_calls, read_turns
from rageval_spec.data.trace import Document, Step, StepKind
from rageval_spec.reading.answer_rows import ID_KEYS, SCORE_KEYS, TEXT_KEYS, UnusableReplyError
from rageval_spec.reading.json_values import name_kind

_KINDS: Mapping[str, StepKind] = {
    "retrieval": "retrieval", "retriever": "retrieval", "retrieve": "retrieval", "search": "retrieval",
    "rerank": "rerank", "reranker": "rerank", "tool": "tool", "tool_call": "tool", "function": "tool",
    "action": "tool", "llm": "model", "model": "model", "generation": "model", "thought": "model", "chain": "agent",
    "agent": "agent", "guardrail": "guardrail", "observation": "other",
}  # fmt: skip
_NAMES = ("name", "tool", "tool_name", "function")
_INPUTS = ("input", "tool_input", "input_parameters", "inputParameters", "arguments", "args", "parameters", "query")
_OUTPUTS = ("output", "result", "observation", "tool_output", "response", "content", "text")
_DOCUMENTS = ("documents", "docs", "results", "hits", "sources", "chunks", "contexts")
_ACTION = re.compile(r"(?P<name>\w+)\[(?P<input>.*)\]\s*", re.DOTALL)
_RETRIEVING = re.compile(r"search|retriev|lookup", re.IGNORECASE)


def read_steps(value: Any, what: str = "steps") -> tuple[Step, ...]:
    """The steps of an answer, in order.

    Raises:
        UnusableReplyError: the value is no list of steps.
    """
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


def dump_steps(steps: Sequence[Step]) -> str | None:
    """The steps as JSON text, which `load_steps` reads; None if there are none."""
    rows = [step.to_row() for step in steps]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"), default=str) if rows else None


def load_steps(text: str | None) -> tuple[Step, ...]:
    """The steps that `dump_steps` wrote; () for any other text."""
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
    steps: list[Step] = []
    open_calls: list[tuple[str | None, int]] = []
    for turn in turns:
        for name, given, identity in list_calls(turn):
            open_calls.append((identity, len(steps)))
            steps.append(Step(_guess_kind(name, "tool"), _mend(name), _mend(given)))
        if turn["role"] == "tool" and open_calls:
            named = (call for call in open_calls if call[0] == turn.get("tool_call_id"))
            call = next(named, open_calls[0])
            open_calls.remove(call)
            said = _mend(turn["content"])
            steps[call[1]] = _with_documents(replace(steps[call[1]], output=said), _parse(said))
    yield from steps


def _read_step(item: Any, what: str) -> Step:
    if isinstance(item, str):
        return Step("other", output=_mend(item))
    if isinstance(item, (list, tuple)) and len(item) == 2:  # LangChain: the action, and what was observed
        action = _read_step(item[0], what)
        return _with_documents(replace(action, output=_as_text(item[1])), item[1])
    if not isinstance(item, Mapping):
        raise UnusableReplyError(f"{what} must be an object, not {name_kind(item)}")
    function = item.get("function")
    fields = {**item, **function} if isinstance(function, Mapping) else item
    said = fields.get("kind", fields.get("type"))
    name = next((fields[key] for key in _NAMES if isinstance(fields.get(key), str)), "")
    default: StepKind = "tool" if name and any(key in fields for key in _INPUTS) else "other"
    kind = _guess_kind(said, _guess_kind(name, default)) if isinstance(said, str) else _guess_kind(name, default)
    output = _first(fields, _OUTPUTS)
    listed = _first(fields, _DOCUMENTS)
    seconds = fields.get("seconds")
    step = Step(
        kind,
        _mend(name) or (said if isinstance(said, str) and said not in _KINDS else "") or _name_kind(said),
        _as_text(_first(fields, _INPUTS)),
        _as_text(output),
        seconds=float(seconds) if isinstance(seconds, (int, float)) else None,
        error=_as_text(fields.get("error")),
    )
    return _with_documents(step, output if listed is None else listed)


def _name_kind(said: Any) -> str:
    return str(said) if said in ("thought", "action", "observation") else ""


def _guess_kind(word: str, default: StepKind) -> StepKind:
    if word.lower() in _KINDS:
        return _KINDS[word.lower()]
    return "retrieval" if default == "tool" and _RETRIEVING.search(word) else default


def _join_observations(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, with each action and the observation after it as one: `Search[Ada]` is a call of the tool Search."""
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
    if observation.documents is not None:
        return replace(step, documents=observation.documents)
    is_text = step.kind == "retrieval" and (step.output or "").strip()
    return replace(step, documents=(Document(text=step.output),)) if is_text else step


def _with_documents(step: Step, value: Any) -> Step:
    """The step with its documents, if the value is a list of them; else unchanged."""
    items = value if isinstance(value, (list, tuple)) else ()
    documents = [_read_document(item, step.kind) for item in items]
    if not documents or None in documents:
        return step
    kind = "retrieval" if step.kind in ("tool", "other") else step.kind
    return replace(step, kind=kind, output=None, documents=tuple(one for one in documents if one is not None))


def _read_document(item: Any, kind: StepKind) -> Document | None:
    if isinstance(item, str):
        return Document(text=_mend(item)) if kind in ("retrieval", "rerank") else None
    if not isinstance(item, Mapping):
        return None
    text = next((item[key] for key in TEXT_KEYS if isinstance(item.get(key), str)), None)
    name = next((item[key] for key in ID_KEYS if isinstance(item.get(key), (str, int))), None)
    score = next((item[key] for key in SCORE_KEYS if isinstance(item.get(key), (int, float))), None)
    if text is None and (name is None or kind not in ("retrieval", "rerank")):
        return None
    return Document(_as_text(text), None if name is None else _mend(str(name)), None if score is None else float(score))


def _parse(text: str | None) -> Any:
    if text is None or text.lstrip()[:1] != "[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _as_text(value: Any) -> str | None:
    if value is None:
        return None
    return _mend(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _mend(text: str) -> str:
    """The text with halves of surrogate pairs as escapes: files cannot store them."""
    return text.encode("utf-8", "backslashreplace").decode()
