"""Labels from the browser straight into the file of labels, with the review page: blind first, saved one by one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rageval_spec.commands.review.forms import make_criteria
from rageval_spec.data.labels import Label, LabelScale
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.drawing.view import Block, Heading, Items, Line, Span, write_html
from rageval_spec.endpoints.http_server import Refusal
from rageval_spec.local_view.application import Asked, Reply, add_links, read_own, reply_json, write_framed
from rageval_spec.local_view.label_file import ConflictError, LabelFile
from rageval_spec.local_view.record_catalog import KnownRecord, RecordCatalog
from rageval_spec.review.forms import FormToken
from rageval_spec.review.label_import import FormEntry, check_entries
from rageval_spec.review.page.rendering import render_page
from rageval_spec.review.selection import WantedSelection, select_answers
from rageval_spec.review.tasks import ReviewSheet, ReviewTask, build_sheet, to_payload

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

MOST_TASKS = 300
"""The answers that are drawn at random to be labelled."""
_HIDDEN: Mapping[str, Any] = {"judged": {}, "verdicts": []}


@dataclass(frozen=True, slots=True)
class _Work:
    """What is labelled of a record."""

    record: str
    evaluation: Evaluation
    sheet: ReviewSheet
    tasks: Mapping[str, ReviewTask]


class LabellingPage:
    """The page `/label/ID`, and what it sends and asks while somebody labels."""

    def __init__(self, catalog: RecordCatalog, path: Path, scale: str) -> None:
        """Label the answers of a catalog's records on a scale; `path` is the file of labels, which need not exist."""
        self._catalog = catalog
        self._file = LabelFile(path)
        self._scale = scale
        self._open: _Work | None = None

    def show_choice(self, asked: Asked) -> Reply:  # noqa: ARG002 - as all pages
        """The records whose answers can be labelled."""
        records = [one for one in self._catalog.list_records()[0] if one.folder is not None and not one.problem]
        told = "No record has its answers here. Evaluate a spec: rageval-spec run spec.yaml"
        if records:
            told = f"Labels go into {self._file.path}."
        names = [f"{one.name}, {one.time:%Y-%m-%d %H:%M}, {one.title}" for one in records]
        links = [Span(name, link=f"/label/{quote(one.id)}") for name, one in zip(names, records, strict=True)]
        blocks: list[Block] = [Heading("Label answers", 1), Line(told), Items([("", link, "") for link in links])]
        return Reply(write_framed("Label", write_html(blocks)))

    def show(self, asked: Asked) -> Reply:
        """The review page, without what the judge says, and with the labels that the file has."""
        work = self._find(asked)
        payload = to_payload(work.sheet)
        payload["tasks"] = [{**task, **_HIDDEN} for task in payload["tasks"]]
        payload |= {"record": work.record, "file": self._file.path.name, "labels": self._list_labels(work)}
        payload["ids"] = [*work.tasks]
        page = render_page(payload, read_own("saving.js"), read_own("labelling.css"))
        return Reply(add_links(page))

    def save(self, asked: Asked) -> Reply:
        """Write a label, or remove it, and answer when it is on the disk."""
        work = self._find(asked)
        value, before = asked.content.get("value"), asked.content.get("before")
        label, written = self._make(work, asked, value if value is not None else before)
        there = None if before is None else self._make(work, asked, before)[0].value
        try:
            self._file.save(label, None if value is None else written, there)
        except ConflictError as conflict:
            current = None if conflict.current is None else _describe(conflict.current)
            return reply_json({"error": str(conflict), "current": current}, 409)
        return reply_json({"saved": True})

    def tell_opinion(self, asked: Asked) -> Reply:
        """What the judge says of a task, once the person has labelled all of it."""
        work = self._find(asked)
        task, annotator = self._find_task(work, asked.find("task")), asked.find("annotator") or ""
        given = self._list_labels(work).get(annotator, {}).get(str(work.sheet.tasks.index(task)), {})
        if len(given) < len(list(work.sheet.questions_of(task))):
            raise Refusal(403, "The judge's opinion can be seen once everything about the answer is labelled.")
        (described,) = to_payload(replace(work.sheet, tasks=(task,)))["tasks"]
        return reply_json({name: described[name] for name in _HIDDEN})

    def tell_standing(self, asked: Asked) -> Reply:
        """What the labels say of each metric so far."""
        from rageval_spec.local_view.label_standing import measure_standing

        work = self._find(asked)
        metrics = {one.name: LabelScale(one.low, one.high) for one in work.sheet.criteria}
        return reply_json({"standings": [*measure_standing(work.evaluation, self._file.read(), metrics)]})

    def _find(self, asked: Asked) -> _Work:
        """The work on a record; the last one is kept, because each label asks for it."""
        record = asked.path["record"]
        if self._open is None or self._open.record != record:
            known = self._catalog.find(record)
            if known.folder is None:
                raise Refusal(
                    404, "Of this record the history has only numbers, so there is nothing to read and label."
                )
            self._open = _begin(known, self._catalog.load(known), self._scale)
        return self._open

    def _find_task(self, work: _Work, task: object) -> ReviewTask:
        found = work.tasks.get(task) if isinstance(task, str) else None
        if found is None:
            raise Refusal(404, "The record was evaluated again meanwhile; reload the page.")
        return found

    def _make(self, work: _Work, asked: Asked, value: Any) -> tuple[Label, str]:
        """A label of what the page sent, and its value as files show it. Raises `Refusal`: it is not one."""
        task = self._find_task(work, asked.content.get("task"))
        at, claim = asked.content.get("criterion"), asked.content.get("claim")
        slots = {
            (work.sheet.criteria.index(one), of and of.number): (one, of) for one, of in work.sheet.questions_of(task)
        }
        if type(at) is not int or (at, claim) not in slots:
            raise Refusal(400, "This is not asked about the answer; reload the page.")
        criterion, of = slots[at, claim]
        comment = asked.content.get("comment") or ""
        entry = FormEntry(
            "the page", criterion.name, FormToken.of(task, of, ()), False, criterion.name, criterion, value,
            annotator=asked.read("annotator").strip(), comment=comment if isinstance(comment, str) else "",
            time=datetime.now(UTC).isoformat(timespec="milliseconds"), saw_judge=asked.content.get("saw_judge") is True,
        )  # fmt: skip
        checked = check_entries([entry])
        if checked.problems or not checked.labels:
            raise Refusal(400, "; ".join(map(str, checked.problems)) or "there is no value")
        return checked.labels[0], checked.written[0]

    def _list_labels(self, work: _Work) -> dict[str, dict[str, dict[str, Any]]]:
        """The labels of the sheet's tasks: by person, the task's number and the slot, as the page names them."""
        places = {(*task.key, task.answer_digest): (at, task) for at, task in enumerate(work.sheet.tasks)}
        criteria = {one.name: at for at, one in enumerate(work.sheet.criteria)}
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for label in self._file.read():
            key = (label.dataset, label.system, label.query_id, label.answer)
            if label.metric in criteria and key in places and not label.adjudicated:
                slot = f"{criteria[label.metric]}{'' if label.claim is None else f'.{label.claim}'}"
                found.setdefault(label.annotator, {}).setdefault(str(places[key][0]), {})[slot] = _describe(label)
        return found


def _begin(record: KnownRecord, evaluation: Evaluation, scale: str = "yes_no") -> _Work:
    selection = select_answers(evaluation, WantedSelection(random=MOST_TASKS, suspicions=()))
    criteria = make_criteria(evaluation, selection.metrics, {}, scale, ())[0]
    sheet = build_sheet(evaluation, selection.chosen, criteria, results=record.title)
    return _Work(record.id, evaluation, sheet, {task.id: task for task in sheet.tasks})


def _describe(label: Label) -> dict[str, Any]:
    """A label as the page has it."""
    value = label.value if not label.is_yes_no else "yes" if label.value else "no"
    return {"value": value, "time": label.time, "comment": label.comment, "saw_judge": label.saw_judge}
