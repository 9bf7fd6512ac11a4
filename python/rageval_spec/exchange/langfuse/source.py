"""Reads traces and datasets from Langfuse's API, or from the files that it exports.

A trace is made of the rows that Langfuse has for it: its observations, its scores and, in older versions, itself.
Items of a dataset become questions with gold answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import Field, model_validator

from rageval_spec.data.traces import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse import connection
from rageval_spec.exchange.langfuse.connection import Row
from rageval_spec.exchange.shared.row_groups import (
    Rows,
    SpooledNode,
    SpooledSource,
    TraceRow,
    add_known,
    make_item,
    measure_seconds,
)
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.questions_and_answers import RecordedPaths

TOOL = "langfuse"


class LangfuseSourceNode(connection.LangfuseConnection, SpooledNode):
    """Which traces, or which dataset, to read from Langfuse."""

    environment: str | None = Field(default=None, description="Only traces of this environment: `production`.")
    name: str | None = Field(default=None, description="Only traces with this name.")
    scores: bool = Field(default=True, description="Whether to read the scores of the traces, as feedback.")

    @model_validator(mode="after")
    def _check_choice(self) -> LangfuseSourceNode:
        if self.path is not None and self.dataset is not None:
            raise ValueError("name either `path` for exported files, or `dataset` for one of the API")
        return self


class LangfuseSource(SpooledSource[LangfuseSourceNode]):
    """Traces of Langfuse: of version 3 by its older endpoints, of later ones by observations."""

    node_type = LangfuseSourceNode
    summary = "Read traces and datasets of Langfuse, from its API or from exported files."
    examples = (
        "import langfuse --since 7d -o traces.jsonl",
        "import langfuse --dataset golden -o golden.jsonl",
        "import langfuse export/ -o traces.jsonl",
    )
    tool = TOOL
    loose = "score"
    api: connection.LangfuseApi

    def connect(self) -> connection.LangfuseApi:
        return connection.LangfuseApi(self.node, TOOL)

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """Everything in the window: observations first, then the scores of their traces."""
        filters = {"environment": self.node.environment} if self.node.environment else {}
        for number, page in enumerate(self.api.observations(self.window, filters), 1):
            yield self.place_rows(number, page)
        for number, page in enumerate(self.api.scores(self.window) if self.node.scores else (), 1):
            yield self.place_rows(number, page, " of the scores")

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        for page in self.api.dataset_items(dataset):
            for row in page:
                yield read_item(row, dataset, self.node.places, TOOL)

    def spread(self, found: Any) -> Iterator[Any]:
        """A trace with its observations and scores inside, as `GET /traces/ID` gives it, as rows of their own."""
        yield from connection.unnest(found)

    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        """A row under its trace; None for scores of sessions."""
        found = connection.normalise(row, place)
        kind, trace_id = connection.tell_kind(found), connection.trace_of(found)
        time = values.read_time(found.get("starttime" if kind == "observation" else "timestamp"))
        # Scores can come much later than what they judge, and must not make a trace seem newer.
        when = "" if kind == "score" else values.write_time(time) or ""
        return None if trace_id is None else TraceRow(trace_id, f"{kind}:{found['id']}", when, values.clean(found))

    def assemble(self, rows: Rows) -> Trace | None:
        return make_trace(rows, self.node.places)

    def is_step(self, row: Mapping[str, Any]) -> bool:
        return connection.tell_kind(row) != "score"

    def is_cut(self, rows: Rows) -> bool:
        return is_cut(rows)

    def is_wanted(self, trace: Trace) -> bool:
        """Whether a trace has the name and the environment; not all of Langfuse's endpoints filter by them."""
        node = self.node
        environment = trace.metadata.get("environment")
        return node.name in (None, trace.metadata.get("trace_name")) and (
            node.environment is None or environment in (None, node.environment)
        )


_KINDS: Mapping[str, StepKind] = {
    "RETRIEVER": "retrieval", "GENERATION": "model", "TOOL": "tool", "AGENT": "agent", "GUARDRAIL": "guardrail",
}  # fmt: skip
Retrieved = Mapping[str, tuple[Document, ...] | None]
"""The documents of each retrieval, by the id of its observation; None if it names none."""
_ASIDE = ("RETRIEVER", "TOOL", "GUARDRAIL", "EVALUATOR", "EMBEDDING")
"""Types of observations inside which no model answers the user."""
_KEPT = ("environment", "release", "version", "tracename")


