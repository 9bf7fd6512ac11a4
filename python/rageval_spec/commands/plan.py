"""`rageval-spec plan`: the steps of an evaluation, what is stored, and what the rest would cost."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rageval_spec import runner
from rageval_spec.progress import ProgressDisplay
from rageval_spec.runner import Options


def plan(spec: Path, options: Options, form: Literal["text", "json"]) -> str:
    """The plan as text or JSON. Input files are read, but nothing is computed."""
    with ProgressDisplay() as display:
        display.announce("read the input files")
        planned = runner.plan(spec, options)
        return planned.to_json() if form == "json" else planned.render()
