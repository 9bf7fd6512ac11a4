"""Nuggets: the facts that a good answer has, and banks of them, one for each question.

Voorhees, Overview of the TREC 2003 question answering track: a vital nugget must be in a good answer, an okay one is
worth having. A nugget can be a question with answers, as in ARGUE (Mayfield et al., On the evaluation of
machine-generated reports, SIGIR 2024): with OR one answer is enough, with AND all must be there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError

Importance: TypeAlias = Literal["vital", "okay"]
Assignment: TypeAlias = Literal["support", "partial_support", "not_support"]
"""How far an answer has a nugget: in full, in part or not."""
Aggregator: TypeAlias = Literal["AND", "OR"]
NUGGETS = "nuggets"
"""The column of a question's nuggets, and the key of a file with them."""


@dataclass(frozen=True, slots=True)
class Nugget:
    """One fact that a good answer has.

    Attributes:
        text: the fact, or a question that an answer must answer.
        id: what names it within its bank; by default its number, from 1.
        documents: the ids of the documents that it was taken from.
        answers: what answers the question, if the text is one.
        aggregator: whether all of the answers must be there, or one is enough.
    """

    text: str
    importance: Importance = "vital"
    id: str = ""
    documents: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    aggregator: Aggregator = "OR"

    @property
    def statements(self) -> tuple[str, ...]:
        """What an answer must say, one by one: the text, or the question with each of its answers."""
        return tuple(f"{self.text} {answer}" for answer in self.answers) or (self.text,)

    def combine(self, found: Sequence[Assignment]) -> Assignment:
        """How far an answer has the nugget, by how far it has each of `statements`."""
        if self.aggregator == "OR" or len({*found}) == 1:
            return min(found, key=_ORDER.index)
        return "not_support" if {*found} == {"not_support"} else "partial_support"

    def dump(self) -> dict[str, Any]:
        """The nugget as `parse_nuggets` reads it, in JSON types, without what is unknown."""
        known = {"documents": [*self.documents], "answers": [*self.answers]}
        more = {key: value for key, value in known.items() if value}
        return {"id": self.id, "text": self.text, "importance": self.importance} | more | (
            {"aggregator": self.aggregator} if self.answers else {}
        )  # fmt: skip


_ORDER: Sequence[Assignment] = get_args(Assignment)


@dataclass(frozen=True, slots=True)
class NuggetBank:
    """The nuggets of one question."""

    query_id: str
    question: str
    nuggets: tuple[Nugget, ...]


_IMPORTANCES: Mapping[str, Importance] = {"vital": "vital", "okay": "okay"}
_AGGREGATORS: Mapping[str, Aggregator] = {"AND": "AND", "OR": "OR"}
_TEXTS = ("text", "claim", "question", "nugget")
_IDS = ("id", "claim_id", "question_id", "nugget_id")
_READ = ("importance", "answers", "aggregator", "documents", "references")
_KNOWN = frozenset({*_READ, *_TEXTS, *_IDS, "aggregator_type", "assignment", "answer", "reference", "document"})
_ADVICE = 'a nugget is a text, or an object such as {"text": "...", "importance": "vital"}'


def parse_nuggets(value: object, where: str) -> tuple[Nugget, ...]:
    """The nuggets in a list of texts and objects, or in the text of such a list; a text alone is a vital nugget.

    The objects can be those of nuggetizer, of TREC AutoJudge or of `Nugget.dump`. What an answer was found to have
    (`assignment`) is not read.

    Raises:
        DataError: a nugget cannot be used; the message begins with `where` and has its number, from 0.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise DataError(f"{where} is text that is not a JSON list; {_ADVICE}") from error
    if not isinstance(value, Sequence):
        raise DataError(f"{where} must be a list; {_ADVICE}")
    found, seen = list[Nugget](), dict[tuple[str, ...], int]()
    for number, one in enumerate(value):
        place = f"{where}[{number}]"
        nugget = _parse_nugget(one, place)
        nugget = replace(nugget, id=nugget.id or str(number + 1))
        for what, key in (("id", ("id", nugget.id)), ("text", ("text", nugget.text))):
            if (first := seen.setdefault(key, number)) != number:
                raise DataError(f"{place} has the same {what} as number {first}; remove one of the two")
        found.append(nugget)
    return tuple(found)


def _parse_nugget(one: object, place: str) -> Nugget:
    if isinstance(one, str):
        one = {"text": one}
    if not isinstance(one, Mapping):
        raise DataError(f"{place} is {json.dumps(one, default=str)[:60]}; {_ADVICE}")
    if one.get("sub_nuggets"):
        raise DataError(f"{place} has 'sub_nuggets', which are not read; list them as nuggets of their own")
    text = next((one[key] for key in _TEXTS if isinstance(one.get(key), str)), "").strip()
    if not text:
        raise DataError(f"{place} has no text; {_ADVICE}")
    if not any(map(str.isalnum, text)):
        raise DataError(f"{place} is {text!r}, which has no word; write a fact, or remove it")
    _check_keys(one, place)
    name = next((one[key] for key in _IDS if isinstance(one.get(key), str | int)), "")
    answers = [*_list_answers(one.get("answers"), f"{place}.answers")]
    documents = [*_list_ids(one.get("documents") or one.get("references"), place)]
    documents += [doc_id for _, of in answers for doc_id in of]
    said, combined = one.get("importance"), one.get("aggregator", one.get("aggregator_type"))
    if (importance := _IMPORTANCES.get("vital" if said is None else str(said).strip().lower())) is None:
        raise DataError(f"{place} has the importance {said!r}; write vital or okay")
    if (aggregator := _AGGREGATORS.get("OR" if combined in (None, "Default") else str(combined).upper())) is None:
        raise DataError(f"{place} combines its answers by {combined!r}; only AND and OR are known")
    texts = tuple(dict.fromkeys(answer for answer, _ in answers))
    return Nugget(text, importance, str(name), tuple(dict.fromkeys(documents)), texts, aggregator)


def _check_keys(one: Mapping[str, Any], place: str) -> None:
    """Refuse a misspelt key: it would silently make a nugget vital, or drop its answers."""
    absent = [key for key in _READ if key not in one]
    for key in one:
        if key not in _KNOWN and (hint := suggest(str(key), absent, cutoff=0.8)):
            raise DataError(f"{place} has the unknown key '{key}'; {hint}")


def _list_answers(value: object, place: str) -> Iterator[tuple[str, list[str]]]:
    """Each answer of a nugget, and the documents that have it."""
    if isinstance(value, Mapping):  # TREC AutoJudge: by the text of the answer
        value = [{"answer": text, **(one if isinstance(one, Mapping) else {})} for text, one in value.items()]
    if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise DataError(f"{place} must be a list of texts")
    for number, one in enumerate(value or ()):
        said = one.get("answer") if isinstance(one, Mapping) else one
        if not isinstance(said, str) or not said.strip():
            raise DataError(f"{place}[{number}] has no text")
        yield said.strip(), [*_list_ids(one.get("references") if isinstance(one, Mapping) else None, place)]


def _list_ids(value: object, place: str) -> Iterator[str]:
    """The ids of documents: a list of ids, or of objects with a `doc_id`."""
    if value is not None and (isinstance(value, str) or not isinstance(value, Sequence)):
        raise DataError(f"{place}: its documents must be a list of ids")
    for one in value or ():
        name = one.get("doc_id") if isinstance(one, Mapping) else one
        if not isinstance(name, str | int) or name == "":
            raise DataError(f"{place}: a document must be an id, not {json.dumps(one, default=str)[:60]}")
        yield str(name)
