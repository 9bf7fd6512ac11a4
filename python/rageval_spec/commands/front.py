"""The program's outermost layer, which turns every error into a message and an exit code."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
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


class Front(click.Group):
    """The command group. It turns every error into a message and an exit code, never a traceback."""

    command_class = Command
    group_class = type
    _more: Callable[[], None] | None = None

    def add_later(self, more: Callable[[], None]) -> None:
        """Have `more` add commands once one of them, or the list of all, is asked for.

        A command's options take a tenth of a millisecond each to declare, and a process runs one command.
        """
        self._more = more

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        if cmd_name not in self.commands:
            self._add_more()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        self._add_more()
        return super().list_commands(ctx)

    def _add_more(self) -> None:
        if self._more is not None:
            more, self._more = self._more, None
            more()

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
