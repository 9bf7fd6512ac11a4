"""The program's outermost layer, which turns every error into a message and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import click

from rageval_spec import signals
from rageval_spec.commands import console
from rageval_spec.commands.console import DEBUG, PROGRAM
from rageval_spec.errors import BROKEN, PASSED, SPEC_WRONG, RagevalError, explain_exit


class Command(click.Command):
    """A command that reserves standard output for its results."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. What plugins or user code print meanwhile goes to standard error."""
        with console.reserve_output():
            return super().invoke(ctx)


class Later(click.Command):
    """Stands for a command in the list of its group until the command is called, as a process needs only one file.

    Attributes:
        place: the module and the name of the command in it, such as `package.module:command`.
    """

    def __init__(self, name: str, place: str, help: str) -> None:
        """Stand for the command `name`, whose help begins with the sentence `help`."""
        super().__init__(name, help=help)
        self.place = place

    def find(self) -> click.Command:
        """The command itself."""
        module, _, name = self.place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


class Front(click.Group):
    """The command group. It turns every error into a message and an exit code, never a traceback."""

    command_class = Command
    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with. Its file is imported here; lists of commands need none."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.find() if isinstance(command, Later) else command, rest

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and exit: 0 passed, 1 gate failed, 2 wrong spec or command line, 3 broken, 4 nothing scored."""
        kwargs["standalone_mode"] = False
        with warnings.catch_warnings():
            warnings.showwarning = console.show_warning
            code = _answer(lambda: super(Front, self).main(*args, **kwargs))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A reader that has gone away (`| head`) is not an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            console.forget(sys.stdout)
            return PASSED


def _answer(command: Callable[[], Any]) -> int:
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else PASSED
    except (click.Abort, KeyboardInterrupt) as error:
        interrupt = signals.understand(error)
        console.tell(f"{PROGRAM}: {signals.describe(interrupt)}")
        return signals.exit_code(interrupt.number)
    except click.ClickException as error:
        return _explain_usage(error)
    except BrokenPipeError:
        console.forget(sys.stdout)
        return PASSED
    except RagevalError as error:
        console.report(error, str(error))
        return error.exit_code
    except SystemExit as ending:
        console.report(ending, explain_exit(ending))
        return BROKEN
    except Exception as error:
        console.report(error, f"internal error: {type(error).__name__}: {error}; set {DEBUG}=1 to see the traceback")
        return BROKEN


def _explain_usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        console.tell(error.format_message())
        return SPEC_WRONG
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"\nTry '{context.command_path} --help'." if context else ""
    console.tell(f"{PROGRAM}: {error.format_message()}{hint}")
    return SPEC_WRONG
