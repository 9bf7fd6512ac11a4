"""Chunks: parts of documents of about one size, cut where the text itself has joints, with their places.

Chunks that belong together by what they say are grouped, for questions that need several of them. The product's own
retrievers search the chunks, to see how hard a question's source is to find.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby, zip_longest
from math import log
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from rageval_spec import kernels, registry
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import UsageError
from rageval_spec.generation.document_formats import TextBlock
from rageval_spec.generation.documents import SourceDocument
from rageval_spec.judging.language import NAMES, find_language
from rageval_spec.libraries import compile_later, np, pl
from rageval_spec.plugin import Context, Retrieval, System
from rageval_spec.progress import ignore_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray


WORDS = 200
"""The default size of a chunk in words."""
_SMALL = 4
"""A section of less than this part of the size is joined with a neighbour."""
_LONGEST_WORD = 40
"""A word of more characters counts as several, and is cut where it must be: a key, an address, base64."""
_WORD = compile_later(rf"[^\W_]{{1,{_LONGEST_WORD}}}(?:['’][^\W_]{{1,{_LONGEST_WORD}}})*")
_WIDE = compile_later("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003ffff]")
"""Scripts without spaces between words, in which a word has about two characters."""


class Chunk(NamedTuple):
    """A part of a document.

    Attributes:
        chunk_id: the document's id if the chunk is the whole document; otherwise that id, `#` and a number from 1.
        start, end: its offsets: `document.text[start:end] == text`.
        headings: the headings it stands under, the outermost first.
        page: the page on which it begins, from 1; None if the document has no pages.
    """

    chunk_id: str
    doc_id: str
    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None


class _Piece(NamedTuple):
    """A part of a text that is not cut further, and the number of the section that it belongs to."""

    start: int
    end: int
    size: int
    section: int
    level: int = 0
    """That of the heading it begins with; 0 if it begins without one."""


def name_question(text: str, chunk_ids: Iterable[str]) -> str:
    """An id made of a question and its sources: the same question has the same id in every test set."""
    content = "\0".join((text, *chunk_ids))
    return f"q-{hashlib.sha256(content.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def count_words(text: str) -> int:
    """How many words a text has; in scripts without spaces, two characters count as a word."""
    wide = len(_WIDE.findall(text))
    narrow = len(_WORD.findall(_WIDE.sub(" ", text) if wide else text))
    return narrow + (wide + 1) // 2


def cut_documents(documents: Iterable[SourceDocument], size: int = WORDS) -> list[Chunk]:
    """Cut documents into chunks of at most `size` words, in order.

    A chunk begins at a heading where it can. A section that is too long is cut between paragraphs into parts of about
    equal length; a paragraph that is too long, between sentences; a sentence that is too long, between words. A short
    section is joined with the next one. Together the chunks contain all of a text except white space.
    """
    if size < 1:
        raise UsageError(f"the size of a chunk must be at least 1, not {size}")
    return [chunk for document in documents for chunk in _cut(document, size)]


def _cut(document: SourceDocument, size: int) -> Iterator[Chunk]:
    sections = groupby(_find_pieces(document, size), lambda piece: piece.section)
    groups = _join_small([group for _, section in sections for group in _fill(list(section), size)], size)
    spans = [(group[0].start, group[-1].end) for group in groups]
    for number, (start, end) in enumerate(spans, 1):
        chunk_id = document.doc_id if len(spans) == 1 else f"{document.doc_id}#{number}"
        page = bisect_right(document.pages, start) if document.pages else None
        yield Chunk(
            chunk_id, document.doc_id, start, end, document.text[start:end], find_headings(document, start), page
        )


def find_headings(document: SourceDocument, at: int) -> tuple[str, ...]:
    """The headings that a place in a document stands under, the outermost first; a heading stands under itself."""
    path = list[TextBlock]()
    for block in document.blocks:
        if block.start > at:
            break
        if block.kind == "heading":
            path = [above for above in path if above.level < block.level] + [block]
    return tuple(block.words for block in path if block.words)


def _find_pieces(document: SourceDocument, size: int) -> Iterator[_Piece]:
    section = 0
    after_heading = True
    for block in document.blocks:
        is_heading = block.kind == "heading"
        section += is_heading and not after_heading  # headings that follow one another begin one section
        after_heading = is_heading
        words = count_words(document.text[block.start : block.end])
        if words <= size:
            yield _Piece(block.start, block.end, words, section, block.level)
        else:
            yield from _cut_block(document.text, block, section, size)


def _cut_block(text: str, block: TextBlock, section: int, size: int) -> Iterator[_Piece]:
    """A long block as lines, if it is code or a table, or as sentences; what is still too long, as words."""
    content = text[block.start : block.end]
    if block.kind in {"code", "table"}:
        joints = [line.span() for line in re.finditer(r"\S(?:.*\S)?", content)]
    else:
        joints = kernels.split_sentences(content)
    for start, end in ((block.start + first, block.start + last) for first, last in joints):
        words = count_words(text[start:end])
        if words <= size:
            yield _Piece(start, end, words, section, block.level)
        else:
            yield from (
                _Piece(first, last, count_words(text[first:last]), section, block.level)
                for first, last in _cut_at_words(text, start, end, size)
            )


def _cut_at_words(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Parts of a long sentence; a word of more than 40 characters is cut too."""
    first = last = start
    total = 0
    for word in re.finditer(rf"\S{{1,{_LONGEST_WORD}}}", text[start:end]):
        words = count_words(word[0])
        if total and total + words > size:
            yield first, last
            first, total = start + word.start(), 0
        last, total = start + word.end(), total + words
    yield first, last


