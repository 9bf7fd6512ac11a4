"""The base class of datasets whose questions are read from the traces, or from a dataset, of a tool."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rageval_spec.data.tables import Collection, references_of
from rageval_spec.exchange.shared.contracts import TraceSource, open_part, read_traces
from rageval_spec.libraries import pl
from rageval_spec.plugin import Dataset, DatasetNode, InputFile

if TYPE_CHECKING:
    from rageval_spec.data.traces import Trace

T = TypeVar("T", bound=DatasetNode)


class TraceDataset(Dataset[T]):
    """The questions of traces, with their references and relevant documents if the tool has them.

    The same trace twice counts once.
    """

    node_type = DatasetNode
    source_type: ClassVar[type[TraceSource[Any]]]
    """What the traces are read with; the keys of its node are among those of the plugin's."""

    @property
    def parts(self) -> frozenset[str]:
        return frozenset({"queries"})

    def inputs(self) -> Sequence[InputFile]:
        return self._source.inputs()

    def open(self) -> Collection:
        return Collection(
            self.context.name,
            load_queries=self._load_queries,
            load_references=self._load_references,
            load_qrels=self._load_qrels,
            load_columns=self._load_columns,
            why_no_qrels=f"the traces of {self.node.use} name no relevant documents",
        )

    @cached_property
    def _source(self) -> TraceSource[Any]:
        return open_part(self.source_type, self)

    @cached_property
    def _traces(self) -> list[Trace]:
        found, _ = read_traces(self._source, f"datasets.{self.context.name}")
        return list({trace.id: trace for trace in found}.values())

    def _load_queries(self) -> pl.DataFrame:
        rows = [(trace.id, trace.question) for trace in self._traces]
        return pl.DataFrame(rows, schema={"query_id": pl.String, "text": pl.String}, orient="row")

    def _load_references(self) -> pl.DataFrame | None:
        if not any(trace.references or trace.reference_contexts for trace in self._traces):
            return None
        return references_of(
            (one.id, list(one.references), one.reference_contexts and list(one.reference_contexts), None, None, None)
            for one in self._traces
        )

    def _load_qrels(self) -> pl.DataFrame | None:
        rows = [(one.id, doc_id, 1) for one in self._traces for doc_id in dict.fromkeys(one.relevant or ())]
        schema = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row") if rows else None

    def _load_columns(self) -> pl.DataFrame | None:
        rows = [(trace.id, json.dumps(dict(trace.list_columns()), sort_keys=True)) for trace in self._traces]
        return pl.DataFrame(rows, schema={"query_id": pl.String, "columns": pl.String}, orient="row")
