"""The base class of systems whose answers are read from the traces of a tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import field_validator

from rageval_spec.data.outcomes import Note, TakenOver
from rageval_spec.data.traces import NO_ANSWER
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.contracts import TraceSource, WindowNode, open_part, read_traces
from rageval_spec.plugin import Answering, GeneratingNode, InputFile, System
from rageval_spec.recorded.answers_and_steps import (
    AnswerRow,
    dump_answer_columns,
    dump_steps,
    read_asked,
    read_details,
    table_of,
)
from rageval_spec.recorded.cited_blocks import read_citations
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.data.traces import Trace


class TraceSystemNode(GeneratingNode):
    """Which traces to take answers from."""

    @field_validator("dataset", check_fields=False)
    @classmethod
    def _check_dataset(cls, name: str | None) -> str | None:
        if name is not None:
            raise ValueError("a dataset has no answers; write it under 'datasets:', and here what has the answers")
        return name


T = TypeVar("T", bound=GeneratingNode)
_MOST_SHOWN = 3
_UNUSABLE = ("until", "limit", "dataset", "path", "table")
"""Keys of tools that name something else than all traces from some time on."""
_LONGEST = 60


class TraceSystem(System[T]):
    """Answers from traces, matched to the dataset's questions by id, or else by the question's text.

    Answers keep their contexts, latency, tokens and cost, and their traces, so that values can be written back to
    them. If a question has several traces, the newest counts; those with its id come before those with its text.
    """

    node_type: ClassVar[type[GeneratingNode]] = TraceSystemNode
    source_type: ClassVar[type[TraceSource[Any]]]
    """What the traces are read with; the keys of its node are among those of the plugin's."""
    can_answer = True
    stored = False

    def find_watch_fault(self) -> FileFault | None:
        if not issubclass(self.source_type.node_type, WindowNode):
            return super().find_watch_fault()
        if getattr(self.node, "listen", None) is not None or getattr(self.node, "follow", None):
            return None
        if hasattr(self.node, "follow"):
            return FileFault((), "a monitor reads files that grow", "add 'follow: true'")
        unusable = (key for key in _UNUSABLE if getattr(self.node, key, None) is not None)
        found = next(unusable, None)
        told = "a monitor reads all traces as they come"
        return None if found is None else FileFault((found,), told, f"remove '{found}'")

    def inputs(self) -> Sequence[InputFile]:
        return self._source.inputs()

    @property
    def can_be_asked(self) -> bool:
        return False

    def answer(self, collection: Collection) -> Answering:
        from rageval_spec.reading.answer_files import FileAnswer, match_answers

        where = f"systems.{self.context.name}"
        queries = collection.require("queries", f"{where}: {self.node.use}")
        traces, remarks = read_traces(self._source, where)
        chosen, unknown = _choose_newest(traces, queries)
        if not chosen:
            raise DataError(f"{where}: {_explain_unmatched(traces, queries['text'].to_list())}")
        answers = [
            FileAnswer(f"{where}: trace {one.link.trace_id}", query_id, one.question, read_answer(one))
            for query_id, one in chosen.items()
        ]
        matched = match_answers(Path(where), answers, queries)
        notes = [Note("traces", message) for message in remarks]
        if unknown:
            message = f"{count_noun(unknown, 'trace')} with other questions left out"
            notes.append(Note("unknown", message, count=unknown))
        if older := len(traces) - unknown - len({id(one) for one in chosen.values()}):
            notes.append(Note("traces", f"{count_noun(older, 'older trace')} of the same questions left out"))
        if matched.remark:
            notes.append(Note("differing_questions", matched.remark, count=matched.differing))
        asked = [(row.asked, row.version) for _, row in matched.rows if row.error is None]
        taken_over = TakenOver.of_recording(self.context.name, self.node.use, queries.height, asked)
        return Answering(table_of(matched.take_rows(), self.node.citations_from), tuple(notes), taken_over)

    def list_answer_columns(self) -> Sequence[str] | None:
        return None

    def find_answers(self, collection: Collection) -> pl.DataFrame:
        """All answers: reading traces costs nothing, and a plan without them would promise that judges cost nothing."""
        return self.answer(collection).answers

    @cached_property
    def _source(self) -> TraceSource[Any]:
        return open_part(self.source_type, self)


def read_answer(trace: Trace) -> AnswerRow:
    """The answer of a trace, with its contexts and steps."""
    documents = trace.documents
    texts = None if documents is None else tuple(one.text for one in documents if one.text is not None)
    ids = tuple(one.doc_id for one in documents or () if one.doc_id is not None)
    contexts = None if texts is None or len(texts) < len(documents or ()) else texts
    context_ids = ids if ids and len(ids) == len(documents or ()) else None
    scores = tuple(one.score for one in documents or ())
    cited = {**trace.metadata, "citations": trace.citations}
    error = trace.error if trace.answer is None else None
    return AnswerRow(
        answer=trace.answer,
        contexts=contexts,
        context_ids=context_ids,
        scores=scores if any(score is not None for score in scores) else None,
        seconds=trace.seconds,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        cost=trace.cost,
        error=error or (NO_ANSWER if trace.answer is None else None),
        trace=trace.link.dump(),
        steps=dump_steps(trace.steps or None),
        cache_read_tokens=trace.cache_read_tokens,
        cache_write_tokens=trace.cache_write_tokens,
        answer_columns=dump_answer_columns(trace.list_columns()),
        asked=read_asked(trace.started),
        version=trace.version,
        **read_details({"finish_reason": trace.finish_reason}),
        citations=read_citations(cited, trace.answer, contexts, context_ids),
    )


def _choose_newest(traces: Sequence[Trace], queries: pl.DataFrame) -> tuple[dict[str, Trace], int]:
    """The trace of each question: the newest with its id, else the newest with its text. And how many have neither."""
    asked: dict[str, list[str]] = {}
    for query_id, text in queries.select("query_id", "text").iter_rows():
        asked.setdefault(text.strip(), []).append(query_id)
    known = set(queries["query_id"].to_list())
    by_id: dict[str, Trace] = {}
    by_text: dict[str, Trace] = {}
    unknown = 0
    # As texts, moments are in the order of time without their `Z`, which would put whole seconds behind fractions.
    for trace in sorted(traces, key=lambda one: (one.started or "").removesuffix("Z")):
        if trace.id in known:
            by_id[trace.id] = trace
        elif groups := asked.get(trace.question.strip()):
            by_text |= dict.fromkeys(groups, trace)
        else:
            unknown += 1
    return by_text | by_id, unknown


def _explain_unmatched(traces: Sequence[Trace], texts: Sequence[str]) -> str:
    def show(questions: Iterable[str]) -> str:
        return ", ".join(repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") for text in questions)

    theirs = show([trace.question for trace in traces[:_MOST_SHOWN]])
    if not traces:
        return "there are no traces to take answers from"
    return (
        "no trace has the id or the text of a question in the dataset: the traces ask "
        f"{theirs}, ..., the dataset asks {show(texts[:_MOST_SHOWN])}, ..."
    )
