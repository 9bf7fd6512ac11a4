"""Reads traces and datasets from Langfuse's API, or from the files that it exports.

A trace is made of the rows that Langfuse has for it: its observations, its scores and, in older versions, itself.
Items of a dataset become questions with gold answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from rageval_spec.data.traces import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse import connection
from rageval_spec.exchange.shared.row_groups import Rows, SpooledNode, SpooledSource, TraceRow
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service


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
    loose = "score"

    def __init__(self, node: LangfuseSourceNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._service: Service | None = None

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """Everything in the window: observations first, then the scores of their traces."""
        api, where = self._api(), TOOL
        filters = {"environment": self.node.environment} if self.node.environment else {}
        for number, page in enumerate(api.observations(self.window, filters), 1):
            yield [(f"{where}: page {number}, row {i}", row) for i, row in enumerate(page, 1)]
        for number, page in enumerate(api.scores(self.window) if self.node.scores else (), 1):
            yield [(f"{where}: page {number} of the scores, row {i}", row) for i, row in enumerate(page, 1)]

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        """The items of a dataset; None for archived ones and those without a question."""

        places = self.node.places
        for page in self._api().dataset_items(dataset):
            for row in page:
                yield read_item(row, dataset, places, TOOL)

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
        """The trace of some observations, scores and, in older versions, the trace itself."""

        return make_trace(rows, self.node.places)

    def is_step(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is more than a score."""

        return connection.tell_kind(row) != "score"

    def is_cut(self, rows: Rows) -> bool:
        """Whether there are steps without the one that they all belong to."""

        return is_cut(rows)

    def is_wanted(self, trace: Trace) -> bool:
        """Whether a trace has the name and the environment; not all of Langfuse's endpoints filter by them."""
        node = self.node
        environment = trace.metadata.get("environment")
        return node.name in (None, trace.metadata.get("trace_name")) and (
            node.environment is None or environment in (None, node.environment)
        )

    def close(self) -> None:
        """Close the connections."""
        if self._service is not None:
            self._service.close()

    def _api(self) -> connection.LangfuseApi:
        from rageval_spec.exchange.langfuse.connection import LangfuseApi, connect

        if self._service is None:
            self._service = connect(self.node, TOOL)
        return LangfuseApi(self._service, TOOL)


_KINDS: Mapping[str, StepKind] = {
    "RETRIEVER": "retrieval", "GENERATION": "model", "TOOL": "tool", "AGENT": "agent", "GUARDRAIL": "guardrail",
}  # fmt: skip
Retrieved = Mapping[str, tuple[Document, ...] | None]
"""The documents of each retrieval, by the id of its observation; None if it names none."""
_ASIDE = ("RETRIEVER", "TOOL", "GUARDRAIL", "EVALUATOR", "EMBEDDING")
"""Types of observations inside which no model answers the user."""
_KEPT = ("environment", "release", "version", "tracename")


def make_trace(rows: Sequence[connection.Row], places: questions_and_answers.RecordedPaths) -> Trace | None:
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
    tokens = _add_tokens(used)
    retrieved = _find_retrieved(observations, root)
    parents = _list_parents(observations)
    metadata = _gather_metadata(own, root)
    models = [row for row in observations if row.get("type") == "GENERATION"]
    return Trace(
        _link(trace_id, own, root, started),
        question,
        answer=answer,
        documents=questions_and_answers.gather_documents(
            own.get("output", root.get("output")),
            retrieved,
            parents,
            own.get("input", root.get("input")),
        ),
        references=tuple(text for row in scores if connection.is_correction(row) and (text := _corrected(row))),
        error=_find_error(root, observations) if answer is None else None,
        seconds=_read_seconds(own, root),
        input_tokens=tokens["input"],
        output_tokens=tokens["output"],
        cost=_add_cost(own, used),
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
        messages=questions_and_answers.find_messages(own.get("input", root.get("input"))),
        steps=tuple(_make_step(row, retrieved) for row in observations if row is not root or len(observations) == 1),
        feedback=tuple(_list_feedback(scores, observations, root)),
        metadata=metadata,
    )


