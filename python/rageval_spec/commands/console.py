"""A command's output, and the outermost layer that turns every error into a message and an exit code.

Results go to standard output, and messages to standard error, one per line.
"""

from __future__ import annotations

import errno
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from rageval_spec import signals
from rageval_spec.diagnostics import SpecError, make_visible, suggest
from rageval_spec.errors import BROKEN, PASSED, SPEC_WRONG, RagevalError, UsageError, describe_os_error, explain_exit
from rageval_spec.registry import SECTIONS
from rageval_spec.wording import list_choices

PROGRAM = "rageval-spec"
DEBUG = "RAGEVAL_DEBUG"
_RESERVED: list[TextIO] = []


def name_program() -> str:
    """What to type to call this program again: `uvx rageval-spec` in an environment that `uvx` made for one call."""
    if f"{os.sep}archive-v" in sys.prefix:
        return f"uvx {PROGRAM}"
    module = sys.modules["__main__"].__spec__
    return "python -m rageval_spec" if module is not None and module.name == "rageval_spec.__main__" else PROGRAM


def name_calls(text: str) -> str:
    """The text with each call of this program as it is to be typed here."""
    return re.sub(rf"(?<!uvx )\b{PROGRAM}(?= [a-z-])", name_program(), text)


def is_terminal() -> bool:
    """Whether a person types and reads: both standard input and standard output are a terminal."""
    output = _RESERVED[-1] if _RESERVED else sys.stdout
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, output))


@contextmanager
def reserve_output() -> Iterator[None]:
    """Let only `write` reach standard output, which keeps results parseable.

    Anything else that is printed there, whether by plugins, a user's functions or programs that they start, goes to
    standard error.
    """
    output = sys.stdout
    if output is None:
        yield
        return
    output.flush()
    with _divert(output) as reserved, redirect_stdout(_Diverted(sys.stderr, reserved)):
        _RESERVED.append(reserved)
        try:
            yield
        finally:
            _RESERVED.remove(reserved)


class _Diverted:
    """The error stream in place of standard output. What asks whether results go to a terminal is told the truth."""

    def __init__(self, target: TextIO | None, reserved: TextIO) -> None:
        self._target, self._reserved = target, reserved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def isatty(self) -> bool:
        return self._reserved.isatty()


@contextmanager
def _divert(output: TextIO) -> Iterator[TextIO]:
    """Point standard output, which child processes inherit, to standard error; yield a stream to the old target."""
    try:
        number, target = output.fileno(), sys.stderr.fileno()
        kept = os.dup(number)
    except (OSError, ValueError, AttributeError):  # a stream in memory, or no error stream
        yield output
        return
    os.dup2(target, number)
    try:
        with open(kept, "w", encoding="utf-8", closefd=False) as reserved:
            yield reserved
    finally:
        with suppress(OSError):
            os.dup2(kept, number)
        os.close(kept)


def show(text: str) -> None:
    """Write text for people to standard output, with control characters escaped."""
    write(make_visible(text, keep="\n\t"))


def write(content: str | bytes) -> None:
    """Write to standard output. If the reader has gone away, the output is dropped and the exit code stays the same."""
    output = _RESERVED[-1] if _RESERVED else sys.stdout
    if output is None:
        raise RagevalError("standard output is closed")
    try:
        output.flush()
        output.buffer.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
        output.buffer.flush()
    except BrokenPipeError:
        forget(output)
    except OSError as error:
        forget(output)
        raise RagevalError(f"standard output cannot be written: {error.strerror or error}") from error


def write_page(path: Path, page: bytes) -> str:
    from rageval_spec.store.disk import write_or_explain

    return f"wrote {write_or_explain(path, page, f'{path}: the page could not be written')}"


def write_file(path: Path, content: bytes) -> str:
    """Write the file that an option names, and say so."""
    from rageval_spec.store.disk import write_or_explain

    return f"wrote {write_or_explain(path, content, f'{path} cannot be written', UsageError)}"


def write_form(text: str, form: str) -> None:
    """Write JSON unchanged, and other text with its control characters escaped."""
    if form == "json":
        write(text)
    else:
        show(text)


def tell(message: str) -> None:
    """Write a line to standard error, with control characters escaped. A closed stream is not an error."""
    try:
        click.echo(make_visible(message, keep="\n\t"), err=True)
    except OSError:  # the reader or the terminal is gone
        forget(sys.stderr)


def complain(diagnostics: Iterable[object]) -> None:
    for diagnostic in diagnostics:
        tell(str(diagnostic))


def report(error: BaseException, message: str) -> None:
    """Write the error that ended a command to standard error, after its traceback if RAGEVAL_DEBUG is set."""
    trace(error)
    tell(message if isinstance(error, SpecError) else f"{PROGRAM}: {message}")


