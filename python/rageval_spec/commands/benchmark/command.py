"""What `rageval-spec benchmark` does: run the spec that its arguments describe, and show or save the table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import PROGRAM, OutputCommand
from rageval_spec.errors import PASSED, RagevalWarning

if TYPE_CHECKING:
    from rageval_spec.commands.benchmark.benchmark_tables import Format
    from rageval_spec.spec import Spec


@click.command(cls=OutputCommand)
@click.argument("datasets", metavar="DATASET...", nargs=-1, required=True)
@click.option("--system", "systems", multiple=True, metavar="SYSTEM", help="A system to evaluate. Can be repeated.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="METRIC",
    help="A metric; each gets its own table. Can be repeated.  [default: ndcg@10]",
)  # fmt: skip
@click.option("--split", help="Which judgements to use: qrels/SPLIT.tsv.  [default: test]")
@shared.limit_option
@shared.set_option
@shared.store_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
    help="Write benchmark.md, .json and .csv, and the values of every query, to this folder.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json", "csv"]), default="text", show_default=True,
    help="How to print the tables.",
)  # fmt: skip
@click.option("--spec", "only_spec", is_flag=True, help="Print the equivalent spec instead of running it.")
def benchmark(
    datasets: tuple[str, ...],
    systems: tuple[str, ...],
    metrics: tuple[str, ...],
    split: str | None,
    overrides: tuple[str, ...],
    output: Path | None,
    form: Any,
    only_spec: bool,
    **options: Any,
) -> int:
    """Compare retrieval systems on BEIR folders.

    A DATASET is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv, or NAME=FOLDER. Each metric gets a table
    with a row per system, a column per dataset and one for the average. The table shows intervals and marks the systems
    that differ significantly from the first. A further table shows seconds and documents per second.

    \b
    A SYSTEM is
      bm25                          WORD: any system a spec can use, with its defaults
      dense:minilm                  WORD:MODEL, where MODEL is minilm, multilingual, a hub id such as
                                    intfloat/e5-small-v2, a folder or an .onnx file
      hybrid                        fuses all systems before it
      rerank:MODEL                  reorders the top results of the system before it
    The default is bm25, dense:minilm and hybrid. Set keys with --set; for anything else,
    save the spec that --spec prints, change it and run it.

    \b
    rageval-spec benchmark data/scifact
    rageval-spec benchmark data/* --system bm25 --system dense:minilm --metric recall@100
    rageval-spec benchmark data/scifact --system bm25 --set systems.bm25.k1=0.9
    rageval-spec benchmark data/scifact --spec > spec.yaml
    """
    from rageval_spec.commands.benchmark.system_arguments import build_tree, load_spec, write_spec

    reports = ("terminal",) if output is None else ("terminal", "csv")
    tree = build_tree(datasets, systems, metrics, split, reports)
    if only_spec:
        console.write(write_spec(tree, overrides))
        return PASSED
    warnings.simplefilter("always", RagevalWarning)
    return _run(load_spec(tree, overrides), form, output, **options)


def _run(spec: Spec, form: Format, output: Path | None, **options: Any) -> int:
    from rageval_spec.commands.benchmark.benchmark_tables import render, run, save
    from rageval_spec.runner import Options

    console.complain(spec.warnings)
    settings = Options(**options, quiet=False, one_at_a_time=True, no_history=True, output=output)
    done = run(spec, settings)
    console.write(render(done, form))
    for path in () if output is None else (*done.outcome.written, *save(done, output)):
        console.tell(f"wrote {path}")
    for failure in done.outcome.failures:
        if form in ("json", "csv"):
            console.report(failure.error, str(failure))
        else:
            console.trace(failure.error)
    if done.outcome.complaint:
        console.tell(f"{PROGRAM}: {done.outcome.complaint}")
    return done.outcome.exit_code
