"""Test sets that are made without any model: a document's own sentences, titles and headings, held out of it.

A sentence that a retriever can find word for word shows only that it compares words. So the sentence that a question
is made from is left out of the corpus, and a title or heading likewise: what is left is about the same, in other
words. Which words and sentences say what a text is about follows from how often words stand in the whole corpus.

A set is rows of files: questions, the corpus to search, and what was dropped.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import log
from random import Random
from typing import Any, Literal, NamedTuple, get_args

from rageval_spec import __version__, kernels
from rageval_spec.errors import UsageError
from rageval_spec.generation.chunks import WORDS, Chunk, cut_documents, find_main_language, name_question, take_turns
from rageval_spec.generation.documents import DocumentSet, SourceDocument
from rageval_spec.generation.question_sets import (
    SplitUnit,
    divide_rows,
    read_shares,
    write_chunk,
    write_quote,
    write_sources,
)
from rageval_spec.judging.language import FREQUENT_WORDS, find_language
from rageval_spec.libraries import compile_later
from rageval_spec.wording import count_noun

_WORD = compile_later(r"[^\W_]+(?:['’.-][^\W_]+)*")
_WIDE = compile_later("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\U00020000-\U0003ffff]")
_COMMON = 0.15
"""A word in a greater share of the texts does not tell them apart."""
_FEWEST_TEXTS = 20
"""In a smaller corpus, that share says little, and only lists of frequent words count."""
_SAMPLED = 200


class Word(NamedTuple):
    """A word at its place in a text. `term` is what counts as the same word: lower case, without an English plural."""

    term: str
    start: int
    end: int


def find_words(text: str) -> list[Word]:
    """The words of a text; in scripts without spaces, pairs of characters that overlap."""
    found = list[Word]()
    for match in _WORD.finditer(text):
        if _WIDE.search(match[0]) is None:
            found.append(Word(fold(match[0]), match.start(), match.end()))
        else:
            places = range(match.start(), max(match.start() + 1, match.end() - 1))
            found += [Word(text[at : at + 2], at, min(at + 2, match.end())) for at in places]
    return found


@lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """A word without case, possessive and the `s` of an English plural, so that forms of it are one term."""
    word = re.sub(r"['’]s?\Z", "", word.casefold())
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class Vocabulary:
    """The words of a corpus: in how many texts each stands, and in which."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.size = len(texts)
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for term in dict.fromkeys(word.term for word in find_words(text)):
                self._places[term].append(place)
        self.language = find_main_language(texts, _SAMPLED)
        self._frequent = {fold(word) for word in list_frequent(self.language)}

    def count_texts(self, term: str) -> int:
        return len(self._places.get(term, ()))

    def weigh(self, term: str) -> float:
        """How much a term tells: its inverse document frequency; 0 for words that stand everywhere, and for letters."""
        if self.is_common(term):
            return 0.0
        return log((self.size + 1) / (self.count_texts(term) + 0.5))

    def is_common(self, term: str) -> bool:
        """Whether a word tells nothing: a frequent one of the language, one in very many texts, or a single letter."""
        if term in self._frequent or (len(term) < 2 and not term.isdigit()):
            return True
        return self.size >= _FEWEST_TEXTS and self.count_texts(term) > _COMMON * self.size

    def find_texts(self, terms: Iterable[str], share: float) -> list[int]:
        """The positions of texts that have at least this share of the terms' weight, ascending."""
        weights = {term: weight for term in set(terms) if (weight := self.weigh(term)) > 0}
        totals: Counter[int] = Counter()
        for term, weight in weights.items():
            for place in self._places.get(term, ()):
                totals[place] += weight  # type: ignore[assignment]
        least = share * sum(weights.values()) - 1e-9
        return sorted(place for place, total in totals.items() if total >= least)


def list_frequent(language: str | None) -> Iterator[str]:
    for lists in FREQUENT_WORDS.values():
        yield from lists.get(language or "", "").split()


class Sentence(NamedTuple):
    """A sentence of a text: `text[start:end]`, its words, and how well it says what the text is about."""

    text: str
    start: int
    end: int
    words: tuple[Word, ...]
    salience: float


