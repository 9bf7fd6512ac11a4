"""Opens the questions that an audit is about: those that an evaluation would ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec import registry
from rageval_spec.audit.question_set import QuestionSet, read_questions
from rageval_spec.errors import DataError, UsageError
from rageval_spec.pipeline.parts import Parts, build_parts
from rageval_spec.pipeline.queries import queries_to_ask
from rageval_spec.plugin import Context, Dataset
from rageval_spec.runner import STORE
from rageval_spec.spec import load
from rageval_spec.store.folder import open_store

if TYPE_CHECKING:
    from rageval_spec.data.tables import Collection
    from rageval_spec.spec.nodes import Spec

_SET = "questions"
_OF_SPECS = ("datasets:", "systems:", "metrics:")


@dataclass(frozen=True)
class Subject:
    """What is audited.

    Attributes:
        name: the name of the spec, or of the file.
        datasets: the datasets by name.
        spec, parts: the spec and its plugins; None for a dataset without a spec.
    """

    name: str
    datasets: Mapping[str, Dataset[Any]]
    spec: Spec | None = None
    parts: Parts | None = None


def open_subject(path: Path, overrides: Sequence[str], store: Path | None = None) -> Subject:
    """The datasets of a spec, or a dataset that is a file or a folder.

    Args:
        path: the spec, the file or the folder.
        overrides: values that replace those of the spec.
        store: the folder of the store, which has the questions that a model wrote; by default the one beside the spec.

    Raises:
        SpecError: the spec is wrong.
        UsageError: there is no such file, or a dataset is given with overrides.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if _is_spec(path):
        spec = load(path, overrides=overrides)
        folder = spec.folder / STORE if store is None else store
        kept = open_store(folder if folder.is_dir() else None)
        parts = build_parts(spec, answers=kept.answers, fingerprint=kept.fingerprint)
        return Subject(spec.name, parts.datasets, spec, parts)
    if overrides:
        raise UsageError(f"--set needs a spec, and {path} is a dataset")
    return Subject(path.name, {_SET: _build(path, _SET)})


def _is_spec(path: Path) -> bool:
    """Whether a file is YAML with a section of specs. Sets of questions can be YAML, too.

    Raises:
        UsageError: it cannot be read.
    """
    if path.suffix not in (".yaml", ".yml") or path.is_dir():
        return False
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    return not lines or any(line.startswith(_OF_SPECS) for line in lines)


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
    return open_questions(_build(path, "train"))


def _build(path: Path, called: str) -> Dataset[Any]:
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if path.is_dir():
        splits = sorted(one.name.partition(".tsv")[0] for one in (path / "qrels").glob("*.tsv*"))
        if not splits:
            raise UsageError(
                f"{path}: a folder must be in BEIR's layout, with judgements in {path / 'qrels'}; to audit "
                "a file of it, name the file"
            )
        wanted = "train" if called == "train" else "test"
        return _declare(called, "beir", path=str(path), split=wanted if wanted in splits else splits[0])
    if name.endswith(".tsv") and path.parent.name == "qrels":
        return _declare(called, "beir", path=str(path.parent.parent), split=name.removesuffix(".tsv"))
    return _declare(called, "golden", path=str(path))


def _declare(called: str, word: str, **keys: str) -> Dataset[Any]:
    plugin = registry.load("datasets", word)
    built: Dataset[Any] = plugin(plugin.node_type(use=word, **keys), Context(called, Path()))
    return built
