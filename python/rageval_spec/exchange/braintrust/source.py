"""Reads experiments, logs and datasets of Braintrust, from its API or from exported files.

The rows of one root span become a trace. The rows of datasets become questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from rageval_spec.data.traces import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.braintrust.connection import BraintrustApi, BraintrustConnection
from rageval_spec.exchange.shared.contracts import parse_moment
from rageval_spec.exchange.shared.row_groups import Rows, SpooledNode, SpooledSource, TraceRow
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service


TOOL = "braintrust"


class BraintrustSourceNode(BraintrustConnection, SpooledNode):
    """Which experiment, logs or dataset to read from Braintrust."""

    project: str | None = Field(default=None, description="The project: its logs, or what the next keys name in it.")
    experiment: str | None = Field(default=None, description="Read the rows of this experiment of the project.")

    @model_validator(mode="after")
    def _check_choice(self) -> BraintrustSourceNode:
        if (self.project is None) == (self.path is None):
            raise ValueError("name either `project`, or `path` for exported files")
        if self.experiment is not None and self.dataset is not None:
            raise ValueError("name either `experiment` or `dataset`")
        if self.path is not None and (self.experiment or self.dataset):
            raise ValueError("exported files have no experiments or datasets; leave out one of the two")
        return self


class BraintrustSource(SpooledSource[BraintrustSourceNode]):
    """Rows of Braintrust, put together to traces; rows of its datasets."""

    node_type = BraintrustSourceNode
    summary = "Read experiments, logs and datasets of Braintrust, from its API or from exported files."
    examples = (
        "import braintrust --project support --since 7d -o traces.jsonl",
        "import braintrust --project support --experiment nightly -o answers.jsonl",
        "import braintrust --project support --dataset golden -o golden.jsonl",
        "import braintrust experiment.json -o answers.jsonl",
    )

    def __init__(self, node: BraintrustSourceNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._service: Service | None = None
        self._link: dict[str, str] = {}
        self._rows = 0

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """The rows of the experiment or of the project's logs, until those that are older than the window."""
        api, where, project = self._api(), TOOL, self.node.project or ""
        kind: Any = "project_logs" if self.node.experiment is None else "experiment"
        self._link = {"object": kind, "object_id": api.find(kind, project, self.node.experiment)}
        for number, page in enumerate(api.rows(kind, self._link["object_id"]), 1):
            yield [(f"{where}: page {number}, row {i}", row) for i, row in enumerate(page, 1)]
            if page and all(map(self._is_before, page)):
                return

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        """The rows of a dataset; None for those without a question."""

        api, places = self._api(), self.node.places
        for page in api.rows("dataset", api.find("dataset", self.node.project or "", dataset)):
            for row in page:
                if not isinstance(row, Mapping):
                    raise DataError(f"{TOOL}: dataset '{dataset}': a row is not an object")
                yield read_row(row, places, dataset, self.node.project)

    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        """A row under its root span; a row of a plain export stands for itself."""

        found = {key: value for key, value in row.items() if value is not None and value != ""}
        if "input" not in found and "id" not in found:
            raise DataError(f"{place}: there is no 'input' and no 'id' in this row, as Braintrust's rows have")
        self._rows += 1
        identity = values.read_text(found.get("id")) or f"row-{self._rows}"
        time = values.write_time(values.read_time(found.get("created"))) or ""
        # Groups without a time leave in the descending order of their names: the first row of a file comes first.
        group = values.read_text(found.get("root_span_id")) or f"row {10**12 - self._rows}"
        return TraceRow(group, identity, time, values.clean({**found, "id": identity}))

    def assemble(self, rows: Rows) -> Trace | None:
        """The trace of some rows."""

        return make_trace(rows, self.node.places, self._link, self.node.project)

    def is_cut(self, rows: Rows) -> bool:
        """Whether the root is missing."""

        return not any(map(is_root, rows))

    def close(self) -> None:
        """Close the connections."""
        if self._service is not None:
            self._service.close()

    def _api(self) -> BraintrustApi:
        from rageval_spec.exchange.braintrust.connection import BraintrustApi, connect

        if self._service is None:
            self._service = connect(self.node, TOOL)
        return BraintrustApi(self._service, TOOL)

    def _is_before(self, row: Any) -> bool:
        """Whether a row is so much older than the window that all rows after it are older, too."""

        if self.node.since is None or not isinstance(row, Mapping):
            return False
        made = values.read_time(row.get("created"))
        return made is not None and made < parse_moment(self.node.since, self.now) - timedelta(hours=1)