def _fill(pieces: list[_Piece], size: int) -> Iterator[list[_Piece]]:
    left = _size(pieces)
    group = list[_Piece]()
    for piece in pieces:
        filled = _size(group)
        target = left / max(1, -(-left // size))
        only_headings = all(one.level for one in group)
        if group and (filled + piece.size > size or (filled + piece.size / 2 > target and not only_headings)):
            yield group
            left -= filled
            group = []
        group.append(piece)
    if group:
        yield group


def _join_small(groups: list[list[_Piece]], size: int) -> list[list[_Piece]]:
    """Join a group that is much smaller than `size` with the next one, unless that one begins a higher section."""
    joined = list[list[_Piece]]()
    for group in groups:
        before = joined[-1] if joined else []
        is_small = min(_size(before), _size(group)) * _SMALL < size
        goes_up = 0 < group[0].level < (before[0].level if before else 0)
        if before and is_small and _size(before) + _size(group) <= size and not goes_up:
            before += group
        else:
            joined.append(list(group))
    return joined


def _size(group: list[_Piece]) -> int:
    return sum(piece.size for piece in group)


NEAREST = 10
"""How many of a chunk's nearest neighbours by embedding are looked at."""
MOST_SHARERS = 20
"""A name that stands in more chunks than this, or in more than a tenth of them, does not connect two of them."""
_MOST_NAMES = 3
"""How many shared names count, so that two lists of the same names do not come before everything else."""
_SAME = 0.6
"""The share of common words from which on two chunks say the same."""
TOO_NEAR = 0.97
"""The cosine from which on two chunks say the same, on the scale of MiniLM."""
_COMPARED_AT_ONCE = 10_000
_COMPARED_WORD = compile_later(r"\w+")


def find_pairs(
    chunks: Sequence[Chunk], vectors: NDArray[np.float32] | None, count: int, too_near: float = TOO_NEAR
) -> list[tuple[int, int]]:
    """The positions of up to `count` pairs of chunks about the same things, the best connected first.

    Two chunks are connected if they share rare names, or if each is among the other's nearest neighbours by `vectors`,
    their embeddings [chunks, dimensions]. Chunks side by side in a document are not, nor are two that say the same,
    with a cosine of `too_near` or more. No chunk is in two pairs before every chunk with a connection is in one. The
    same chunks and vectors give the same pairs.
    """
    scores = _connect(chunks, vectors, too_near)
    order = sorted(scores, key=lambda pair: (-scores[pair], pair))
    found: list[tuple[int, int]] = []
    while order and len(found) < count:
        used, left = set[int](), list[tuple[int, int]]()
        for pair in order:
            is_free = used.isdisjoint(pair)
            (found if is_free else left).append(pair)
            used.update(pair if is_free else ())
        order = left
    return found[:count]


def find_names(text: str) -> list[str]:
    """The names in a text that can connect it with others: no numbers, no dates, no single letters."""
    found = (name.casefold() for name in kernels.names(text))
    return [name for name in found if len(name) > 2 and not any(letter.isdigit() for letter in name)]


def _connect(
    chunks: Sequence[Chunk], vectors: NDArray[np.float32] | None, too_near: float
) -> dict[tuple[int, int], float]:
    """How well the positions of chunks are connected, by pairs."""
    names = [frozenset(find_names(chunk.text)) for chunk in chunks]
    sharers = Counter(name for found in names for name in found)
    rare = {name for name, many in sharers.items() if 2 <= many <= max(2, min(MOST_SHARERS, len(chunks) // 10))}
    weights = {name: log(len(chunks) / sharers[name]) / max(1.0, log(len(chunks))) for name in rare}
    candidates = set(_share_names(names, rare))
    if vectors is not None:
        candidates |= set(_find_nearest(vectors))
    apart = sorted(pair for pair in candidates if not _follow_one_another(*(chunks[place] for place in pair)))
    words = {
        place: frozenset(_COMPARED_WORD.findall(chunks[place].text.casefold())) for pair in apart for place in pair
    }
    return {
        pair: sum(
            sorted((weights[name] for name in names[pair[0]] & names[pair[1]] & rare), reverse=True)[:_MOST_NAMES]
        )
        + (similarity or 0)
        for pair, similarity in zip(apart, _compare(vectors, apart), strict=True)
        if (similarity or 0) < too_near and _overlap(words[pair[0]], words[pair[1]]) < _SAME
    }


def _share_names(names: Sequence[frozenset[str]], rare: set[str]) -> Iterator[tuple[int, int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(names):
        for name in found & rare:
            places[name].append(place)
    for sharing in places.values():
        yield from combinations(sharing, 2)


def _find_nearest(vectors: NDArray[np.float32]) -> Iterator[tuple[int, int]]:
    if len(vectors) < 2:
        return
    rows = kernels.top_k(vectors, vectors, NEAREST + 1, metric="cosine").indices.tolist()
    nearest = [{row for row in found if row != place} for place, found in enumerate(rows)]
    for place, found in enumerate(nearest):
        yield from ((place, other) for other in found if place < other and place in nearest[other])


def _follow_one_another(first: Chunk, second: Chunk) -> bool:
    numbers = [one.chunk_id.rpartition("#")[2] for one in (first, second)]
    places = [int(number) if number.isdecimal() else 0 for number in numbers]
    return first.doc_id == second.doc_id and abs(places[0] - places[1]) == 1


def _compare(vectors: NDArray[np.float32] | None, pairs: Sequence[tuple[int, int]]) -> Iterator[float | None]:
    if vectors is None:
        yield from (None for _ in pairs)
        return
    for start in range(0, len(pairs), _COMPARED_AT_ONCE):
        part = pairs[start : start + _COMPARED_AT_ONCE]
        first, second = (vectors[[pair[side] for pair in part]] for side in (0, 1))
        yield from kernels.cosine_rows(first, second).tolist()


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(1, min(len(first), len(second)))


Rankings = Mapping[str, Mapping[str, Sequence[str]]]
"""For each retriever, by its name, the ids of the best chunks for each question, best first."""
_SAMPLED = 50
"""How many texts are read to tell the language of a corpus."""
EASY, HARD = 1, 5
"""A source at this rank with every retriever is easy to find; one below this rank with every retriever is hard."""


@dataclass(frozen=True)
class Search:
    """The retrievers of a corpus by name, and its chunks, as a table of `doc_id`, `title` and `text`."""

    systems: Mapping[str, System[Any]]
    corpus: pl.DataFrame

    def rank(self, questions: Mapping[str, str]) -> Rankings:
        """The best chunks for each question; a chunk that a retriever does not find is missing."""
        if not questions:
            return {name: {} for name in self.systems}
        queries = pl.DataFrame({"query_id": list(questions), "text": list(questions.values())})
        collection = Collection("chunks", load_queries=lambda: queries, load_corpus=lambda: self.corpus)
        rankings: dict[str, dict[str, list[str]]] = {}
        for name, system in self.systems.items():
            found = system.retrieve(collection, {})
            best = rankings[name] = {query_id: [] for query_id in questions}
            run = found.run if isinstance(found, Retrieval) else found
            for query_id, doc_id in run.select("query_id", "doc_id").iter_rows():
                best[query_id].append(doc_id)
        return rankings


def make_search(corpus: pl.DataFrame, model: str | None, depth: int, context: Context) -> Search:
    """BM25 over a corpus of `doc_id`, `title`, `text`, and dense retrieval if `model` names one of `context.models`."""
    nodes: dict[str, dict[str, Any]] = {"bm25": {"stop_words": choose_stop_words(corpus["text"].to_list())}}
    if model is not None:
        nodes["dense"] = {"model": model}
    systems: dict[str, System[Any]] = {}
    for word, keys in nodes.items():
        plugin = registry.load("systems", word)
        node = plugin.node_type.model_validate({"use": word, "depth": depth, **keys})
        systems[word] = plugin(node, replace(context, name=word, progress=ignore_progress))
    return Search(systems, corpus)


def find_main_language(texts: Sequence[str], most: int) -> str | None:
    """The code of the language of most of these texts, of which about `most` are read; None if none shows it."""
    chosen = texts[:: max(1, len(texts) // most)]
    told = Counter(language for text in chosen if (language := find_language(text)) is not None)
    return min(told, key=lambda language: (-told[language], language)) if told else None


def choose_stop_words(texts: Sequence[str]) -> str:
    """The name of bm25's list of stop words for the language of most of these texts, or `none`."""
    name = NAMES.get(find_main_language(texts, _SAMPLED) or "", "").lower()
    lists = get_args(registry.load("systems", "bm25").node_type.model_fields["stop_words"].annotation)
    return name if name in lists else "none"


def take_turns(places: Iterable[int], doc_ids: Sequence[str], random: Random) -> list[int]:
    """Positions in random order, one of each document at a time; `doc_ids` has the document of each position."""
    documents: dict[str, list[int]] = defaultdict(list)
    for place in places:
        documents[doc_ids[place]].append(place)
    turns = list(documents.values())
    random.shuffle(turns)
    for own in turns:
        random.shuffle(own)
    return [place for turn in zip_longest(*turns) for place in turn if place is not None]


def find_ranks(rankings: Rankings, question: str, sources: Sequence[str]) -> dict[str, int | None]:
    """For each retriever, the rank from 1 of the source that it ranks lowest, or None if it misses one.

    Sources that rank above it do not count: a question whose three sources are found first has rank 1.
    """
    ranks: dict[str, int | None] = {}
    for name, best in rankings.items():
        found = [best[question].index(source) + 1 for source in sources if source in best[question]]
        ranks[name] = max(found) - (len(sources) - 1) if len(found) == len(sources) else None
    return ranks


def measure_difficulty(ranks: Mapping[str, int | None]) -> str:
    found = [rank for rank in ranks.values() if rank is not None]
    if len(found) == len(ranks) and max(found, default=0) <= EASY:
        return "easy"
    return "medium" if min(found, default=HARD + 1) <= HARD else "hard"
