"""A finished test set, the corpus that it is made from, its rows, and its split.

The rows are a JSON Lines file that the dataset `jsonl` reads without any mapping, and the tables of a collection. A
split divides the questions into a validation and a test set so that no document is in both.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rageval_spec.data.tables import Collection, references_of
from rageval_spec.dataclass import asdict, dataclass, field
from rageval_spec.errors import UsageError
from rageval_spec.generation.chunks import TOO_NEAR, Chunk, cut_documents, find_pairs, make_search
from rageval_spec.generation.documents import DocumentSet, SourceDocument, read_documents
from rageval_spec.generation.question_mix import Mix
from rageval_spec.generation.question_production import Candidate, Corpus, QuestionMaker
from rageval_spec.judging.cosine_scale import find_scale
from rageval_spec.libraries import pl
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    from rageval_spec.plugin import Context, EmbeddingModel
    from rageval_spec.reading.column_names import CorpusColumns


Row = dict[str, Any]
COLUMNS = (
    "relevant_chunks", "relevant_documents", "evidence", "type", "kind", "difficulty", "asked_difficulty", "style",
    "language", "ranks", "sources", "made",
)  # fmt: skip
"""The keys of a row that are no part of every dataset: its question's other columns."""


@dataclass(frozen=True)
class GenerationOrigin:
    """How a test set was made: its documents by id, and what every row says about it."""

    documents: Mapping[str, SourceDocument]
    made: Mapping[str, Any]


def write_row(one: Candidate, origin: GenerationOrigin) -> Row:
    is_answerable = one.slot.kind != "unanswerable"
    chunks = one.chunks if is_answerable else ()
    return {
        "query_id": one.query_id,
        "question": one.question,
        "reference": one.answer if is_answerable else None,
        "answerable": is_answerable,
        "relevant": write_passages((one.chunks[place], start, end) for place, start, end in one.spans)
        if chunks
        else [],
        "relevant_chunks": [chunk.chunk_id for chunk in chunks],
        "relevant_documents": list(dict.fromkeys(chunk.doc_id for chunk in chunks)),
        "reference_contexts": [chunk.text for chunk in chunks],
        "evidence": [write_quote(one.chunks[place], start, end) for place, start, end in one.spans],
        "type": one.slot.type,
        "kind": one.slot.kind,
        "difficulty": one.difficulty,
        "asked_difficulty": one.slot.difficulty,
        "style": one.slot.style,
        "language": one.language or None,
        "ranks": dict(one.ranks),
        "sources": write_sources(origin.documents[doc_id] for doc_id in dict.fromkeys(c.doc_id for c in one.chunks)),
        "made": {**origin.made, "slot": one.slot.number, "attempt": one.attempt + 1},
    }


def write_rejected(one: Candidate) -> Row:
    draft = one.draft
    return {
        "reason": one.reason,
        "detail": one.detail,
        "question": one.question or None,
        "reference": one.answer or None,
        "quotes": [quote for _, quote in draft.quotes] if draft else [],
        "chunks": [chunk.chunk_id for chunk in one.chunks],
        "type": one.slot.type,
        "kind": one.slot.kind,
        "asked_difficulty": one.slot.difficulty,
        "style": one.slot.style,
        "language": one.language or None,
        "ranks": dict(one.ranks),
        "slot": one.slot.number,
        "attempt": one.attempt + 1,
        "reply": one.raw,
    }


def write_chunk(chunk: Chunk, document: SourceDocument) -> Row:
    return {
        "doc_id": chunk.chunk_id,
        "title": write_title(chunk, document),
        "text": chunk.text,
        "document": chunk.doc_id,
        "start": chunk.start,
        "end": chunk.end,
    } | ({} if chunk.page is None else {"page": chunk.page})


def write_title(chunk: Chunk, document: SourceDocument) -> str:
    """The title of a chunk: that of its document, with the headings that it stands under."""
    return " > ".join(dict.fromkeys(line for line in (document.title, *chunk.headings) if line.strip()))


def write_quote(chunk: Chunk, start: int, end: int) -> Row:
    """A part of a chunk with its offsets in it and in the document: `text[start:end] == quote`."""
    return {
        "quote": chunk.text[start:end],
        "chunk": chunk.chunk_id,
        "start": start,
        "end": end,
        "document": chunk.doc_id,
        "document_start": chunk.start + start,
        "document_end": chunk.start + end,
    }


def write_passages(spans: Iterable[tuple[Chunk, int, int]]) -> list[Row]:
    """Parts of chunks, by their offsets there, as passages of their documents, which stay if documents are cut anew."""
    written = (write_quote(*span) for span in spans)
    passages = {(one["document"], one["document_start"], one["document_end"]): one["quote"] for one in written}
    return [
        {"document": name, "start": start, "end": end, "quote": text} for (name, start, end), text in passages.items()
    ]


