"""The contract of systems, which are what an evaluation evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from rageval_spec.data.outcomes import AnyNote, Note, write_notes
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import UsageError
from rageval_spec.plugin.plugin import N, Node, Plugin
from rageval_spec.store.stored_tables import AnyTable, StoredTable

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from rageval_spec.data.outcomes import TakenOver
    from rageval_spec.data.tables import Collection, CorpusSize
    from rageval_spec.store.disk import InputFile


class SystemNode(Node):
    """A block under `systems:`."""


class GeneratingNode(SystemNode):
    """The keys of a system whose answers a model writes."""

    generator: str | None = Field(
        default=None,
        min_length=1,
        exclude_if=lambda name: name is None,
        description="The model that writes the answers, as its maker calls it (`gpt-4o`), or a name under `models:`. "
        "Judges favour their own answers, so a judge with the same model gets a warning. No number depends on it.",
    )
    citations_from: Literal[0, 1] | None = Field(
        default=None,
        exclude_if=lambda first: first is None,
        description="The number by which answers cite their first context: 0 or 1. By default 0 in an answer that "
        "cites number 0, else 1.",
    )
    retrieval_step: Literal["last"] | Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        exclude_if=lambda step: step is None,
        description="Which of an agent's retrievals, from 1, has the contexts that are evaluated. Default: those that "
        "the answer names, else the documents of all its steps.",
    )


class Amount(NamedTuple):
    """Bytes: what something takes at least, and what it is likely to take."""

    least: int = 0
    likely: int = 0


@dataclass(frozen=True, slots=True)
class Answering:
    """A system's answers, with notes, which need not name the dataset or the system.

    `answers` has one row per query, with the columns of `tables.ANSWERS`; queries without a row were not answered.
    `taken_over` is about the answers that were not asked now; None if all were. `stored` are the answers in the place
    of `answers`, which is then empty, if they are too many to hold.
    """

    answers: pl.DataFrame
    notes: tuple[AnyNote, ...] = ()
    taken_over: TakenOver | None = None
    stored: StoredTable | None = None

    @property
    def table(self) -> AnyTable:
        """The answers, wherever they are."""
        return self.answers if self.stored is None else self.stored

    @property
    def written_notes(self) -> tuple[Note, ...]:
        """The notes, also those that are not written before all parts of a step are together."""
        return write_notes(self.notes)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A run, with notes, which need not name the dataset or the system.

    `run` is `query_id, doc_id, score`, grouped by query, best first, no document twice for a query. `reused` says how
    many texts had earlier answers and needed no model. If any did, the run's seconds mean little.
    """

    run: pl.DataFrame
    notes: tuple[AnyNote, ...] = ()
    reused: int = 0

    @property
    def written_notes(self) -> tuple[Note, ...]:
        """The notes, also those that are not written before all parts of a step are together."""
        return write_notes(self.notes)