Row = Mapping[str, Any]
_KINDS: Mapping[str, StepKind] = {"llm": "model", "tool": "tool"}


def make_trace(
    rows: Sequence[Row], places: questions_and_answers.RecordedPaths, link: Mapping[str, str], project: str | None
) -> Trace | None:
    """The trace of some rows; None if its root has no question, or is not among them.

    `link` says in which experiment or log the rows are.
    """
    root = next((row for row in rows if is_root(row)), None)
    models = [row for row in rows if _kind(row) == "llm" and row is not root]
    question = None if root is None else places.question(root.get("input"), *(row.get("input") for row in models))
    if root is None or not question:
        return None
    steps = [row for row in rows if row is not root and _kind(row) not in ("score", "scorer", "task", "eval")]
    spoken = () if root.get("error") else (row.get("output") for row in reversed(models))
    answer = places.answer(root.get("output"), *spoken)
    metadata = values.open_text(root.get("metadata"))
    about: dict[str, Any] = values.clean(metadata) if isinstance(metadata, Mapping) else {}
    started = values.write_time(values.read_time(root.get("created")))
    others = {**link, "row_id": str(root["id"]), **({"started": started} if started else {})}
    return Trace(
        TraceLink(
            TOOL,
            values.read_text(root.get("root_span_id")) or str(root["id"]),
            project=project,
            others=others,
        ),
        question,
        query_id=str(root["id"]),
        answer=answer,
        documents=_list_documents(steps, root),
        references=places.references(root.get("expected")),
        relevant=questions_and_answers.read_relevant(values.open_text(root.get("expected")), about),
        error=None if answer is not None else _find_error(root),
        seconds=_measure(root),
        input_tokens=_add(rows, root, "prompt_tokens", values.read_count),
        output_tokens=_add(rows, root, "completion_tokens", values.read_count),
        cost=_add(rows, root, "estimated_cost", values.read_number),
        session=values.read_text(about.get("session_id")),
        user=values.read_text(about.get("user_id")),
        model=_find_model(rows),
        finish_reason=find_end(
            root.get("output"),
            *[
                row.get(part)
                for row in [one for one in rows if _kind(one) == "llm"][-1:]
                for part in ("output", "metadata")
            ],
        ),
        started=started,
        version=values.find_version(about),
        messages=questions_and_answers.find_messages(root.get("input")),
        steps=tuple(map(_make_step, steps)),
        feedback=tuple(_list_scores(root)),
        metadata={
            **about,
            **({"tags": values.clean(tags)} if (tags := values.open_text(root.get("tags"))) else {}),
        },
    )


def read_row(row: Row, places: questions_and_answers.RecordedPaths, dataset: str, project: str | None) -> Trace | None:
    """The question of a row of a dataset, under the row's id; None without a question."""
    question = places.question(row.get("input"))
    if not question or values.read_text(row.get("id")) is None:
        return None
    metadata = values.open_text(row.get("metadata"))
    return Trace(
        TraceLink(TOOL, str(row["id"]), project=project, others={"dataset": dataset}),
        question,
        query_id=str(row["id"]),
        documents=questions_and_answers.find_contexts(row.get("input")),
        references=places.references(row.get("expected")),
        relevant=questions_and_answers.read_relevant(values.open_text(row.get("expected")), metadata),
        messages=questions_and_answers.find_messages(row.get("input")),
        metadata=values.clean(metadata) if isinstance(metadata, Mapping) else {},
    )