def rank_sentences(text: str, spans: Sequence[tuple[int, int]], vocabulary: Vocabulary) -> list[Sentence]:
    """The sentences within parts of a text; first those whose words are rare in the corpus and frequent in the text."""
    counts = Counter(word.term for word in find_words(text))
    found = list[Sentence]()
    for first, last in spans:
        for start, end in kernels.split_sentences(text[first:last]):
            sentence = text[first + start : first + end]
            words = tuple(find_words(sentence))
            telling = {word.term for word in words}
            weights = [vocabulary.weigh(term) * (1 + log(counts[term])) for term in telling if counts[term]]
            mean = sum(weights) / max(1, sum(weight > 0 for weight in weights))
            found.append(Sentence(sentence, first + start, first + end, words, mean))
    return sorted(found, key=lambda one: (-one.salience, one.start))


Form = Literal["sentence", "cloze", "keywords", "title", "heading"]
FORMS: tuple[Form, ...] = get_args(Form)
SHARES: Mapping[Form, float] = {"sentence": 45, "title": 25, "heading": 10, "cloze": 10, "keywords": 10}
"""The mix of forms. Where a corpus has no titles or headings, the others take their share."""
Reason = Literal["too_vague", "several_sources", "duplicate"]
REASONS: Mapping[Reason, str] = {
    "too_vague": "the question has fewer than three telling words",
    "several_sources": "another text has all telling words of the question",
    "duplicate": "another question asks the same",
}
"""Why a question was dropped."""
GAP = "…"
"""Stands for the answer in a cloze question. Retrievers read no word in it."""
_WINDOWS = (7, 8, 9, 10)
"""How many words of a sentence a question has, as people's questions have."""
_KEYWORDS = (3, 4, 5)
_FEWEST_TELLING = 3
_SENTENCE_WORDS = range(6, 60)
_FEWEST_SENTENCES = 3
"""A text needs as many sentences for one to be left out."""
_MOST_HELD_OUT = 0.34
"""The share of a text's sentences that may be left out."""
_SOURCES = 0.95
"""A text with this share of the weight of a question's words could be meant as well. A lower share would drop what
searching by words finds hard, and with it the difference to searching by meaning."""
_ALIKE = 0.7
"""The share of telling words in common from which on two questions ask the same."""
_MOST_ROUNDS = 4
_LINK = compile_later(r"(!?\[)([^\]]*)(\]\([^)\s]*\))")
_MARKUP = compile_later(
    r"`+|\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|<[^<>]*>|^\s*(?:[-*+>]|\d+[.)])\s+", re.MULTILINE
)
_JOINED = compile_later(r"[_/\\=@#$&{}<>\[\]]")
_NAME_BEFORE, _NAME_AFTER = compile_later(r"\w*_\Z"), compile_later(r"_\w*")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"), ('"', '"'))
_EDGES = " \t,;:.!?-–—|/\\\"'“”„«»()[]{}"


class Unit(NamedTuple):
    """What a retriever finds: a chunk, or a document of a corpus as one chunk.

    Attributes:
        title: the title of its document; "" if it has none.
        spans: the parts of the text that hold sentences: no headings, code or tables.
        headings: the headings inside its text: offsets and words.
    """

    chunk: Chunk
    title: str
    spans: tuple[tuple[int, int], ...]
    headings: tuple[tuple[int, int, str], ...] = ()

    @property
    def text(self) -> str:
        return self.chunk.text


class OfflineQuestion(NamedTuple):
    """A question.

    Attributes:
        units: the positions of the units that it is about.
        start, end: the offsets in the text of its unit of what it was made from; of a title 0.
        answer: what belongs in the gap of a cloze question; "" otherwise.
        overlap: the share of the weight of its telling words that the rest of its first unit has too.
    """

    form: Form
    text: str
    units: tuple[int, ...]
    start: int = 0
    end: int = 0
    answer: str = ""
    overlap: float = 0.0


class Dropped(NamedTuple):
    """A question that was made and then dropped, why, and what exactly was found."""

    question: OfflineQuestion
    reason: Reason
    detail: str = ""


