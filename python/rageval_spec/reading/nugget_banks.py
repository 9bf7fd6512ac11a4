"""Files with nuggets: one JSON object a line for each question, as nuggetizer and TREC AutoJudge write them.

| form | keys |
|---|---|
| `nuggetizer` | `qid, query, nuggets: [{text, importance, assignment}]` |
| `autojudge` | `query_id, title_query, nugget_bank: {question: {answers, aggregator_type}}, claim_bank: {claim: {}}` |

RAGTIME's banks, with `metadata.topic_id`, are read as those of AutoJudge. What nuggetizer does not have (`id`,
`documents`, `answers`, `aggregator`) are keys that it ignores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rageval_spec.data.evidence.nuggets import NUGGETS, Nugget, NuggetBank, parse_nuggets
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import replace
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.reading.formats.json_files import json_objects, text_of
from rageval_spec.reading.question_files import dump_columns

BankForm: TypeAlias = Literal["nuggetizer", "autojudge"]
_OF_AUTOJUDGE = ("nugget_bank", "claim_bank")


def read_banks(path: Path) -> dict[str, NuggetBank]:
    """The bank of each question, by its id, in the order of the file; plain, `.gz` or `.zst`.

    Raises:
        DataError: a line is no bank, or its question is there twice; the message begins with `file:line`.
    """
    banks, lines = dict[str, NuggetBank](), dict[str, int]()
    for line, row in json_objects(path):
        bank = _parse_bank(row, f"{path}:{line}")
        if (first := lines.setdefault(bank.query_id, line)) != line:
            raise DataError(f"{path}:{line}: the query {bank.query_id!r} is listed twice, first in line {first}")
        banks[bank.query_id] = bank
    return banks


_MOST_CHECKED = 8_000_000


def check_banks(path: Path) -> Iterator[FileFault]:
    """What is wrong with a file of banks; nothing if it is missing or too long to look at quickly."""
    try:
        if path.is_file() and path.stat().st_size <= _MOST_CHECKED:
            read_banks(path)
    except DataError as error:
        yield FileFault((NUGGETS,), str(error), code="unreadable-data")


def check_row(place: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of questions; an error with its place if its nuggets are wrong."""
    if (listed := row.get(NUGGETS)) not in (None, ""):
        parse_nuggets(listed, f"{place}: '{NUGGETS}'")
    return row


def _parse_bank(row: Mapping[str, Any], place: str) -> NuggetBank:
    metadata = row.get("metadata")
    about = metadata if isinstance(metadata, Mapping) else {}
    named = next((row[key] for key in ("qid", "query_id") if row.get(key) is not None), about.get("topic_id"))
    query_id = text_of(place, "the id of the question", "id", named)
    if not query_id:
        raise DataError(f"{place}: no id of a question in 'qid' or 'query_id'")
    question = next((row[key] for key in ("query", "title_query") if isinstance(row.get(key), str)), "")
    return NuggetBank(query_id, question, parse_nuggets(_list_nuggets(row, place), f"{place}: {NUGGETS}"))


def _list_nuggets(row: Mapping[str, Any], place: str) -> Any:
    """The nuggets as the line has them."""
    if any(key in row for key in _OF_AUTOJUDGE):
        return [one for key in _OF_AUTOJUDGE for one in _list_entries(row.get(key), f"{place}: '{key}'")]
    if NUGGETS not in row:
        raise DataError(f"{place}: no nuggets in 'nuggets', 'nugget_bank' or 'claim_bank'")
    return row[NUGGETS]


def _list_entries(value: object, where: str) -> Sequence[Any]:
    """The nuggets of AutoJudge: a list, or an object by their texts."""
    if isinstance(value, Mapping):
        return [*value.values()]
    if value is None or isinstance(value, list):
        return value or []
    raise DataError(f"{where} must be a list or an object")


def write_banks(banks: Iterable[NuggetBank], form: BankForm) -> bytes:
    """The file of the banks. Equal banks give equal bytes."""
    return b"".join(_dump_line(bank, form) for bank in banks)