def is_cut(rows: Sequence[connection.Row]) -> bool:
    """Whether the rows are the later part of a trace: steps without the one that they all belong to."""
    if any(connection.tell_kind(row) == "trace" for row in rows):
        return False
    observations = [row for row in rows if connection.tell_kind(row) == "observation"]
    return not any(_is_marked(row) or "parentobservationid" not in row for row in observations)


def _link(trace_id: str, own: connection.Row, root: connection.Row, started: datetime | None) -> TraceLink:
    project = values.read_text(root.get("projectid")) or values.read_text(own.get("projectid"))
    told = {
        "started": values.write_time(started),
        "environment": values.read_text(root.get("environment", own.get("environment"))),
    }
    return TraceLink(TOOL, trace_id, project=project, others={name: text for name, text in told.items() if text})


def _find_root(observations: Sequence[connection.Row]) -> connection.Row:
    """The observation that stands for the whole trace: a root, the earliest of several."""
    ids = {row["id"] for row in observations}
    marked = [row for row in observations if _is_marked(row)]
    roots = marked or [row for row in observations if values.read_text(row.get("parentobservationid")) not in ids]
    withinput = [row for row in roots if "input" in row]
    return (withinput or roots or [{}])[0]


def _is_marked(row: connection.Row) -> bool:
    return row.get("isrootobservation") in (True, "true", "True", 1)


def _first_question(
    own: connection.Row,
    root: connection.Row,
    observations: Sequence[connection.Row],
    places: questions_and_answers.RecordedPaths,
) -> str | None:
    """The question of the trace, of its root, or of its first model call or retrieval."""
    inner = (row for row in observations if row.get("type") in ("GENERATION", "RETRIEVER", "AGENT", "CHAIN"))
    for row in (own, root, *inner):
        if "input" in row and (found := places.question(row["input"])):
            return found
    return None


def _first_answer(
    own: connection.Row,
    root: connection.Row,
    observations: Sequence[connection.Row],
    places: questions_and_answers.RecordedPaths,
) -> str | None:
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


def _corrected(row: connection.Row) -> str | None:
    return values.read_text(row.get("stringvalue")) or values.read_text(row.get("value"))


def _list_feedback(
    scores: Sequence[connection.Row], observations: Sequence[connection.Row], root: connection.Row
) -> Iterator[Feedback]:
    """What scores say; that of an observation inside the trace is named after it: `retrieve.relevance`."""
    inner = {row["id"]: values.read_text(row.get("name")) or row["id"] for row in observations if row is not root}
    for row in scores:
        if not connection.is_correction(row) and (found := connection.read_feedback(row)) is not None:
            of = inner.get(connection.observation_of(row) or "")
            yield found if of is None else replace(found, name=f"{of}.{found.name}")


def _list_parents(observations: Sequence[connection.Row]) -> dict[str, str | None]:
    return {row["id"]: values.read_text(row.get("parentobservationid")) for row in observations}


def _find_retrieved(observations: Sequence[connection.Row], root: connection.Row) -> Retrieved:
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


def _list_used(observations: Sequence[connection.Row]) -> list[connection.Row]:
    """The observations whose tokens and cost count: of one inside another that both report them, only the outer."""
    reporting = [row["id"] for row in observations if any(_tokens_of(row).values()) or _cost_of(row)]
    kept = {*questions_and_answers.outermost(reporting, _list_parents(observations))}
    return [row for row in observations if row["id"] in kept or row["id"] not in reporting]


def _make_step(row: connection.Row, retrieved: Retrieved) -> Step:
    kind = _KINDS.get(str(row.get("type")), "other")
    output = row.get("output")
    failed = row.get("level") == "ERROR"
    return Step(
        kind,
        values.read_text(row.get("name")) or "",
        values.dump_text(parse_plain(row.get("input"))),
        values.dump_text(parse_plain(output)),
        retrieved.get(row["id"]),
        _measure(row),
        values.read_text(row.get("statusmessage")) or "failed" if failed else None,
    )


def parse_plain(found: Any) -> Any:
    """A text that is quoted as JSON without its quotes; anything else as it is."""
    parsed = values.open_text(found)
    return parsed if isinstance(parsed, str) else found


