"""A function that a spec names as `module:function`: found beside the spec, imported, and called in threads.

The module is looked up in the spec's folder and among installed packages. What its file defines is found by parsing
it, so a spec can be checked without importing anything.

Functions run in threads and on an event loop. They can neither end the program nor delay its end.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from importlib.machinery import PathFinder
from pathlib import Path
from queue import SimpleQueue
from symtable import symtable
from threading import Lock, Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import make_visible, suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.store.disk import InputFile

if TYPE_CHECKING:
    import asyncio


_MOST_SHOWN = 200
_LONGEST_MESSAGE = 400


def check_name(text: str, example: str) -> str:
    """Return `text` if it has the form `module:function`, else raise `ValueError`; the message shows `example`."""
    module, colon, name = text.partition(":")
    steps = [*module.split("."), *name.split(".")]
    if not colon or not all(step.isidentifier() for step in steps):
        raise ValueError(f"write 'module:function', for example {example}")
    return text


@dataclass(frozen=True)
class NamedFunction:
    """A function and the place of its name in a spec.

    Attributes:
        name: `module:function`.
        folder: the spec's folder, where the module is looked up first.
        setting: the key that names the function, for messages: `systems.mine.function`.
    """

    name: str
    folder: Path
    setting: str

    @property
    def module(self) -> str:
        return self.name.partition(":")[0]

    @property
    def path(self) -> str:
        """Its name inside the module; it can have dots."""
        return self.name.partition(":")[2]

    def inputs(self) -> Sequence[InputFile]:
        """The module's file; none for a module without one, such as a built-in."""
        found = find_beside(self.folder, self.module) or find_installed(self.module)
        if found is not None:
            return (InputFile(found, ("function",)),)
        wanted = self.folder / f"{self.module.replace('.', '/')}.py"
        missing = InputFile(wanted, ("function",), hint=f"nor is a module {self.module!r} installed")
        return () if is_installed(self.module) else (missing,)

    def explain_absence(self) -> str | None:
        """Why the module's text cannot have the function; None if it can, or if the module is not beside the spec.

        Imports nothing. Raises `DataError` if the file is not valid Python.
        """
        found = find_beside(self.folder, self.module)
        names = None if found is None else list_names(found)
        name = self.path.partition(".")[0]
        if found is None or names is None or name in names:
            return None
        there = [name for name in names if not name.startswith("_")]
        hint = suggest(name, there) or f"it has {', '.join(there)[:_MOST_SHOWN] or 'no functions'}"
        return f"there is no {name!r} in {found.name}; {hint}"

    def find_parameters(self) -> frozenset[str] | None:
        """The names of its keyword arguments, from the module's text; None if they are unknown. Imports nothing."""
        found = find_beside(self.folder, self.module)
        return None if found is None else find_parameters(found, self.path)

    def load(self) -> Callable[..., Any]:
        """Import the module and return the function. Raises `UsageError` if that fails, or there is no function."""
        try:
            found: Any = import_module(self.folder.resolve(), self.module)
        except (Exception, SystemExit) as error:
            raise self.complain(f"the import of {self.module} failed: {describe_error(self.module, error)}") from error
        for name in self.path.split("."):
            if not hasattr(found, name):
                there = ", ".join(name for name in vars(found) if not name.startswith("_")) or "nothing"
                raise self.complain(f"there is no {self.path!r} in {self.module}; it has {there[:_MOST_SHOWN]}")
            found = getattr(found, name)
        if not callable(found):
            raise self.complain(f"{self.name} is not a function; its type is {type(found).__name__}")
        function: Callable[..., Any] = found
        return function

    def complain(self, message: str) -> UsageError:
        return UsageError(f"{self.setting}: {message}")


def describe_error(what: str, error: BaseException) -> str:
    """A sentence about an exception of a user's code: `checks:cites raised KeyError: 'a'`."""
    if isinstance(error, SystemExit):
        error = ExitCallError(error)
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    if isinstance(error, ExitCallError):
        return f"{what} {text}"
    kind = type(error).__name__
    return f"{what} raised {kind}" + (f": {make_visible(text)[:_LONGEST_MESSAGE]}" if text else "")


