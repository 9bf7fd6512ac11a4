"""The names that columns can have: known ones, those that a spec gives, and words that show what a column has.

The known names are those of ragas (old and new), DeepEval (both spellings) and common question answering sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rageval_spec.libraries import compile_later
from rageval_spec.recorded.json_path import parse_path

Kind = Literal["id", "text", "number"]


class RecordColumn(NamedTuple):
    """A column to read.

    Attributes:
        name: what it is called in the records.
        known: the names it may have in the file; the first one present is used.
        kind: an id is text or an integer.
        required: whether a file without it is refused. If not, the column is all null.
        advice: what else helps if the column is missing; for messages.
        mapped: whether the spec gives its name.
        setting: the keys of the spec that lead to its name: `("columns", "queries")`.
    """

    name: str
    known: tuple[str, ...]
    kind: Kind = "text"
    required: bool = True
    advice: str = ""
    mapped: bool = False
    setting: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the spec that gives its name: `columns.queries.text`."""
        return ".".join((*self.setting, self.name))


QUERIES = (
    RecordColumn("query_id", ("query_id", "_id", "id"), "id"),
    RecordColumn("text", ("text", "query", "question", "user_input")),
)
CORPUS = (
    RecordColumn("doc_id", ("doc_id", "_id", "id", "docid"), "id"),
    RecordColumn("title", ("title",), required=False),
    RecordColumn("text", ("text", "contents", "segment")),
)
CHUNK = (
    CORPUS[0],
    CORPUS[2],
    RecordColumn("document_id", ("document_id", "document"), "id", required=False),
    RecordColumn("start", ("start", "start_index"), "number", required=False),
    RecordColumn("end", ("end", "end_index"), "number", required=False),
)
"""What a corpus of chunks says of each: also its document, and its offsets there."""
QRELS = (
    RecordColumn("query_id", ("query_id", "query-id", "qid"), "id"),
    RecordColumn("doc_id", ("doc_id", "corpus-id", "docid"), "id"),
    RecordColumn("relevance", ("relevance", "score", "label"), "number"),
)
RUN = (
    RecordColumn("query_id", ("query_id", "query-id", "qid"), "id"),
    RecordColumn("doc_id", ("doc_id", "corpus-id", "docid"), "id"),
    RecordColumn("score", ("score",), "number"),
)
QUESTION_IDS = ("query_id", "_id", "id", "question_id", "qid")
"""The names of the ids of questions that are in the same file as their gold answers."""
QUESTIONS = ("query", "question", "text", "user_input", "input", "prompt")
"""The names of the texts of such questions."""
REFERENCES = (
    "reference", "ground_truth", "ground_truths", "expected_output", "expectedOutput", "reference_answer", "answers",
    "expected_answer", "ground_truth_answer", "expected_response",
)  # fmt: skip
"""And `answer`, unless it is a system's answer."""
REFERENCE_CONTEXTS = ("reference_contexts", "ground_truth_contexts")
"""And `context`, unless a system retrieved it."""
RELEVANT = ("relevant", "relevant_doc_ids", "reference_context_ids", "qrels", "chunk_id")
ANSWERABLE, UNANSWERABLE = ("answerable", "is_answerable"), ("unanswerable", "is_impossible")
ANSWERS = ("response", "actual_output", "actualOutput", "prediction", "generated_answer", "output", "completion")
"""And `answer`."""
CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "retrievalContext")
"""And `context`, unless it is a reference context."""
MEASURED = (
    *("latency", "latency_ms", "latencyMs", "seconds", "cost"),
    *("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens"),
)
"""Columns that only files of answers have: what an answer took."""
KNOWN_NAMES = frozenset(
    (*REFERENCES, "answer", *REFERENCE_CONTEXTS, "context", *ANSWERABLE, *UNANSWERABLE, "group", "condition")
)
CONTEXT_IDS = ("context_ids", "retrieved_context_ids")
SCORES = ("context_scores", "retrieved_context_scores", "retrieval_scores", "scores")
"""Beside contexts or their ids. Lists of numbers: `scores` can also be what people or judges said."""
NUMBERS: Mapping[str, tuple[str, ...]] = {
    "seconds": ("seconds", "latency"),
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cost": ("cost",),
    "cache_read_tokens": ("cache_read_tokens", "cached_tokens"),
    "cache_write_tokens": ("cache_write_tokens",),
}
MILLISECONDS = ("latency_ms", "latencyMs")


def _column(what: str, names: RecordColumn | Sequence[str] = (), more: str = "", *, is_later: bool = False) -> Any:
    """A field with the name of a column. `is_later` leaves it out of what is stored if it is not set."""
    quoted = [f"`{name}`" for name in (names.known if isinstance(names, RecordColumn) else names)]
    first = (" or " if isinstance(names, RecordColumn) else ", ").join(quoted[:-1])
    listed = f" Default: {' or '.join(filter(None, (first, quoted[-1])))}{more}." if quoted else ""
    return Field(default=None, description=what + listed, exclude_if=(lambda name: name is None) if is_later else None)


