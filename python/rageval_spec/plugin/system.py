"""The contract of systems: what is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rageval_spec.errors import UsageError
from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from rageval_spec.data.evaluation import Note
    from rageval_spec.data.tables import Collection
    from rageval_spec.plugin.inputs import InputFile


class SystemNode(Node):
    """A block under `systems:`."""


@dataclass(frozen=True, slots=True)
class Answering:
    """A system's answers, and what must be known beside them.

    Attributes:
        answers: a row a query, columns `tables.ANSWERS`; queries without a row were not answered.
        notes: remarks, which need name neither the dataset nor the system.
    """

    answers: pl.DataFrame
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A run, and what must be known beside it.

    Attributes:
        run: `query_id, doc_id, score`, grouped by query and best first, no document twice for a query.
        notes: remarks, which need name neither the dataset nor the system.
        reused: how many texts needed no model because earlier answers were found: seconds then say little.
    """

    run: pl.DataFrame
    notes: tuple[Note, ...] = ()
    reused: int = 0


class System(Plugin[N]):
    """Gives a ranking for each query, or answers, whose contexts' ids are a ranking too."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Parts of the dataset it reads: any of "queries", "corpus"."""
    can_answer: ClassVar[bool] = False
    """Whether it gives answers on some dataset, and not just rankings; `answers_on` says on which."""
    stored: ClassVar[bool] = True
    """Whether a run is worth keeping in the store; False where reading it again costs no more than the store would."""

    def inputs_for(self, dataset: str) -> Sequence[InputFile]:  # noqa: ARG002 - a plugin with a file per dataset uses it
        """Files that must be there for one dataset."""
        return self.inputs()

    def run_file(self, dataset: str) -> Path | None:  # noqa: ARG002 - as in `inputs_for`
        """A TREC run file that holds what `retrieve` would give, for kernels to read in place; None without one."""
        return None

    def answers_on(self, dataset: str) -> bool:  # noqa: ARG002 - a plugin with a file per dataset uses it
        """Whether to call `answer` on a dataset, and not `retrieve`: everywhere if it `can_answer`.

        A system that can do both says where. It reads no more than the beginning of a file.
        """
        return self.can_answer

    def is_outdated(self, collection: Collection) -> bool:  # noqa: ARG002 - for those that have changed
        """Whether a run of the first format in the store is no longer what `retrieve` gives, under the same key."""
        return False

    @property
    def can_be_asked(self) -> bool:
        """Whether it may answer what `find_answers` does not know; a file cannot."""
        return True

    def retrieve(
        self,
        collection: Collection,
        runs: Mapping[str, pl.DataFrame],  # noqa: ARG002 - for those that retrieve
    ) -> pl.DataFrame | Retrieval:
        """The run: `query_id, doc_id, score`, grouped by query and best first, no document twice for a query.

        `runs` are those of the systems that the node names (keys of type `SystemName`), by name.
        """
        raise UsageError(f"systems.{self.context.name} (use: {self.node.use}) gives no ranking of {collection.name}")

    def answer(self, collection: Collection) -> Answering:
        """Answers to the collection's queries; each is in `context.answers` the moment it arrives, errors are not.

        A query that fails has a row whose `error` says why; it does not stop the others.

        Raises:
            RagevalError: nothing can be answered at all.
        """
        raise UsageError(f"systems.{self.context.name} (use: {self.node.use}) gives no answers to {collection.name}")

    def finish(self, dataset: str) -> None:
        """Called once an evaluation has come to its end on a dataset without a failure, and its reports are written.

        A system may have changed by the next evaluation, so that answers of a finished one are worth asking for again.
        """

    def describe_reuse(self, count: int) -> str | None:  # noqa: ARG002 - a file has nothing to say
        """Where the `count` answers of `find_answers` come from, where a reader should know: `120 answers of ...`."""
        return None

    def find_answers(self, collection: Collection) -> pl.DataFrame:  # noqa: ARG002 - nothing is known by default
        """The rows of `answer` that are known without asking anybody: from a file, or from an earlier evaluation."""
        from rageval_spec.data.tables import answers_table

        return answers_table([])