def make_trace(rows: Sequence[Row], places: RecordedPaths) -> Trace | None:
    """The trace that rows of one trace make; None if none of them has a question."""
    observations = [row for row in rows if connection.tell_kind(row) == "observation"]
    own = next((row for row in rows if connection.tell_kind(row) == "trace"), {})
    scores = [row for row in rows if connection.tell_kind(row) == "score"]
    root = _find_root(observations)
    question = _first_question(own, root, observations, places)
    trace_id = next((found for row in rows if (found := connection.trace_of(row))), None)
    if question is None or trace_id is None:
        return None
    answer = _first_answer(own, root, observations, places)
    started = values.read_time(root.get("starttime")) or values.read_time(own.get("timestamp"))
    used = _list_used(observations)
    tokens = [_tokens_of(row) for row in used]
    retrieved = _find_retrieved(observations, root)
    given = own.get("input", root.get("input"))
    metadata = _gather_metadata(own, root)
    models = [row for row in observations if row.get("type") == "GENERATION"]
    return Trace(
        _link(trace_id, own, root, started),
        question,
        answer=answer,
        documents=questions_and_answers.gather_documents(
            own.get("output", root.get("output")), retrieved, _list_parents(observations), given
        ),
        references=tuple(text for row in scores if connection.is_correction(row) and (text := _corrected(row))),
        error=_find_error(root, observations) if answer is None else None,
        seconds=_read_seconds(own, root),
        input_tokens=add_known(one["input"] for one in tokens),
        output_tokens=add_known(one["output"] for one in tokens),
        cost=add_known(map(_cost_of, used)) if (total := values.read_number(own.get("totalcost"))) is None else total,
        session=_either("sessionid", root, own, observations),
        user=_either("userid", root, own, observations),
        model=_find_model(observations),
        finish_reason=find_end(
            own.get("output"),
            root.get("output"),
            *[row.get(part) for row in models[-1:] for part in ("output", "metadata")],
        ),
        started=values.write_time(started),
        version=values.find_version(metadata, metadata.get("resourceAttributes")),
        messages=questions_and_answers.find_messages(given),
        steps=tuple(_make_step(row, retrieved) for row in observations if row is not root or len(observations) == 1),
        feedback=tuple(_list_feedback(scores, observations, root)),
        metadata=metadata,
    )


def is_cut(rows: Sequence[Row]) -> bool:
    """Whether the rows are the later part of a trace: steps without the one that they all belong to."""
    if any(connection.tell_kind(row) == "trace" for row in rows):
        return False
    observations = [row for row in rows if connection.tell_kind(row) == "observation"]
    return not any(_is_marked(row) or "parentobservationid" not in row for row in observations)


def _link(trace_id: str, own: Row, root: Row, started: datetime | None) -> TraceLink:
    project = values.read_text(root.get("projectid")) or values.read_text(own.get("projectid"))
    environment = values.read_text(root.get("environment", own.get("environment")))
    told = {"started": values.write_time(started), "environment": environment}
    return TraceLink(TOOL, trace_id, project=project, others={name: text for name, text in told.items() if text})


def _find_root(observations: Sequence[Row]) -> Row:
    """The observation that stands for the whole trace: a root, the earliest of several."""
    ids = {row["id"] for row in observations}
    marked = [row for row in observations if _is_marked(row)]
    roots = marked or [row for row in observations if values.read_text(row.get("parentobservationid")) not in ids]
    withinput = [row for row in roots if "input" in row]
    return (withinput or roots or [{}])[0]


def _is_marked(row: Row) -> bool:
    return row.get("isrootobservation") in (True, "true", "True", 1)


def _first_question(own: Row, root: Row, observations: Sequence[Row], places: RecordedPaths) -> str | None:
    """The question of the trace, of its root, or of its first model call or retrieval."""
    inner = (row for row in observations if row.get("type") in ("GENERATION", "RETRIEVER", "AGENT", "CHAIN"))
    for row in (own, root, *inner):
        if "input" in row and (found := places.question(row["input"])):
            return found
    return None


def _first_answer(own: Row, root: Row, observations: Sequence[Row], places: RecordedPaths) -> str | None:
    """The answer of the trace or of its root, else that of the last model call, unless the root failed.

    Models inside retrievals, tools, guards and evaluators answer nobody.
    """
    parents = _list_parents(observations)
    kinds = {row["id"]: str(row.get("type")) for row in observations}
    spoken = [
        row
        for row in observations
        if kinds[row["id"]] == "GENERATION"
        and root.get("level") != "ERROR"
        and not any(kinds.get(above) in _ASIDE for above in questions_and_answers.list_above(row["id"], parents))
    ]
    found = [row["output"] for row in (own, root, *reversed(spoken)) if row.get("output") is not None]
    return places.answer(*found) if found else None


def _corrected(row: Row) -> str | None:
    return values.read_text(row.get("stringvalue")) or values.read_text(row.get("value"))


def _list_feedback(scores: Sequence[Row], observations: Sequence[Row], root: Row) -> Iterator[Feedback]:
    """What scores say; that of an observation inside the trace is named after it: `retrieve.relevance`."""
    inner = {row["id"]: values.read_text(row.get("name")) or row["id"] for row in observations if row is not root}
    for row in scores:
        if not connection.is_correction(row) and (found := connection.read_feedback(row)) is not None:
            of = inner.get(connection.observation_of(row) or "")
            yield found if of is None else replace(found, name=f"{of}.{found.name}")


def _list_parents(observations: Sequence[Row]) -> dict[str, str | None]:
    return {row["id"]: values.read_text(row.get("parentobservationid")) for row in observations}


