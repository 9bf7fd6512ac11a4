"""The base class of systems whose answers are read from the traces of a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rageval_spec.data.note import Note
from rageval_spec.exchange.shared.reading import read_traces
from rageval_spec.plugin import Answering, GeneratingNode, InputFile, System
from rageval_spec.reading.answer_rows import AnswerRow
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.data.trace import Trace
    from rageval_spec.exchange.shared.source import Source, SourceNode

T = TypeVar("T", bound=GeneratingNode)


class TraceSystem(System[T]):
    """Answers from traces, matched to the dataset's questions by id, or else by the question's text.

    A subclass names its `source_type`; its node inherits from `GeneratingNode` and from the node of the source. If a
    question has several traces, the newest counts.
    """

    source_type: ClassVar[type[Source[Any]]]
    can_answer = True
    stored = False

    def inputs(self) -> Sequence[InputFile]:
        """The files that the traces are read from."""
        return self._source.inputs()

    @property
    def can_be_asked(self) -> bool:
        """Never: it has no answers other than the traces."""
        return False

    def answer(self, collection: Collection) -> Answering:
        """The answers in the traces.

        Raises:
            DataError: no trace answers a question of the dataset.
            RagevalError: the traces cannot be read.
        """
        from rageval_spec.reading.answer_files import FileAnswer
        from rageval_spec.reading.answer_rows import table_of
        from rageval_spec.reading.matching import match_answers

        queries = collection.require("queries", f"systems.{self.context.name}: {self.node.use}")
        traces, remarks = read_traces(self._source, f"systems.{self.context.name}")
        newest = _keep_newest(traces, set(queries["query_id"].to_list()))
        answers = [FileAnswer(f"trace {one.link.trace_id}", one.id, one.question, read_answer(one)) for one in newest]
        matched = match_answers(Path(f"systems.{self.context.name}"), answers, queries)
        notes = [Note("traces", message) for message in remarks]
        if matched.unknown:
            message = f"{count_noun(matched.unknown, 'trace')} with other questions left out"
            notes.append(Note("unknown", message, count=matched.unknown))
        if len(newest) < len(traces):
            older = len(traces) - len(newest)
            notes.append(Note("traces", f"{count_noun(older, 'older trace')} of the same questions left out"))
        return Answering(table_of(matched.take_rows()), tuple(notes))

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        """All answers: reading traces costs nothing, and a plan without them would promise that judges cost nothing."""
        return self.answer(collection).answers

    @cached_property
    def _source(self) -> Source[Any]:
        fields = self.source_type.node_type.model_fields
        node: SourceNode = self.source_type.node_type(**{name: getattr(self.node, name) for name in fields})
        return self.source_type(node, replace(self.context, models={}, judges={}))


def read_answer(trace: Trace) -> AnswerRow:
    """The answer of a trace, with its contexts."""
    documents = trace.documents
    texts = None if documents is None or any(one.text is None for one in documents) else [one.text for one in documents]
    ids = None if not documents or any(one.doc_id is None for one in documents) else [one.doc_id for one in documents]
    scores = None if not documents or any(one.score is None for one in documents) else [one.score for one in documents]
    error = trace.error if trace.answer is None else None
    return AnswerRow(
        answer=trace.answer,
        contexts=None if texts is None else tuple(map(str, texts)),
        context_ids=None if ids is None else tuple(map(str, ids)),
        scores=None if scores is None else tuple(float(score or 0) for score in scores),
        seconds=trace.seconds,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        cost=trace.cost,
        error=error or ("the trace has no answer" if trace.answer is None else None),
        trace=trace.link.dump(),
    )


def _keep_newest(traces: Sequence[Trace], known: set[str]) -> list[Trace]:
    """One trace for each question: that with the question's id, else the newest with its text."""
    newest: dict[str, Trace] = {}
    for trace in traces:
        key = trace.id if trace.id in known else f"\0{trace.question.strip()}"
        earlier: Mapping[str, Trace] = newest
        if key not in earlier or (trace.started or "") >= (earlier[key].started or ""):
            newest[key] = trace
    return list(newest.values())
