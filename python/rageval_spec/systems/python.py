"""`python`: a function."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from importlib.machinery import PathFinder
from itertools import combinations
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin import Context, InputFile
from rageval_spec.reading.answer_rows import (
    ID_KEYS,
    SCORE_KEYS,
    TEXT_KEYS,
    USUAL,
    AnswerRow,
    ReplyLayout,
    UnusableReplyError,
)
from rageval_spec.reading.python_source import find_parameters, list_names
from rageval_spec.systems.shared.asked import VARIABLES, AnsweringNode, AnsweringSystem, AskError, Variables
from rageval_spec.wording import make_visible

if TYPE_CHECKING:
    import asyncio

_TEMPORARY = frozenset({408, 409, 425, 429})
_LOOPS: list[asyncio.AbstractEventLoop] = []
_STARTING = Lock()
_LAYOUT = ReplyLayout()
_ASKING = frozenset({"question", "query_id"})
_NOT_ASKED = (
    "takes neither 'question' nor 'query_id', so it would not know what is asked; "
    f"its parameters may be {', '.join(VARIABLES)}"
)
_ATTRIBUTES = tuple(dict.fromkeys(path.text for paths in USUAL.values() for path in paths if path.text.isidentifier()))
_CONTEXTS = frozenset(path.text for path in USUAL["contexts"])


class PythonNode(AnsweringNode):
    """A function that answers, sync or async; it is imported when the first question is asked, and not before."""

    function: str = Field(
        description=(
            "`module:function`. The module is looked for beside the spec first. Arguments are given by name, as far "
            "as the function has them: `question`, `query_id`, `contexts` (the dataset's reference contexts, left out "
            "where it has none and the argument has a default). It returns the answer, or a dict or object with "
            "`answer`, `contexts`, `context_ids`, `input_tokens`, `output_tokens`, `cost`. Unless it is async, it is "
            "called from several threads: write `concurrency: 1` where it cannot bear that."
        )
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=100,
        description=(
            "Further tries after a timeout, a ConnectionError, a TimeoutError, or an exception whose `status_code` "
            "is 408, 409, 425, 429 or 5xx."
        ),
    )

    @field_validator("function")
    @classmethod
    def _check_function(cls, text: str) -> str:
        module, colon, name = text.partition(":")
        steps = [*module.split("."), *name.split(".")]
        if not colon or not all(step.isidentifier() for step in steps):
            raise ValueError("write 'module:function', such as 'rag:answer' for the function answer of rag.py")
        return text


class Python(AnsweringSystem[PythonNode]):
    """Calls a function in threads; async ones run in one event loop, which lasts as long as the process.

    The content of the module's file is part of what answers are kept under; what the module imports is not: write
    another `version` when that changes. A sync function that does not return in time cannot be ended: it is left
    alone in its thread.
    """

    node_type = PythonNode

    def __init__(self, node: PythonNode, context: Context) -> None:
        """Import nothing yet."""
        super().__init__(node, context)
        self._function: Callable[..., Any] | None = None
        self._lock = Lock()
        self._workers = _Workers()
        self._pending: set[Future[Any]] = set()

    def inputs(self) -> Sequence[InputFile]:
        """The module's file; none where it has none, as a module that is built in."""
        module = self.node.function.partition(":")[0]
        found = _find_beside(self.context.resolve("."), module)
        if found is not None:
            return (InputFile(found, ("function",)),)
        if _is_installed(module):
            origin = _find_installed(module)
            return () if origin is None else (InputFile(origin, ("function",)),)
        wanted = self.context.resolve(f"{module.replace('.', '/')}.py")
        return (InputFile(wanted, ("function",), hint=f"nor is a module {module!r} installed"),)

    def check(self) -> str | None:
        """Whether the module has the function and that takes the question, as far as its text tells; imports nothing.

        A module that is not beside the spec is not looked into.
        """
        module, _, path = self.node.function.partition(":")
        found = _find_beside(self.context.resolve("."), module)
        if found is None or self._function is not None:
            return None
        try:
            names, parameters = list_names(found), find_parameters(found, path)
        except DataError as error:
            return f"function: {error}"
        name = path.partition(".")[0]
        if names is not None and name not in names:
            there = [name for name in names if not name.startswith("_")]
            hint = suggest(name, there) or f"there is {', '.join(there)[:200] or 'nothing'}"
            return f"function: there is no {name!r} in {found.name}; {hint}"
        return None if parameters is None or parameters & _ASKING else f"function: {self.node.function} {_NOT_ASKED}"

    @property
    def variables(self) -> frozenset[str]:
        """The arguments of the function that are variables; question and id where it takes any. Imports it.

        Raises:
            UsageError: it cannot be imported, or needs other arguments.
        """
        function = self._load()
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return frozenset({"question"})
        takes = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        odd = [p.name for p in required if p.name not in takes & set(VARIABLES)]
        if odd:
            raise self._complain(f"needs the argument {odd[0]!r}; it is given {', '.join(VARIABLES)} by name")
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            takes |= {"question", "query_id"}
        if not takes & _ASKING:
            raise self._complain(_NOT_ASKED)
        return frozenset(takes & set(VARIABLES))

    @property
    def dispensable_variables(self) -> frozenset[str]:
        """The arguments of the function that have a default. Imports it."""
        try:
            parameters = inspect.signature(self._load()).parameters.values()
        except (TypeError, ValueError):
            return frozenset()
        return frozenset({p.name for p in parameters if p.default is not p.empty} & set(VARIABLES))

    def guess_variables(self) -> Sequence[frozenset[str]]:
        """All that a function may take, while it is not imported; once it is, without and with what has a default."""
        if self._function is not None:
            return (self.variables - self.dispensable_variables, self.variables)
        takes = (frozenset(names) for count in range(1, len(VARIABLES) + 1) for names in combinations(VARIABLES, count))
        return [names for names in takes if names & {"question", "query_id"}]

    def ask(self, told: Variables) -> AnswerRow:
        """What the function makes of a question.

        Raises:
            AskError: it raises, takes too long, or returns no answer.
            UsageError: it cannot be imported.
        """
        result = self._call(self._load(), told)
        try:
            return _LAYOUT.read(_as_content(result))
        except UnusableReplyError as error:
            raise AskError(f"{self.node.function}: {error}") from error

    def close(self) -> None:
        """Cancel what is under way in the event loop."""
        with self._lock:
            pending = list(self._pending)
        for future in pending:
            future.cancel()

    def _call(self, function: Callable[..., Any], told: Variables) -> Any:
        future: Future[Any]
        if _is_async(function):
            future = _start(_await_result(function, told))
        else:
            future = self._workers.submit(lambda: _finish(function(**told)))
        with self._lock:
            self._pending.add(future)
        try:
            return self._result(future)
        finally:
            with self._lock:
                self._pending.discard(future)

    def _result(self, future: Future[Any]) -> Any:
        if not wait([future], self.node.timeout).done:
            future.cancel()
            raise AskError(
                f"{self.node.function} gave no answer within {self.node.timeout:g} s",
                is_temporary=_is_cancelled(future),
            )
        try:
            return future.result()
        except CancelledError as error:
            raise AskError(f"{self.node.function} was cancelled") from error
        except BaseException as error:
            raise AskError(_describe(self.node.function, error), is_temporary=_is_temporary(error)) from error

    def _load(self) -> Callable[..., Any]:
        with self._lock:
            if self._function is None:
                self._function = self._workers.submit(self._import).result()
            return self._function

    def _import(self) -> Callable[..., Any]:
        module_name, _, path = self.node.function.partition(":")
        try:
            found: Any = _import_module(self.context.resolve(".").resolve(), module_name)
        except (Exception, SystemExit) as error:
            raise self._complain(f"the import of {module_name} failed: {_describe(module_name, error)}") from error
        for name in path.split("."):
            if not hasattr(found, name):
                there = ", ".join(name for name in vars(found) if not name.startswith("_")) or "nothing"
                raise self._complain(f"there is no {path!r} in {module_name}; there is {there[:200]}")
            found = getattr(found, name)
        if not callable(found):
            raise self._complain(f"{self.node.function} is no function, but of type {type(found).__name__}")
        function: Callable[..., Any] = found
        return function

    def _complain(self, message: str) -> UsageError:
        return UsageError(f"systems.{self.context.name}.function: {message}")


