"""`command`: runs a program of yours for alerts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import ClassVar

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage, export_alerts, identify_group
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.alert_text import choose_worst, write_text, write_title
from rageval_spec.errors import RagevalError
from rageval_spec.notifiers.shared.posting import write_json
from rageval_spec.plugin import Notifier, NotifierNode

_SHOWN = 300
_VARIABLES = ("key", "name", "state", "severity", "summary", "monitor", "metric", "system", "window", "value", "bound",
              "samples", "page")  # fmt: skip


class CommandNode(NotifierNode):
    """Runs a program of yours."""

    run: tuple[str, ...] = Field(
        min_length=1,
        description="The program and its arguments: `[./page.sh, --team, search]`. It runs in the folder of the spec, "
        "without a shell.",
    )
    timeout: float = Field(default=20.0, gt=0, le=60, description="After how many seconds the program is ended.")


class Command(Notifier[CommandNode]):
    """Starts the program once for all alerts that began at the same look. It took them if it ends with exit code 0.

    It reads the JSON of `webhook` on its input, and beside it `title` and `text`, which are for people. The variables
    RAGEVAL_ALERT_NAME, _STATE, _SEVERITY, _SUMMARY and so on are those of the worst alert; RAGEVAL_ALERT_ID names the
    message and RAGEVAL_ALERT_COUNT says how many alerts it has.
    """

    node_type = CommandNode
    known_as = ("exec", "script", "program", "shell")
    patience: ClassVar[float] = 70.0

    def send(self, messages: Sequence[AlertMessage]) -> None:
        content = {**export_alerts(messages), "title": write_title(messages), "text": write_text(messages)}
        program = self.node.run[0]
        if "/" in program or os.sep in program:
            program = str(self.context.resolve(program).absolute())
        where = f"{self.where}: {make_visible(self.node.run[0])}"
        with TemporaryFile() as errors:  # not a pipe, which a process that goes on in the background would hold open
            try:
                started = subprocess.Popen(
                    [program, *self.node.run[1:]], cwd=self.context.folder, stdin=subprocess.PIPE, stderr=errors,
                    stdout=subprocess.DEVNULL, env={**os.environ, **list_variables(messages)}, start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise RagevalError(f"{where} cannot be started: {make_visible(reason)}") from None
            try:
                started.communicate(write_json(content), self.node.timeout)
            except subprocess.TimeoutExpired:
                _kill(started)
                raise RagevalError(f"{where} did not end within {self.node.timeout:g} s and was ended") from None
            errors.seek(-min(errors.tell(), 4 * _SHOWN), os.SEEK_END)
            told = make_visible(" ".join(errors.read().decode("utf-8", "replace").split()))[-_SHOWN:]
        if started.returncode:
            raise RagevalError(f"{where} ended with exit code {started.returncode}{told and ': '}{told}")


def _kill(program: subprocess.Popen[bytes]) -> None:
    """End a program and what it started in turn."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(program.pid, signal.SIGKILL)
        program.kill()
    program.wait()


def list_variables(messages: Sequence[AlertMessage]) -> Mapping[str, str]:
    """The environment of the program: `RAGEVAL_ALERT_NAME` and so on."""
    worst = choose_worst(messages)
    known = {name: getattr(worst, name) for name in _VARIABLES}
    known |= {"id": identify_group(messages), "count": len(messages)}
    return {f"RAGEVAL_ALERT_{name.upper()}": make_visible(str(value)) for name, value in known.items()
            if value is not None}  # fmt: skip


PLUGIN = Command