class System(Plugin[N]):
    """Gives a ranking for each query, or an answer, whose contexts' ids are a ranking too."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """The parts of the dataset that the system reads: any of "queries", "corpus"."""
    can_answer: ClassVar[bool] = False
    """Whether the system gives answers on some dataset, and not only rankings; `answers_on` says on which."""
    is_separable: ClassVar[bool] = False
    """Whether `retrieve` gives a query the same documents whatever other queries there are, so that it can be called
    for some of them at a time, on any machine that has the corpus."""
    stored: ClassVar[bool] = True
    """Whether a run is worth storing; False where reading it again costs no more than loading it from the store."""

    @property
    def generator(self) -> str | None:
        """The model that writes the answers, as the node names it; None if it does not."""
        return getattr(self.node, "generator", None)

    @property
    def writes_answers(self) -> bool:
        """Whether its answers have texts. Those of a retriever that is asked over HTTP only name documents."""
        return self.can_answer

    def content(self) -> dict[str, Any]:
        """The plugin's identity without `generator`, on which no table depends."""
        content = super().content()
        content["node"].pop("generator", None)
        return content

    def inputs_for(self, dataset: str) -> Sequence[InputFile]:  # noqa: ARG002 - a plugin with a file per dataset uses it
        """The files that the system needs for one dataset."""
        return self.inputs()

    def check_columns(
        self,
        list_columns: Callable[[], Sequence[str] | None],  # noqa: ARG002 - most systems read no column
    ) -> Iterable[FileFault]:
        """Faults that the names of the questions' other columns show.

        `list_columns` reads the beginnings of the datasets; it returns None if that does not show the names.
        """
        return ()

    def list_answer_columns(self) -> Sequence[str] | None:
        """The names of the other columns of recorded answers; None if they cannot be found quickly.

        Raises:
            DataError: the file cannot be read.
        """
        return ()

    def find_watch_fault(self) -> FileFault | None:
        """Why `monitor` cannot watch this system, at the key that is wrong; None if it can."""
        return FileFault(
            (),
            f"'use: {self.node.use}' has no traces to watch",
            "write {use: file, path: traces.jsonl, follow: true}, {use: otel, listen: 127.0.0.1:4318}, or the tool "
            "that records them, such as {use: phoenix, project: NAME}",
        )

    def run_file(self, dataset: str) -> Path | None:  # noqa: ARG002 - as in `inputs_for`
        """A TREC run file with what `retrieve` would give, which kernels read directly; None without one."""
        return None

    def answers_on(self, dataset: str) -> bool:  # noqa: ARG002 - a plugin with a file per dataset uses it
        """Whether to call `answer`, not `retrieve`, on a dataset; by default on every dataset if it `can_answer`.

        A system that can do both overrides this. It may read only the beginning of a file.
        """
        return self.can_answer

    def estimate_needs(self, corpus: CorpusSize) -> tuple[Amount, Amount, str]:
        """What retrieving from a corpus takes: memory, disk in the store, and what in the spec makes it less.

        By default, memory for the whole corpus, as a table and as Python's texts.
        """
        return Amount(corpus.content // 2, 4 * corpus.content + 200 * corpus.documents), Amount(), ""

    def stored_keys(self, identify: Callable[[], str]) -> Iterable[str]:  # noqa: ARG002 - few systems keep files
        """The keys of what the system keeps of a corpus, beside runs; `identify` is that of its `Collection`."""
        return ()

    def is_outdated(self, collection: Collection) -> bool:  # noqa: ARG002 - for systems whose results have changed
        """Whether a stored run of the first format, under the same key, is no longer what `retrieve` gives."""
        return False

    @property
    def can_be_asked(self) -> bool:
        """Whether the system can answer queries that `find_answers` does not know; a file cannot."""
        return True

    def retrieve(
        self,
        collection: Collection,
        runs: Mapping[str, pl.DataFrame],  # noqa: ARG002 - for those that retrieve
    ) -> pl.DataFrame | Retrieval:
        """The run: `query_id, doc_id, score`, grouped by query, best first, no document twice for a query.

        `runs` has the runs, by name, of the systems that the node refers to (keys of type `SystemName`).
        """
        raise UsageError(f"systems.{self.context.name} (use: {self.node.use}) gives no ranking of {collection.name}")

    def answer(self, collection: Collection) -> Answering:
        """Answers to the collection's queries. Each is stored in `context.answers` when it arrives; errors are not.

        A query that fails has a row whose `error` says why. It does not stop the others.

        Raises:
            RagevalError: no query can be answered.
        """
        raise UsageError(f"systems.{self.context.name} (use: {self.node.use}) gives no answers to {collection.name}")

    @property
    def search_width(self) -> int:
        """The most documents that `search_part` finds for a query; 0 if documents are not searched in parts.

        Whoever searches in parts also has `embed_part` and `join_parts`.
        """
        return 0

    def embed_part(self, collection: Collection, place: int, count: int) -> None:
        """Have a model embed part `place` of `count` of the documents, which stores their vectors.

        Engines call this before `retrieve`, on many machines, if the documents are not searched in as many parts.
        """

    def search_part(self, collection: Collection, place: int, count: int) -> Retrieval:  # noqa: ARG002 - for those that search in parts
        """What part `place` of `count` of the documents contributes to `retrieve`, with columns for `join_parts`."""
        return self.retrieve(collection, {})  # type: ignore[return-value]

    def join_parts(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The run that `retrieve` gives, from the runs of all parts. The order of its queries does not matter."""
        return parts[0]

    def begin(self, collection: Collection) -> None:
        """Called before other processes ask these questions, in the process that calls `finish`."""

    def finish(self, dataset: str) -> None:
        """Called when an evaluation of the dataset has reached its outcome, whatever failed in it.

        The system can have changed by the next evaluation, which therefore asks for all answers again.
        """

    def describe_reuse(self, count: int) -> str | None:  # noqa: ARG002 - a file has nothing to say
        """Where the `count` answers of `find_answers` come from, `120 answers of ...`; None if obvious."""
        return None

    def find_answers(self, collection: Collection) -> pl.DataFrame:  # noqa: ARG002 - nothing is known by default
        """The rows of `answer` that are known without asking the system: from a file or an earlier evaluation."""
        from rageval_spec.data.tables import answers_table

        return answers_table([])
