"""Records side by side: each with the first one, question by question, with the numbers of `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from rageval_spec.commands.compare import comparison_view as comparison
from rageval_spec.commands.compare.changes import Compared, Kind, MetricChange, QuestionChange, compare_results
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.dataclass import replace
from rageval_spec.drawing.question_order import Filter
from rageval_spec.drawing.view import (
    Block,
    Details,
    Grid,
    Heading,
    Inline,
    Items,
    Line,
    Span,
    name,
    tabulate,
    write_html,
)
from rageval_spec.errors import RagevalError
from rageval_spec.local_view.application import Asked, Reply, write_framed
from rageval_spec.local_view.record_catalog import KnownRecord, RecordCatalog
from rageval_spec.local_view.record_pages import link_pages, link_question, read_page
from rageval_spec.wording import count_noun, find_format, format_mean

PER_PAGE = 50
"""The questions of each kind on a page."""
MOST_RECORDS = 20
_FLIPPED: Mapping[Kind, str] = {"broken": "Broken", "fixed": "Fixed"}
_CHOOSE = '<h1>Side by side</h1><p>Choose two or more records in the <a href="/">list of records</a>.</p>'
_Place = tuple[str, str, str]


class _Pair(NamedTuple):
    """A record and what `compare` finds between the first one and it."""

    record: KnownRecord
    found: Compared


class ComparisonPage:
    """The page `/compare?record=ID&record=ID`: the oldest of the records is what the others are compared with."""

    def __init__(self, catalog: RecordCatalog) -> None:
        """The records of a catalog."""
        self._catalog = catalog

    def show(self, asked: Asked) -> Reply:
        """Numbers, then the questions that flipped, then what else differs."""
        ids = [*dict.fromkeys(value for key, value in asked.query if key == "record")]
        if not 2 <= len(ids) <= MOST_RECORDS:
            more = f"<p>At most {MOST_RECORDS} records fit on the page.</p>" if len(ids) > MOST_RECORDS else ""
            return Reply(write_framed("Side by side", _CHOOSE + more))
        page = read_page(asked)
        first, *others = sorted(map(self._catalog.find, ids), key=lambda one: one.time)
        before, pairs, told = NamedResults(first.title, self._catalog.load(first)), list[_Pair](), list[str]()
        for record in others:
            after = NamedResults(record.title, self._catalog.load(record))
            try:
                pairs.append(_Pair(record, compare_results(before, after, Filter(limit=PER_PAGE * (page + 1)))))
                told.append(f"{comparison.describe_counts(pairs[-1].found)}.")
            except RagevalError as error:
                told.append(str(error))
        listed = Items([("", [_link(one), f": {text}"], "") for one, text in zip(others, told, strict=True)])
        blocks: list[Block] = [
            Heading("Side by side", 1),
            Line(["Compared with ", _link(first), ", the oldest of them."]),
            listed,
        ]
        if pairs:
            address = f"/compare?{urlencode([('record', one) for one in ids])}&"
            blocks += [*_draw_numbers(first, pairs), *_draw_flipped(first, pairs, page, address), *_draw_rest(pairs)]
        return Reply(write_framed("Side by side", write_html(blocks)))


def _draw_rest(pairs: Sequence[_Pair]) -> Iterator[Block]:
    for record, found in pairs:
        if found.differences:
            title = f"What else differs in {_tell(record)}"
            yield Details(title, list(comparison.draw_differences(found.differences))[1:])


def _draw_numbers(first: KnownRecord, pairs: Sequence[_Pair]) -> Iterator[Block]:
    """A row for each metric of each system; a record that lacks it has empty cells."""
    yield Heading("Numbers", 2)
    rows: dict[_Place, dict[str, MetricChange]] = {}
    for record, found in pairs:
        for one in found.metrics:
            rows.setdefault((one.metric, one.system, one.dataset), {})[record.id] = one
    header = ["metric", "system", "dataset", _tell(first)]
    for record, _ in pairs:
        header += [_tell(record), "difference", "adjusted p"]
    changed = {place: of for place, of in rows.items() if not all(map(comparison.is_equal, of.values()))}
    cells = [_list_cells(place, of, pairs) for place, of in changed.items()]
    if cells:
        yield tabulate(header, cells, range(3, len(header)), range(3))
    if same := len(rows) - len(cells):
        yield Line(f"{count_noun(same, 'number')} {'is' if same == 1 else 'are'} the same in all of them.")
    changes = [one for of in rows.values() for one in of.values()]
    told = [comparison.describe_test(changes, pairs[-1].found.after.evaluation)]
    if len(pairs) > 1:
        told.append("Each p counts the tests of its own record; with many records, expect some small ones by chance.")
    yield from (Line(Span(text, "dim")) for text in told if text)


def _list_cells(place: _Place, changes: Mapping[str, MetricChange], pairs: Sequence[_Pair]) -> list[Inline]:
    cells: list[Inline] = [*place, ""]
    for record, found in pairs:
        one = changes.get(record.id)
        if one is None:
            cells += ["", "", ""]
            continue
        shown = find_format(found.after.evaluation, one.metric)
        cells[3] = cells[3] or format_mean(one.before, shown=shown)
        cells += comparison.list_numbers(one, shown)[1:4]
    return cells


def _draw_flipped(first: KnownRecord, pairs: Sequence[_Pair], page: int, address: str) -> Iterator[Block]:
    """The questions that broke, then those that were fixed, in any of the records: the largest changes first."""
    for kind, title in _FLIPPED.items():
        rows: dict[_Place, dict[str, QuestionChange]] = {}
        for record, found in pairs:
            of_kind = [one for one in found.questions.shown if one.kind == kind]
            for one in of_kind[page * PER_PAGE :]:
                rows.setdefault((one.dataset, one.system, one.query_id), {})[record.id] = one
        yield Heading(f"{comparison.SIGNS[kind]} {title} questions", 2)
        yield replace(_tabulate(rows, first, pairs), label=title) if rows else Line("No more." if page else "None.")
        has_more = max(found.questions.counts[kind] for _, found in pairs) > (page + 1) * PER_PAGE
        yield from link_pages(address, page, has_more, ("Larger changes", "Smaller changes"))


def _tabulate(rows: Mapping[_Place, Mapping[str, QuestionChange]], first: KnownRecord, pairs: Sequence[_Pair]) -> Grid:
    cells: list[list[Inline]] = []
    for (dataset, system, query_id), changes in rows.items():
        some = next((one for one in changes.values() if one.question), next(iter(changes.values())))
        about = Span(f"\n{query_id} · {system} · {dataset}", "dim", "prose")
        places = [
            link_question(record, dataset, system, query_id) for record in (first, *(one.record for one in pairs))
        ]
        told = [
            "as before" if (one := changes.get(record.id)) is None
            else comparison.describe_value(one, found.after.evaluation)
            for record, found in pairs
        ]  # fmt: skip
        links = [Span(text or "see it", link=place) for text, place in zip(["", *told], places, strict=True)]
        cells.append([[name(some.question or query_id), about], *links])
    return tabulate(["Question", _tell(first), *(_tell(one.record) for one in pairs)], cells, names=())


def _link(record: KnownRecord) -> Span:
    return Span(_tell(record), link=record.address)


def _tell(record: KnownRecord) -> str:
    """`main, 2026-11-28 21:48`."""
    return f"{record.title}, {record.time:%Y-%m-%d %H:%M}"