def list_chunks(row: Mapping[str, Any]) -> list[str]:
    """The ids of the chunks that answer a question. Sets that were stored earlier have them as `relevant`."""
    found: list[str] = row["relevant_chunks"] if "relevant_chunks" in row else row["relevant"]
    return found


def write_sources(documents: Iterable[SourceDocument]) -> list[Row]:
    """The documents that a question is made from, with their versions."""
    return [{"document": one.doc_id, "title": one.title, "version": one.version} for one in documents]


FORMAT = 1


_FAR = 0.05
"""A share that is off by more than this part of all questions, and by more than one question, is worth a word."""


@dataclass(frozen=True)
class KindShare:
    """How many questions of one sort there are, and how many there should be."""

    column: str
    name: str
    made: int
    wanted: float

    def is_far(self, questions: int) -> bool:
        """Whether it is so far off in a set of so many questions that a reader should know."""
        return abs(self.made - self.wanted) > max(1.0, _FAR * questions)

    def describe(self) -> str:
        """`difficulty hard: only 2 instead of 18`."""
        made = f"{'only ' if self.made < self.wanted else ''}{self.made:,}" if self.made else "none"
        return f"{self.column} {self.name}: {made} instead of {self.wanted:,.0f}"


@dataclass(frozen=True)
class GeneratedTestSet:
    """A test set: its rows, those of questions that failed a check, and why it has fewer questions than were ordered.

    `stopped` says why it is not finished; None if it is.
    """

    rows: Sequence[Row]
    rejected: Sequence[Row] = ()
    shortages: Sequence[str] = ()
    stopped: str | None = None

    @classmethod
    def of(cls, made: QuestionMaker, origin: GenerationOrigin) -> GeneratedTestSet:
        rows, rejected = (write_row(one, origin) for one in made.accepted), map(write_rejected, made.rejected)
        return cls(tuple(rows), tuple(rejected), tuple(made.shortages), made.stopped)

    @property
    def reasons(self) -> Mapping[str, int]:
        counts = Counter(row["reason"] for row in self.rejected)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def count_shares(self, mix: Mix) -> list[KindShare]:
        """The made and the wanted number of questions of each type, difficulty, style and kind.

        Difficulties are counted as they were measured, over the questions that have an answer.
        """
        shares = mix.shares
        columns = ["type", "difficulty", "kind", *(["style"] if len(shares["style"]) > 1 else [])]
        found = list[KindShare]()
        for column in columns:
            counted = [row[column] for row in self.rows if row[column] is not None]
            made, wanted = Counter(counted), shares[column]
            found += [KindShare(column, name, made[name], wanted[name] * len(counted) / 100) for name in wanted]
            found += [KindShare(column, name, made[name], 0.0) for name in sorted(made.keys() - wanted.keys())]
        return found

    def list_differences(self, mix: Mix) -> list[str]:
        """What is not as it was ordered: missing questions, and shares that are far from the wanted ones."""
        far = [share.describe() for share in self.count_shares(mix) if share.is_far(len(self.rows))]
        mixed = [f"their mix is not as ordered: {'; '.join(far)}"] if far else []
        return [*map(_tell_shortage, self.shortages), *mixed]

    def pack(self) -> bytes:
        content = {"format": FORMAT, **asdict(self)}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    @classmethod
    def unpack(cls, content: bytes) -> GeneratedTestSet | None:
        """A stored test set; None if it is damaged or of another format."""
        try:
            parts = json.loads(content)
            if parts.pop("format") != FORMAT:
                return None
            return cls(**parts)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _tell_shortage(shortage: str) -> str:
    what, _, why = shortage.partition(": ")
    return f"{what} {'is' if what.startswith('1 ') else 'are'} missing: {why}"


