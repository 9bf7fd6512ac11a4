"""`rageval-spec show`: the questions behind the numbers, as a list or as cards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.data.tables import SampleTable
from rageval_spec.dataclass import asdict, dataclass, replace
from rageval_spec.diagnostics import dump_visible, suggest
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.libraries import pl
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.commands.results_argument import NamedResults
    from rageval_spec.drawing.cards import Card
    from rageval_spec.drawing.question_order import BaselineValues, Filter
    from rageval_spec.drawing.view import Block

Form: TypeAlias = Literal["text", "json", "markdown"]
FORMAT_VERSION = 1
"""Of the JSON shape. Within a version, keys are only added."""


@dataclass(frozen=True)
class Shown:
    """The chosen cards.

    Attributes:
        cards: worst first; if `query_id` is given, those of systems that answer come before those of retrievers.
        deciding: the metric that gave each question its place, by the card's key.
        matching: the number of questions that the filter chose before its limit.
    """

    results: NamedResults
    baseline: BaselineValues | None
    query_id: str | None
    cards: tuple[Card, ...]
    deciding: Mapping[tuple[str, ...], str | None]
    matching: int

    @cached_property
    def total(self) -> int:
        """The number of all questions of all systems."""
        from rageval_spec.drawing.question_order import KEY
        from rageval_spec.history.saved_evaluations import scan_values

        _, evaluation, folder = self.results
        values = evaluation.values.lazy() if folder is None else scan_values(folder)
        keys = pl.concat([evaluation.select_samples(*KEY).lazy(), values.select(KEY)])
        return int(keys.unique().select(pl.len()).collect(engine="streaming").item())


def show(
    names: Sequence[str],
    wanted: Filter,
    form: Form,
    *,
    results: str | None = None,
    baseline: str | None = None,
    full: bool = False,
) -> bytes:
    """The questions that the filter chooses, as text, JSON or Markdown in UTF-8.

    `names` are a query id, a results folder, both or neither; with `results`, only a query id.
    """
    shown = _choose(*_resolve(names, results), wanted, baseline)
    if form == "json":
        return _to_json(shown)
    if form == "markdown":
        from rageval_spec.drawing.view import write_markdown

        return write_markdown(_draw(shown, full=full)).encode("utf-8", "backslashreplace")
    from rageval_spec.drawing.view import write_text

    return write_text(_draw(shown, full=full))


def _choose(query_id: str | None, results: NamedResults, wanted: Filter, against: str | None) -> Shown:
    """The cards that the filter chooses. What judges told is read only of the questions that are shown."""
    from rageval_spec.commands.results_argument import open_baseline
    from rageval_spec.drawing.cards import build_cards
    from rageval_spec.drawing.question_order import KEY, NoBaselineError, rank_questions
    from rageval_spec.history.results_folder import VALUES
    from rageval_spec.history.saved_evaluations import load_values_of

    evaluation = results.evaluation
    baseline = None if against is None else open_baseline(against, evaluation)
    if query_id is not None and wanted.slice is None and wanted.cause is None:
        rows = evaluation.find_samples(pl.DataFrame({"query_id": [query_id]}))
        evaluation = replace(evaluation, sample_table=SampleTable(lambda: (rows,)))
    if query_id is not None and query_id not in {
        *evaluation.values["query_id"],
        *evaluation.select_samples("query_id")["query_id"],
    }:
        _refuse_question(results, query_id)
    try:
        ranked = rank_questions(evaluation, replace(wanted, limit=None), baseline)
    except NoBaselineError as error:
        raise UsageError(f"{error}; add --baseline with other results") from error
    chosen = ranked if query_id is None else ranked.filter(query_id=query_id)
    limited = chosen if query_id is not None or wanted.limit is None else chosen.head(wanted.limit)
    deciding = {row[:3]: row[3] for row in limited.select(*KEY, "metric").iter_rows()}
    if results.folder is not None and query_id is None:
        values = load_values_of(results.folder / VALUES, [key[2] for key in deciding])
        evaluation = replace(evaluation, values=values)
    cards = build_cards(evaluation, deciding, baseline)
    if query_id is not None:  # by dataset, and systems that answer before those that retrieve
        datasets = {name: at for at, name in enumerate(evaluation.datasets)}
        ordered = sorted(cards, key=lambda one: (datasets.get(one.dataset, len(datasets)), one.status == "retrieved"))
        cards = tuple(ordered)[: wanted.limit]
    return Shown(results, baseline, query_id, cards, deciding, chosen.height)


def _resolve(arguments: Sequence[str], folder: str | None) -> tuple[str | None, NamedResults]:
    """The query id and the results, whichever order the arguments are in."""
    from rageval_spec.commands.results_argument import is_results, open_results
    from rageval_spec.history.saved_evaluations import load_numbers, load_values_of
    from rageval_spec.plugin.report import RESULTS_FOLDER

    def open_lean(query_id: str | None, name: str | None = None) -> tuple[str | None, NamedResults]:
        load = load_numbers if query_id is None else partial(load_values_of, query_ids=[query_id])
        return query_id, open_results(name, load_values=load)

    names = list(arguments)
    if folder is not None:
        if len(names) > 1:
            raise UsageError("with --results, the only argument is a query")
        return open_lean(names[0] if names else None, folder)
    if len(names) > 2:
        raise UsageError(f"expected a query and a results folder, not {len(names)} arguments")
    folders = [name for name in names if is_results(name)]
    if len(names) == 1 and folders:
        return open_lean(None, folders[0])
    if len(names) == 2:
        names.remove(chosen := folders[0] if folders else names[1])
        return open_lean(names[0], chosen)
    if names and not is_results(RESULTS_FOLDER) and Path(names[0]).exists():
        return open_lean(names[0], names[0])  # the error is about this file or folder
    return open_lean(names[0] if names else None)


def _refuse_question(results: NamedResults, query_id: str) -> NoReturn:
    from rageval_spec.drawing.cards import write_show
    from rageval_spec.history.saved_evaluations import scan_values

    evaluation = results.evaluation
    tables = (evaluation.select_samples("query_id"), evaluation.values.select("query_id"))
    known = pl.concat([table.unique(maintain_order=True) for table in tables])["query_id"].unique()
    if results.folder is not None:
        known = pl.concat([known, scan_values(results.folder).select("query_id").collect().to_series()]).unique()
    if os.sep in query_id:
        raise UsageError(f"'{query_id}' is neither a results folder nor a question of these results")
    hint = suggest(query_id, known.sort().to_list())
    raise UsageError(
        f"there is no question '{query_id}'{f'; {hint}' if hint else ''}; the results have "
        f"{count_noun(len(known), 'question')}, and the worst are listed by: {write_show(None, results.name)}"
    )


def _to_json(shown: Shown) -> bytes:
    """The keys of a card are the attributes of `Card`; `origins` is what each dataset says about itself."""
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "name": shown.results.evaluation.name,
        "results": shown.results.name,
        "baseline": shown.baseline.name if shown.baseline else None,
        "total": shown.total,
        "matching": shown.matching,
        "origins": {name: asdict(origin) for name, origin in shown.results.evaluation.provenance.origins.items()},
        "cards": [_list_card(card) for card in shown.cards],
    }
    return dump_visible(content).encode("utf-8", "backslashreplace")


def _list_card(card: Card) -> dict[str, Any]:
    content = asdict(card)
    others: dict[str, Any] = content.pop("others")
    return content | others


def _draw(shown: Shown, *, full: bool) -> Iterator[Block]:
    from rageval_spec.drawing.card_view import draw_card, draw_entry
    from rageval_spec.drawing.cards import write_show
    from rageval_spec.drawing.view import Heading, Line, Span, name

    yield Heading(_describe(shown), 1)
    for dataset, origin in shown.results.evaluation.provenance.origins.items():
        yield Line(Span(f"dataset {dataset}: {origin.describe()}", "dim"))
    for card in shown.cards:
        if shown.query_id is not None or full:
            yield from draw_card(card, _name(card, shown), full=full)
        else:
            metric = shown.deciding[card.key]
            yield draw_entry(card, _name(card, shown), None if metric is None else card.value(metric))
    if shown.cards and shown.query_id is None and not full:
        command = write_show(shown.cards[0].query_id, shown.results.name)
        yield Line([Span("One question in full: ", "dim"), name(command, "dim")])


def _name(card: Card, shown: Shown) -> list[str]:
    """What a heading says after the query id: the system, and the dataset if there are several."""
    several = len(shown.results.evaluation.datasets) > 1
    return [card.system, *([card.dataset] if several else [])]


def _describe(shown: Shown) -> str:
    """`quickstart: the worst 10 of 160 questions, 4 systems`."""
    evaluation, matching = shown.results.evaluation, shown.matching
    noun = "card" if len(evaluation.systems) > 1 else "question"
    if shown.query_id is not None:
        noun = "card" if len(evaluation.datasets) > 1 else "system"
        what = f"question {shown.query_id}, {count_noun(len(shown.cards), noun)}"
        what = what if shown.cards else f"question {shown.query_id} does not match the filter"
        return f"{evaluation.name}: {what}"
    total = shown.total
    if not matching:
        what = f"no {noun} of {total} matches"
    elif matching == total:
        each = ", one for each question and system" if noun == "card" else ""
        what = f"the worst {len(shown.cards)} of {total} {noun}s{each}"
    elif len(shown.cards) < matching:
        what = f"the worst {len(shown.cards)} of {matching} {noun}s that match"
    else:
        what = f"{count_noun(matching, noun)} of {total} {'matches' if matching == 1 else 'match'}"
    return f"{evaluation.name}: {what}"


@click.command("show", cls=OutputCommand)
@click.argument("names", metavar="[QUERY] [RESULTS]", nargs=-1)
@click.option("--results", metavar="FOLDER", help="The results folder or label; then the argument is a query.")
@click.option("--baseline", metavar="FOLDER", help="Compare with this results folder, label, system or baseline of a "
              "gate.  [default: the gates' baselines, else the first system that has the metric]")  # fmt: skip
@click.option("--metric", help="Order by this metric's values; --below and --above concern them.")
@click.option("--below", type=float, metavar="VALUE", help="Only questions with a lower value.")
@click.option("--above", type=float, metavar="VALUE", help="Only questions with a higher value.")
@click.option("--system", help="Only this system.")
@click.option("--dataset", help="Only this dataset.")
@click.option("--slice", help="Only questions of this slice, for example difficulty=hard.")
@click.option("--cause", help="Only questions with this cause, for example retrieval or generation.")
@click.option("--regressed", is_flag=True, help="Only questions with a value worse than the baseline's, the largest "
              "fall first.")  # fmt: skip
@click.option("--failed", is_flag=True, help="Only questions without an answer, or with an error.")
@shared.questions_limit_option("", 10)
@shared.questions_form_option
@click.option("--full", is_flag=True, help="Show long texts in full, and cards instead of a list.")
def show_questions(
    names: Sequence[str], form: Any, results: str | None, baseline: str | None, full: bool, **wanted: Any
) -> int:
    """Show the questions behind the numbers, worst first.

    With the id of a question, it shows that one in full. RESULTS is a results folder or a label of the history. The
    default is rageval-results, where `run` writes. A question's card has the answer with unsupported claims marked,
    the sources, the reference, the documents and all values with their reasons.

    \b
    rageval-spec show
    rageval-spec show q187
    rageval-spec show --metric faithfulness --below 0.5 --system v2 --slice difficulty=hard
    rageval-spec show --regressed --baseline main --format markdown
    """
    from rageval_spec.drawing.question_order import Filter

    console.write(show(names, Filter(**wanted), form, results=results, baseline=baseline, full=full))
    return PASSED