def _find_retrieved(observations: Sequence[Row], root: Row) -> Retrieved:
    """The documents of each retriever; without any, those of tools and spans whose names say that they retrieve."""
    found = {
        row["id"]: questions_and_answers.find_documents(row.get("output"))
        for row in observations
        if row.get("type") == "RETRIEVER"
    }
    if any(found.values()):
        return found
    named = {
        row["id"]: documents
        for row in observations
        if row is not root
        and row.get("type") in ("SPAN", "TOOL", "CHAIN")
        and questions_and_answers.retrieves(str(row.get("name")))
        and (documents := questions_and_answers.find_listed_documents(row.get("output")))
    }
    return named or found


def _list_used(observations: Sequence[Row]) -> list[Row]:
    """The observations whose tokens and cost count: of one inside another that both report them, only the outer."""
    reporting = [row["id"] for row in observations if any(_tokens_of(row).values()) or _cost_of(row)]
    kept = {*questions_and_answers.outermost(reporting, _list_parents(observations))}
    return [row for row in observations if row["id"] in kept or row["id"] not in reporting]


def _make_step(row: Row, retrieved: Retrieved) -> Step:
    failed = row.get("level") == "ERROR"
    return Step(
        _KINDS.get(str(row.get("type")), "other"),
        values.read_text(row.get("name")) or "",
        values.dump_text(parse_plain(row.get("input"))),
        values.dump_text(parse_plain(row.get("output"))),
        retrieved.get(row["id"]),
        _measure(row),
        values.read_text(row.get("statusmessage")) or "failed" if failed else None,
    )


def parse_plain(found: Any) -> Any:
    """A text that is quoted as JSON without its quotes; anything else as it is."""
    parsed = values.open_text(found)
    return parsed if isinstance(parsed, str) else found


def _measure(row: Row) -> float | None:
    return measure_seconds(row.get("starttime"), row.get("endtime"))


def _read_seconds(own: Row, root: Row) -> float | None:
    if (measured := _measure(root)) is not None:
        return measured
    for row in (own, root):
        if (seconds := values.read_number(row.get("latency"))) is not None and seconds >= 0:
            return seconds
    return None


def _tokens_of(row: Row) -> dict[str, int | None]:
    usage = connection.read_mapping(row.get("usagedetails")) or connection.read_mapping(row.get("usage"))
    found: dict[str, int | None] = {}
    for kind, other in (("input", "prompt"), ("output", "completion")):
        names = [key for key in usage if key.lower().startswith((kind, other)) and "cost" not in key.lower()]
        counted = add_known(values.read_count(usage[name]) for name in names)
        plain = values.read_count(row.get(f"{other}tokens", row.get(f"{kind}usage")))
        found[kind] = plain if counted is None else counted
    return found


def _cost_of(row: Row) -> float | None:
    details = connection.read_mapping(row.get("costdetails"))
    total = values.read_number(details.get("total"))
    return total if total is not None else values.read_number(row.get("totalcost"))


def _find_error(root: Row, observations: Sequence[Row]) -> str | None:
    for row in (root, *reversed(observations)):
        if row.get("level") == "ERROR":
            name = values.read_text(row.get("name")) or "a step"
            return values.read_text(row.get("statusmessage")) or f"{name} failed"
    return None


def _find_model(observations: Sequence[Row]) -> str | None:
    """The model of the last call, which usually writes the answer."""
    calls = (row for row in reversed(observations) if row.get("type") == "GENERATION")
    return next((found for row in calls if (found := values.read_text(row.get("model")))), None)


def _either(name: str, root: Row, own: Row, observations: Sequence[Row]) -> str | None:
    return next((found for row in (own, root, *observations) if (found := values.read_text(row.get(name)))), None)


def _gather_metadata(own: Row, root: Row) -> dict[str, Any]:
    kept: dict[str, Any] = values.clean(
        {**connection.read_mapping(root.get("metadata")), **connection.read_mapping(own.get("metadata"))}
    )
    for name in _KEPT:
        if found := values.read_text(own.get(name)) or values.read_text(root.get(name)):
            kept.setdefault("trace_name" if name == "tracename" else name, found)
    if (title := values.read_text(own.get("name")) or values.read_text(root.get("name"))) is not None:
        kept.setdefault("trace_name", title)
    if tags := connection.read_list(own.get("tags")) or connection.read_list(root.get("tags")):
        kept.setdefault("tags", tags)
    return kept


def read_item(found: Any, dataset: str, places: RecordedPaths, where: str) -> Trace | None:
    """The question of an item, under the item's id; None if it has none or is archived."""
    if not isinstance(found, Mapping):
        raise DataError(f"{where}: dataset '{dataset}': an item is not an object")
    row = connection.normalise(found, f"{where}: dataset '{dataset}'")
    question = places.question(row.get("input"))
    if question is None or row.get("status") == "ARCHIVED":
        return None
    link = TraceLink(TOOL, values.read_text(row.get("sourcetraceid")) or row["id"], others={"dataset": dataset})
    metadata = connection.read_mapping(row.get("metadata"))
    return make_item(link, row["id"], question, places, row.get("input"), row.get("expectedoutput"), metadata)
