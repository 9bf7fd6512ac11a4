"""`command`: runs a program for alerts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.alert_text import name_alerts, render_alerts
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Notifier, NotifierNode

_LONGEST = 300


class CommandNode(NotifierNode):
    """Runs a program for alerts."""

    run: tuple[str, ...] = Field(
        min_length=1, description="The program and its arguments: `[./page.sh, team-search]`. No shell reads them."
    )
    timeout: float = Field(default=30.0, gt=0, le=600, description="Seconds after which the program is ended.")


class Command(Notifier[CommandNode]):
    """Runs the program once for a group of alerts, in the folder of the spec.

    Standard input has `{"version": 1, "alerts": [...]}` as `webhook` posts it. The environment has RAGEVAL_ALERT_STATE,
    _SEVERITY, _KEY and _TITLE of the first, and RAGEVAL_ALERT_TEXT for people. An exit code other than 0 means that the
    alert was not taken.
    """

    node_type = CommandNode
    known_as = ("exec", "script", "program")

    def send(self, messages: Sequence[AlertMessage]) -> None:
        first = messages[0]
        told = {"STATE": first.state, "SEVERITY": first.severity, "KEY": first.key, "TITLE": name_alerts(messages),
                "TEXT": render_alerts(messages)}  # fmt: skip
        environment = os.environ | {f"RAGEVAL_ALERT_{name}": text for name, text in told.items()}
        content = json.dumps({"version": 1, "alerts": [asdict(one) for one in messages]}).encode("ascii")
        try:
            subprocess.run(
                self.node.run, input=content, env=environment, cwd=self.context.folder, timeout=self.node.timeout,
                check=True, capture_output=True,
            )  # fmt: skip
        except subprocess.CalledProcessError as error:
            said = make_visible((error.stderr or error.stdout).decode("utf-8", "replace").strip()[-_LONGEST:])
            raise RagevalError(f"{self._where} ended with exit code {error.returncode}: {said}") from None
        except subprocess.TimeoutExpired:
            raise RagevalError(f"{self._where} did not end within {self.node.timeout:g} s") from None
        except OSError as error:
            raise RagevalError(f"{self._where} cannot be run: {error.strerror or error}") from None

    @property
    def _where(self) -> str:
        return make_visible(f"notify.{self.name}: {self.node.run[0]}")


PLUGIN = Command
