"""`bm25`: lexical retrieval over the dataset's corpus, with the library bm25s.

Texts are split into words depending on their script. `words` does what most BM25 implementations do: it finds runs of
two or more letters or digits. It finds no words in Chinese or Thai, which put no spaces between words, and cuts Hindi
words at vowel signs. `unicode` follows Lucene's CJKAnalyzer in the first case (overlapping pairs of characters) and
keeps combining marks with their letter in the second.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.errors import UsageError
from rageval_spec.libraries import np, pl
from rageval_spec.plugin import Retrieval, System, SystemNode
from rageval_spec.wording import format_percent

if TYPE_CHECKING:
    import numpy.typing as npt


Tokenizer = Literal["words", "unicode"]

WORDS = r"(?u)\b\w\w+\b"
"""The word pattern of scikit-learn and bm25s."""
ENOUGH = 0.05
"""`unicode` is chosen if `words` cannot handle at least this share of the letters."""
_LETTERS_READ = 400
"""How many characters of each text to check: a few are enough to recognise its script."""
_VOWEL_SIGNS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]"
)
"""Hebrew and Arabic vowel signs. Most texts omit them, so they must not make words differ."""

# Blocks of the scripts that are written without spaces. Korean has spaces but attaches particles to nouns; pairs of
# syllables still find these nouns (as in Lucene's CJKAnalyzer).
_UNSPACED = {
    "Han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "Lao": "\u0e81-\u0ecd\u0edc-\u0edf",
    "Khmer": "\u1780-\u17d3\u17d7\u17dc\u17dd",
    "Myanmar": "\u1000-\u103f\u1050-\u109d",
}


@dataclass(frozen=True, slots=True)
class ChosenTokenizer:
    """The tokenizer that fits a set of texts, and the share of letters, 0 to 1, that `words` would miss.

    `scripts` are those without spaces among them, the most frequent first; "combining marks" stands for the rest.
    """

    tokenizer: Tokenizer
    share: float
    scripts: tuple[str, ...]


def choose_tokenizer(texts: Iterable[str]) -> ChosenTokenizer:
    """Choose the tokenizer that fits the script of the texts; `words` if there are no letters."""
    counts: Counter[str] = Counter()
    letters = 0
    for text in texts:
        beginning = text[:_LETTERS_READ]
        if beginning.isascii():
            letters += sum(map(str.isalpha, beginning))
            continue
        beginning = unicodedata.normalize("NFC", beginning)
        letters += sum(map(str.isalpha, beginning))
        counts.update(_missed(beginning))
    share = counts.total() / letters if letters else 0.0
    scripts = tuple(name for name, _ in counts.most_common())
    return (
        ChosenTokenizer("unicode", min(share, 1.0), scripts)
        if share >= ENOUGH
        else ChosenTokenizer("words", share, scripts)
    )


def split_unicode(text: str) -> list[str]:
    """The words of a text in any script: combining marks stay with their letter, unspaced scripts become pairs.

    Full-width and half-width forms count as one (NFKC), and Hebrew and Arabic vowel signs do not count. A single
    character of an unspaced script is a word. Other words have two or more letters or digits, as with `words`.

    >>> split_unicode("全文検索 engine")
    ['全文', '文検', '検索', 'engine']
    """
    return list(_split(_VOWEL_SIGNS.sub("", unicodedata.normalize("NFKC", text))))


def _split(text: str) -> Iterator[str]:
    for found in _pattern().finditer(text):
        run = found["unspaced"]
        if run is None:
            yield found["word"]
            continue
        characters = _cluster().findall(run)
        if len(characters) == 1:
            yield run
        else:
            yield from (first + second for first, second in pairwise(characters))


def _missed(text: str) -> Iterator[str]:
    """The script of each letter that `words` cannot handle."""
    for found in _unspaced_letter().finditer(text):
        yield str(found.lastgroup)
    rest = _unspaced_letter().sub("", text)
    yield from ("combining marks" for character in rest if unicodedata.category(character) in ("Mn", "Mc"))


@cache
def _unspaced_letter() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>[{block}])" for name, block in _UNSPACED.items()))


@cache
def _marks() -> str:
    """All combining marks, as a character class: Python's `\\w` leaves most of them out."""
    characters = map(chr, (*range(0x10000), *range(0x10A00, 0x12000)))
    return "".join(one for one in characters if unicodedata.category(one) in ("Mn", "Mc", "Me"))


