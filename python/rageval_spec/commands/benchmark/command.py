"""What `rageval-spec benchmark` does: run the spec that its arguments describe, and show or save the table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rageval_spec.commands import console
from rageval_spec.commands.benchmark import evaluation as benchmarks
from rageval_spec.commands.benchmark import table as scoreboard
from rageval_spec.commands.benchmark.arguments import Request, load_spec
from rageval_spec.commands.console import PROGRAM
from rageval_spec.errors import RagevalWarning
from rageval_spec.runner import Options


def benchmark(request: Request, form: scoreboard.Format, output: Path | None, **options: Any) -> int:
    """Evaluate and print the table.

    Args:
        request: what to evaluate.
        form: how to print the table.
        output: a folder for the table in every format and for the values of every query; None writes no files.
        options: further fields of `runner.Options`.

    Returns:
        The exit code, as for `run`.
    """
    warnings.simplefilter("always", RagevalWarning)
    spec = load_spec(request)
    console.complain(spec.warnings)
    settings = Options(**options, quiet=False, one_at_a_time=True, no_history=True, output=output)
    done = benchmarks.run(spec, settings)
    console.write(scoreboard.render(done, form))
    for path in () if output is None else (*done.outcome.written, *scoreboard.save(done, output)):
        console.tell(f"wrote {path}")
    for failure in done.outcome.failures:
        if form in ("json", "csv"):
            console.report(failure.error, str(failure))
        else:
            console.trace(failure.error)
    if done.outcome.complaint:
        console.tell(f"{PROGRAM}: {done.outcome.complaint}")
    return done.outcome.exit_code
