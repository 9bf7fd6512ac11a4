"""Renders untrusted templates within bounds on time and memory.

A Jinja template is a program: `'a' * 10**10`, a macro that calls itself, nested loops. Here each rendering has a
`Meter`, which measures the result of an operation before it is made and counts loops, calls and filters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    from types import TracebackType

    from jinja2 import Template
    from jinja2.nodes import Template as Tree
    from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_STEPS = 10_000
"""Loop passes, calls, filters and operations of one rendering."""
MOST_CHARACTERS = 10_000_000
"""Characters of a text that a template makes; if the variables are long, 16 times their length instead."""
MOST_VALUES = 250_000
"""Values in a list, at any depth."""
MOST_DIGITS = 10_000
DEEPEST = 50
"""Calls within calls."""
_PER_STEP = 100_000
"""Characters that count as one step."""
_SYNTAX: Mapping[str, Any] = {"autoescape": False, "trim_blocks": True}
_WIDE = compile_later(r"\d{5,}|\*")
_MULTIPLYING = frozenset({"indent", "wordwrap", "tojson", "pprint", "xmlattr", "urlize", "translate", "expandtabs"})
"""Filters and methods whose result can be as long as the product of their texts and numbers."""


class RunawayError(ValueError):
    """A template exceeds a bound on time or memory."""


class Meter:
    """What one rendering may still use. `characters` is the length of its variables."""

    def __init__(self, characters: int = 0) -> None:
        self.most = max(MOST_CHARACTERS, 16 * characters)
        self._steps = 0
        self._depth = 0

    def step(self, size: int = 0) -> None:
        self._steps += 1 + size // _PER_STEP
        if self._steps > MOST_STEPS:
            raise RunawayError(f"it takes more than {MOST_STEPS:,} steps: it loops, or calls itself, too often")

    def admit(self, size: int) -> None:
        """Check that a text of `size` characters may be made."""
        if size > self.most:
            raise RunawayError(f"it makes a text of more than {self.most:,} characters")

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Count a call and the depth of the calls in it."""
        self.step()
        if self._depth == DEEPEST:
            raise RunawayError(f"it calls itself: more than {DEEPEST} nested calls")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def measure(self, value: Any) -> int:
        """The approximate length of a value as text, in characters, including nested values."""
        size, seen, waiting = 0, 0, [value]
        while waiting:
            one = waiting.pop()
            seen += 1
            if seen > MOST_VALUES:
                raise RunawayError(f"it makes a list of more than {MOST_VALUES:,} values")
            if isinstance(one, str | bytes):
                size += len(one)
            elif isinstance(one, range):
                size += 8 * len(one)
            elif isinstance(one, list | tuple | set | frozenset):
                waiting += one
                size += 4
            elif isinstance(one, Mapping):
                waiting += [*one.keys(), *one.values()]
                size += 4
            else:
                size += 8
            self.admit(size)
        return size


_meter: ContextVar[Meter] = ContextVar("meter")


def _current() -> Meter:
    """The meter of this rendering; while a template is compiled, a new meter for each constant."""
    return _meter.get(None) or Meter()


def render(template: Template, variables: Mapping[str, Any]) -> str:
    """Render the template with its variables, within the bounds."""
    token = _meter.set(Meter(sum(len(str(value)) for value in variables.values())))
    try:
        return template.render(variables)
    finally:
        _meter.reset(token)


def compile_template(text: str, shown: str) -> Template:
    """Compile a template; `shown` is its file's name in messages."""
    tree = parse_template(text, shown)
    environment = _environment()
    with _parsing(shown):
        code = environment.compile(_bound(tree), name=shown, filename=shown)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def compile_own_template(text: str) -> Callable[[Mapping[str, Any]], str]:
    """What renders a template of this package, without bounds and globals: it gives the same text in less time."""
    template = _own_environment().from_string(text)
    return lambda variables: "".join(template.root_render_func(template.new_context(variables, shared=True)))  # type: ignore[arg-type]


def parse_template(text: str, shown: str) -> Tree:
    """Parse a template, and refuse filters and tests that do not exist."""
    with _parsing(shown):
        tree = _environment().parse(text, name=shown, filename=shown)
    from jinja2 import nodes

    environment = _environment()
    for node in tree.find_all((nodes.Filter, nodes.Test)):  # Jinja2 finds those in a condition only while it renders
        is_filter = isinstance(node, nodes.Filter)
        known: Mapping[str, Any] = environment.filters if is_filter else environment.tests
        if node.name not in known:
            kind = "filter" if is_filter else "test"
            hint = suggest(node.name, [*known]) or "remove it"
            raise UsageError(f"{shown}:{node.lineno}: unknown {kind} '{node.name}'; {hint}")
    return tree


@contextmanager
def _parsing(shown: str) -> Iterator[None]:
    from jinja2 import TemplateSyntaxError

    try:
        yield
    except TemplateSyntaxError as error:
        raise UsageError(f"{shown}:{error.lineno}: {error.message}") from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise UsageError(f"{shown}:1: it is nested too deeply to be parsed") from error


