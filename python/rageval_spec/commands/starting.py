"""The command `init`: its options and its help."""

from __future__ import annotations

from pathlib import Path

import click

from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.first_spec.command import write_for_answers, write_for_tool
from rageval_spec.commands.init import ANSWERS, write_sample
from rageval_spec.commands.schema import render_schema
from rageval_spec.errors import PASSED

_TOOLS = ("ragas", "deepeval", "promptfoo", "beir")
_file = click.Path(path_type=Path, exists=True)


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--answers", type=_file, metavar="FILE",
    help="Write a spec for this file of questions and answers: CSV, JSON, JSON Lines or Parquet.",
)  # fmt: skip
@click.option(
    "--golden", type=_file, metavar="FILE",
    help="With --answers: the file with the questions and gold answers, if the answers are in another one.",
)  # fmt: skip
@click.option(
    "--from", "source", type=(click.Choice(_TOOLS), _file), metavar="TOOL PATH",
    help="Write a spec for the test set of another tool: ragas, deepeval, promptfoo or beir.",
)  # fmt: skip
@click.option(
    "--column", "columns", multiple=True, metavar="PART=NAME",
    help="The name of a column that is not recognised, such as text=Frage; can be repeated.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(
    folder: Path,
    answers: Path | None,
    golden: Path | None,
    source: tuple[str, Path] | None,
    columns: tuple[str, ...],
    force: bool,
) -> int:
    """Write a commented spec that is ready to run: for your own files, or with sample data.

    Without options, FOLDER gets two specs and sample data: one for retrieval, one for answers. With --answers or
    --from, it gets a spec for your files, with the metrics that their columns allow; the others are comments that say
    what they need. FOLDER is the current folder by default.

    \b
    rageval-spec init example
    rageval-spec init --answers answers.csv
    rageval-spec init --answers answers.jsonl --golden golden.xlsx --column text=Frage evaluation
    rageval-spec init --from ragas testset.jsonl
    """
    if answers is not None and source is not None:
        raise click.UsageError("--answers and --from exclude each other; give one of them")
    if answers is None and golden is not None:
        raise click.UsageError("--golden belongs to --answers; for questions alone, use --from")
    if answers is None and source is None:
        if columns:
            raise click.UsageError("--column belongs to --answers or --from")
        return _write_sample(folder, force=force)
    schema = render_schema()
    if source is not None:
        written = write_for_tool(source[0], source[1], folder, columns, schema, force=force)  # type: ignore[arg-type]
    else:
        assert answers is not None, "one of them is given"
        written = write_for_answers(answers, golden, folder, columns, schema, force=force)
    spec, *others = map(str, written)
    console.show(f"wrote {spec} and {' and '.join(others)}; now try: {PROGRAM} run {spec}\n")
    return PASSED


def _write_sample(folder: Path, *, force: bool) -> int:
    path = write_sample(folder, render_schema(), force=force)
    other = path.with_name(ANSWERS)
    console.show(f"wrote {path} and {other}, their schema and sample data; now try: {PROGRAM} run {path}\n")
    return PASSED
