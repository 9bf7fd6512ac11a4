"""Runs a model in its own process, so that only its own memory and time are measured and nothing is kept."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from rageval_spec import registry
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context, EmbeddingModel, Embeddings, Role
from rageval_spec.progress import Progress, ProgressDisplay, ignore_progress

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


TELL_EVERY = 0.1
"""Seconds between two reports of progress."""
PATIENCE = 5.0
"""Seconds that a process has to end on its own."""


class TrialResult(NamedTuple):
    """What a method of a model gave, and what that took.

    Attributes:
        peak_bytes: the peak memory of the process so far.
        start_bytes: what of it the process had before it loaded the model and its libraries.
    """

    answer: Any
    seconds: float
    peak_bytes: int
    start_bytes: int


@dataclass(frozen=True, slots=True)
class TriedModel:
    """A model to try: its name in tables, its node as in YAML, where its paths start, and its number of threads."""

    name: str
    node: Mapping[str, Any]
    folder: Path
    threads: int | None = None


class Trial:
    """A model in another process, which ends with this context manager."""

    def __init__(self, contender: TriedModel) -> None:
        """Start the process. The model loads when it is first asked."""
        spawning = multiprocessing.get_context("spawn")
        self.name = contender.name
        self._connection, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs, contender), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """End the process. Without an error, it first gets time to clean up."""
        if kind is None:
            with suppress(OSError):
                self._connection.send(None)
            self._process.join(PATIENCE)
        self._process.terminate()
        self._process.join()
        self._connection.close()
        self._process.close()

    @property
    def process_id(self) -> int:
        return self._process.pid or 0

    def ask(self, method: str, *arguments: Any, progress: Progress = ignore_progress) -> TrialResult:
        """What `embed`, `score` or `tag` of the model gives, or a RagevalError if it fails or its process ends."""
        try:
            self._connection.send((method, arguments))
            while True:
                kind, *content = self._connection.recv()
                if kind == "done":
                    return TrialResult(*content)
                if kind == "failed":
                    raise content[0]
                progress(*content)
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self._process.join()
            raise RagevalError(f"{self.name}: {_describe_end(self._process.exitcode)}") from error


class TriedEmbedding(EmbeddingModel[Any]):
    """An embedding model that runs in another process."""

    def __init__(
        self, trial: Trial, model: str, similarity: Literal["cosine", "dot"], display: ProgressDisplay
    ) -> None:
        """Ask the model `model` of a trial, and show on the display how many texts it has read."""
        onnx = registry.load("models", "onnx")
        super().__init__(onnx.node_type(use="onnx", model=model), Context(trial.name))
        self._trial = trial
        self._similarity = similarity
        self._display = display

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return self._similarity

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        plural = "queries" if role == "query" else "documents"
        progress = self._display.counting(f"{self._trial.name}, {plural}")
        found: Embeddings = self._trial.ask("embed", list(texts), role, progress=progress).answer
        return found


def _describe_end(code: int | None) -> str:
    if code is not None and code < 0:
        cause = "; it may have run out of memory" if -code == signal.SIGKILL else ""
        return f"its process was killed by {signal.Signals(-code).name}{cause}"
    return f"its process ended with exit code {code}"


def _serve(connection: Connection, contender: TriedModel) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles the interrupt, and ends this process
    with suppress(EOFError, BrokenPipeError):
        model, start = None, _read_memory("VmRSS")
        while (request := connection.recv()) is not None:
            try:
                model = model or _build(connection, contender)
                connection.send(("done", *_compute(model, *request), start))
            except RagevalError as error:
                connection.send(("failed", error))
            except Exception as error:  # the parent must be told about any error
                connection.send(("failed", RagevalError(f"{contender.name}: {type(error).__name__}: {error}")))


def _build(connection: Connection, contender: TriedModel) -> Any:
    last = 0.0

    def tell(done: int, total: int, unit: str | None = None) -> None:  # noqa: ARG001 - the parent knows what is counted
        nonlocal last
        if done == total or time.monotonic() - last > TELL_EVERY:
            last = time.monotonic()
            connection.send(("progress", done, total))

    plugin = registry.load("models", contender.node["use"])
    context = Context(contender.name, contender.folder, contender.threads, progress=tell)
    return plugin(plugin.node_type.model_validate(contender.node), context)


def _compute(model: Any, method: str, arguments: tuple[Any, ...]) -> tuple[Any, float, int]:
    begun = time.perf_counter()
    answer = getattr(model, method)(*arguments)
    return answer, time.perf_counter() - begun, _read_memory("VmHWM")


def _read_memory(kind: Literal["VmRSS", "VmHWM"]) -> int:
    """The memory of this process in bytes, or its peak.

    On Linux, `getrusage` of a new process starts from its parent's peak, so /proc is read. Elsewhere there is only the
    peak, which is near the memory itself when the process has just started.
    """
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return int(next(line for line in lines if line.startswith(f"{kind}:")).split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