class OfflineQuestions(NamedTuple):
    """The questions, those that were dropped, and what is left out of the corpus so that they are not trivial.

    Attributes:
        held_out: by position of a unit, the parts of its text that are left out, in order.
        untitled: the positions of units whose title is left out.
    """

    questions: tuple[OfflineQuestion, ...]
    dropped: tuple[Dropped, ...]
    held_out: Mapping[int, tuple[tuple[int, int], ...]]
    untitled: frozenset[int]


def make_questions(
    units: Sequence[Unit], count: int, *, seed: int = 13, shares: Mapping[Form, float] = SHARES
) -> OfflineQuestions:
    """Make up to `count` questions over a corpus, fewer if it does not give more.

    Every document has its turn before one has a second. The same corpus and seed give the same questions. The share
    of a form that the corpus cannot give, such as titles, goes to the others.
    """
    if count < 1:
        raise UsageError(f"the number of questions must be at least 1, not {count}")
    if not any(share > 0 for share in shares.values()):
        raise UsageError("at least one form of questions needs a share above 0")
    maker = _Maker(units, shares, Random(seed))
    for _ in range(_MOST_ROUNDS):
        for place in maker.order:
            if len(maker.questions) >= count:
                return maker.finish()
            maker.take_turn(place)
    return maker.finish()


def hide(text: str, held_out: Sequence[tuple[int, int]]) -> str:
    """A text without some of its parts, which must be in order; where one was, white space is not doubled."""
    kept, at = "", 0
    for start, end in held_out:
        kept += text[at:start]
        at = end
        if not kept or kept[-1].isspace():
            at += len(text[end:]) - len(text[end:].lstrip())
    return (kept + text[at:]).strip()


def blank_markup(text: str) -> str:
    """A text with spaces in place of Markdown's marks, addresses of links and HTML tags, so that offsets stay."""
    linked = _LINK.sub(lambda found: " " * len(found[1]) + found[2] + " " * len(found[3]), text)
    return _MARKUP.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), linked)


def read_plainly(text: str) -> str:
    """A text in one line, without Markdown's marks, the addresses of links and HTML tags."""
    return " ".join(re.sub(r"\s+([.,;:!?)])", r"\1", blank_markup(text)).split())