class _Mapping(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _check_path(cls, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            parse_path(value)
        return value

    def over(self, columns: Sequence[RecordColumn], *setting: str) -> tuple[RecordColumn, ...]:
        """The columns; those that this block names are looked up only under that name."""
        return tuple(self._named(column, setting) for column in columns)

    def _named(self, column: RecordColumn, setting: tuple[str, ...]) -> RecordColumn:
        name = getattr(self, column.name, None)
        if name is None:
            return column._replace(setting=setting)
        return column._replace(known=(name,), mapped=True, advice="", setting=setting)


class QueryColumns(_Mapping):
    """The names of the columns of the queries."""

    query_id: str | None = _column("The query's id.", QUERIES[0])
    text: str | None = _column("The query's text.", QUERIES[1])


class CorpusColumns(_Mapping):
    """The names of the columns of the documents."""

    doc_id: str | None = _column("The document's id.", CORPUS[0])
    title: str | None = _column("The document's title, optional.", CORPUS[1])
    text: str | None = _column("The document's text.", CORPUS[2])
    document_id: str | None = _column("Of a chunk, the id of its document, optional.", CHUNK[2], is_later=True)
    start: str | None = _column("Of a chunk, where it begins in its document, in characters.", CHUNK[3], is_later=True)
    end: str | None = _column("Of a chunk, where it ends, half open.", CHUNK[4], is_later=True)


class QrelsColumns(_Mapping):
    """The names of the columns of the relevance judgements."""

    query_id: str | None = _column("The query's id.", QRELS[0])
    doc_id: str | None = _column("The document's id.", QRELS[1])
    relevance: str | None = _column("The relevance, an integer.", QRELS[2])


class RunColumns(_Mapping):
    """The names of the columns of a run."""

    query_id: str | None = _column("The query's id.", RUN[0])
    doc_id: str | None = _column("The document's id.", RUN[1])
    score: str | None = _column("The document's score.", RUN[2])


class QuestionColumns(QueryColumns):
    """The names of the columns of the questions."""

    query_id: str | None = _column("The query's id.", QUESTION_IDS)
    text: str | None = _column("The query's text.", QUESTIONS)
    reference: str | None = _column(
        "The gold answer, or a list of alternatives.", REFERENCES, ", and `answer` unless it is a system's"
    )
    reference_contexts: str | None = _column(
        "The texts that contain the gold answer.", REFERENCE_CONTEXTS, ", and `context` unless a system retrieved it"
    )
    answerable: str | None = _column("Whether the documents contain an answer: true or false.", ANSWERABLE)
    unanswerable: str | None = _column("The opposite of `answerable`.", UNANSWERABLE)
    group: str | None = _column("The group of variants of one question under different conditions.", ("group",))
    condition: str | None = _column("The condition of a question within its group: clean, noisy.", ("condition",))


class AnswerColumns(RunColumns):
    """The names of the columns of a run or of answers."""

    question: str | None = _column(
        "The question, for answers without ids. Default: `question`, `query`, `user_input`, `input`..."
    )
    answer: str | None = _column(
        "The answer. Default: `answer`, `response`, `actual_output`, `actualOutput`, `output`..."
    )
    contexts: str | None = _column(
        "The texts that it is based on: a list of texts, or of objects with `text`, `page_content` or `content`.",
        (*CONTEXTS, "context"),
    )
    context_ids: str | None = _column("The ids of the contexts' documents.", CONTEXT_IDS)
    scores: str | None = _column(
        "The retriever's scores of the contexts: a list of numbers, null for a context without one.",
        SCORES,
        is_later=True,
    )
    seconds: str | None = _column("How long it took, in seconds.", (*NUMBERS["seconds"], MILLISECONDS[0]))
    input_tokens: str | None = _column("Input tokens.", NUMBERS["input_tokens"])
    output_tokens: str | None = _column("Output tokens.", NUMBERS["output_tokens"])
    cost: str | None = _column("The cost in US dollars.", NUMBERS["cost"])
    cache_read_tokens: str | None = _column("Input tokens from the provider's cache.", NUMBERS["cache_read_tokens"])
    cache_write_tokens: str | None = _column(
        "Input tokens written to the provider's cache.", NUMBERS["cache_write_tokens"]
    )
    steps: str | None = _column(
        "What an agent did: calls of tools, what they gave, documents that they retrieved. Default: `steps`, "
        "`intermediate_steps`, `tools_called`, `tool_calls`, `trajectory`, or the calls in `messages`.",
        is_later=True,
    )
    error: str | None = _column("Why there is no answer.", ("error",))


_HUMP = compile_later(r"(?<=[a-z0-9])(?=[A-Z])")


def normalise(name: str) -> str:
    """A name in snake case: `Ground Truth`, `groundTruth` and `ground-truth` are `ground_truth`."""
    return "_".join(_HUMP.sub(" ", name).casefold().replace("-", " ").replace("_", " ").split())


def spell_alike(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with their names in snake case beside their own; a name that is there already keeps its value."""
    return {**{normalise(name): value for name, value in values.items()}, **values}


WORDS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query", "qid", "topic", "nr", "number", "key", "id"),
    "doc_id": ("doc", "document", "page", "passage", "corpus", "chunk", "file", "url", "source"),
    "relevance": ("relevance", "grade", "label", "judgement", "rating", "rel"),
    "score": ("score", "similarity", "distance", "value"),
    "title": ("title", "head", "heading"),
    "text": (
        *("text", "question", "query", "ask", "words", "body", "content"),
        *("frage", "pregunta", "domanda", "pergunta"),
    ),
    "reference": (
        *("reference", "answer", "gold", "truth", "expected", "target", "solution"),
        *("antwort", "respuesta", "r\u00e9ponse", "reponse", "risposta", "resposta"),
    ),
    "answer": (
        *("answer", "response", "output", "reply", "completion", "prediction"),
        *("antwort", "respuesta", "reponse", "text"),
    ),
}
"""Words that column names often contain, by the content of the column."""
_OF_SYSTEMS = frozenset(
    {"bot", "chatbot", "llm", "model", "modell", "gpt", "ai", "ki", "rag", "system", "assistant", "agent", "generated",
     "predicted", "prediction", "response", "output", "completion", "actual", "reply"}
)  # fmt: skip
"""Words of columns that have what a system said."""
_WANTED = frozenset(
    {"expected", "gold", "golden", "ideal", "reference", "truth", "correct", "target", "expert", "human", "annotator"}
)
"""Words of columns that have what a system should have said, or what people said: `expected_output`."""


def says_gold(name: str) -> bool:
    """Whether a column's name says that it has what a system should have said."""
    return not _WANTED.isdisjoint(_split(name))


def is_of_system(name: str) -> bool:
    return not _OF_SYSTEMS.isdisjoint(_split(name)) and not says_gold(name)


def _split(name: str) -> set[str]:
    return {word.removesuffix("s") for word in _list_words(name)}


def _list_words(name: str) -> list[str]:
    words: list[str] = re.findall(r"[^\W\d_]+", normalise(name))
    return words


_GOLD = frozenset({*WORDS["reference"], "golden", "ideal", "correct", "reply", "response", "output"})
_SHORT, _LONG = ("|".join(sorted(word for word in _GOLD if (len(word) > 4) == is_long)) for is_long in (False, True))
_GOLD_NOUN = compile_later(rf"(?:^(?:{_SHORT})|(?:{_LONG}))(?:|s|es|n|en)$")
"""Long ones may end a compound: `goldanswers`, `Musterantwort`."""
_NOT_A_KIND = frozenset({"text", "texts", "value", "values", "string", "content", "standard", "label", "field"})
_ABOUT = frozenset({"is", "has", "num", "n", "no", "by", "at", "id", "nr"})
"""Words that make a column one about answers, and not one of answers: `has_answer`, `answer_id`."""
_PEOPLE = frozenset({"expert", "experts", "human", "humans", "annotator", "annotators", "specialist", "sme"})
_WRITTEN = frozenset({"summary", "version", "wording", "written", "text"})


def may_be_gold(name: str) -> bool:
    """Whether a column of this name may hold gold answers, by the noun that its name ends in.

    `gold_standard`, `answer2` and `answer_de` may, `answer_start`, `has_answer` and `expected_tools` may not.
    """
    words = _list_words(name)
    if not words or words[0] in _ABOUT:
        return False
    if _is_of_people(words):
        return True
    while len(words) > 1 and (words[-1] in _NOT_A_KIND or (len(words[-1]) == 2 and words[-1] not in _ABOUT)):
        words.pop()
    return _GOLD_NOUN.search(words[-1]) is not None


def _is_of_people(words: Sequence[str]) -> bool:
    """Whether the words of a name say that people wrote the text: `summary_by_expert`, but not `checked_by_expert`."""
    *before, last = words
    if last in _PEOPLE and before:
        is_written = before[-1] == "by" and not (len(before) > 1 and before[-2].endswith("ed"))
        return is_written or _GOLD_NOUN.search(before[-1]) is not None
    return words[0] in _PEOPLE and last in _WRITTEN