@cache
def _pattern() -> re.Pattern[str]:
    unspaced, marks = "".join(_UNSPACED.values()), _marks()
    letter = rf"(?:(?![{unspaced}])\w[{marks}\u200c\u200d]*)"
    return re.compile(rf"(?P<unspaced>[{unspaced}][{unspaced}{marks}]*)|(?P<word>{letter}{{2,}})")


@cache
def _cluster() -> re.Pattern[str]:
    return re.compile(rf"[^{_marks()}][{_marks()}]*|[{_marks()}]+")


Language = Literal[
    "none", "chinese", "danish", "dutch", "english", "french", "german", "italian",
    "korean", "norwegian", "portuguese", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip
Stemmer = Literal[
    "none", "arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "porter", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip
REPORT_EVERY = 500
_DOCUMENTS_READ = 1000
"""How many documents are sampled to choose the tokenizer."""


class Bm25Node(SystemNode):
    """BM25 over each document's title and text, joined by a space."""

    method: Literal["lucene", "robertson", "atire", "bm25+", "bm25l"] = Field(
        default="lucene", description="The variant of BM25, as named by Kamphuis et al., ECIR 2020."
    )
    k1: float = Field(default=1.5, gt=0, description="How much repetitions of a word count.")
    b: float = Field(default=0.75, ge=0, le=1, description="How much long documents are penalised.")
    delta: float = Field(
        default=0.5, ge=0, description="What bm25+ and bm25l add for each query word that a document contains."
    )
    depth: int = Field(default=1000, ge=1, description="The most documents to retrieve for a query.")
    tokenizer: Literal["auto", "words", "unicode"] = Field(
        default="auto",
        description="How to split texts into words. words: two or more letters or digits. unicode: also for scripts "
        "without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese: overlapping pairs of characters) and "
        "with combining marks (Hindi and others). auto: whichever fits the script of the corpus.",
    )
    stop_words: Language = Field(
        default="english", description="The list of stop words to leave out; none keeps all words."
    )
    stemmer: Stemmer = Field(
        default="none", description="The Snowball stemmer. Anything except none needs the package PyStemmer."
    )


class Bm25(System[Bm25Node]):
    """Ranks the documents that share a word with the query and whose score is above 0.

    Ties are ordered as in trec_eval, by document id in descending byte order, so a lower `depth` gives the beginning
    of the same ranking. The order of the corpus does not matter. An empty document is never retrieved, and a query
    without any word of the corpus gets no rows.
    """

    is_separable = True
    known_as = ("okapi", "elasticsearch", "opensearch", "lucene", "lexical", "keyword")
    needs = frozenset({"queries", "corpus"})

    def check(self) -> str | None:
        if self.node.stemmer == "none" or importlib.util.find_spec("Stemmer") is not None:
            return None
        return f"'stemmer: {self.node.stemmer}' needs the package PyStemmer; `pip install PyStemmer`"

    def content(self) -> dict[str, Any]:
        """Without `tokenizer: auto`: runs stored before this key existed stay valid."""
        content = super().content()
        if self.node.tokenizer == "auto":
            del content["node"]["tokenizer"]
        return content

    def is_outdated(self, collection: Collection) -> bool:
        queries = collection.queries
        return (
            self.node.tokenizer == "auto"
            and queries is not None
            and self._choose(queries["text"]).tokenizer == "unicode"
        )

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:  # noqa: ARG002
        reader = f"systems.{self.context.name}: bm25"
        queries = collection.require("queries", reader)
        corpus = collection.require("corpus", reader).sort("doc_id", descending=True)
        total = corpus.height + queries.height
        texts = document_texts(corpus)
        choice = self._choose(texts)
        index = _Index(self.node, choice.tokenizer, self._stemmer(), self._reported(texts, 0, total))
        rankings = [index.rank(text) for text in self._reported(queries["text"], corpus.height, total)]
        return Retrieval(_run(queries["query_id"], corpus["doc_id"], rankings), tuple(_remark(choice)))

    def _choose(self, texts: pl.Series) -> ChosenTokenizer:
        """The tokenizer that the node names, or the one that fits a sample from all parts of the corpus."""
        if self.node.tokenizer != "auto":
            return ChosenTokenizer(self.node.tokenizer, 0.0, ())
        return choose_tokenizer(texts.gather_every(max(1, len(texts) // _DOCUMENTS_READ)))

    def _stemmer(self) -> Any:
        if self.node.stemmer == "none":
            return None
        try:
            import Stemmer
        except ImportError as error:
            where = f"systems.{self.context.name}.stemmer"
            raise UsageError(f"{where}: needs the package PyStemmer; `pip install PyStemmer`") from error
        return Stemmer.Stemmer(self.node.stemmer)

    def _reported(self, texts: Any, before: int, total: int) -> Iterator[str]:
        """Yield the texts and report progress now and then; `before` of `total` texts were done already."""
        done = before
        for done, text in enumerate(texts, before + 1):
            yield text
            if done % REPORT_EVERY == 0:
                self.context.progress(done, total)
        self.context.progress(done, total)


class _Index:
    """A bm25s index over texts. Documents are identified by their positions."""

    def __init__(self, node: Bm25Node, tokenizer: Tokenizer, stemmer: Any, texts: Iterator[str]) -> None:
        from bm25s import BM25
        from bm25s.tokenization import Tokenizer as Vocabulary

        self._depth = node.depth
        self._tokenizer = Vocabulary(
            splitter=WORDS if tokenizer == "words" else split_unicode,
            stopwords=None if node.stop_words == "none" else node.stop_words,
            stemmer=stemmer,
        )
        tokens = [array("i", ids) for ids in self._tokenizer.streaming_tokenize(texts, allow_empty=False)]
        vocabulary = self._tokenizer.get_vocab_dict()
        self._scorer = BM25(k1=node.k1, b=node.b, delta=node.delta, method=node.method, backend="numpy")
        self._absent: npt.NDArray[np.float32] | None = None
        self._empty = not vocabulary
        if not self._empty:
            self._scorer.index((tokens, vocabulary), create_empty_token=False, show_progress=False)
            # bm25+ and bm25l give every document something for a word that it does not have. Left out while the
            # documents are found, it does not bring in those that share no word with the query.
            self._absent, self._scorer.nonoccurrence_array = self._scorer.nonoccurrence_array, None

    def rank(self, text: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Positions and scores of the best documents, best first; equal scores are ordered by position."""
        tokens = next(self._tokenizer.streaming_tokenize([text], update_vocab=False, allow_empty=False))
        if self._empty or not tokens:
            return np.empty(0, np.intp), np.empty(0, np.float32)
        scores = self._scorer.get_scores_from_ids(tokens)
        found = np.flatnonzero(scores > 0)
        best = scores[found] + (0 if self._absent is None else self._absent[tokens].sum())
        if len(found) > self._depth:
            enough = best >= np.partition(best, len(best) - self._depth)[len(best) - self._depth]
            found, best = found[enough], best[enough]
        order = np.argsort(-best, kind="stable")[: self._depth]
        return found[order], best[order]


def _remark(choice: ChosenTokenizer) -> Iterator[Note]:
    if choice.tokenizer == "unicode" and choice.scripts:
        scripts = ", ".join(choice.scripts)
        message = (
            f"{format_percent(choice.share)} of the corpus's letters ({scripts}) need the tokenizer 'unicode', "
            "which is used; to choose another, set 'tokenizer'"
        )
        yield Note("tokenizer", message)


def _run(
    query_ids: pl.Series, doc_ids: pl.Series, rankings: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]]
) -> pl.DataFrame:
    lengths = np.array([len(documents) for documents, _ in rankings], dtype=np.intp)
    queries = np.repeat(np.arange(len(rankings)), lengths)
    documents = np.concatenate([np.empty(0, np.intp), *(documents for documents, _ in rankings)])
    scores = np.concatenate([np.empty(0, np.float32), *(scores for _, scores in rankings)])
    return pl.DataFrame(
        {
            "query_id": query_ids.gather(queries),
            "doc_id": doc_ids.gather(documents),
            "score": pl.Series(scores).cast(pl.Float64),
        }
    )


PLUGIN = Bm25
