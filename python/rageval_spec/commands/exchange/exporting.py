"""`export`: sends the values of an evaluation to a tool, or writes them to a file in its layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.commands import console
from rageval_spec.commands.exchange.settings import read_settings
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.progress import ProgressDisplay
from rageval_spec.store.disk import write_atomically

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.target import FileTarget


def export_values(
    word: str,
    settings: Mapping[str, Any],
    results: str | None,
    *,
    output: Path | None = None,
    system: str | None = None,
    force: bool = False,
    dry_run: bool = False,
    again: bool = False,
    quiet: bool = False,
) -> str:
    """Export the values of some results; returns what was sent or written.

    Raises:
        UsageError: an option is wrong, there are no such results, or they have nothing for this tool.
        RagevalError: the tool did not take them, or the file cannot be written.
    """
    from rageval_spec.commands.results import open_results
    from rageval_spec.exchange.shared.finding import load
    from rageval_spec.exchange.shared.sending import send_parcels
    from rageval_spec.exchange.shared.target import FileTarget, Target
    from rageval_spec.plugin.context import Context

    kind = load(word).target
    if kind is None:
        raise UsageError(f"{word} cannot be exported to")
    node = read_settings(kind.node_type, settings)
    evaluation = open_results(results).evaluation
    if system is not None:
        evaluation = _select(evaluation, system)
    with ProgressDisplay(quiet=quiet) as display:
        display.announce(f"export {word}")
        folder = _folder(results)
        context = Context(word, Path(), progress=display.counting(word), tell=display.tell, output=folder)
        exporter = kind(node, context)
        try:
            if isinstance(exporter, FileTarget):
                return _write(exporter, evaluation, output, force=force)
            assert isinstance(exporter, Target), "the two kinds of targets"
            receipt = send_parcels(
                exporter,
                evaluation,
                folder,
                tool=word,
                dry_run=dry_run,
                anew=again,
                progress=exporter.context.progress,
                show=lambda summary: console.write(f"{summary}\n"),
            )
        finally:
            exporter.close()
    return receipt.render()


def _select(evaluation: Evaluation, system: str) -> Evaluation:
    """The evaluation as if it had only this system."""
    if system not in evaluation.systems:
        hint = suggest(system, evaluation.systems) or f"the systems are {', '.join(evaluation.systems)}"
        raise UsageError(f"--system: there is no system '{system}' in these results; {hint}")
    return replace(
        evaluation,
        systems=(system,),
        values=evaluation.values.filter(evaluation.values["system"] == system),
        stream_samples=lambda: (block.filter(block["system"] == system) for block in evaluation.iterate_samples()),
    )


def _folder(results: str | None) -> Path | None:
    """The results folder; None for a record of the history, which has none."""
    from rageval_spec.commands.results import is_results
    from rageval_spec.plugin.report import RESULTS_FOLDER

    name = RESULTS_FOLDER if results is None else results
    if not is_results(name):
        return None
    path = Path(name).expanduser()
    return path.parent if path.is_file() else path


def _write(exporter: FileTarget[Any], evaluation: Evaluation, output: Path | None, *, force: bool) -> str:
    usual = Path(exporter.filename)
    path = usual if output is None else output
    endings = exporter.suffixes or (usual.suffix,)
    told = f"-o {path}: name a file that ends in {' or '.join(endings)}"
    if not path.name or not path.name.endswith(exporter.suffixes or ""):
        raise UsageError(told)
    folder = path.with_suffix("") if path.suffix in endings else path  # other names can have a dot: `answers-1.2`
    rendered = exporter.render_files(evaluation, path.name)
    files = {folder / name if name else path: content for name, content in rendered}
    if path in files and any(place.parent == path for place in files):
        raise UsageError(told)
    for place in files:
        if place.is_dir():
            raise UsageError(f"{place} is a folder; name a file with -o")
        if place.exists() and not force:
            raise UsageError(f"{place} already exists; name another file with -o, or overwrite it with --force")
    for place, content in files.items():
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, content)
        except OSError as error:
            raise RagevalError(f"{place}: cannot be written: {error.strerror or error}") from error
    return "".join(f"{line}\n" for line in (*(f"wrote {place}" for place in files), *exporter.remarks()))
