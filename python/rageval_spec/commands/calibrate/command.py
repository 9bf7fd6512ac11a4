"""The command `calibrate`: its options, and which part of the work they ask for. It imports little more than click."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.errors import PASSED

if TYPE_CHECKING:
    from rageval_spec.reading.leaderboards import Leaderboard

_WITHOUT_SPEC = {"spec": None, "agreement": None, "against": "people", "control": "ltt"}
_STEPS_OPTIONS = ("columns", "metrics", "scale", "form", "output", "guarantee", "confidence")


@click.command("calibrate")
@click.argument("results", required=False)
@click.option(
    "--labels", "labels", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="A file of labels; can be repeated. By default those that the spec names.",
)  # fmt: skip
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Only this metric; can be repeated.")
@click.option(
    "--judge", "judges", multiple=True, metavar="JUDGE",
    help="Only metrics that ask this judge. Repeat it to compare judges; with a spec, any of its judges.",
)  # fmt: skip
@click.option(
    "--threshold", metavar="CRITERION", default="youden", show_default=True,
    help="The threshold to find: the one with the highest f1 or youden index, or the lowest with a precision, such as "
    "'precision>=0.95'.",
)  # fmt: skip
@click.option(
    "--width", type=click.FloatRange(0, 1, min_open=True), default=0.1, show_default=True,
    help="The width of intervals for which to say how many labels are needed; 0.1 is ±0.05.",
)  # fmt: skip
@click.option(
    "--guarantee", metavar="LIMIT",
    help="Find the threshold from which on at most this share of the answers is wrong: 'wrong answers sent <= 2%'.",
)  # fmt: skip
@click.option(
    "--confidence", type=click.FloatRange(0.5, 1, min_open=True, max_open=True), default=0.95, show_default=True,
    help="The probability with which the guarantee must hold.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write a calibration that the spec's judges can take: calibration.json.",
)  # fmt: skip
@click.option(
    "--freeze", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the labelled answers and what the judge says of them, for `drift`: anchors.json.",
)  # fmt: skip
@click.option(
    "--spec", type=click.Path(path_type=Path, dir_okay=False), metavar="SPEC",
    help="The spec, if RESULTS are results: choose where the steps of its cascade or waterfall decide by themselves.",
)  # fmt: skip
@click.option(
    "--agreement", type=click.FloatRange(0.5, 1), metavar="SHARE",
    help="With a spec: the share of its decisions with which each step must agree, such as 0.95.",
)  # fmt: skip
@click.option(
    "--against", type=click.Choice(["people", "last"]), default="people", show_default=True,
    help="With a spec: what steps must agree with: the labels, or what the last step decides, which needs no labels.",
)  # fmt: skip
@click.option("--orders", hidden=True, help="Now `drift --reversed`.")
@click.option(
    "--control", type=click.Choice(["ltt", "crc"]), default="ltt", show_default=True,
    help="With a spec and --guarantee: ltt limits the share of wrong answers among those that are sent, with the "
    "confidence; crc limits the mean share of answers that are wrong and sent.",
)  # fmt: skip
@click.option("--scale", metavar="WORST..BEST", help="What the labels' worst and best are: 1..5.  [default: 0..1]")
@shared.label_column_option
@click.option(
    "--all", "everything", is_flag=True,
    help="With a spec: score all questions, not only those with labels, even if that asks models.",
)  # fmt: skip
@shared.set_option
@shared.store_options
@click.option(
    "--leaderboards", nargs=2, multiple=True, metavar="TRUTH JUDGED",
    help="Instead of labels: how alike two leaderboards order the same systems. Files of trec_eval, ir_measures or "
    "AutoJudge, or results. Can be repeated.",
)  # fmt: skip
@click.option("--details", is_flag=True, help="Show all tables.")
@shared.form_option
def calibrate(results: str | None, labels: tuple[Path, ...], **options: Any) -> int:
    """Show how close a judge's values come to people's labels.

    RESULTS is a results folder, or a label or a record of the history; by default the last results. Or it is a spec,
    whose labelled metrics are then scored first.

    \b
    rageval-spec calibrate --labels labels.csv
    rageval-spec calibrate spec.yaml --judge fast --judge strict
    rageval-spec calibrate main --labels ann.csv --labels bob.csv --metric faithfulness --scale 1..5
    rageval-spec calibrate --labels labels.csv -o calibration.json
    rageval-spec calibrate --labels labels.csv --guarantee "wrong answers sent <= 2%" --confidence 0.95
    rageval-spec calibrate spec.yaml --agreement 0.95 --against last -o calibration.json
    rageval-spec calibrate --leaderboards people.tsv judge.tsv
    """
    if leaderboards := options.pop("leaderboards"):
        if results is not None or labels:
            raise click.UsageError("--leaderboards compares two leaderboards; leave out RESULTS and --labels")
        console.write(_compare_leaderboards(leaderboards, options["metrics"], options["form"]))
        return PASSED
    from rageval_spec.commands.calibrate.judges_against_labels import Running

    running = Running(**{name: options.pop(name) for name in ("overrides", "store", "no_store", "everything")})
    steps = {name: options.pop(name) for name in ("spec", "agreement", "against", "control")}
    if options.pop("orders") is not None:
        raise click.UsageError(
            "--orders is now --reversed of drift; freeze labelled answers, and ask about them: rageval-spec calibrate "
            "--labels labels.csv --freeze anchors.json, then rageval-spec drift anchors.json spec.yaml --reversed"
        )
    if steps["spec"] is None and steps != _WITHOUT_SPEC:
        steps["spec"], results = _require_spec(results), None
    if steps["spec"] is not None:
        from rageval_spec.commands.calibrate.step_bounds import calibrate_steps

        shared_options = {name: options[name] for name in _STEPS_OPTIONS}
        places: dict[str, Any] = {"overrides": running.overrides, "store": running.store, "no_store": running.no_store}
        console.write(calibrate_steps(results, labels, **shared_options, **steps, **places))
        return PASSED
    from rageval_spec.commands.calibrate.judges_against_labels import calibrate_judges

    console.write(calibrate_judges(results, labels, running=running, **options))
    return PASSED


def _compare_leaderboards(pairs: Iterable[tuple[str, str]], metrics: Sequence[str], form: str) -> bytes:
    """The agreement of each pair (the truth, and a judge's), as text or JSON. Each is a file, a folder or results."""
    from rageval_spec.calibration.leaderboards import compare_leaderboards, dump_agreements, render_agreements

    opened = [(_open(first), _open(second)) for first, second in pairs]
    found = [(one.name, other.name, compare_leaderboards(one, other, metrics)) for one, other in opened]
    return dump_agreements(found) if form == "json" else render_agreements(found)


def _open(name: str) -> Leaderboard:
    from rageval_spec.calibration.leaderboards import take_values
    from rageval_spec.commands.results_argument import is_results, open_results
    from rageval_spec.reading.leaderboards import read_leaderboard

    if Path(name).exists() and not is_results(name):
        return read_leaderboard(Path(name))
    opened = open_results(name)
    return take_values(opened.name, opened.evaluation)


def _require_spec(results: str | None) -> Path:
    from rageval_spec.commands.results_argument import is_spec

    if results is None or not is_spec(results):
        raise click.UsageError(
            "--agreement, --against and --control need a spec with a cascade or a waterfall: "
            "rageval-spec calibrate spec.yaml --agreement 0.95"
        )
    return Path(results)
