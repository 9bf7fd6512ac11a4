"""Records side by side: each with the first one, question by question, with the numbers of `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote, urlencode

from rageval_spec.commands.compare import comparison_view as comparison
from rageval_spec.commands.compare.changes import Compared, MetricChange, QuestionChange, compare_results
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.dataclass import dataclass
from rageval_spec.drawing.question_order import Filter
from rageval_spec.drawing.view import Block, Details, Inline, Line, Span, tabulate, write_html
from rageval_spec.errors import RagevalError
from rageval_spec.local_view.application import Asked, Reply, write_framed
from rageval_spec.local_view.record_catalog import KnownRecord, RecordCatalog
from rageval_spec.local_view.record_pages import escape, link_question, read_page
from rageval_spec.wording import count_noun, find_format, format_mean

PER_PAGE = 50
"""The questions of each kind on a page."""
MOST_RECORDS = 20
_FLIPPED = ("broken", "fixed")
_CHOOSE = '<h1>Side by side</h1><p>Choose two or more records in the <a href="/">list of records</a>.</p>'
_Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Pair:
    """The first record with another one: what `compare` finds, or why it finds nothing."""

    record: KnownRecord
    found: Compared | None
    problem: str = ""


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
        pairs = list(self._compare(first, others, Filter(limit=PER_PAGE * (page + 1))))
        body = "".join(_draw(first, pairs, page, urlencode([("record", one) for one in ids])))
        return Reply(write_framed("Side by side", body))

    def _compare(self, first: KnownRecord, others: Sequence[KnownRecord], wanted: Filter) -> Iterator[_Pair]:
        before = NamedResults(first.title, self._catalog.load(first))
        for record in others:
            try:
                yield _Pair(
                    record, compare_results(before, NamedResults(record.title, self._catalog.load(record)), wanted)
                )
            except RagevalError as error:
                yield _Pair(record, None, str(error))


def _draw(first: KnownRecord, pairs: Sequence[_Pair], page: int, query: str) -> Iterator[str]:
    yield "<h1>Side by side</h1>"
    yield f"<p>Compared with {_name(first)}, the oldest of them.</p><ul>"
    for one in pairs:
        told = escape(f": {one.problem}" if one.found is None else f": {comparison.describe_counts(one.found)}.")
        yield f"<li>{_name(one.record)}{told}</li>"
    yield "</ul>"
    found = [one for one in pairs if one.found is not None]
    if not found:
        return
    yield "<h2>Numbers</h2>"
    yield write_html(_draw_numbers(first, found))
    yield from _draw_flipped(first, found, page, query)
    for one in found:
        assert one.found is not None
        if one.found.differences:
            title = f"What else differs in {_tell(one.record)}"
            yield write_html([Details(title, list(comparison.draw_differences(one.found.differences))[1:])])


def _draw_numbers(first: KnownRecord, pairs: Sequence[_Pair]) -> Iterator[Block]:
    """A row for each metric of each system; a record that lacks it has empty cells."""
    rows: dict[_Place, dict[str, MetricChange]] = {}
    for pair in pairs:
        assert pair.found is not None
        for one in pair.found.metrics:
            rows.setdefault((one.metric, one.system, one.dataset), {})[pair.record.id] = one
    header = ["metric", "system", "dataset", _tell(first)]
    for pair in pairs:
        header += [_tell(pair.record), "difference", "adjusted p"]
    changed = {place: of for place, of in rows.items() if not all(map(comparison.is_equal, of.values()))}
    cells = [_list_cells(place, of, pairs) for place, of in changed.items()]
    if cells:
        yield tabulate(header, cells, range(3, len(header)), range(3))
    if same := len(rows) - len(cells):
        yield Line(f"{count_noun(same, 'number')} {'is' if same == 1 else 'are'} the same in all of them.")
    last = pairs[-1].found
    assert last is not None
    changes = [one for of in rows.values() for one in of.values()]
    told = [comparison.describe_test(changes, last.after.evaluation)]
    if len(pairs) > 1:
        told.append("Each p counts the tests of its own record; with many records, expect some small ones by chance.")
    yield from (Line(Span(text, "dim")) for text in told if text)


def _list_cells(place: _Place, changes: Mapping[str, MetricChange], pairs: Sequence[_Pair]) -> list[Inline]:
    cells: list[Inline] = [*place, ""]
    for pair in pairs:
        assert pair.found is not None
        one = changes.get(pair.record.id)
        if one is None:
            cells += ["", "", ""]
            continue
        shown = find_format(pair.found.after.evaluation, one.metric)
        cells[3] = cells[3] or format_mean(one.before, shown=shown)
        cells += comparison.list_numbers(one, shown)[1:4]
    return cells


def _draw_flipped(first: KnownRecord, pairs: Sequence[_Pair], page: int, query: str) -> Iterator[str]:
    """The questions that broke or were fixed in any record, with a link to each in each record."""
    for kind in _FLIPPED:
        rows: dict[_Place, dict[str, QuestionChange]] = {}
        most = 0
        for pair in pairs:
            assert pair.found is not None
            of_kind = [one for one in pair.found.questions.shown if one.kind == kind]
            for one in of_kind[page * PER_PAGE :]:
                rows.setdefault((one.dataset, one.system, one.query_id), {})[pair.record.id] = one
            most = max(most, pair.found.questions.counts[kind])  # type: ignore[index]
        title = {"broken": "Broken", "fixed": "Fixed"}[kind]
        yield f"<h2>{comparison.SIGNS[kind]} {title} questions</h2>"  # type: ignore[index]
        if not rows:
            yield "<p>None.</p>" if not page else "<p>No more.</p>"
            continue
        yield from _draw_questions(rows, first, pairs)
        links = [(page - 1, "Larger changes")] if page else []
        links += [(page + 1, "Smaller changes")] if most > (page + 1) * PER_PAGE else []
        yield from (f'<p><a href="/compare?{query}&amp;page={to}">{told}</a></p>' for to, told in links)


def _draw_questions(
    rows: Mapping[_Place, Mapping[str, QuestionChange]], first: KnownRecord, pairs: Sequence[_Pair]
) -> Iterator[str]:
    names = [_tell(first), *(_tell(one.record) for one in pairs)]
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("Question", *names))
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table: questions">'
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for (dataset, system, query_id), changes in rows.items():
        some = next((one for one in changes.values() if one.question), next(iter(changes.values())))
        about = escape(" · ".join((query_id, system, dataset)))
        cells = [f'<bdi dir="auto">{escape(some.question or query_id)}</bdi><br><span class="muted">{about}</span>']
        cells.append(_link(first, some, "see it"))
        for pair in pairs:
            one, found = changes.get(pair.record.id), pair.found
            assert found is not None
            cells.append(
                _link(
                    pair.record,
                    some,
                    "as before" if one is None else comparison.describe_value(one, found.after.evaluation),
                )
            )
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</tbody></table></div>"


def _link(record: KnownRecord, one: QuestionChange, told: str) -> str:
    address = link_question(record, one.dataset, one.system, one.query_id)
    return f'<a href="{address}">{escape(told or "see it")}</a>'


def _name(record: KnownRecord) -> str:
    return f'<a href="/record/{quote(record.id)}/">{escape(_tell(record))}</a>'


def _tell(record: KnownRecord) -> str:
    """`main, 2026-11-28 21:48`."""
    return f"{record.title}, {record.time:%Y-%m-%d %H:%M}"
