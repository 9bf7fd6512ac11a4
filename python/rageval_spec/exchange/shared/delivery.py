"""Sends the parcels of a target, batch by batch, and remembers what was sent.

What was sent to a destination is in a file beside the results, so a killed export continues. Ids depend only on what
they name, so what is sent twice is stored once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import RagevalError
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.contracts import Parcel, Target
    from rageval_spec.progress import Progress

T = TypeVar("T")


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
    with closing(SentLedger(folder, tool, target.destination)) as ledger:
        fresh = [parcel for parcel in parcels if anew or not ledger.has(parcel)]
        known = len(parcels) - len(fresh)
        for batch in split(fresh, target.batch):
            if not dry_run:
                target.send(batch)
                ledger.add(batch)
            elif show is not None:
                for parcel in batch:
                    show(parcel.summary)
            sent.update(parcel.kind for parcel in batch)
            if progress is not None:
                progress(known + sent.total(), len(parcels), "values")
    return Receipt(target.destination, sent, known, (*target.remarks(), *left_out), is_rehearsal=dry_run)


def _list_once(parcels: Iterable[Parcel]) -> tuple[list[Parcel], list[str]]:
    """The first parcel of each key, and what to say of those that would have replaced it at the destination."""
    found: dict[str, Parcel] = {}
    replaced: list[Parcel] = []
    for parcel in parcels:
        first = found.setdefault(parcel.key, parcel)
        if first.body != parcel.body:
            replaced.append(parcel)
    count = count_noun(len(replaced), "value")
    told = f"{count} left out: an earlier answer has the same place there, such as "
    return list(found.values()), [f"{told}{one.summary}" for one in replaced[:1]]


def split(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


FOLDER = "exports"


def digest_parcel(parcel: Parcel) -> str:
    """The SHA-256 of a parcel's body."""
    text = json.dumps(parcel.body, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class SentLedger:
    """The keys that were sent to a destination, each with the digest of what was sent.

    The file has a line of JSON for each key: `["key", "digest"]`; the last line of a key counts. A line that a kill cut
    off is ignored: its parcel is sent again, which changes nothing at the destination.
    """

    def __init__(self, folder: Path | None, tool: str, destination: str) -> None:
        """Read the file of a destination in the results folder; without a folder, nothing is remembered."""
        name = f"{tool}-{hashlib.sha256(destination.encode()).hexdigest()[:12]}.jsonl"
        self._path = None if folder is None else folder / FOLDER / name
        self._sent = self._read()
        self._stream: IO[str] | None = None

    def has(self, parcel: Parcel) -> bool:
        """Whether exactly this parcel was sent."""
        return self._sent.get(parcel.key) == digest_parcel(parcel)

    def add(self, parcels: Iterable[Parcel]) -> None:
        """Remember parcels as sent; they are on the disk when this returns."""
        added = {parcel.key: digest_parcel(parcel) for parcel in parcels}
        self._sent.update(added)
        if self._path is None:
            return
        try:
            if self._stream is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self._path.open("a", encoding="utf-8")
                if self._stream.tell() and not self._path.read_bytes().endswith(b"\n"):
                    self._stream.write("\n")
            self._stream.writelines(f"{json.dumps(pair)}\n" for pair in added.items())
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise RagevalError(f"{self._path}: cannot be written: {error.strerror or error}") from error

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _read(self) -> dict[str, str]:
        if self._path is None or not self._path.is_file():
            return {}
        sent: dict[str, str] = {}
        for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                key, digest = json.loads(line)
                sent[key] = digest
            except (ValueError, TypeError):
                continue
        return sent


def make_hex(*parts: str, digits: int = 32) -> str:
    """Hexadecimal digits for some texts: others for other texts, and never all zero."""
    return hashlib.sha256(json.dumps(["rageval-spec", *parts]).encode()).hexdigest()[:digits]


def make_uuid(*parts: str) -> str:
    """A UUID (version 8, of RFC 9562) for some texts."""
    digits = make_hex(*parts)
    return str(UUID(f"{digits[:12]}8{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:]}"))