def find_line(traceback: TracebackType | None, shown: str) -> int:
    line = 1
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == shown:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _bound(tree: Tree) -> Tree:
    """The tree with counted loops, and with `~` as a filter, the only way to check what it joins."""
    from jinja2 import nodes
    from jinja2.visitor import NodeTransformer

    def call_filter(node: Any, name: str) -> nodes.Expr:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)

    class Bounding(NodeTransformer):
        def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named by Jinja
            self.generic_visit(node)
            node.iter = call_filter(node.iter, "counted")
            return node

        def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            return call_filter(nodes.List(node.nodes, lineno=node.lineno), "concatenated")

    bounded: Tree = Bounding().visit(tree)
    return bounded


@cache
def _own_environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, **_SYNTAX)


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.runtime import LoopContext
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class BoundedEnvironment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
        concat = staticmethod(_concatenate)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            _foresee_operation(operator, left, right)
            return super().call_binop(context, operator, left, right)

        def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as Jinja has it
            with _current().enter():
                if isinstance(__obj, LoopContext) and args:
                    args = (_count(args[0]), *args[1:])
                method = inspect.unwrap(__obj) if callable(__obj) else __obj
                owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
                values = tuple(map(_settle, args)) if isinstance(owner, str) else args
                _foresee(name, (owner, *values) if isinstance(owner, str) else values, kwargs)
                return _check(super().call(__context, __obj, *values, **kwargs))

    environment = BoundedEnvironment(finalize=_check, undefined=StrictUndefined, **_SYNTAX)
    environment.globals.pop("lipsum")
    environment.filters = {name: _meter_filter(name, each) for name, each in environment.filters.items()}
    environment.filters |= {"counted": _count, "concatenated": _concatenate}
    return environment


def _meter_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    has_context = hasattr(function, "jinja_pass_arg")

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        first = args[:1] if has_context else ()
        values = tuple(map(_settle, args[len(first) :]))
        _foresee(name, values, kwargs)
        found = function(*first, *values, **kwargs)
        return _count(found) if inspect.isgenerator(found) else _check(found)

    return run


def _count(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values, counting each as a step."""
    for value in values:
        _current().step()
        yield value


def _settle(value: Any) -> Any:
    """The results of a filter that yields them one by one, as a list."""
    return [*value] if inspect.isgenerator(value) else value


def _check(value: Any) -> Any:
    _current().measure(value)
    return value


def _concatenate(values: Iterable[Any]) -> str:
    """Join the values; the length is checked before the text is made."""
    meter, parts, size = _current(), [], 0
    for value in values:
        size += meter.measure(value)
        meter.admit(size)
        parts.append(str(value))
    meter.step(size)
    return "".join(parts)


def _foresee(name: str, values: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Refuse a filter or text method whose result would be too long."""
    meter = _current()
    given = [*values, *named.values()]
    sizes = [meter.measure(value) for value in given]
    meter.step(sum(sizes))
    numbers = [abs(value) for value in given if isinstance(value, int)]
    meter.admit(max(numbers, default=0))
    texts = [value for value in given if isinstance(value, str)]
    if name == "replace" and len(texts) > 2:
        meter.admit(sizes[0] + texts[0].count(texts[1]) * len(texts[2]))
    elif name == "join":
        longest = max(map(len, texts), default=0)
        count = max((len(value) for value in given if hasattr(value, "__len__")), default=0)
        meter.admit(sum(sizes) + longest * count)
    elif name in ("format", "format_map") and texts:
        _foresee_format(texts[0], "{" if "{" in texts[0] else "%", sum(sizes))
    elif name in _MULTIPLYING:
        product = sizes[0] if sizes else 0
        for factor in (*numbers, *map(len, texts[1:])):
            product *= max(factor, 1)
        meter.admit(product)


def _foresee_format(text: str, mark: str, size: int) -> None:
    if _WIDE.search(text):
        raise RunawayError("it formats a value to more than 9,999 characters")
    _current().admit(len(text) + text.count(mark) * (size + 10_000))


def _foresee_operation(operator: str, left: Any, right: Any) -> None:
    """Refuse an operation whose result would be too long."""
    meter = _current()
    sizes = meter.measure(left), meter.measure(right)
    meter.step(sum(sizes))
    if operator == "%" and isinstance(left, str):
        _foresee_format(left, "%", sizes[1])
    elif operator == "+":
        meter.admit(sum(sizes))
    elif operator == "*":
        for size, value, times in ((sizes[0], left, right), (sizes[1], right, left)):
            if isinstance(times, int) and not isinstance(value, int | float):
                meter.admit(size * max(times, 0))
        _admit_digits(_count_digits(left) + _count_digits(right))
    elif operator == "**" and isinstance(right, int):
        _admit_digits(_count_digits(left) * max(right, 0))


def _count_digits(value: Any) -> int:
    return value.bit_length() // 3 + 1 if isinstance(value, int) else 0


def _admit_digits(digits: int) -> None:
    if digits > MOST_DIGITS:
        raise RunawayError(f"it makes a number of more than {MOST_DIGITS:,} digits")