def _measure(row: connection.Row) -> float | None:
    """The seconds of an observation, from its times."""
    start, end = (
        values.read_time(row.get("starttime")),
        values.read_time(row.get("endtime")),
    )
    if start is not None and end is not None and end >= start:
        return round((end - start).total_seconds(), 6)
    return None


def _read_seconds(own: connection.Row, root: connection.Row) -> float | None:
    if (measured := _measure(root)) is not None:
        return measured
    for row in (own, root):
        if (seconds := values.read_number(row.get("latency"))) is not None and seconds >= 0:
            return seconds
    return None


def _add_tokens(observations: Sequence[connection.Row]) -> dict[str, int | None]:
    """The tokens of all model calls; of embeddings and others that report any, too."""
    counted = [_tokens_of(row) for row in observations]
    total: dict[str, int | None] = {}
    for kind in ("input", "output"):
        known = [count for one in counted if (count := one[kind]) is not None]
        total[kind] = sum(known) if known else None
    return total


def _tokens_of(row: connection.Row) -> dict[str, int | None]:
    usage = connection.read_mapping(row.get("usagedetails")) or connection.read_mapping(row.get("usage"))
    found: dict[str, int | None] = {}
    for kind, other in (("input", "prompt"), ("output", "completion")):
        names = [key for key in usage if key.lower().startswith((kind, other)) and "cost" not in key.lower()]
        counts = [values.read_count(usage[name]) for name in names]
        known = [count for count in counts if count is not None]
        found[kind] = sum(known) if known else values.read_count(row.get(f"{other}tokens", row.get(f"{kind}usage")))
    return found


def _add_cost(own: connection.Row, observations: Sequence[connection.Row]) -> float | None:
    if (total := values.read_number(own.get("totalcost"))) is not None:
        return total
    costs = [_cost_of(row) for row in observations]
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 12) if known else None


def _cost_of(row: connection.Row) -> float | None:
    details = connection.read_mapping(row.get("costdetails"))
    total = values.read_number(details.get("total"))
    return total if total is not None else values.read_number(row.get("totalcost"))


def _find_error(root: connection.Row, observations: Sequence[connection.Row]) -> str | None:
    for row in (root, *reversed(observations)):
        if row.get("level") == "ERROR":
            return (
                values.read_text(row.get("statusmessage")) or f"{values.read_text(row.get('name')) or 'a step'} failed"
            )
    return None


def _find_model(observations: Sequence[connection.Row]) -> str | None:
    """The model of the last call, which usually writes the answer."""
    models = [
        found
        for row in observations
        if row.get("type") == "GENERATION" and (found := values.read_text(row.get("model")))
    ]
    return models[-1] if models else None


def _either(name: str, root: connection.Row, own: connection.Row, observations: Sequence[connection.Row]) -> str | None:
    return next((found for row in (own, root, *observations) if (found := values.read_text(row.get(name)))), None)


def _gather_metadata(own: connection.Row, root: connection.Row) -> dict[str, Any]:
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


def read_item(found: Any, dataset: str, places: questions_and_answers.RecordedPaths, where: str) -> Trace | None:
    """The question of an item, under the item's id; None if it has none or is archived.

    Raises:
        DataError: the item is not an object, or has no id.
    """
    if not isinstance(found, Mapping):
        raise DataError(f"{where}: dataset '{dataset}': an item is not an object")
    row = connection.normalise(found, f"{where}: dataset '{dataset}'")
    question = places.question(row.get("input"))
    if question is None or row.get("status") == "ARCHIVED":
        return None
    expected = values.open_text(row.get("expectedoutput"))
    return Trace(
        TraceLink(
            "langfuse",
            values.read_text(row.get("sourcetraceid")) or row["id"],
            others={"dataset": dataset},
        ),
        question,
        query_id=row["id"],
        documents=questions_and_answers.find_contexts(row.get("input")),
        references=places.references(expected),
        relevant=questions_and_answers.read_relevant(expected, connection.read_mapping(row.get("metadata"))),
        messages=questions_and_answers.find_messages(row.get("input")),
        metadata=values.clean(connection.read_mapping(row.get("metadata"))),
    )
