"""An owner and the lines of two workers in this process, without a cluster."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from rageval_spec.engines.shared.message_line import Message, MessageLine, Reply
from rageval_spec.engines.shared.owner import Owner
from rageval_spec.engines.shared.stand_ins import make_shared
from rageval_spec.plugin import Shared


class Office:
    """Messages are pickled, as between machines. `sent` has the sizes of what each worker sent at once."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.sent: list[int] = []
        self.files: list[Path] = []
        self._replies: dict[str, SimpleQueue[Reply]] = defaultdict(SimpleQueue)
        self.owner = Owner(shared, self._answer, self._put)

    def _answer(self, worker: str, reply: Reply) -> None:
        self._replies[worker].put(pickle.loads(pickle.dumps(reply)))

    def _put(self, path: Path) -> bytes:
        self.files.append(path)
        return path.read_bytes()

    def open_line(self, worker: str) -> MessageLine:
        def send(messages: Sequence[Message]) -> None:
            self.sent.append(len(messages))
            self.owner.handle(worker, pickle.loads(pickle.dumps(messages)))

        def receive() -> list[Reply]:
            try:
                return [self._replies[worker].get(timeout=0.05)]
            except Empty:
                return []

        return MessageLine(send, receive)

    def hire(self, worker: str, *, is_limited: bool = False) -> Shared:
        """What a worker has in place of what the owner has."""
        return make_shared(self.open_line(worker), bytes, retry_failed=False, is_limited=is_limited)
