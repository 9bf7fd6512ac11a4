"""One question judged again with an edited spec: calls and cost first, then the new verdict beside the old one.

The spec's file is never written. An edit is kept as a diff in a file of its own beside it.
"""

from __future__ import annotations

import difflib
import hashlib
import html
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from rageval_spec.calibration.labelled_items import read_samples
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.card_view import shorten
from rageval_spec.drawing.html_shell import show_text
from rageval_spec.drawing.question_order import Filter, rank_questions
from rageval_spec.drawing.view import Block, Heading, Items, Line, Span, write_html
from rageval_spec.endpoints.http_server import Refusal
from rageval_spec.errors import DataError, describe_os_error
from rageval_spec.local_view.application import Asked, Reply, reply_json, write_framed
from rageval_spec.local_view.record_catalog import KnownRecord, RecordCatalog, list_judged
from rageval_spec.local_view.record_pages import link_pages, read_page
from rageval_spec.progress import ProgressDisplay
from rageval_spec.spec import loads
from rageval_spec.wording import count_noun, format_number

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

PER_PAGE = 50
_LARGEST = 1_000_000


class JudgingPage:
    """The page `/judge/ID?q=...`, and what it asks: a plan, a judgement, and to keep the edit."""

    def __init__(self, catalog: RecordCatalog, spec: Path | None) -> None:
        """Judge answers of a catalog's records by this spec; without one, the pages say what to do."""
        self._catalog = catalog
        self._spec = spec

    def show(self, asked: Asked) -> Reply:
        """The questions of a record, worst first; with `q`, one of them and the spec to edit."""
        text = self._read_spec()
        record = self._catalog.find(asked.path["record"])
        if record.folder is None:
            raise Refusal(404, "Of this record the history has only numbers, so there is no answer to judge again.")
        evaluation = self._catalog.load(record)
        if asked.find("q") is None:
            return Reply(write_framed("Judge again", write_html(_draw_questions(record, evaluation, read_page(asked)))))
        dataset, system, query_id = key = _find_key(dict(asked.query))
        sample = read_samples(evaluation, [key]).get(key)
        if sample is None:
            raise Refusal(404, "The record has no answer to this question.")
        values, shown = _list_old(evaluation, key), make_visible(text, keep="\n")
        about = json.dumps({"dataset": dataset, "system": system, "q": query_id, "record": record.id, "old": values})
        listed = "".join(f"<li>{show_text(one)}</li>" for one in sample.contexts or ())
        contexts = f"<summary>{count_noun(len(sample.contexts or ()), 'context')}</summary><ol>{listed}</ol>"
        body = (
            f'<h1 dir="auto">{show_text(sample.question or query_id)}</h1><h2>Answer</h2>'
            f'<p class="prose" dir="auto">{show_text(sample.answer or "")}</p>'
            f"<details>{contexts}</details>"
            f'<form id="edit" data-about="{show_text(about)}"><label class="field">The spec, to edit'
            f'<textarea id="text" rows="18" spellcheck="false">{html.escape(shown)}</textarea></label></form>'
            '<div id="outcome" aria-live="polite"></div>'
        )
        return Reply(write_framed("Judge again", body, ["judging.js"]))

    def plan(self, asked: Asked) -> Reply:
        """The calls and their cost, the diff of the spec, and a ticket that allows exactly this."""
        from rageval_spec.pipeline.cost_estimate import ExpectedCalls
        from rageval_spec.pipeline.execution.sample_judging import expect_calls, find_asked, open_parts

        sample, text, metric = self._take(asked)
        assert self._spec is not None
        spec = loads(text, path=str(self._spec), folder=self._spec.parent)
        with ProgressDisplay(quiet=True) as display, open_parts(spec, None, display) as parts:
            found = find_asked(parts, metric)
            found.judge.expect([found.criterion])
            calls = expect_calls(parts, [found.judge], found.criterion, [sample])
        expected = ExpectedCalls(calls)
        told = expected.render().strip() or "No call: the judge works on this machine."
        if calls:
            told += " Its price is not known." if expected.cost is None else f" About ${expected.cost:.4f}."
        return reply_json({"told": told, "diff": self._diff(text), "ticket": _sign(text, metric)})

    def judge(self, asked: Asked) -> Reply:
        """The new value, with what the judge says of each claim. Only what was planned is carried out."""
        from rageval_spec.pipeline.execution.sample_judging import find_asked, open_parts
        from rageval_spec.pipeline.values.answer_values import brief_judges, measure

        sample, text, metric = self._take(asked)
        if asked.content.get("ticket") != _sign(text, metric):
            raise Refusal(409, "The spec was edited after its calls were counted; look at the calls again.")
        assert self._spec is not None
        spec = loads(text, path=str(self._spec), folder=self._spec.parent)
        with ProgressDisplay(quiet=True) as display, open_parts(spec, None, display) as parts:
            asking = find_asked(parts, metric).metric
            brief_judges({metric: asking})
            asking.prepare()
            (found,) = measure(metric, asking, [sample]).measurements
        return reply_json(_describe(found.value, found.status, found.reason, found.details))

    def keep(self, asked: Asked) -> Reply:
        """Write the edit as a diff beside the spec, under a new name."""
        diff = self._diff(asked.read("text"))
        if not diff:
            raise Refusal(400, "The spec was not edited, so there is nothing to keep.")
        assert self._spec is not None
        path = self._spec.with_name(f"{self._spec.stem}-{hashlib.sha256(diff.encode()).hexdigest()[:8]}.diff")
        try:
            path.write_text(diff, "utf-8")
        except OSError as error:
            raise DataError(f"the diff was not kept: {describe_os_error(error)}") from error
        return reply_json({"path": str(path), "apply": f"patch {self._spec} {path}"})

    def _read_spec(self) -> str:
        if self._spec is None:
            raise Refusal(422, "To judge again, start the view with the spec: rageval-spec view spec.yaml")
        try:
            content = self._spec.read_bytes()
            if len(content) > _LARGEST:
                raise Refusal(422, f"{self._spec} is too large to edit in a page.")
            return content.decode("utf-8-sig")
        except (OSError, ValueError) as error:
            raise DataError(f"{self._spec}: the spec cannot be read: {error}") from error

    def _diff(self, text: str) -> str:
        before = self._read_spec().splitlines(keepends=True)
        after = text.replace("\r\n", "\n").splitlines(keepends=True)
        name = "spec.yaml" if self._spec is None else self._spec.name
        return "".join(difflib.unified_diff(before, after, name, name))

    def _take(self, asked: Asked) -> tuple[Any, str, str]:
        """The answer, the edited spec and the metric that a request names."""
        self._read_spec()
        evaluation = self._catalog.load(self._catalog.find(asked.path["record"]))
        key = _find_key({name: asked.read(name) for name in ("dataset", "system", "q")})
        return read_samples(evaluation, [key])[key], asked.read("text"), asked.read("metric")