def _find_beside(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _is_installed(module: str) -> bool:
    return module.partition(".")[0] in sys.builtin_module_names or _find_spec(module) is not None


def _find_installed(module: str) -> Path | None:
    spec = _find_spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def _find_spec(module: str) -> Any:
    """Where a module would be imported from; no package on the way is imported for that."""
    places: Sequence[str] | None = None
    spec = None
    name = ""
    for step in module.split("."):
        name = f"{name}.{step}" if name else step
        try:
            spec = importlib.util.find_spec(name) if places is None else PathFinder.find_spec(name, places)
        except (ImportError, ValueError):
            return None
        if spec is None:
            return None
        places = list(spec.submodule_search_locations or ())
    return spec


def _import_module(folder: Path, name: str) -> ModuleType:
    """The module beside the spec, else the installed one. The folder stays on the path, as that of a script does."""
    beside = _find_beside(folder, name)
    if beside is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if beside is None or Path(module.__file__ or "").resolve() == beside.resolve():
        return module
    # Another module of that name was imported before, such as one beside another spec.
    alias = f"{name.replace('.', '_')}_{abs(hash(beside))}"
    spec = importlib.util.spec_from_file_location(alias, beside)
    assert spec is not None and spec.loader is not None, "a file ending in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    spec.loader.exec_module(module)
    return module


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - an object may have an async one
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


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


async def _await_result(function: Callable[..., Any], told: Mapping[str, Any]) -> Any:
    return await function(**told)


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _finish(result: Any) -> Any:
    """A result; where it is yet to come, what comes."""
    return _start(_await(result)).result() if inspect.isawaitable(result) else result


class _Workers:
    """Threads that make calls, one at a time each; the one that was free last is taken first.

    With one call at a time, import and calls all happen in one thread: connections to databases may insist on that.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[tuple[Future[Any], Callable[[], Any]]]] = []
        self._lock = Lock()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
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
                future.set_exception(error)
            else:
                self._rest(tasks)
                future.set_result(result)

    def _rest(self, tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]]]) -> None:
        """Be free before the caller knows the outcome, so that the caller's next call comes here."""
        with self._lock:
            self._idle.append(tasks)


def _is_cancelled(future: Future[Any]) -> bool:
    """Whether it is over: another try beside one that still runs would be a second burden."""
    return future.cancelled()


def _is_temporary(error: BaseException) -> bool:
    status = getattr(error, "status_code", None)
    refused = isinstance(status, int) and (status in _TEMPORARY or 500 <= status < 600)
    return refused or isinstance(error, (ConnectionError, TimeoutError))


def _describe(what: str, error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    kind = type(error).__name__
    return f"{what} raised {kind}" + (f": {make_visible(text)[:400]}" if text else "")


def _as_content(result: Any) -> Any:
    """A result as JSON's types: objects become dicts of the attributes that an answer or a context may have."""
    if result is None or isinstance(result, (str, bool, int, float, list, tuple)):
        return result
    content = dict(result) if isinstance(result, Mapping) else _attributes(result, _ATTRIBUTES)
    for key in _CONTEXTS & content.keys():
        if isinstance(content[key], (list, tuple)):
            content[key] = [_as_context(item) for item in content[key]]
    return content


def _as_context(item: Any) -> Any:
    is_plain = item is None or isinstance(item, (str, bool, int, float, list, tuple, Mapping))
    return item if is_plain else _attributes(item, (*TEXT_KEYS, *ID_KEYS, *SCORE_KEYS))


def _attributes(found: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names if hasattr(found, name)}


PLUGIN = Python
