"""Writes values into TruLens's database as feedback on its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.exchange.shared.judgements import Judgements
from rageval_spec.exchange.shared.scores import Score, Scores
from rageval_spec.exchange.shared.target import Parcel, Target, TargetNode
from rageval_spec.exchange.trulens.database import EVENTS, RECORDS, copy_database, list_tables, open_to_write
from rageval_spec.exchange.trulens.events import list_roots
from rageval_spec.exchange.trulens.feedback import write_feedback, write_spans
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class TrulensTargetNode(TargetNode):
    """Which database of TruLens to write feedback into."""

    database: str = Field(description="TruLens's SQLite file, such as `default.sqlite`.")
    backup: bool = Field(
        default=True,
        description="Whether to copy the database, to `default.sqlite.before-rageval` beside it, before the first "
        "value is written.",
    )


class TrulensTarget(Target[TrulensTargetNode]):
    """Writes feedback under ids of its own, so that writing twice changes nothing. Each batch is one transaction."""

    node_type = TrulensTargetNode
    summary = "Write values as feedback on the records of TruLens's SQLite file."
    examples = ("export trulens rageval-results --database default.sqlite",)
    batch = 500

    @property
    def destination(self) -> str:
        """The file."""
        return str(self._path)

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """The feedback on each answer that was read from a record.

        Raises:
            UsageError: no answer was read from TruLens.
        """
        self._scores = Scores(evaluation, "trulens")
        judgements = Judgements(evaluation)
        several = len(evaluation.systems) > 1 or len(evaluation.datasets) > 1
        for score in self._scores:
            yield _make_feedback(score, judgements, evaluation, several=several)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write feedback in one transaction. That of records that are not there any more is left out and counted.

        Raises:
            UsageError: there is no such file.
            DataError: the file is no database of TruLens, or another program holds it.
            RagevalError: its copy cannot be written.
        """
        if self.node.backup and self._copy is None:
            self._copy = copy_database(self._path)
        left = [parcel.body for parcel in parcels]
        with open_to_write(self._path) as connection:
            tables = list_tables(connection, self._path)
            if EVENTS in tables:
                if self._roots is None:
                    self._roots = list_roots(connection)
                left = write_spans(connection, left, self._roots)
            if RECORDS in tables:
                left = write_feedback(connection, left)
        self._gone.update(body["record_id"] for body in left)
        self._left_out += len(left)

    def remarks(self) -> Sequence[str]:
        """Where the copy is, and what was left out."""
        said = list(self._scores.remarks()) if self._scores is not None else []
        if self._left_out:
            records = count_noun(len(self._gone), "record")
            told = f"{count_noun(self._left_out, 'value')} left out: {records} not in the database"
            said.append(f"{told}, such as {min(self._gone)}")
        if self._copy is not None:
            said.append(f"{self._copy} is the database as it was before")
        return said

    _scores: Scores | None = None
    _copy: Path | None = None
    _roots: dict[str, str] | None = None
    _left_out = 0

    def __init__(self, node: TrulensTargetNode, context: Any) -> None:
        """Open nothing yet."""
        super().__init__(node, context)
        self._gone: set[str] = set()

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.database)


def _make_feedback(score: Score, judgements: Judgements, evaluation: Evaluation, *, several: bool) -> Parcel:
    assert score.link is not None, "only answers with a record are listed"
    record_id = score.link.trace_id
    name = f"{score.metric} ({score.dataset}/{score.system})" if several else score.metric
    key = f"{record_id}/{evaluation.name}/{score.dataset}/{score.system}/{score.metric}"
    label, reason = judgements.label(score), judgements.explain(score)
    body = {
        "key": key,
        "record_id": record_id,
        "name": name,
        "value": score.value,
        "error": None if score.value is not None else reason or score.status,
        "reason": reason,
        "label": label,
        "higher_is_better": score.metric not in evaluation.lower_is_better,
        "metadata": {"evaluation": evaluation.name, "dataset": score.dataset, "system": score.system},
    }
    shown = score.status if score.value is None else f"{score.value:.4g}"
    word = f" ({label})" if label and score.value is not None else ""
    return Parcel(key, body, f"{name} {shown}{word} -> record {record_id}", "feedback row")
