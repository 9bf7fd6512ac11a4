"""`bm25`: lexical retrieval over the dataset's corpus, with an index of the core.

A corpus above `tables.BATCH` bytes is read in batches and never held whole. Its index is a file of the store, which
later evaluations map instead of reading the corpus; without a store it is a temporary file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
import unicodedata
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import BATCH, Collection, CorpusSize, document_texts
from rageval_spec.errors import DataError, RagevalError, StoreWarning, UsageError
from rageval_spec.libraries import pl
from rageval_spec.plugin import Progress, Retrieval, System, SystemNode
from rageval_spec.plugin.system import Amount
from rageval_spec.store.disk import INDEXES_FOLDER, TEMPORARY_FOLDER, flush_folder, hold, prepare, sweep
from rageval_spec.systems.shared.lexical_tokens import (
    LETTERS_READ,
    ChosenTokenizer,
    Words,
    choose_tokenizer,
    read_stop_words,
)
from rageval_spec.wording import format_percent

Language = Literal[
    "none", "chinese", "danish", "dutch", "english", "french", "german", "italian",
    "korean", "norwegian", "portuguese", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip
Stemmer = Literal[
    "none", "arabic", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "porter", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip
_FORMAT = 1
"""Raise it when the same texts would give another index."""
_DOCUMENTS_READ = 1000
"""How many documents are sampled to choose the tokenizer."""
_SAMPLED_OF_BATCH = 50
"""How many documents of each batch are sampled, if the corpus is read in batches."""
_DOCUMENTS_AT_ONCE = 1 << 16
_QUERIES_AT_ONCE = 256
_WRITING = Lock()
_TEMPORARY = "rageval-bm25-"
_READ_ONLY: set[Path] = set()
"""The stores of which a warning said that they cannot be written to."""
_TRIES = 3


class Bm25Node(SystemNode):
    """BM25 over each document's title and text, joined by a space."""

    method: Literal["lucene", "robertson", "atire", "bm25+", "bm25l"] = Field(
        default="lucene", description="The variant of BM25, as named by Kamphuis et al., ECIR 2020."
    )
    k1: float = Field(default=1.5, gt=0, allow_inf_nan=False, description="How much repetitions of a word count.")
    b: float = Field(default=0.75, ge=0, le=1, description="How much long documents are penalised.")
    delta: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        description="What bm25+ and bm25l add for each query word that a document contains.",
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

    def estimate_needs(self, corpus: CorpusSize) -> tuple[Amount, Amount, str]:
        """About 30 to 150 bytes of memory a document, and an index on disk of three quarters of the texts at most."""
        memory = Amount(30 * corpus.documents, 150 * corpus.documents + 100 * 10**6)
        return memory, Amount(corpus.content // 8, 3 * corpus.content // 4), ""

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
        size = collection.corpus_size
        progress = _Progress(self.context.progress, size.documents if size else 0, queries.height)
        if size is None or size.content <= BATCH:
            corpus = collection.require("corpus", reader).sort("doc_id", descending=True)
            choice = self._choose(document_texts(corpus))
            index = self._build([corpus], choice, progress).finish(b"", progress.tick)
            return self._search(index, choice, queries, progress)
        with self._keep_index(collection) as (path, parent):
            for _ in range(_TRIES):
                with _WRITING:  # systems with other parameters wait for the same index
                    if not path.is_file():
                        self._write_index(collection, path, parent, progress)
                try:
                    index = kernels.Bm25Index.open(path)
                    choice = ChosenTokenizer(**json.loads(index.note))
                    return self._search(index, choice, queries, progress)
                except DataError as error:
                    warnings.warn(f"store: {path} is damaged and will be computed again: {error}", StoreWarning, 2)
                    _remove(path)
        raise DataError(f"store: {path} was damaged {_TRIES} times; choose another folder with --store")

    def stored_keys(self, identify: Callable[[], str]) -> Iterable[str]:
        """The key of the index of a corpus: the hash of it and of what says what its words are."""
        names = ("tokenizer", "stop_words", "stemmer")
        made = [_FORMAT, identify(), unicodedata.unidata_version, *(getattr(self.node, name) for name in names)]
        yield hashlib.sha256(json.dumps(made).encode()).hexdigest()

    @contextmanager
    def _keep_index(self, collection: Collection) -> Iterator[tuple[Path, Path]]:
        """The path of the corpus's index, and the folder to write it in first; it need not be there.

        Without a store, or with one that lacks the index and cannot be written to, it is in a temporary folder.
        """
        store = self.context.store
        if store is not None and collection.identify is not None:
            (key,) = self.stored_keys(collection.identify)
            path = store / INDEXES_FOLDER / key
            with suppress(OSError):
                os.utime(path)  # records when the index was last used
            if path.is_file() or _is_writable(store):
                yield path, store / TEMPORARY_FOLDER
                return
        sweep(Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"))
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as folder, hold(Path(folder)):
            yield Path(folder, "index"), Path(folder)

    def _write_index(self, collection: Collection, path: Path, parent: Path, progress: _Progress) -> None:
        """Write the index of a corpus that is read in batches to a folder in `parent`, and rename it."""
        folder = parent / f"{path.name}.{uuid.uuid4().hex}"
        try:
            folder.mkdir()
            with hold(folder):
                builder, choice = self._build_from_batches(collection, folder, progress)
                note = {"tokenizer": choice.tokenizer, "share": choice.share, "scripts": choice.scripts}
                builder.finish(json.dumps(note).encode(), progress.tick, folder / "index")
                (folder / "index").replace(path)
            flush_folder(path.parent)
        except OSError as error:
            raise RagevalError(f"bm25: cannot write the index to {path}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _build_from_batches(
        self, collection: Collection, folder: Path, progress: _Progress
    ) -> tuple[kernels.Bm25Builder, ChosenTokenizer]:
        """Build with the tokenizer that the first batch needs, and again if all batches together need the other."""
        guess: ChosenTokenizer | None = None
        while True:
            sampled: list[str] = []
            batches = _sample(collection.stream_corpus(), sampled)
            first = next(batches, pl.DataFrame(schema=dict.fromkeys(("doc_id", "title", "text"), pl.String)))
            guess = guess or self._choose(pl.Series(sampled, dtype=pl.String))
            builder = self._build(chain([first], batches), guess, progress, folder)
            choice = self._choose(pl.Series(sampled, dtype=pl.String))
            if choice.tokenizer == guess.tokenizer:
                return builder, choice
            guess = choice

    def _build(
        self, batches: Iterable[pl.DataFrame], choice: ChosenTokenizer, progress: _Progress, folder: Path | None = None
    ) -> kernels.Bm25Builder:
        words = self._words(choice)
        builder = kernels.Bm25Builder(
            words.split,
            sorted(words.stop_words),
            words.expand,
            stems=words.stem is not None,
            folder=folder,
            threads=self.context.threads,
        )
        done = 0
        for batch in batches:
            for part in batch.iter_slices(_DOCUMENTS_AT_ONCE):
                builder.add(part["doc_id"], document_texts(part))
                done += part.height
                progress.read(done)
        return builder

    def _search(
        self, index: kernels.Bm25Index, choice: ChosenTokenizer, queries: pl.DataFrame, progress: _Progress
    ) -> Retrieval:
        node, words = self.node, self._words(choice)
        frames = [pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64})]
        for some in queries.iter_slices(_QUERIES_AT_ONCE):
            found = index.search(
                words.read(some["text"].to_list()),
                node.depth,
                method=node.method,
                k1=node.k1,
                b=node.b,
                delta=node.delta,
                threads=self.context.threads,
            )
            frames.append(found.select(some["query_id"].gather(found["query"]), "doc_id", "score"))
            index.release()
            progress.search(index.documents, some.height)
        return Retrieval(pl.concat(frames), tuple(_remark(choice)))

    def _choose(self, texts: pl.Series) -> ChosenTokenizer:
        """The tokenizer that the node names, or the one that fits a sample from all parts of the corpus."""
        if self.node.tokenizer != "auto":
            return ChosenTokenizer(self.node.tokenizer, 0.0, ())
        return choose_tokenizer(texts.gather_every(max(1, len(texts) // _DOCUMENTS_READ)))

    def _words(self, choice: ChosenTokenizer) -> Words:
        language = self.node.stop_words
        stop_words = frozenset[str]() if language == "none" else read_stop_words(language)
        stemmer = self._stemmer()
        return Words(choice.tokenizer, stop_words, None if stemmer is None else stemmer.stemWord)

    def _stemmer(self) -> Any:
        if self.node.stemmer == "none":
            return None
        try:
            import Stemmer
        except ImportError as error:
            where = f"systems.{self.context.name}.stemmer"
            raise UsageError(f"{where}: needs the package PyStemmer; `pip install PyStemmer`") from error
        return Stemmer.Stemmer(self.node.stemmer)


def _is_writable(store: Path) -> bool:
    """Make the store's folders, and remove what killed processes left there. Warns, once, if that is not possible."""
    try:
        prepare(store, INDEXES_FOLDER)
        folder = prepare(store, TEMPORARY_FOLDER)
        sweep(folder.iterdir())
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        if store not in _READ_ONLY:
            told = f"store: cannot write to {store}: {error.strerror or error}"
            place = f"BM25 indexes are built in a temporary folder in {tempfile.gettempdir()} and are not kept"
            warnings.warn(f"{told}; {place}", StoreWarning, 2)
        _READ_ONLY.add(store)
        return False
    return True


def _remove(path: Path) -> None:
    """Remove a damaged index, or a folder in its place."""
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


class _Progress:
    """Counts documents and queries together. How many documents there are can be an estimate."""

    def __init__(self, report: Progress, documents: int, queries: int) -> None:
        self._report, self._documents, self._queries = report, documents, queries
        self._done = self._asked = 0

    def read(self, documents: int) -> None:
        self._done, self._documents = documents, max(documents, self._documents)
        self.tick()

    def search(self, documents: int, queries: int) -> None:
        self._done = self._documents = documents
        self._asked += queries
        self.tick()

    def tick(self, *_: int) -> None:
        self._report(self._done + self._asked, self._documents + self._queries)


def _sample(batches: Iterable[pl.DataFrame], sampled: list[str]) -> Iterator[pl.DataFrame]:
    """The batches; the beginnings of some texts of each are kept in `sampled` before it is given."""
    for batch in batches:
        some = batch.gather_every(max(1, batch.height // _SAMPLED_OF_BATCH))
        sampled.extend(document_texts(some).str.slice(0, LETTERS_READ))
        yield batch


def _remark(choice: ChosenTokenizer) -> Iterator[Note]:
    if choice.tokenizer == "unicode" and choice.scripts:
        scripts = ", ".join(choice.scripts)
        message = (
            f"{format_percent(choice.share)} of the corpus's letters ({scripts}) need the tokenizer 'unicode', "
            "which is used; to choose another, set 'tokenizer'"
        )
        yield Note("tokenizer", message)


PLUGIN = Bm25
