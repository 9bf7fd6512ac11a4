"""Threads and an event loop in which a user's functions run: none of them can end the program or block its end."""

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
    """A user's code called `sys.exit`, which must not end the program."""

    def __init__(self, ending: SystemExit) -> None:
        """Keep the exit code."""
        super().__init__(f"called sys.exit({ending.code!r}); it must return or raise an exception")


def call_async(function: Callable[..., Any], told: Mapping[str, Any]) -> Future[Any]:
    """Call an async function by name in the event loop."""
    return _start(_settle(function(**told)))


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine; an object may have an async `__call__`."""
    call = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def finish(result: Any) -> Any:
    """A result; where it is awaitable, what it gives, once the event loop has that."""
    return _start(_settle(result)).result() if inspect.isawaitable(result) else result


def _loop() -> asyncio.AbstractEventLoop:
    """The loop of all functions of this process: clients that they keep are bound to the one that they were made in."""
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
    except SystemExit as ending:  # would end the loop, and leave everybody else in it waiting
        raise ExitCallError(ending) from ending


class Workers:
    """Threads that make calls, one at a time each; the one that was free last is taken first.

    With one call at a time, import and calls all happen in one thread: connections to databases may insist on that.
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
            # A daemon: a call that nobody waits for any longer must not hold up the end of the program.
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
        """Be free before the caller knows the outcome, so that the caller's next call comes here."""
        with self._lock:
            self._idle.append(tasks)
