"""Threads and an event loop for user functions, which can neither end the program nor delay its end."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_LOOPS: list[asyncio.AbstractEventLoop] = []
_STARTING = Lock()


class ExitCallError(Exception):
    """User code called `sys.exit`, which must not end the program."""

    def __init__(self, ending: SystemExit) -> None:
        """Keep the exit code."""
        super().__init__(f"called sys.exit({ending.code!r}); it must return or raise an exception")


def call_async(function: Callable[..., Any], told: Mapping[str, Any]) -> Future[Any]:
    """Call an async function in the event loop; `told` has its keyword arguments."""
    return _start(_settle(function(**told)))


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call returns a coroutine. Objects with an async `__call__` count too."""
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def finish(result: Any) -> Any:
    """The result itself or, if it is awaitable, its value once the event loop has it."""
    return _start(_settle(result)).result() if inspect.isawaitable(result) else result


def _loop() -> asyncio.AbstractEventLoop:
    """The one event loop of this process. Async clients that functions keep are bound to the loop that created them."""
    import asyncio

    with _STARTING:
        if not _LOOPS:
            _LOOPS.append(asyncio.new_event_loop())
            Thread(target=_LOOPS[0].run_forever, name="async-functions", daemon=True).start()
        return _LOOPS[0]


def _start(coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, _loop())


async def _settle(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except SystemExit as ending:  # would end the loop and leave all other calls waiting
        raise ExitCallError(ending) from ending


class Workers:
    """Threads that make one call at a time each. The most recently freed thread is used first.

    With one call at a time, the import and all calls happen in the same thread, as some database connections require.
    """

    def __init__(self) -> None:
        """Start no thread yet."""
        self._idle: list[SimpleQueue[tuple[Future[Any], Callable[[], Any]]]] = []
        self._lock = Lock()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Make a call in a free thread, or in a new one. A `SystemExit` becomes an `ExitCallError`."""
        with self._lock:
            tasks = self._idle.pop() if self._idle else None
        if tasks is None:
            tasks = SimpleQueue()
            # A daemon thread: a call whose result is no longer needed must not delay the end of the program.
            Thread(target=self._work, args=(tasks,), daemon=True).start()
        future: Future[Any] = Future()
        tasks.put((future, call))
        return future

    def _work(self, tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
        while True:
            future, call = tasks.get()
            if not future.set_running_or_notify_cancel():
                self._rest(tasks)
                continue
            try:
                result = call()
            except BaseException as error:
                self._rest(tasks)
                future.set_exception(ExitCallError(error) if isinstance(error, SystemExit) else error)
            else:
                self._rest(tasks)
                future.set_result(result)

    def _rest(self, tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
        """Mark this thread as free before the caller gets the outcome, so that its next call runs here."""
        with self._lock:
            self._idle.append(tasks)
