"""Reads traces from the spans of files, or receives spans over OTLP/HTTP until it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field, field_validator

from rageval_spec.endpoints.http_server import is_local, read_token, split_address
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.contracts import TraceSource, WindowNode
from rageval_spec.exchange.shared.spans.span_files import MOST_SPANS, SpanFiles, SpanStore, list_files
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import SECOND
from rageval_spec.plugin.secrets import Secret
from rageval_spec.signals import stopping
from rageval_spec.store.disk import InputFile
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.traces import Trace
    from rageval_spec.plugin import Context

USUAL_PORT = 4318
"""Where programs send spans if nothing else is said."""
SPOOL_FOLDER = Path(".rageval/received")
_TICK = 0.2
_SHOWN_EVERY = 2000


class OtelFilesNode(WindowNode):
    path: str | None = Field(
        default=None,
        description=(
            "A file of spans, or a folder of such files: OTLP as protobuf or JSON, or spans as console exporters write "
            "them; plain or gzip."
        ),
    )
    listen: str | None = Field(
        default=None,
        description="For `monitor`, in place of `path`: receive spans by OTLP/HTTP at this address: `127.0.0.1:4318`.",
    )
    token: Secret | None = Field(
        default=None,
        description="With `listen`: take only requests with `authorization: Bearer TOKEN`: `${secret:VAR}`.",
    )
    follow: bool = Field(
        default=False, description="For `monitor`: read the file, or the folder of files, as it grows and is rotated."
    )

    one_of = ("path", "listen")
    needs = (("token", "listen"),)

    @field_validator("listen")
    @classmethod
    def _check_address(cls, text: str | None) -> str | None:
        if text is not None:
            split_address(text, USUAL_PORT)
        return text


class OtelSourceNode(WindowNode):
    path: str | None = Field(
        default=None,
        description="A file of spans, or a folder of such files: OTLP as protobuf or JSON; plain or gzip.",
    )
    listen: str | None = Field(
        default=None,
        description=(
            "Receive spans at this address over OTLP/HTTP until Ctrl-C, then write their traces: `127.0.0.1:4318`, or "
            "only a port."
        ),
    )
    seconds: float | None = Field(default=None, gt=0, description="With --listen: stop after so many seconds.")
    spool: str | None = Field(
        default=None,
        description=(
            "With --listen: the file that keeps the spans until their traces are written, so that a kill loses none. "
            "Default: a file in `.rageval/received`."
        ),
    )

    token_env: str | None = Field(
        default=None,
        description=(
            "With --listen: the environment variable with a token. Only requests with the header `authorization: "
            "Bearer TOKEN` are taken."
        ),
    )

    one_of = ("path", "listen")
    needs = (("seconds", "listen"), ("spool", "listen"), ("token_env", "listen"))

    @field_validator("listen")
    @classmethod
    def _check_address(cls, text: str | None) -> str | None:
        if text is not None:
            split_address(text, USUAL_PORT)
        return text


N = TypeVar("N", bound=WindowNode)


class SpanFileSource(TraceSource[N]):
    """Reads the traces of spans that may come in any order, from any number of files."""

    def __init__(self, node: N, context: Context) -> None:
        super().__init__(node, context)
        self._files = SpanFiles()
        self._reader = SpanReader("otel")
        self._cut = 0

    def remarks(self) -> Sequence[str]:
        told = [*self._files.remarks(), *self._reader.remarks()]
        if self._cut:
            some = count_noun(self._cut, "trace has", "traces have")
            told.append(f"{some} more than {MOST_SPANS:,} spans; only the first were read")
        return told

    def _read_files(self, paths: Sequence[Path], where: str) -> Iterator[Trace]:
        """The traces of files, ordered by their beginning."""
        store, spans, found = SpanStore(), 0, False
        try:
            for number, path in enumerate(paths, 1):
                spans += store.add(self._files.read(path))
                if len(paths) > 1 and self.context.progress is not None:
                    self.context.progress(number, len(paths), "files")
            since, until = (None if one is None else round(one.timestamp()) * SECOND for one in self.node.window)
            for parts in store.read_traces(since or 0, until, self.node.limit):
                for trace in self._reader.read(self._files.attach(parts)):
                    found = True
                    yield trace
        finally:
            self._cut = store.cut
            store.close()
        if not found:
            why = "no trace began in this time" if spans else "there are no spans"
            raise DataError(f"{where}: {'; '.join(self.remarks()) or why}")


class OtelFiles(SpanFileSource[OtelFilesNode]):
    node_type = OtelFilesNode
    summary = "Read the traces of OpenTelemetry spans from files."
    known_as = ("opentelemetry", "openinference", "otlp")

    def inputs(self) -> Sequence[InputFile]:
        if self.node.path is None or self.node.follow:
            return ()
        path = self.context.resolve(self.node.path)
        if not path.is_dir():
            return (InputFile(path, ("path",)),)
        return tuple(InputFile(file, ("path",)) for file in list_files(path))

    def read(self) -> Iterator[Trace]:
        if self.node.path is None:
            raise UsageError(f"{self.context.name}: only 'monitor' receives spans; name a 'path' here")
        yield from self._read_files(list_files(self.context.resolve(self.node.path)), self.node.path)


class OtelSource(SpanFileSource[OtelSourceNode]):
    node_type = OtelSourceNode
    for_specs = OtelFiles
    summary = "Read the traces of OpenTelemetry spans, from files or as they are sent."
    examples: ClassVar[Sequence[str]] = (
        "import otel spans.jsonl.gz -o traces.jsonl",
        "import otel --listen 127.0.0.1:4318 -o traces.jsonl",
    )

    def read(self) -> Iterator[Trace]:
        if self.node.listen is None:
            path = str(self.node.path)
            yield from self._read_files(list_files(self.context.resolve(path)), path)
        else:
            yield from self._receive(*split_address(self.node.listen, USUAL_PORT))

    def _receive(self, host: str, port: int) -> Iterator[Trace]:
        from rageval_spec.exchange.otel.receiver import Receiver, RequestSpool

        tell = self.context.tell
        usual = SPOOL_FOLDER / f"{host.replace(':', '-')}-{port}.otlp"
        spool = RequestSpool(self.context.resolve(usual if self.node.spool is None else self.node.spool))
        try:
            if spool.found:
                before = count_noun(spool.found, "request")
                tell(f"{before} that were received before and not yet written are kept in {spool.path}")
            receiver = Receiver(host, port, spool, tell, read_token(self.node.token_env))
            if receiver.token is None and not is_local(host):
                tell(f"everybody who reaches {host} can send spans; give them a token with --token-env VARIABLE")
            tell(f"receiving spans at {receiver.url}; Ctrl-C ends this and writes the traces")
            self._wait(receiver)
            spool.close()
            receiver.close()
            received = f"{count_noun(receiver.spans, 'span')} in {count_noun(receiver.requests, 'request')}"
            tell(f"received {received}" + (f"; {receiver.rejected:,} rejected" if receiver.rejected else ""))
            yield from self._read_files([spool.path], receiver.url)
            spool.retire()
        finally:
            spool.close()

    def _wait(self, receiver: Any) -> None:
        """Return after the first signal, or once the time is over."""
        ended = Flag()
        until = None if self.node.seconds is None else monotonic() + self.node.seconds
        shown = 0
        with stopping(ended.set), suppress(KeyboardInterrupt):
            while not ended.wait(_TICK) and (until is None or monotonic() < until):
                if self.context.progress is not None and receiver.spans >= shown + _SHOWN_EVERY:
                    shown = receiver.spans
                    self.context.progress(shown, shown + 1, "spans")
