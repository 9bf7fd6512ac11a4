"""Opens the questions that an audit is about: those that an evaluation would ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.audit.question_set import QuestionSet, read_questions
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.queries import queries_to_ask
from rageval_spec.plugin import Context, Dataset
from rageval_spec.reading.files import format_of

if TYPE_CHECKING:
    from rageval_spec.data.tables import Collection

_WORDS = {"csv": "csv", "tsv": "csv", "parquet": "parquet"}


def open_questions(dataset: Dataset[Any]) -> QuestionSet:
    """The questions of a dataset that an evaluation would ask: all of them, or the judged ones.

    Raises:
        DataError: the dataset cannot be read, or has neither questions nor judgements.
    """
    collection = dataset.open()
    return read_questions(dataset, collection, _list_asked(collection))


def _list_asked(collection: Collection) -> Sequence[str]:
    if collection.queries is not None and collection.queries.height:
        asked = queries_to_ask(collection).queries
        assert asked is not None, "queries_to_ask refuses a collection without queries"
        return asked["query_id"].to_list()
    if collection.qrels is None or not collection.qrels.height:
        raise DataError(f"dataset '{collection.name}' has neither questions nor judgements to audit")
    return collection.qrels["query_id"].unique(maintain_order=True).to_list()


def open_train(path: Path) -> QuestionSet:
    """The questions of a file that no spec declares, of a BEIR folder, or of a split of one (`data/qrels/train.tsv`).

    Raises:
        UsageError: there is no such file.
        DataError: it cannot be read, or has no questions.
    """
    if not path.exists():
        raise UsageError(f"--train {path}: no such file")
    return open_questions(_build(path))


def _build(path: Path) -> Dataset[Any]:
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if path.is_dir():
        splits = sorted(one.name.partition(".tsv")[0] for one in (path / "qrels").glob("*.tsv*"))
        split = "train" if "train" in splits or not splits else splits[0]
        return _declare("beir", path=str(path), split=split)
    if name.endswith(".tsv") and path.parent.name == "qrels":
        return _declare("beir", path=str(path.parent.parent), split=name.removesuffix(".tsv"))
    return _declare(_WORDS.get(format_of(path), "jsonl"), path=str(path))


def _declare(word: str, **keys: str) -> Dataset[Any]:
    plugin = registry.load("datasets", word)
    built: Dataset[Any] = plugin(plugin.node_type(use=word, **keys), Context("train", Path()))
    return built