def find_beside(folder: Path, module: str) -> Path | None:
    """The file of a module in a folder; None if there is none."""
    path = folder.joinpath(*module.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def list_imports(script: Path, folder: Path) -> list[Path]:
    """The files beside a Python file, or in `folder`, that it imports, directly or through others; not itself.

    Follows `import` and `from ... import` wherever they stand, without importing anything. Installed packages, and
    modules whose names are made while the program runs, are not found. Files that are no Python import nothing.
    """
    found: dict[Path, None] = {}
    waiting = [script]
    while waiting:
        current = waiting.pop()
        for path in _list_imported(current, folder):
            if path not in found and path != script:
                found[path] = None
                waiting.append(path)
    return sorted(found)


def _list_imported(script: Path, folder: Path) -> Iterator[Path]:
    try:
        nodes = list(ast.walk(parse_module(script)))
    except DataError:
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            names, roots = [alias.name for alias in node.names], (script.parent, folder)
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module}." if node.module else ""
            names = [node.module or "", *(f"{module}{alias.name}" for alias in node.names)]
            up = script.parents[node.level - 1] if 0 < node.level <= len(script.parents) else None
            roots = (script.parent, folder) if up is None else (up, up)
        else:
            continue
        for name in filter(None, names):
            steps = name.split(".")
            packages = (".".join(steps[:count]) for count in range(1, len(steps) + 1))
            yield from {path for one in packages for root in roots if (path := find_beside(root, one)) is not None}


def is_installed(module: str) -> bool:
    """Whether a module can be imported from outside the spec's folder. Imports nothing."""
    return module.partition(".")[0] in sys.builtin_module_names or _find_spec(module) is not None


def find_installed(module: str) -> Path | None:
    """The file of an installed module; None if it has no file, like built-in modules. Imports nothing."""
    spec = _find_spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def _find_spec(module: str) -> Any:
    """Where a module would be imported from. Does not import its parent packages."""
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


def import_module(folder: Path, name: str) -> ModuleType:
    """Import the module next to the spec, else the installed one. The folder stays on `sys.path`, as for a script."""
    beside = find_beside(folder, name)
    if beside is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if beside is None or Path(module.__file__ or "").resolve() == beside.resolve():
        return module
    # Another module with that name was imported earlier, such as one next to another spec.
    alias = f"{name.replace('.', '_')}_{abs(hash(beside))}"
    spec = importlib.util.spec_from_file_location(alias, beside)
    assert spec is not None and spec.loader is not None, "a file ending in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    spec.loader.exec_module(module)
    return module


_LOOPS: list[asyncio.AbstractEventLoop] = []
_STARTING = Lock()


class ExitCallError(Exception):
    """User code called `sys.exit`, which must not end the program."""

    def __init__(self, ending: SystemExit) -> None:
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


_UNKNOWABLE = frozenset({"globals", "exec", "eval", "vars", "locals", "setattr", "__getattr__", "__dict__"})
"""A module that uses these may define names that its source does not show."""


def list_names(path: Path) -> list[str] | None:
    """The names at a module's top level, in order; None if its source does not show all of them."""
    nodes = list(ast.walk(parse_module(path)))
    words = {getattr(node, key, None) for node in nodes for key in ("id", "attr", "name")}  # ast.alias has a name too
    if _UNKNOWABLE & words or any(isinstance(node, ast.alias) and node.name == "*" for node in nodes):
        return None
    try:
        with _PARSING:
            known = symtable(importlib.util.decode_source(path.read_bytes()), str(path), "exec").get_symbols()
    except SyntaxError:  # one that only the compiler finds; the import tells of it
        return None
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    names = (one.get_name() for one in known if one.is_assigned() or one.is_imported() or one.get_name() in shared)
    return list(dict.fromkeys(names))


def find_parameters(path: Path, function: str) -> frozenset[str] | None:
    """The names of the keyword arguments that a top-level function accepts.

    None if unknown: there is no such function or several, or it has decorators or `**` arguments.
    """
    found = [
        node
        for node in parse_module(path).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == function
    ]
    if len(found) != 1 or found[0].decorator_list or found[0].args.kwarg is not None:
        return None
    arguments = found[0].args
    return frozenset(argument.arg for argument in (*arguments.args, *arguments.kwonlyargs))


_PARSING = Lock()
"""CPython 3.11 counts the depth of syntax trees in one place for all threads, and fails if two are built at once."""


def parse_module(path: Path) -> ast.Module:
    """Parse a file to a syntax tree. Raises `DataError` (with `file:line`) if it is not valid Python."""
    try:
        with _PARSING:
            return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise DataError(f"{path}:{error.lineno or 1}: {error.msg}") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"{path}: {error}") from error