@dataclass(frozen=True)
class DocumentSource:
    """The documents of a test set, read when they are first needed and cut into chunks of `size` words."""

    path: Path
    columns: CorpusColumns
    size: int
    _context: Context = field(repr=False)

    @cached_property
    def documents(self) -> DocumentSet:
        return read_documents(self.path, self.columns)

    @cached_property
    def chunks(self) -> list[Chunk]:
        return cut_documents(self.documents.documents, self.size)

    @cached_property
    def origin(self) -> Mapping[str, Any]:
        return {document.doc_id: document for document in self.documents.documents}

    def list_rows(self) -> list[Row]:
        return [write_chunk(chunk, self.origin[chunk.doc_id]) for chunk in self.chunks]

    def tabulate(self) -> pl.DataFrame:
        return _tabulate(self.list_rows(), _CORPUS)

    def tabulate_documents(self) -> pl.DataFrame:
        return _tabulate([one._asdict() for one in self.documents.documents], _CORPUS)

    def prepare(self, model: EmbeddingModel[Any] | None, depth: int) -> Corpus:
        """The corpus to make questions from. Chunks are embedded when groups of them are first asked for."""
        name = None if model is None else model.context.name

        def pair(count: int) -> list[tuple[int, int]]:
            if model is None or len(self.chunks) < 2:
                return find_pairs(self.chunks, None, count)
            vectors = model.embed([chunk.text for chunk in self.chunks], "document").vectors
            return find_pairs(self.chunks, vectors, count, find_scale(model).find_cosine(TOO_NEAR))

        titles = {one.doc_id: one.title for one in self.documents.documents}
        return Corpus(self.chunks, titles, pair, make_search(self.tabulate(), name, depth, self._context))


_CORPUS = {"doc_id": "doc_id", "title": "title", "text": "text"}
_ABOUT = ("by", "model", "checker", "judge", "seed")


def collect(name: str, made: GeneratedTestSet, source: DocumentSource, *, by_document: bool) -> Collection:
    """The collection of a test set. Its corpus, read when needed, is documents if `by_document`, otherwise chunks."""
    rows = made.rows
    return Collection(
        name=name,
        load_qrels=partial(_tabulate_qrels, rows, "relevant_documents" if by_document else "relevant_chunks"),
        load_queries=partial(_tabulate, rows, {"query_id": "query_id", "text": "question"}),
        load_corpus=source.tabulate_documents if by_document else source.tabulate,
        load_references=partial(_tabulate_references, rows),
        load_columns=partial(_tabulate_columns, rows),
        load_about=partial(describe_rows, rows),
    )


