"""`bm25`: lexical retrieval over the dataset's corpus, with the library bm25s."""

from __future__ import annotations

import importlib.util
from array import array
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Retrieval, System, SystemNode
from rageval_spec.wording import format_percent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from rageval_spec.systems.shared.lexical_tokens import ChosenTokenizer, Tokenizer

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

    node_type = Bm25Node
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
        from rageval_spec.systems.shared.lexical_tokens import ChosenTokenizer, choose_tokenizer

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

        from rageval_spec.systems.shared.lexical_tokens import WORDS, split_unicode

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
        import numpy as np

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
    import numpy as np
    import polars as pl

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
