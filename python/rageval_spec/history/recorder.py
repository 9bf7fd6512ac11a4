"""Records an evaluation at its end, whatever happens to the history."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from rageval_spec.history.commit import Checkout, find_ci_run, start_finding_checkout
from rageval_spec.history.opening import locate

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.history.database import StoredRecord
    from rageval_spec.spec.nodes import Spec

ASIDE = Path(".rageval")
"""The folder beside the spec for records that cannot be written, if the evaluation has no results folder."""


class Recorder:
    """Records one evaluation. Make it when the evaluation begins: it notes the time and asks git for the commit."""

    def __init__(self, spec: Spec, output: Path | None, *, is_off: bool = False) -> None:
        """Begin.

        Args:
            spec: the spec of the evaluation.
            output: the results folder; the record is kept there if the history cannot be written.
            is_off: do not record, whatever the spec says.
        """
        self.id = uuid4().hex
        self._spec = spec
        self._place = None if is_off else locate(spec.history, spec.folder)
        self._aside = spec.folder / ASIDE if output is None else output
        self._began = time.monotonic()
        self._wait_for_checkout = Checkout if self._place is None else start_finding_checkout(spec.folder)

    def record(self, evaluation: Evaluation, cost: float | None, label: str | None = None) -> str | None:
        """Record the evaluation, and send the records that earlier evaluations could not send.

        Args:
            evaluation: the evaluation.
            cost: the dollars spent on calls; None if no call was made.
            label: the label that the record gets.

        Returns:
            None; or, if a record could not be written to the history, a sentence that says why and where it is now.
        """
        if self._place is None:
            return None
        try:
            record = self._build(evaluation, cost, label)
        except Exception as error:
            return f"the evaluation was not recorded: {type(error).__name__}: {error}"
        try:
            return self._send(self._place, record)
        except Exception as error:
            return self._keep(record, error)

    def _build(self, evaluation: Evaluation, cost: float | None, label: str | None) -> StoredRecord:
        from rageval_spec.history.recording import Circumstances, build_record

        circumstances = Circumstances(
            id=self.id,
            time=datetime.now(UTC),
            checkout=self._wait_for_checkout(),
            ci=find_ci_run(),
            cost=cost,
            seconds=round(time.monotonic() - self._began, 3),
            labels=() if label is None else (label,),
        )
        return build_record(evaluation, circumstances, self._spec)

    def _send(self, place: str | Path, record: StoredRecord) -> str | None:
        from rageval_spec.history import pending
        from rageval_spec.history.opening import open_history

        with open_history(place) as history:
            history.add([record])
            problems = pending.send(history, self._list_places_aside()).problems
        return "; ".join(problems) or None

    def _list_places_aside(self) -> list[Path]:
        return list(dict.fromkeys([self._aside, self._spec.folder / ASIDE]))

    def _keep(self, record: StoredRecord, error: Exception) -> str:
        from rageval_spec.history import pending

        refusals = []
        for folder in self._list_places_aside():
            try:
                path = pending.keep(record, folder)
            except (OSError, ValueError, TypeError) as worse:
                refusals.append(f"nor could its record be kept in {folder}: {worse}")
            else:
                which = "" if folder == self._spec.folder / ASIDE else " with this results folder"
                return f"{error}; the record is in {path}, and the next evaluation{which} sends it"
        return "; ".join([f"the evaluation was not recorded: {error}", *refusals])