def is_root(row: Row) -> bool:
    """Whether all other rows of a trace belong to this one; a row of a plain export always is."""
    parents = values.open_text(row.get("span_parents"))
    marked = row.get("is_root")
    return marked in (True, "true", "True") if marked is not None else not parents


def _kind(row: Row) -> str:
    attributes = values.open_text(row.get("span_attributes"))
    return str(attributes.get("type", "")) if isinstance(attributes, Mapping) else ""


def _name(row: Row) -> str:
    attributes = values.open_text(row.get("span_attributes"))
    return values.read_text(attributes.get("name")) or "" if isinstance(attributes, Mapping) else ""


def _metrics(row: Row) -> Mapping[str, Any]:
    found = values.open_text(row.get("metrics"))
    return found if isinstance(found, Mapping) else {}


def _list_documents(steps: Sequence[Row], root: Row) -> tuple[Document, ...] | None:
    """The documents that the answer names, else those of the outermost steps that retrieve, by their names."""
    found = {_span(row): questions_and_answers.find_documents(row.get("output")) for row in steps if _retrieves(row)}
    parents = {_span(row): next(iter(_parents(row)), None) for row in steps}
    known = questions_and_answers.gather_documents(root.get("output"), found, parents, root.get("metadata"))
    return questions_and_answers.find_contexts(root.get("input")) if known is None else known


def _span(row: Row) -> str:
    return values.read_text(row.get("span_id")) or str(row.get("id"))


def _parents(row: Row) -> list[str]:
    parents = values.open_text(row.get("span_parents"))
    return [str(one) for one in parents] if isinstance(parents, list) else []


def _retrieves(row: Row) -> bool:
    return _kind(row) != "llm" and questions_and_answers.retrieves(_name(row))


def _make_step(row: Row) -> Step:
    retrieves = _retrieves(row)
    return Step(
        "retrieval" if retrieves else _KINDS.get(_kind(row), "other"),
        _name(row),
        values.dump_text(values.open_text(row.get("input"))),
        values.dump_text(values.open_text(row.get("output"))),
        questions_and_answers.find_documents(row.get("output")) if retrieves else None,
        _measure(row),
        _find_error(row),
    )


def _measure(row: Row) -> float | None:
    metrics = _metrics(row)
    start, end = (
        values.read_number(metrics.get("start")),
        values.read_number(metrics.get("end")),
    )
    if start is None or end is None or end < start:
        return None
    return round(end - start, 6)


def _add(rows: Sequence[Row], root: Row, name: str, read: Any) -> Any:
    """The sum over the calls of models; the root's own number if no call has any."""
    known = [number for row in rows if _kind(row) == "llm" and (number := read(_metrics(row).get(name))) is not None]
    return round(sum(known), 12) if known else read(_metrics(root).get(name))


def _find_model(rows: Sequence[Row]) -> str | None:
    found = None
    for row in rows:
        metadata = values.open_text(row.get("metadata"))
        if isinstance(metadata, Mapping) and (_kind(row) == "llm" or found is None):
            found = values.read_text(metadata.get("model")) or found
    return found


def _find_error(row: Row) -> str | None:
    error = row.get("error")
    return None if error in (None, "", {}) else values.dump_text(error)


def _list_scores(root: Row) -> Iterator[Feedback]:
    """The scores of a row: in one mapping, or, in CSV, each in a column such as `scores.Factuality`."""
    scores = values.open_text(root.get("scores"))
    named = dict(scores) if isinstance(scores, Mapping) else {}
    named |= {key.removeprefix("scores."): value for key, value in root.items() if key.startswith("scores.")}
    for name, value in named.items():
        if (number := values.read_number(value)) is not None:
            yield Feedback(str(name), number, source="program")