def describe_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What results say about a test set: how it was made, and the versions of the documents that it asks about."""
    made: Mapping[str, Any] = next((row["made"] for row in rows if "made" in row), {})
    sources = {one["document"]: one["version"] for row in rows for one in row.get("sources", ())}
    told = ", ".join(f"{key} {made[key]}" for key in _ABOUT[1:] if key in made)
    return {"made": f"generated by {made['by']}: {told}", "reviewed": 0, "documents": sources} if made else {}


def suppose(count: int) -> GeneratedTestSet:
    rows = [
        {
            "query_id": f"supposed-{number}",
            "question": f"What is question {number}, which is not written yet, going to ask?",
            "reference": "A sentence of a reference answer that is yet to come.",
            "reference_contexts": ["A supposed context. " * 50],
            "answerable": True,
            "relevant": ["supposed"],
            "relevant_documents": ["supposed"],
        }
        for number in range(1, count + 1)
    ]
    return GeneratedTestSet(rows)


def _tabulate(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> pl.DataFrame:
    content = [tuple(row[key] for key in names.values()) for row in rows]
    return pl.DataFrame(content, schema=dict.fromkeys(names, pl.String), orient="row")


def _tabulate_qrels(rows: Sequence[Mapping[str, Any]], key: str) -> pl.DataFrame:
    found = ((row["query_id"], list_chunks(row) if key == "relevant_chunks" else row[key]) for row in rows)
    content = [(query_id, doc_id, 1) for query_id, ids in found for doc_id in ids]
    schema = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    return pl.DataFrame(content, schema=schema, orient="row")


def _tabulate_references(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    parts = ("query_id", "reference", "reference_contexts", "answerable")
    told = ([row[part] for part in parts] for row in rows)
    return references_of((name, [gold] if gold else [], texts, known, None, None) for name, gold, texts, known in told)


def _tabulate_columns(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame | None:
    from rageval_spec.reading.question_files import other_columns_table

    return other_columns_table(((row["query_id"], row) for row in rows), [name for name in COLUMNS if name in rows[0]])


SIDES = ("validation", "test")
SplitUnit = Literal["document", "question"]
"""What a split keeps whole: documents, so that none is in both sets; or only questions, with documents in both."""
_FROM = "document: "
_SIZE_COUNTS = 5
"""How many times as much the size of a set counts as one kind of questions in it."""


_FAR_INSIDE = 0.1
"""The same for the share of a type or a difficulty inside a set."""


class Sourced(NamedTuple):
    """A question as a split sees it: the documents that it comes from, and what it is like, such as `type: cloze`."""

    documents: tuple[str, ...]
    kinds: tuple[str, ...] = ()


class Split(NamedTuple):
    """The set of each question, and a sentence for each thing that could not be as wanted."""

    sides: tuple[str, ...]
    remarks: tuple[str, ...]


def read_shares(text: str) -> Mapping[str, float]:
    """The shares of validation and test that `30:70` means; they add up to 1."""
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != len(SIDES) or not all(0 < number < float("inf") for number in numbers):
        raise UsageError(f"a split is the shares of validation and test, such as 30:70, not {text!r}")
    return dict(zip(SIDES, (number / sum(numbers) for number in numbers), strict=True))


def split_questions(questions: Sequence[Sourced], shares: Mapping[str, float]) -> Split:
    """Divide questions in these shares, which add up to 1, with the same mix of kinds in each set.

    Questions that share a document, directly or through a third question, stay together. The largest such groups are
    placed first, each where it brings sizes and mixes closest to what is wanted. The order of the questions does not
    matter.
    """
    groups = _join(questions)
    kinds = [Counter(kind for place in group for kind in ("", *questions[place].kinds)) for group in groups]
    total = sum(kinds, Counter[str]())
    wanted = {side: {kind: share * count for kind, count in total.items()} for side, share in shares.items()}
    found: dict[str, Counter[str]] = {side: Counter() for side in shares}

    def weigh(side: str, added: Mapping[str, int]) -> float:
        """How much further the set is from what is wanted with these questions. The kind "" counts all."""
        return sum(
            (1 if kind else _SIZE_COUNTS) * ((now + count - aim) ** 2 - (now - aim) ** 2) / max(aim, 0.5)
            for kind, count in added.items()
            for now, aim in ((found[side][kind], wanted[side][kind]),)
        )

    sides = [""] * len(questions)
    for group, added in zip(groups, kinds, strict=True):
        chosen = min(shares, key=lambda side, added=added: weigh(side, added))  # type: ignore[misc]
        found[chosen].update(added)
        for place in group:
            sides[place] = chosen
    return Split(tuple(sides), tuple(_remark(found, wanted, len(groups[0]) if groups else 0)))


def divide_rows(
    rows: Sequence[Mapping[str, Any]], text: str, by: SplitUnit = "document"
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of a test set with the column `split`, and a sentence for each thing that could not be as wanted.

    Types and difficulties are balanced. A row says in `sources` which documents it comes from. By `document`, none
    is in both sets; by `question`, each set has the same share of each document's questions.
    """
    shares = read_shares(text)
    sourced = []
    for row in rows:
        documents = tuple(source["document"] for source in row["sources"])
        kinds = tuple(f"{key}: {row[key]}" for key in ("type", "difficulty") if row.get(key))
        apart = (*kinds, *(f"{_FROM}{document}" for document in dict.fromkeys(documents)))
        sourced.append(Sourced(documents, kinds) if by == "document" else Sourced((), apart))
    found = split_questions(sourced, shares)
    return [{**row, "split": side} for row, side in zip(rows, found.sides, strict=True)], found.remarks


def _join(questions: Sequence[Sourced]) -> list[list[int]]:
    """The positions of questions that must stay together, the largest groups first."""
    above: dict[str, str] = {}

    def find(document: str) -> str:
        while above.setdefault(document, document) != document:
            above[document] = above[above[document]]
            document = above[document]
        return document

    for question in questions:
        for document in question.documents[1:]:
            first, second = sorted((find(question.documents[0]), find(document)))
            above[second] = first
    groups: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        # A question without a document belongs to no group; the space cannot begin a document's id of the others.
        groups[find(question.documents[0]) if question.documents else f"\0{place}"].append(place)
    return [groups[name] for name in sorted(groups, key=lambda name: (-len(groups[name]), name))]


def _remark(
    found: Mapping[str, Counter[str]], wanted: Mapping[str, Mapping[str, float]], largest: int
) -> Iterable[str]:
    total = sum(counts[""] for counts in found.values())
    for side, aims in wanted.items():
        size, aim = found[side][""], aims.get("", 0)
        if abs(size - aim) > max(1, _FAR * total):
            why = f"{largest:,} questions share documents, and no document may be in both sets"
            yield f"{side} has {count_noun(size, 'question')} instead of {aim:.0f}: {why}"
    for side, counts in found.items():
        size = counts[""]
        for kind, aim in sorted(wanted[side].items()):
            share = aim / wanted[side][""] if kind else 0
            if kind and not kind.startswith(_FROM) and abs(counts[kind] - share * size) > max(1, _FAR_INSIDE * size):
                shown = (format_percent(part) for part in (counts[kind] / size, share))
                yield "{side} has {} {kind} instead of {}".format(*shown, side=side, kind=kind)