def _dump_line(bank: NuggetBank, form: BankForm) -> bytes:
    row = _dump_nuggetizer(bank) if form == "nuggetizer" else _dump_autojudge(bank)
    return (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def replace_nuggets(row: Mapping[str, Any], nuggets: Sequence[Nugget], edit: Mapping[str, str]) -> dict[str, Any]:
    """A bank's line with other nuggets, in its form, and with `edit` behind the earlier ones in `metadata.edits`.

    What else the line says is kept, and so is what it says of a nugget that stays as it was.
    """
    before = _parse_bank(row, "")
    pairs = zip(before.nuggets, _list_nuggets(row, ""), strict=True)
    known = {one: raw for one, raw in pairs if isinstance(raw, Mapping)}
    after = NuggetBank(before.query_id, before.question, tuple(nuggets))
    changed: dict[str, Any] = {NUGGETS: [{**known.get(one, {}), **one.dump()} for one in nuggets]}
    if any(key in row for key in _OF_AUTOJUDGE):
        names = {one.text: "question_id" if one.answers else "claim_id" for one in nuggets}
        kept = {one.text: {**known[one], names[one.text]: one.id} for one in nuggets if one in known}
        banks = {key: of for key, of in _dump_autojudge(after).items() if key in _OF_AUTOJUDGE}
        changed = {key: {text: kept.get(text, entry) for text, entry in of.items()} for key, of in banks.items()}
    about = row["metadata"] if isinstance(row.get("metadata"), Mapping) else {}
    return {**row, **changed, "metadata": {**about, "edits": [*(about.get("edits") or ()), dict(edit)]}}


def _dump_nuggetizer(bank: NuggetBank) -> dict[str, Any]:
    return {"qid": bank.query_id, "query": bank.question, NUGGETS: [one.dump() for one in bank.nuggets]}


def _dump_autojudge(bank: NuggetBank) -> dict[str, Any]:
    questions = {one.text: _dump_entry(one, bank.query_id, "question") for one in bank.nuggets if one.answers}
    claims = {one.text: _dump_entry(one, bank.query_id, "claim") for one in bank.nuggets if not one.answers}
    about = {"query_id": bank.query_id, "title_query": bank.question, "format_version": "v3"}
    return about | {"nugget_bank": questions, "claim_bank": claims}


def _dump_entry(nugget: Nugget, query_id: str, kind: Literal["question", "claim"]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        kind: nugget.text,
        f"{kind}_id": nugget.id,
        "query_id": query_id,
        "importance": nugget.importance,
    }
    if nugget.documents:
        entry["references"] = [{"doc_id": doc_id} for doc_id in nugget.documents]
    if nugget.answers:
        entry |= {"aggregator_type": nugget.aggregator, "answers": {one: {"answer": one} for one in nugget.answers}}
    return entry


def attach_banks(collection: Collection, path: Path) -> Collection:
    """The collection, whose questions also have the nuggets of a file. The file is read when they are needed.

    Raises:
        DataError: then, if the file cannot be read, has no bank of any question, or a question has nuggets of its own.
    """
    return replace(collection, load_columns=partial(_add_nuggets, path, collection))


def _add_nuggets(path: Path, collection: Collection) -> pl.DataFrame:
    banks, asked = read_banks(path), collection.questions
    known = {} if asked is None else dict.fromkeys(asked["query_id"].unique(maintain_order=True), "{}")
    known |= {} if collection.columns is None else dict(collection.columns.iter_rows())
    found = {query_id: bank for query_id, bank in banks.items() if query_id in known}
    if not found:
        shown = f"{next(iter(banks))!r} in the file, {next(iter(known), '')!r} in the dataset"
        raise DataError(f"{path}: none of its questions is in the dataset; compare the ids: {shown}")
    for query_id, bank in found.items():
        values = json.loads(known[query_id])
        if values.get(NUGGETS):
            raise DataError(f"the query {query_id!r} has nuggets in its column '{NUGGETS}' and in {path}; remove one")
        known[query_id] = dump_columns(values | {NUGGETS: [one.dump() for one in bank.nuggets]})
    return pl.DataFrame([*known.items()], schema={"query_id": pl.String, "columns": pl.String}, orient="row")