def _sign(text: str, metric: str) -> str:
    return hashlib.sha256(f"{metric}\n{text}".encode("utf-8", "backslashreplace")).hexdigest()


def _find_key(query: Mapping[str, str]) -> tuple[str, str, str]:
    return query.get("dataset", ""), query.get("system", ""), query.get("q", "")


def _list_old(evaluation: Evaluation, key: tuple[str, str, str]) -> dict[str, dict[str, Any]]:
    """What the record has of an answer, by metric: of those that hold what a judge said."""
    dataset, system, query_id = key
    rows = evaluation.values.filter(dataset=dataset, system=system, query_id=query_id)
    judged = list_judged(evaluation.provenance.spec)
    return {
        row["metric"]: _describe(row["value"], row["status"], row["reason"], json.loads(row.get("details") or "{}"))
        for row in rows.iter_rows(named=True)
        if row["metric"] in judged
    }


def _describe(value: float | None, status: str, reason: str | None, details: Any) -> dict[str, Any]:
    """A value as texts: the number, why, and the claims with their verdicts."""
    claims = details.get("claims") if isinstance(details, Mapping) else None
    listed = [one for one in claims if isinstance(one, Mapping)] if isinstance(claims, list) else []
    return {
        "value": status if value is None else format_number(value),
        "reason": reason or "",
        "claims": [f"{one.get('verdict') or 'not judged'}: {shorten(str(one.get('text') or ''))}" for one in listed],
    }


def _draw_questions(record: KnownRecord, evaluation: Evaluation, page: int) -> Iterator[Block]:
    judged = list_judged(evaluation.provenance.spec)
    if not judged:
        yield from (Heading("Judge again", 1), Line("No metric of this record asks a judge."))
        return
    rows = rank_questions(evaluation, Filter(metric=judged[0], limit=PER_PAGE * (page + 1) + 1))
    address = f"/judge/{quote(record.id)}?"
    yield from (Heading(f"Judge a question of {record.title} again", 1), Line("The worst come first."))
    items = []
    for row in rows.slice(page * PER_PAGE, PER_PAGE).iter_rows(named=True):
        key = urlencode({"q": row["query_id"], "system": row["system"], "dataset": row["dataset"]})
        value = "" if row["value"] is None else f": {row['metric']} {format_number(row['value'])}"
        items.append(("", Span(f"{row['query_id']}, {row['system']}{value}", link=f"{address}{key}"), ""))
    yield Items(items)
    yield from link_pages(address, page, rows.height > PER_PAGE * (page + 1), ("Worse questions", "Better questions"))
