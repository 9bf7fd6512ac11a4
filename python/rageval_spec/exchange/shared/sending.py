"""Sends the parcels of a target, batch by batch, and remembers what was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.exchange.shared.ledger import Ledger
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.target import Parcel, Target
    from rageval_spec.plugin.context import Progress


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was sent: the number of parcels by kind, how many had been sent before, and what to know about it."""

    destination: str
    sent: Counter[str]
    known: int
    remarks: tuple[str, ...]
    is_rehearsal: bool = False

    def render(self) -> str:
        """One line for what was sent, and one for each remark."""
        what = list_names([count_noun(number, kind) for kind, number in sorted(self.sent.items())]) or "nothing"
        done = "would send" if self.is_rehearsal else "sent"
        known = f"; {count_noun(self.known, 'value')} had been sent before" if self.known else ""
        return "".join(f"{line}\n" for line in (f"{done} {what} to {self.destination}{known}", *self.remarks))


def send_parcels(
    target: Target[Any],
    evaluation: Evaluation,
    folder: Path | None,
    *,
    tool: str,
    dry_run: bool = False,
    anew: bool = False,
    progress: Progress | None = None,
    show: Callable[[str], None] | None = None,
) -> Receipt:
    """Send what a target has of an evaluation, except what was sent before, and remember it in `folder`.

    Args:
        target: where to send it.
        evaluation: whose values to send.
        folder: the results folder, which keeps the ledger; None to remember nothing.
        tool: the target's word.
        dry_run: only show what would be sent.
        anew: also send what was sent before.
        progress: called with the number of parcels that are dealt with.
        show: called with the summary of each parcel of a dry run.

    Raises:
        RagevalError: the tool did not take a batch. What was sent before it is remembered.
    """
    parcels, left_out = _list_once(target.list_parcels(evaluation))
    sent: Counter[str] = Counter()
    known = 0
    with Ledger(folder, tool, target.destination) as ledger:
        fresh = [parcel for parcel in parcels if anew or not ledger.has(parcel)]
        known = len(parcels) - len(fresh)
        done = known
        for batch in _split(fresh, target.batch):
            if dry_run and show is not None:
                for parcel in batch:
                    show(parcel.summary)
            elif not dry_run:
                target.send(batch)
                ledger.add(batch)
            sent.update(parcel.kind for parcel in batch)
            done += len(batch)
            if progress is not None:
                progress(done, len(parcels), "values")
    return Receipt(target.destination, sent, known, (*target.remarks(), *left_out), is_rehearsal=dry_run)


def _list_once(parcels: Iterable[Parcel]) -> tuple[list[Parcel], list[str]]:
    """The first parcel of each key, and what to say of those that would have replaced it at the destination."""
    found: dict[str, Parcel] = {}
    replaced: list[Parcel] = []
    for parcel in parcels:
        first = found.setdefault(parcel.key, parcel)
        if first.body != parcel.body:
            replaced.append(parcel)
    if not replaced:
        return list(found.values()), []
    count = count_noun(len(replaced), "value")
    return list(found.values()), [
        f"{count} left out: an earlier answer has the same place there, such as {replaced[0].summary}"
    ]


def _split(parcels: Iterable[Parcel], size: int) -> Iterator[list[Parcel]]:
    rest = iter(parcels)
    while part := list(islice(rest, size)):
        yield part
