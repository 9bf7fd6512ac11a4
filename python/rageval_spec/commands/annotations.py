"""Annotations: gates that did not pass, as workflow commands that GitHub shows at their lines of the spec.

A runner obeys every line that begins with `::`, also where it is the text of a question or an answer. So commands are
switched off, with a word that no text can know, until the annotations are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands import console
from rageval_spec.wording import make_visible

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Counted, Evaluation, GateOutcome
    from rageval_spec.diagnostics import Diagnostic
    from rageval_spec.plugin.context import Origin

MOST = 10
"""GitHub shows at most ten annotations of each level for a step."""
_LEVELS: dict[Counted, str] = {"fail": "error", "warn": "warning", "pass": "notice"}


@contextmanager
def stop_commands() -> Iterator[None]:
    """Let GitHub's runner obey nothing that is written until the end of the block."""
    from secrets import token_hex

    word = token_hex(16)
    console.write(f"::stop-commands::{word}\n")
    try:
        yield
    finally:
        console.write(f"::{word}::\n")


def annotate(evaluation: Evaluation, origin: Origin | None) -> str:
    """Workflow commands, one line each: failures, then gates that did not pass, worst first; at most ten.

    Args:
        evaluation: what was evaluated.
        origin: where the spec is written; without it, the annotations belong to no file.
    """
    from rageval_spec.reports.shared.outcomes import worst_first

    lines = [_write("error", evaluation.name, failure, origin, 1) for failure in evaluation.failures]
    gates = [gate for gate in worst_first(evaluation.gates) if gate.outcome != "pass"]
    lines += [_annotate_gate(gate, origin) for gate in gates]
    return "".join(f"{line}\n" for line in lines[:MOST])


def annotate_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands for what is wrong with a spec, one line each; at most ten."""
    from rageval_spec.spec.origin import name_in_repository

    lines = []
    for one in diagnostics:
        level = "error" if one.severity == "error" else "warning"
        path = Path(one.path)
        place = f"file={_escape(name_in_repository(path))},line={one.position.line}," if path.is_file() else ""
        told = one.message + (f"; {one.hint}" if one.hint else "")
        lines.append(f"::{level} {place}title=spec::{_escape_message(told)}")
    return "".join(f"{line}\n" for line in lines[:MOST])


def _annotate_gate(gate: GateOutcome, origin: Origin | None) -> str:
    lines = () if origin is None else origin.gate_lines
    line = lines[gate.gate] if gate.gate < len(lines) else 1
    return _write(_LEVELS[gate.counted], f"{gate.metric} {gate.bound}", gate.reason, origin, line)


def _write(level: str, title: str, told: str, origin: Origin | None, line: int) -> str:
    place = "" if origin is None else f"file={_escape(origin.path)},line={line},"
    return f"::{level} {place}title={_escape(title)}::{_escape_message(told)}"


def _escape_message(text: str) -> str:
    return make_visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