class _Maker:
    def __init__(self, units: Sequence[Unit], shares: Mapping[Form, float], random: Random) -> None:
        self.order = take_turns(range(len(units)), [unit.chunk.doc_id for unit in units], random)
        self.questions: list[OfflineQuestion] = []
        self._units = units
        self._shares = {form: share for form, share in shares.items() if share > 0}
        self._random = random
        self._vocabulary = Vocabulary([f"{unit.title} {unit.text}" for unit in units])
        self._dropped: list[Dropped] = []
        self._held_out: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._untitled: set[int] = set()
        self._is_said: dict[str, bool] = {}
        self._counts: Counter[Form] = Counter()
        self._sources: dict[int, tuple[Sequence[Sentence], int]] = {}
        self._titled: dict[str, list[int]] = defaultdict(list)
        for place, unit in enumerate(units):
            self._titled[unit.title].append(place)
        self._asked: dict[str, list[frozenset[str]]] = defaultdict(list)

    def finish(self) -> OfflineQuestions:
        held_out = {place: _merge(spans) for place, spans in self._held_out.items()}
        return OfflineQuestions(tuple(self.questions), tuple(self._dropped), held_out, frozenset(self._untitled))

    def take_turn(self, place: int) -> None:
        """Make one question about a unit, of the form that is most wanted among those that work."""
        made = len(self.questions) + 1
        total = sum(self._shares.values())
        for form in sorted(self._shares, key=lambda form: self._counts[form] - made * (self._shares[form] / total)):
            question = self._make(form, place)
            if question is None:
                continue
            fault = self._find_fault(question)
            if fault is None:
                rest = self._list_rest(question)
                weights = {term: self._vocabulary.weigh(term) for term in self._list_telling(question.text)}
                overlap = sum(weight for term, weight in weights.items() if term in rest) / sum(weights.values())
                self._accept(question._replace(overlap=overlap))
                return
            self._dropped.append(Dropped(question, *fault))

    def _accept(self, question: OfflineQuestion) -> None:
        self.questions.append(question)
        self._counts[question.form] += 1
        telling = self._list_telling(question.text)
        for term in telling:
            self._asked[term].append(telling)
        if question.form == "title":
            self._untitled.update(question.units)
            for place in question.units:
                self._held_out[place] += self._find_title(place)
        else:
            self._held_out[question.units[0]].append((question.start, question.end))

    def _make(self, form: Form, place: int) -> OfflineQuestion | None:
        if form == "title":
            return self._make_title(place)
        if form == "heading":
            return self._make_heading(place)
        sentence = self._pick_sentence(place)
        if sentence is None:
            return None
        text, answer = self._choose_keywords(sentence) if form == "keywords" else self._cut_window(sentence, form)
        return OfflineQuestion(form, text, (place,), sentence.start, sentence.end, answer) if text else None

    def _make_title(self, place: int) -> OfflineQuestion | None:
        """The title of the document, unless its text says it too, apart from a heading."""
        title = self._units[place].title
        places = tuple(self._titled[title])
        if not title or not self._untitled.isdisjoint(places):
            return None
        if title not in self._is_said:  # read once: a long document has its turn once for each chunk
            texts = (hide(self._units[one].text, self._find_title(one)) for one in places)
            self._is_said[title] = any(_says(text, title) for text in texts)
        if self._is_said[title]:
            return None
        return OfflineQuestion("title", read_plainly(title), places)

    def _find_title(self, place: int) -> list[tuple[int, int]]:
        """Where the text repeats its title: in a heading, or at its beginning."""
        unit = self._units[place]
        found = [(start, end) for start, end, said in unit.headings if said == unit.title]
        begins = bool(unit.title) and unit.text[: len(unit.title)].casefold() == unit.title.casefold()
        return found or [(0, len(unit.title))] * begins

    def _make_heading(self, place: int) -> OfflineQuestion | None:
        """A heading inside the unit, after the title of the document if the heading alone says too little."""
        unit = self._units[place]
        taken = {start for start, _ in self._held_out[place]}
        free = [found for found in unit.headings if found[0] not in taken and found[2] != unit.title]
        if not free:
            return None
        start, end, words = self._random.choice(free)
        family = [one for one in self._titled[unit.title] if self._units[one].chunk.doc_id == unit.chunk.doc_id]
        places = (place, *(one for one in family if one != place and words in self._units[one].chunk.headings))
        made = OfflineQuestion("heading", words, places, start, end)
        telling = len(self._list_telling(words))
        if place in self._untitled or telling >= _FEWEST_TELLING:
            return made
        return made._replace(text=f"{unit.title}: {words}") if telling else None

    def _pick_sentence(self, place: int) -> Sentence | None:
        """One of the more telling sentences that was not asked yet; None if too few would be left."""
        sentences, count = self._read(place)
        taken = {start for start, _ in self._held_out[place]}
        if count < _FEWEST_SENTENCES or len(taken) + 1 > max(1, _MOST_HELD_OUT * count):
            return None
        free = [sentence for sentence in sentences if sentence.start not in taken]
        return self._random.choice(free) if free else None

    def _read(self, place: int) -> tuple[Sequence[Sentence], int]:
        """The sentences of a unit that can be asked, the most telling first, and how many sentences it has."""
        if place not in self._sources:
            unit = self._units[place]
            ranked = rank_sentences(blank_markup(unit.text), unit.spans, self._vocabulary)
            whole = [sentence for sentence in ranked if len(sentence.words) in _SENTENCE_WORDS]
            self._sources[place] = whole[: max(1, (len(ranked) + 1) // 2)], len(ranked)
        return self._sources[place]

    def _cut_window(self, sentence: Sentence, form: Form) -> tuple[str, str]:
        words = sentence.words
        width = self._random.choice(_WINDOWS) + (form == "cloze")
        weights = [self._vocabulary.weigh(word.term) for word in words]
        first = max(range(max(1, len(words) - width + 1)), key=lambda at: (sum(weights[at : at + width]), -at))
        last = min(len(words), first + width) - 1
        while first < last and not weights[first]:
            first += 1
        while last > first and not weights[last]:
            last -= 1
        start, end = (_find_name(sentence.text, words[place]) for place in (first, last))
        text = read_plainly(sentence.text[start[0] : end[1]])
        if form != "cloze":
            return _trim(text), ""
        free = [at for at in range(first, last + 1) if weights[at] and _stands_alone(sentence.text, words[at])]
        if not free:
            return "", ""
        answer = words[max(free, key=lambda at: (weights[at], -at))]
        return _leave_gap(text, sentence.text[answer.start : answer.end])

    def _choose_keywords(self, sentence: Sentence) -> tuple[str, str]:
        telling = {word.term: word for word in reversed(sentence.words) if self._vocabulary.weigh(word.term)}
        chosen = sorted(telling.values(), key=lambda word: (-self._vocabulary.weigh(word.term), word.start))
        kept = {_find_name(sentence.text, word) for word in chosen[: self._random.choice(_KEYWORDS)]}
        return " ".join(sentence.text[start:end] for start, end in sorted(kept)), ""

    def _list_rest(self, question: OfflineQuestion) -> set[str]:
        """The words of the question's first unit that are left when the question is held out."""
        place = question.units[0]
        unit = self._units[place]
        hidden = [*self._held_out[place], (question.start, question.end)]
        if question.form == "title":
            hidden += self._find_title(place)
        title = "" if question.form == "title" or place in self._untitled else unit.title
        return {word.term for word in find_words(f"{title} {hide(unit.text, _merge(hidden))}")}

    def _find_fault(self, question: OfflineQuestion) -> tuple[Reason, str] | None:
        telling = self._list_telling(question.text)
        if len(telling) < _FEWEST_TELLING:
            return "too_vague", " ".join(sorted(telling))
        others = set(self._vocabulary.find_texts(telling, _SOURCES)) - set(question.units)
        if others:
            return "several_sources", self._units[min(others)].chunk.chunk_id
        seen = chain.from_iterable(self._asked.get(term, ()) for term in sorted(telling))
        if any(len(telling & other) >= _ALIKE * len(telling | other) for other in seen):
            return "duplicate", ""
        return None

    def _list_telling(self, text: str) -> frozenset[str]:
        return frozenset(word.term for word in find_words(text) if self._vocabulary.weigh(word.term) > 0)


def _find_name(text: str, word: Word) -> tuple[int, int]:
    """Where a word stands, or the whole name with underscores that it is a part of, such as `MAX_CALLS`."""
    before, after = _NAME_BEFORE.search(text[: word.start]), _NAME_AFTER.match(text, word.end)
    return (before.start() if before else word.start), (after.end() if after else word.end)


def _stands_alone(text: str, word: Word) -> bool:
    """Whether a word is no part of a longer name, such as a path, an option or a variable of a program."""
    return _JOINED.search(text[: word.start][-1:] + " " + text[word.end :][:1]) is None


def _leave_gap(text: str, answer: str) -> tuple[str, str]:
    """The text with a gap for each time that the answer stands in it; "" if another form of the answer is left."""
    blank = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", GAP, text, flags=re.IGNORECASE)
    said = {word.term for word in find_words(answer)}
    if GAP not in blank or any(word.term in said for word in find_words(blank)):
        return "", ""
    return _trim(blank), answer


def _trim(text: str) -> str:
    """A part of a sentence without marks at its ends, and without brackets and quotation marks that lost their pair."""
    for first, second in _PAIRS:
        unpaired = text.count(first) % 2 if first == second else text.count(first) != text.count(second)
        if unpaired:
            text = text.replace(first, " ").replace(second, " ")
    return read_plainly(text.strip(_EDGES))


def _merge(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Parts of a text in order, those that overlap as one."""
    merged = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return tuple(merged)


def _says(text: str, words: str) -> bool:
    """Whether a text has these words in a row, whatever stands between them."""
    inside, wanted = ([word.term for word in find_words(one)] for one in (text, words))
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(inside)} "


Row = dict[str, Any]
MADE_BY = "no-model"
EASY, HARD = 0.6, 0.3
"""The share of a question's telling words in the rest of its source from which on it is easy, and below which hard."""
_ASKED = frozenset({"paragraph", "list"})


class OfflineSet(NamedTuple):
    """A test set: its questions, as the dataset `jsonl` reads them, the corpus without what they were made from, the
    questions that were dropped, and sentences about what could not be as wanted.
    """

    rows: list[Row]
    corpus: list[Row]
    rejected: list[Row]
    remarks: tuple[str, ...]


def make_offline_set(
    documents: DocumentSet,
    count: int,
    *,
    seed: int = 13,
    shares: Mapping[Form, float] = SHARES,
    split: str | None = None,
    split_by: SplitUnit = "document",
    size: int = WORDS,
) -> OfflineSet:
    """Make a test set of at most `count` questions over documents without any model.

    Documents of a corpus are what its retrievers find, so they stay whole and keep their ids. Files are cut into chunks
    of at most `size` words. `split` is the shares of validation and test, such as `30:70`.
    """
    if split is not None:
        read_shares(split)
    origin = {document.doc_id: document for document in documents.documents}
    if documents.kind == "corpus":
        chunks = [Chunk(one.doc_id, one.doc_id, 0, len(one.text), one.text) for one in documents.documents]
    else:
        chunks = cut_documents(documents.documents, size)
    units = [_make_unit(origin[chunk.doc_id], chunk) for chunk in chunks]
    made = make_questions(units, count, seed=seed, shares=shares)
    rows = [_write_row(question, units, origin, seed) for question in made.questions]
    remarks = [*_remark_on_count(len(rows), count, made)]
    if split is not None:
        rows, unmet = divide_rows(rows, split, split_by)
        remarks += unmet
    corpus = [_write_unit(place, unit, made, origin) for place, unit in enumerate(units)]
    return OfflineSet(rows, corpus, [_write_dropped(one, units) for one in made.dropped], tuple(remarks))


def _make_unit(document: SourceDocument, chunk: Chunk) -> Unit:
    inside = [
        (block, max(block.start, chunk.start) - chunk.start, min(block.end, chunk.end) - chunk.start)
        for block in document.blocks
        if block.start < chunk.end and block.end > chunk.start
    ]
    spans = tuple((start, end) for block, start, end in inside if block.kind in _ASKED)
    headings = tuple((start, end, block.words) for block, start, end in inside if block.kind == "heading")
    return Unit(chunk, document.title, spans, headings)


def _write_row(
    question: OfflineQuestion, units: Sequence[Unit], origin: Mapping[str, SourceDocument], seed: int
) -> Row:
    chunks = [units[place].chunk for place in question.units]
    sources = {chunk.doc_id: origin[chunk.doc_id] for chunk in chunks}
    return {
        "query_id": name_question(question.text, (chunk.chunk_id for chunk in chunks)),
        "question": question.text,
        "relevant": [chunk.chunk_id for chunk in chunks],
        "relevant_documents": list(sources),
        # A title is no part of its text.
        "evidence": [write_quote(chunks[0], question.start, question.end)] if question.end else [],
        "type": question.form,
        "difficulty": "easy" if question.overlap >= EASY else "hard" if question.overlap < HARD else "medium",
        "language": find_language(chunks[0].text),
        **({"gap": question.answer} if question.answer else {}),
        "sources": write_sources(sources.values()),
        "made_by": MADE_BY,
        "made": {
            "by": f"rageval-spec {__version__}",
            "model": "none",
            "seed": seed,
            "overlap": round(question.overlap, 3),
        },
    }


def _write_unit(place: int, unit: Unit, made: OfflineQuestions, origin: Mapping[str, SourceDocument]) -> Row:
    """A row of the corpus without what questions were made from. Offsets are those of the whole chunk."""
    title = "" if place in made.untitled else unit.title
    text = hide(unit.text, made.held_out.get(place, ()))
    return write_chunk(unit.chunk, origin[unit.chunk.doc_id]) | {"title": title, "text": text}


def _write_dropped(dropped: Dropped, units: Sequence[Unit]) -> Row:
    return {
        "reason": dropped.reason,
        "why": REASONS[dropped.reason],
        "detail": dropped.detail,
        "question": dropped.question.text,
        "type": dropped.question.form,
        "chunks": [units[place].chunk.chunk_id for place in dropped.question.units],
        "made_by": MADE_BY,
    }


def _remark_on_count(found: int, count: int, made: OfflineQuestions) -> Iterator[str]:
    if found < count:
        reasons = Counter(one.reason for one in made.dropped).most_common(1)
        most = f" (most often dropped because {REASONS[reasons[0][0]]})" if reasons else ""
        yield f"the corpus gives only {found:,} of {count_noun(count, 'question')}{most}"
