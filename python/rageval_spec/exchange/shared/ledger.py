"""What was sent to a destination, in a file beside the results, so that a killed export continues."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from rageval_spec.errors import RagevalError

if TYPE_CHECKING:
    from rageval_spec.exchange.shared.target import Parcel

FOLDER = "exports"


def digest_parcel(parcel: Parcel) -> str:
    """The SHA-256 of a parcel's body."""
    text = json.dumps(parcel.body, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Ledger:
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
        """Remember parcels as sent; they are on the disk when this returns.

        Raises:
            RagevalError: the file cannot be written.
        """
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

    def __enter__(self) -> Self:
        """Open nothing: the file is opened when something is added."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
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
