"""The questions that a dataset has for a system, and the results of asking them.

Texts with variables in double braces tell a system about a query.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.diagnostics import FileFault, make_visible, suggest
from rageval_spec.endpoints.tries import TryError
from rageval_spec.libraries import compile_later
from rageval_spec.recorded.answers_and_steps import AnswerRow
from rageval_spec.recorded.messages import MESSAGES, list_until_question, read_turns, write_turn

if TYPE_CHECKING:
    from rageval_spec.data.tables import Collection


VARIABLES = ("question", "query_id", "contexts", "messages", "history")
"""What a system may get of a query besides its columns. `contexts` are the dataset's reference contexts,
`messages` is the conversation up to the question, and `history` is the same without the question."""
ASKING = frozenset({"question", "query_id", "messages"})
"""Variables of which a system must get one to know the question."""
_VARIABLE = compile_later(r"\{\{\s*([^{}]*?)\s*\}\}")
_MOST_VARIABLES_SHOWN = 12

Variables = Mapping[str, Any]


def list_variables(template: Any) -> set[str]:
    """The names in double braces in all texts of a template, at any depth: of `VARIABLES`, or of columns."""
    names = {name for _, text in _texts_of(template) for name in _VARIABLE.findall(text)}
    if "" in names:
        raise ValueError(f"'{{{{ }}}}' holds no name; write one of {', '.join(VARIABLES)}, or a column's name")
    return names


def find_unknown(template: Any, key: str, columns: Sequence[str]) -> Iterator[FileFault]:
    """A fault for each variable that is neither in `VARIABLES` nor one of the questions' columns.

    `key` is the key of the node that holds the template.
    """
    known = (*VARIABLES, *(name for name in columns if name not in VARIABLES))
    for path, text in _texts_of(template):
        for name in dict.fromkeys(_VARIABLE.findall(text)):
            if name not in known:
                near = suggest(name, known)
                hint = f"{near} The variables are" if near else "the variables are"
                listed = ", ".join([*known[:_MOST_VARIABLES_SHOWN], *["..."] * (len(known) > _MOST_VARIABLES_SHOWN)])
                yield FileFault((key, *path), f"unknown variable {name!r}", f"{hint} {listed}", "unknown-variable")


def fill_in(template: Any, told: Variables) -> Any:
    """Fill in the variables of a template. A text that is only a variable becomes its value, which may be a list."""
    if isinstance(template, dict):
        return {
            fill_in(key, told) if isinstance(key, str) else key: fill_in(value, told) for key, value in template.items()
        }
    if isinstance(template, (list, tuple)):
        return [fill_in(item, told) for item in template]
    if not isinstance(template, str):
        return template
    whole = _VARIABLE.fullmatch(template)
    if whole is not None:
        return told[whole[1]]
    return _VARIABLE.sub(lambda match: write_value(told[match[1]]), template)


def write_value(value: Any) -> str:
    """A variable inside a text: texts as they are, several with an empty line between them, null as nothing.

    A conversation becomes a transcript. Numbers, booleans and anything else are written as JSON.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return "\n\n".join(value)
    if (turns := read_turns(value) if isinstance(value, (list, tuple)) else None) is not None:
        return "\n".join(map(write_turn, turns))
    return json.dumps(value, ensure_ascii=False)


def _texts_of(template: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each text, with the keys and indexes that lead to it."""
    if isinstance(template, str):
        yield path, template
    elif isinstance(template, dict):
        for key, value in template.items():
            yield from _texts_of(key, (*path, key))
            yield from _texts_of(value, (*path, key))
    elif isinstance(template, (list, tuple)):
        for index, item in enumerate(template):
            yield from _texts_of(item, (*path, index))


_MOST_SHOWN = 500
_CONVERSATION = (MESSAGES, "history")


@dataclass(eq=False)
class AskError(TryError):
    """A question was not answered; the message is kept on one line and shortened if it is long.

    Attributes:
        reply: the reply, if a later evaluation may be able to parse it; otherwise None.
        seconds: how long the try took.
    """

    reply: bytes | None = field(default=None, kw_only=True)
    seconds: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Shorten the message."""
        shown = make_visible(self.message.strip())
        self.message = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "..."
        self.is_about_request = not self.is_temporary


class Received(NamedTuple):
    """An answer, and the reply it was parsed from if a later evaluation may parse it differently."""

    row: AnswerRow
    reply: bytes | None = None


@dataclass(frozen=True, slots=True)
class SystemQuestion:
    """What a system gets, and its digest."""

    digest: bytes
    told: Variables


def list_questions(
    reader: str,
    collection: Collection,
    wanted: frozenset[str],
    dispensable: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, SystemQuestion | AnswerRow]]:
    """Yield each query's id and its question, or an error row if the query lacks a required variable.

    Variables that are `dispensable` are left out of a question if the query does not have them. `reader` names the
    system in the message that the collection has no queries.
    """
    queries = collection.require("queries", reader)
    references = collection.references if "contexts" in wanted else None
    contexts = {} if references is None else dict(references.select("query_id", "reference_contexts").iter_rows())
    named = sorted(wanted - {*VARIABLES})
    table = collection.columns if named or wanted & {*_CONVERSATION} else None
    columns = {} if table is None else dict(table.select("query_id", "columns").iter_rows())
    for query_id, text in queries.select("query_id", "text").iter_rows():
        row = json.loads(columns.get(query_id, "{}"))
        name, _, number = query_id.rpartition("#") if collection.repeat > 1 else (query_id, "", "1")
        known = {"question": text, "query_id": name, "contexts": contexts.get(query_id), **_converse(row, text)}
        left_out = {name for name in dispensable if known[name] is None}
        left_out |= dispensable & {*([] if known["history"] else _CONVERSATION)}
        told = {name: known[name] for name in VARIABLES if name in wanted - left_out}
        told |= {name: row[name] for name in named if name in row}
        lack = _explain_lack(told, named)
        asked = SystemQuestion(digest_of(told, int(number)), told)
        yield query_id, asked if lack is None else AnswerRow(error=f"was not asked: {lack}")


def _converse(row: Mapping[str, Any], question: str) -> dict[str, Any]:
    """The conversation up to the question, and the same without it. A column of other content stays as it is."""
    turns = read_turns(row.get(MESSAGES))
    told = [{"role": "user", "content": question}] if turns is None else list(list_until_question(turns))
    is_other = turns is None and row.get(MESSAGES) is not None
    return {MESSAGES: row[MESSAGES] if is_other else told, "history": row.get("history", told[:-1])}


def _explain_lack(told: Variables, named: Sequence[str]) -> str | None:
    """What a query lacks that the system must get; None if it lacks nothing."""
    if told.get("contexts", ()) is None:
        return "the dataset has no reference contexts for this query"
    absent = [name for name in named if name not in told]
    return f"the query has no column {absent[0]!r}" if absent else None


def digest_of(told: Variables, number: int = 1) -> bytes:
    """The SHA-256 of what a system gets for the nth time. Its answer is stored under this and the system's key."""
    text = json.dumps(told, sort_keys=True) + (f"#{number}" if number > 1 else "")
    return hashlib.sha256(text.encode()).digest()


def complete(row: AnswerRow, told: Variables) -> AnswerRow:
    """Fill in the contexts of an answer that names none with those that the system got."""
    given = told.get("contexts") if row.contexts is None else row.contexts
    return replace(row, contexts=None if given is None else tuple(given))