def trace(error: BaseException) -> None:
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        traceback.print_exception(error)


def show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:  # noqa: ARG001
    """Write a Python warning as one line (replaces `warnings.showwarning`)."""
    tell(f"{PROGRAM}: warning: {message}")


def forget(stream: TextIO) -> None:
    """Discard what is still in the stream's buffer, so that flushing it at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class OutputCommand(click.Command):
    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. What plugins or user code print meanwhile goes to standard error."""
        with reserve_output():
            return super().invoke(ctx)


class Later(click.Command):
    """Stands for a command in the list of its group until the command is called, as a process needs only one file.

    Attributes:
        place: the module and the name of the command in it, such as `package.module:command`.
    """

    def __init__(self, name: str, place: str, help: str) -> None:

        super().__init__(name, help=help)
        self.place = place

    def find(self) -> click.Command:

        module, _, name = self.place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


_WHOLE = 10_000
"""More characters than a sentence has."""


class Front(click.Group):
    """The command group. It turns every error into a message and an exit code, never a traceback."""

    command_class = OutputCommand
    group_class = type

    def __init__(self, *args: Any, purposes: Mapping[str, Sequence[Later]] | None = None, **kwargs: Any) -> None:
        """`purposes` are the commands under the headings of a list; without any, all are under one."""
        super().__init__(*args, **kwargs)
        self.purposes = purposes or {}
        for command in chain(*self.purposes.values()):
            self.add_command(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with the whole first sentence of its help."""
        listed = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        width = max(map(len, listed))
        lists: Mapping[str, Iterable[click.Command]] = self.purposes or {"Commands": listed.values()}
        for title, commands in lists.items():
            with formatter.section(title):
                rows = [(f"{one.name or '':<{width}}", one.get_short_help_str(_WHOLE)) for one in commands]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with. Its file is imported here; lists of commands need none."""
        if args and args[0] in SECTIONS and args[0] not in self.commands:  # as in earlier releases
            advice = name_calls(f"run: {PROGRAM} list {args[0]}, or: {PROGRAM} explain WORD")
            raise UsageError(f"there is no command '{args[0]}'; {advice}")
        known = sorted(self.commands)
        if known and args[0] not in known and args[0][:1] != "-" and not suggest(args[0], known):
            raise UsageError(f"there is no command '{args[0]}'; the commands are {', '.join(known)}")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.find() if isinstance(command, Later) else command, rest

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and exit: 0 passed, 1 gate failed, 2 wrong spec or command line, 3 broken, 4 nothing scored."""
        kwargs["standalone_mode"] = False
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            code = _answer(lambda: super(Front, self).main(*args, **kwargs))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A reader that has gone away (`| head`) is not an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            forget(sys.stdout)
            return PASSED


def _answer(command: Callable[[], Any]) -> int:
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else PASSED
    except (click.Abort, KeyboardInterrupt) as error:
        interrupt = signals.understand(error)
        tell(f"{PROGRAM}: {signals.describe(interrupt)}")
        return signals.exit_code(interrupt.number)
    except click.ClickException as error:
        return _explain_usage(error)
    except BrokenPipeError:
        forget(sys.stdout)
        return PASSED
    except RagevalError as error:
        report(error, str(error))
        return error.exit_code
    except SystemExit as ending:
        report(ending, explain_exit(ending))
        return BROKEN
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        told = f"internal error: {type(error).__name__}: {error}; set {DEBUG}=1 to see the traceback"
        if _is_lack_of_memory(error):
            told = "there is not enough memory; free some, or raise the limit that `ulimit -v` shows"
        elif isinstance(error, OSError):
            told = describe_os_error(error)
        report(error, told)
        return BROKEN


def warn_of_little_room() -> None:
    """Warn where `ulimit -v` leaves less than libraries reserve: they can end the process without a message."""
    limit, needed = _find_room()
    if limit < needed:
        tell(
            f"{PROGRAM}: warning: `ulimit -v` allows this program {limit // 1024:,.0f} kB of addresses; this machine "
            f"needs about {needed // 1024:,} kB, or it can end without a message or hang"
        )


_ROOM, _ROOM_A_CORE = 1_300_000 * 1024, 150_000 * 1024
"""The addresses that the libraries reserve, measured on Linux; each core adds threads with stacks and heaps."""


def _find_room() -> tuple[float, int]:
    """How many bytes of addresses the process may have, and how many the libraries reserve."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return math.inf, 0
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit, _ROOM + _ROOM_A_CORE * (os.cpu_count() or 1)


_PANIC = "PanicException"
"""The name of the error with which a library in Rust gives up; its type cannot be imported."""


def _is_lack_of_memory(error: BaseException) -> bool:
    """Whether memory or addresses ran out, also where a library tells only of what failed for want of them."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    limit, needed = _find_room()
    return limit < needed or any(sign in str(error) for sign in _SIGNS_OF_NO_MEMORY)


_SIGNS_OF_NO_MEMORY = ("annot allocate memory", "can't start new thread", "failed to map segment", "out of memory")


def _explain_usage(error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"\nTry '{context.command_path} --help'." if context else ""
    told = f"{PROGRAM}: {name_calls(f'{_describe_usage(error)}{hint}')}"
    tell(error.format_message() if isinstance(error, click.exceptions.NoArgsIsHelpError) else told)
    return SPEC_WRONG


def _describe_usage(error: click.ClickException) -> str:
    """The message of an error that click raises; its own one if that is as good."""
    if isinstance(error, click.BadOptionUsage) and (found := re.search(r"requires (an|\d+) argument", error.message)):
        count = "its value" if found[1] == "an" else f"its {found[1]} values"
        return f"{error.option_name} lacks {count}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return error.format_message()
    match error:
        case click.MissingParameter(param=click.Parameter() as parameter):
            return f"{_name(parameter)} is missing{_show_example(context)}"
        case click.BadParameter(param=click.Parameter() as parameter):
            return _describe_value(error, parameter)
        case click.NoSuchOption():
            return _describe_option(error, context)
    if found := re.match(r"Got unexpected extra arguments? \((.*)\)", error.message):
        return f"'{found[1]}' is too much{_show_example(context)}"
    if found := re.match(r"No such command '(.*?)'", error.message):
        known = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
        return f"there is no command '{found[1]}'; {suggest(found[1], known) or f'write one of {list_choices(known)}'}"
    return error.format_message()


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.human_readable_name if parameter.metavar is None else parameter.metavar).strip("[].").upper()


def _show_example(context: click.Context) -> str:
    """The first call in the command's help, which shows what belongs to it."""
    lines = (line.strip() for line in (context.command.help or "").splitlines())
    example = next((line for line in lines if line.startswith(f"rageval-spec {context.info_name} ")), None)
    return "" if example is None else f": write, for example, {example}"


def _describe_value(error: click.BadParameter, parameter: click.Parameter) -> str:
    kinds = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
    found = re.match(r"'?(.*?)'? is not (?:in the range|one of|a valid)", error.message)
    value = found[1] if found else ""
    place = f"{_name(parameter)} {value}".strip()
    for kind in kinds:
        if found and isinstance(kind, click.Choice):
            known = [*map(str, kind.choices)]
            where = place if isinstance(parameter, click.Option) else f"'{value}'"
            return f"{where}: {suggest(value, known) or f'write one of {list_choices(known)}'}"
        if found and isinstance(kind, click.IntRange | click.FloatRange):
            return f"{place}: write {_describe_range(kind)}"
        lacking = re.match(
            r"(?P<kind>\w+) '(?P<path>.*)' (?P<fault>does not exist|is a file|is a directory)", error.message
        )
        if lacking and isinstance(kind, click.Path):
            wanted = "folder" if lacking["kind"] == "Directory" else "file"
            if lacking["fault"] == "does not exist":
                return f"there is no {wanted} '{lacking['path']}'{find_nearest(Path(lacking['path']))}"
            return f"'{lacking['path']}' is a {'file' if wanted == 'folder' else 'folder'}; name a {wanted}"
    return error.format_message()


def _describe_range(kind: click.IntRange | click.FloatRange) -> str:
    noun = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    low = None if kind.min is None else f"{'above' if kind.min_open else 'from'} {kind.min:,}"
    high = None if kind.max is None else f"{'below' if kind.max_open else 'to' if low else 'up to'} {kind.max:,}"
    return " ".join(
        filter(None, (noun, low, "and" if low and kind.max_open else None, high, "on" if not high else None))
    )


def find_nearest(path: Path) -> str:
    """`; did you mean ...` with the entry of the folder that a path may mean; "" if there is none."""
    try:
        known = sorted(one.name for one in path.parent.iterdir() if not one.name.startswith("."))
    except OSError:
        return ""
    same = next((name for name in known if name.partition(".")[0] == path.name), None)
    hint = f"did you mean '{same}'?" if same else suggest(path.name, known)
    return f"; {hint}" if hint else ""


def _describe_option(error: click.NoSuchOption, context: click.Context) -> str:
    known = [option[2:] for one in context.command.params for option in one.opts if option.startswith("--")]
    # click reads `-url` as `-u`.
    typed = next((word for word in sys.argv[1:] if word.startswith(error.option_name)), error.option_name)
    hint = suggest(typed.lstrip("-"), known)
    return f"there is no option '{typed}'" + (f"; {hint.replace(chr(39), chr(39) + '--', 1)}" if hint else "")
