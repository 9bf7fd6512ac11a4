"""The list of records, the report of each, and the trends: with the code that writes the static files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from rageval_spec.drawing.html_shell import show_text
from rageval_spec.drawing.view import Line, Span, write_html
from rageval_spec.endpoints.http_server import Refusal
from rageval_spec.history.database import RecordFilter
from rageval_spec.local_view.application import Asked, Reply, add_links, write_framed
from rageval_spec.local_view.record_catalog import KnownRecord, RecordCatalog
from rageval_spec.wording import count_noun

_SIGNS = {"pass": "✓ pass", "warn": "! warn", "fail": "✗ fail", "error": "✗ error"}
_CLASSES = {"pass": "good", "fail": "bad", "error": "bad", "warn": "weak"}
_HEADER = (
    '<span class="sr">Choose</span>', "Time (UTC)", "Evaluation", "Outcome", "Labels", "Branch", "Commit",
    '<span class="sr">Pages</span>',
)  # fmt: skip
NO_SPEC = (
    "To judge a question again, start the view with its spec, because a record keeps what its spec said, but not the "
    "file to edit: <code>rageval-spec view spec.yaml</code>"
)


class RecordPages:
    """The pages of records. Reports are written into a folder of their own once, and served from there."""

    def __init__(self, catalog: RecordCatalog, kept: Path, spec: Path | None) -> None:
        """Pages of the catalog; `kept` is an empty folder for what is written once, `spec` the spec of the view."""
        self._spec = spec
        self._catalog = catalog
        self._kept = kept

    def show_list(self, asked: Asked) -> Reply:
        """A table of records, from which some can be chosen to see side by side."""
        page = read_page(asked)
        records, has_older = self._catalog.list_records(page)
        body = "".join(_draw_list(records, has_spec=self._spec is not None)) if records else _EMPTY
        if problem := self._catalog.explain_history():
            body = f'<p class="bad">Records of the history are missing here: {show_text(problem)}</p>{body}'
        body += self._link_monitor()
        body += write_html(link_pages("/?", page, has_older, ("Newer records", "Older records")))
        return Reply(write_framed("Records", body))

    def _link_monitor(self) -> str:
        """A link to what the spec watches; "" if it watches nothing, or cannot be read now."""
        try:
            content = b"" if self._spec is None else self._spec.read_bytes()
        except OSError:
            return ""
        is_watched = re.search(rb"(?m)^monitor\s*:", content)
        return '<p><a href="/monitor">Monitor: production, by this spec</a></p>' if is_watched else ""

    def show_report(self, asked: Asked) -> Reply:
        """The report of a record, as the report `html` writes it."""
        record = self._catalog.find(asked.path["record"])
        folder = self._kept / record.id
        page = folder / "index.html"
        if not page.is_file():
            self._write_report(record, folder)
        return Reply(add_links(page.read_bytes()))

    def send_part(self, asked: Asked) -> Reply:
        """A part of the data of a large report."""
        record, name = asked.path["record"], asked.path["name"]
        path = self._kept / record / "parts" / f"{name}.js"
        if not (record.isalnum() and name.replace("-", "").isalnum() and path.is_file()):
            raise Refusal(404, "There is no such part; open the report again.")
        return Reply(path.read_bytes(), "text/javascript")

    def send_icon(self, _: Asked) -> Reply:
        """None: browsers ask for it anyway."""
        return Reply(b"", "image/x-icon", 204)

    def show_trends(self, asked: Asked) -> Reply:
        """The numbers of an evaluation over time: of the newest one, or of the one that is named."""
        from rageval_spec.drawing.trend_charts import write_trend
        from rageval_spec.history.trends import TrendFilter, collect_trend

        with self._catalog.open_history() as history:
            entries = [] if history is None else history.entries(RecordFilter(limit=1000))
            if history is None or not entries:
                told = show_text(self._catalog.explain_history())
                return Reply(write_framed("Trends", f"<h1>Trends</h1>{f'<p>{told}</p>' if told else _EMPTY}"))
            name = asked.find("name") or entries[0].name
            page = write_trend(collect_trend(history, RecordFilter(name), TrendFilter()))
        others = [one for one in dict.fromkeys(entry.name for entry in entries) if one != name]
        links = [(one, f"/trends?{urlencode({'name': one})}") for one in others]
        return Reply(add_links(page, links))

    def _write_report(self, record: KnownRecord, folder: Path) -> None:
        from rageval_spec.drawing.page.page import write_files
        from rageval_spec.reports.html import DIGITS

        draft = folder.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        (draft / "parts").mkdir(parents=True)
        for name, content in write_files(self._catalog.load(record), DIGITS, None):
            (draft / (name or "index.html")).write_bytes(content)
        draft.rename(folder)


def read_page(asked: Asked) -> int:
    """The number of a page, from 0."""
    text = asked.find("page") or "0"
    if not text.isdecimal() or len(text) > 6:
        raise Refusal(404, "There is no such page.")
    return int(text)


def link_pages(address: str, page: int, has_more: bool, names: tuple[str, str]) -> Iterator[Line]:
    """Links to the page before this one and the one after it; the address ends with `?` or `&`."""
    if page:
        yield Line(Span(names[0], link=f"{address}page={page - 1}"))
    if has_more:
        yield Line(Span(names[1], link=f"{address}page={page + 1}"))


def link_question(record: KnownRecord, dataset: str, system: str, query_id: str) -> str:
    """The address of a question in the report of a record."""
    return f"{record.address}#{urlencode({'q': query_id, 'system': system, 'dataset': dataset}, quote_via=quote)}"


_EMPTY = (
    "<p>There are no records yet.</p>"
    "<p>Evaluate a spec, and reload this page: <code>rageval-spec run spec.yaml</code></p>"
)


def _draw_list(records: Sequence[KnownRecord], *, has_spec: bool) -> Iterator[str]:
    yield '<h1>Records</h1><form action="/compare" method="get"><p>Choose two or more to see them side by side.</p>'
    heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADER)
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table: records"><table class="records">'
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    yield from (_draw_row(one, has_spec=has_spec) for one in records)
    yield '</tbody></table></div><button type="submit">See side by side</button></form>'
    if not has_spec and any(one.is_judged for one in records):
        yield f"<p>{NO_SPEC}</p>"


def _draw_row(record: KnownRecord, *, has_spec: bool) -> str:
    time = f"{record.time:%Y-%m-%d %H:%M}"
    if record.problem:
        told = f'<span class="bad">cannot be read</span> {show_text(record.problem)}'
        return f'<tr><td></td><td>{time}</td><td colspan="{len(_HEADER) - 2}">{told}</td></tr>'
    said = f"{record.name}, {time}, {', '.join(record.labels) or record.id[:8]}"
    failed = f", {count_noun(record.failed, 'gate')} failed" if record.failed else ""
    outcome = _SIGNS.get(record.outcome, record.outcome)
    again = f' · <a href="/judge/{quote(record.id)}">Judge again</a>' if has_spec and record.is_judged else ""
    cells = [
        f'<input class="pick" type="checkbox" name="record" value="{record.id}" aria-label="{show_text(said)}">',
        f'<a href="{record.address}">{time}</a>',
        f"<bdi>{show_text(record.name)}</bdi>",
        f'<span class="{_CLASSES.get(record.outcome, "")}">{show_text(outcome)}</span>{failed}',
        show_text(", ".join(record.labels)) or f'<span class="muted">{show_text(record.title)}</span>',
        show_text(record.branch),
        show_text(record.commit),
        f'<a href="/label/{quote(record.id)}">Label</a>{again}'
        if record.folder
        else '<span class="muted">numbers only</span>',
    ]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
