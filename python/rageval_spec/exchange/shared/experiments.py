"""Targets that take values in two ways: for the traces of the answers, or with the answers as an experiment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from rageval_spec.exchange.shared.target import Parcel, Target, TargetNode
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.judgements import Judgements
    from rageval_spec.exchange.shared.naming import Names
    from rageval_spec.exchange.shared.scores import Score, Scores


class ExperimentNode(TargetNode):
    """Where to send values. A subclass describes both keys in the words of its tool."""

    dataset: str | None = None
    run: str | None = None


class Sending(Protocol):
    """The writing side of a tool."""

    def send(self, bodies: Sequence[Any]) -> None:
        """Send the bodies of parcels."""

    def close(self) -> None:
        """Close the connections."""


E = TypeVar("E", bound=ExperimentNode)


class ExperimentTarget(Target[E]):
    """Sends values for the traces that the answers were read from; with a dataset, answers and values as an experiment.

    Values that are null are left out and counted in `without_value`.
    """

    tool: ClassVar[str] = ""
    """The word of the tool, which traces name."""

    def __init__(self, node: E, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self.sender: Any = None
        self.without_value = 0
        self._scores: Scores | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL of the tool."""

    @property
    def destination(self) -> str:
        """The URL, and the dataset if an experiment is sent."""
        return self.url if self.node.dataset is None else f"{self.url}, dataset {self.node.dataset}"

    @abstractmethod
    def open_sender(self) -> Sending:
        """The writing side, which asks nothing yet.

        Raises:
            UsageError: there is no key.
        """

    @abstractmethod
    def make_answer(self, score: Score, run: str) -> Parcel:
        """The answer that a score is of, as a part of an experiment."""

    @abstractmethod
    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        """A value: of an experiment's answer, or without `run` of the trace that the score links to."""

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """Each value; in an experiment, after its answer.

        Raises:
            UsageError: no answer was read from the tool, and no dataset is named.
        """
        from rageval_spec.exchange.shared.judgements import Judgements
        from rageval_spec.exchange.shared.naming import Names
        from rageval_spec.exchange.shared.scores import Scores

        is_experiment, judgements, names = self.node.dataset is not None, Judgements(evaluation), Names()
        self._scores = Scores(evaluation, None if is_experiment else self.tool)
        self.without_value = 0
        name = self.node.run or evaluation.name
        answered: tuple[str, str, str] | None = None
        for score in self._scores:
            run = f"{name} {score.system}" if len(set(evaluation.systems)) > 1 else name
            answer = (score.dataset, score.system, score.query_id)
            if is_experiment and answer != answered:
                answered = answer
                yield self.make_answer(score, run)
            if score.value is None:
                self.without_value += 1
            else:
                yield self.make_value(score, judgements, names, run if is_experiment else None)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send parcels.

        Raises:
            UsageError: there is no key.
            DataError: there is no such dataset.
            ServiceError: the tool did not take all of them.
        """
        if self.sender is None:
            self.sender = self.open_sender()
        self.sender.send([parcel.body for parcel in parcels])

    def remarks(self) -> Sequence[str]:
        """How many answers have no trace, and how many values are none."""
        found = list(self._scores.remarks()) if self._scores is not None else []
        if self.without_value:
            found.append(f"{count_noun(self.without_value, 'answer')} that a metric could not score left out")
        return found

    def close(self) -> None:
        """Close the connections."""
        if self.sender is not None:
            self.sender.close()
