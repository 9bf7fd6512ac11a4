"""Calls the command line from tests, inside this process or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from rageval_spec.cli import cli


def invoke(*arguments: str | Path, env: dict[str, str] | None = None) -> Result:
    """Run a command inside this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], env=env)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command as a process with pipes for its output."""
    command = [sys.executable, "-m", "rageval_spec", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
