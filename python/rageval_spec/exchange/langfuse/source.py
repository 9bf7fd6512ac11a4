"""Reads traces and datasets from Langfuse's API, or from the files that it exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from rageval_spec.exchange.langfuse.connection import LangfuseConnection
from rageval_spec.exchange.shared.spooled import Entry, Rows, SpooledNode, SpooledSource

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.endpoints.service import Service
    from rageval_spec.exchange.langfuse.api import Api

TOOL = "langfuse"


class LangfuseSourceNode(LangfuseConnection, SpooledNode):
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
        from rageval_spec.exchange.langfuse.items import read_item

        places = self.node.places
        for page in self._api().dataset_items(dataset):
            for row in page:
                yield read_item(row, dataset, places, TOOL)

    def prepare(self, place: str, row: Mapping[str, Any]) -> Entry | None:
        """A row under its trace; None for scores of sessions."""
        from rageval_spec.exchange.langfuse.rows import normalise, tell_kind, trace_of
        from rageval_spec.exchange.shared.payloads import clean, read_time, write_time

        found = normalise(row, place)
        kind, trace_id = tell_kind(found), trace_of(found)
        time = read_time(found.get("starttime" if kind == "observation" else "timestamp"))
        # Scores can come much later than what they judge, and must not make a trace seem newer.
        when = "" if kind == "score" else write_time(time) or ""
        return None if trace_id is None else Entry(trace_id, f"{kind}:{found['id']}", when, clean(found))

    def assemble(self, rows: Rows) -> Trace | None:
        """The trace of some observations, scores and, in older versions, the trace itself."""
        from rageval_spec.exchange.langfuse.traces import make_trace

        return make_trace(rows, self.node.places)

    def is_step(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is more than a score."""
        from rageval_spec.exchange.langfuse.rows import tell_kind

        return tell_kind(row) != "score"

    def is_cut(self, rows: Rows) -> bool:
        """Whether there are steps without the one that they all belong to."""
        from rageval_spec.exchange.langfuse.traces import is_cut

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

    def _api(self) -> Api:
        from rageval_spec.exchange.langfuse.api import Api
        from rageval_spec.exchange.langfuse.connection import connect

        if self._service is None:
            self._service = connect(self.node, TOOL)
        return Api(self._service, TOOL)
