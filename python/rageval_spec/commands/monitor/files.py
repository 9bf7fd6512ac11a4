"""`monitor page`, `monitor rules` and `monitor collect`: what a monitor knows, written to files that people open."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.wording import count_noun, list_counts, read_duration

if TYPE_CHECKING:
    from rageval_spec.monitoring.inspection.collection import Collected, TestSet


@click.command("page")
@shared.spec_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=Path("monitor.html"), metavar="FILE",
    show_default=True, help="The file to write.",
)  # fmt: skip
def write_page(spec: Path, overrides: Iterable[str], output: Path) -> int:
    """Write the monitor's page.

    Shows the last windows, alerts, the ledger, trends and the worst answers.

    \b
    rageval-spec monitor page spec.yaml -o monitor.html

    The page is one HTML file without a script. With 'page: monitor.html' in 'monitor:', a running monitor writes it at
    each look.
    """
    from rageval_spec.monitoring.assembly import make_page, make_watch, open_ledger
    from rageval_spec.pipeline.planning.spec_plugins import build_parts
    from rageval_spec.spec import load

    loaded = load(spec, overrides=list(overrides))
    with open_ledger(loaded) as ledger:
        parts = build_parts(loaded)
        make_page(loaded, make_watch(loaded, ledger, parts), parts, output).write(time.time())
    console.show(f"wrote {output}\n")
    return PASSED


@click.command("rules")
@shared.spec_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("rageval-rules"), metavar="FOLDER",
    show_default=True, help="The folder to write to.",
)  # fmt: skip
def write_rules(spec: Path, overrides: Iterable[str], output: Path) -> int:
    """Write rules for Prometheus and a dashboard for Grafana.

    The alerting rules come with their tests.

    \b
    rageval-spec monitor rules spec.yaml -o rules
    promtool test rules rules/rageval-rules.test.yml
    """
    from rageval_spec.monitoring.assembly import require_monitor
    from rageval_spec.monitoring.outputs import alerting_rules, dashboard
    from rageval_spec.pipeline.planning.spec_plugins import build_parts
    from rageval_spec.spec import load
    from rageval_spec.store.disk import write_or_explain

    loaded = load(spec, overrides=list(overrides))
    node, metrics = require_monitor(loaded), build_parts(loaded).answer_metrics
    rules = alerting_rules.list_rules(loaded.name, node, metrics)
    files = {
        alerting_rules.RULES_FILE: alerting_rules.render_rules(loaded.name, rules),
        alerting_rules.TESTS_FILE: alerting_rules.render_tests(rules),
        dashboard.DASHBOARD_FILE: dashboard.render_dashboard(loaded.name, node, metrics),
    }
    for name, content in files.items():
        write_or_explain(output / name, content, f"{output / name}: cannot be written")
        console.show(f"wrote {output / name}\n")
    return PASSED


@click.command("collect")
@shared.spec_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE",
    help="The test set, ending in .jsonl. If it exists, it grows: nothing in it is changed.",
)  # fmt: skip
@click.option("--since", default="7d", show_default=True, metavar="AGE", help="Only traces up to this old.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most N new rows.")
def collect_answers(spec: Path, overrides: Iterable[str], output: Path, since: str, limit: int) -> int:
    """Add answers to a test set for review.

    \b
    rageval-spec monitor collect spec.yaml -o golden.jsonl
    rageval-spec monitor collect spec.yaml -o golden.jsonl --since 30d --limit 200

    Collects failing answers (worse than a bound of a gate or an alert), those on which judges disagree with one another
    or with users, disliked and labelled ones, and new kinds of question. A question that is in the file is not added
    again.
    """
    from rageval_spec.monitoring.assembly import open_collector
    from rageval_spec.monitoring.inspection.collection import collect_into
    from rageval_spec.spec import load

    age = read_duration(since)
    if not age:
        raise UsageError(f"--since {since}: write an age such as 7d or 12h")
    if output.suffix != ".jsonl":
        raise UsageError(f"-o {output}: name a file that ends in .jsonl")
    now = time.time()
    with open_collector(load(spec, overrides=list(overrides))) as collector:
        known, made = collect_into(output, collector, now - age, limit, now)
    for remark in made.remarks:
        console.tell(f"{console.PROGRAM}: {remark}")
    console.show("".join(f"{line}\n" for line in _describe(output, known, made)))
    return PASSED


def _describe(output: Path, known: TestSet, made: Collected) -> Iterator[str]:
    """What was collected, and how to go on."""
    yield f"traces to look at: {list_counts(made.found) or 'none'}"
    left_out = {"already in the file or asked twice": made.repeated, "without texts any more": made.removed}
    if told := [f"{count:,} {why}" for why, count in left_out.items() if count]:
        yield f"left out: {', '.join(told)}"
    if not made.rows:
        stays = f"{output} stays at version {known.version} with {count_noun(known.rows, 'row')}"
        yield f"nothing new; {stays if known.version else f'{output} is not written'}"
        return
    added = f"{count_noun(len(made.rows), 'row')} added; the file now has {known.rows + len(made.rows):,}"
    yield f"wrote {output}: version {known.version + 1}, {added}"
    yield f"evaluate and review them: {console.PROGRAM} init --answers {output}, run, review select -o review.xlsx"
