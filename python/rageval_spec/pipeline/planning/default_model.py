"""Chooses the embedding model of blocks that name none: minilm, or multilingual for texts that minilm cannot read.

The choice becomes part of the spec's nodes, so that plans, keys, results and baselines have it as if it were written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from rageval_spec import registry
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference.coverage import COVERED_FROM, measure_coverage, read_vocabulary
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.plugin import Node
from rageval_spec.plugin.block_names import rename_defaults
from rageval_spec.spec import load
from rageval_spec.spec.blocks.spec_node import DEFAULT_MODELS, Spec
from rageval_spec.wording import format_percent

CODE = "default_model"
"""The code of the note that says which model was chosen instead of minilm, and why."""
_DEFAULT, _OTHER = "minilm", "multilingual"
_TEXTS = 200
"""How many documents of a dataset, or questions if it has none, show its language."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A spec whose blocks all name their embedding model.

    Attributes:
        reason: why the model is the default one or the other; "" if no block leaves it open.
        note: what a reader of the numbers must know; None if minilm knows the texts.
    """

    spec: Spec
    reason: str = ""
    note: Note | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        return () if self.note is None else (self.note,)


def load_chosen(path: Path, overrides: Sequence[str] = ()) -> Spec:
    """Load a spec for a command that asks its judges and models outside of an evaluation, with the models of `run`."""
    return choose_default_model(load(path, overrides=overrides)).spec


def choose_default_model(spec: Spec, declared: Mapping[str, Node] | None = None) -> ChosenModel:
    """The spec with the model that its texts need wherever a block that is used names none.

    `declared` are all models of the spec, if only those that it uses are left in it. If the texts need multilingual and
    it is not installed, the spec stays as it is, and the note says what to do.
    """
    changed = _rename(spec, spec.models if declared is None else declared)
    if changed is None or spec.models.get(_DEFAULT) != _read_block(_DEFAULT):
        return ChosenModel(spec)
    parts = build_parts(spec)
    if build_parts(changed).asked_models.keys() == parts.asked_models.keys():
        return ChosenModel(spec)  # a key without effect, such as that of a metric whose judge needs no model
    has_default, has_other = (EMBEDDED[name].is_installed for name in (_DEFAULT, _OTHER))
    if not has_default and has_other:
        told = f"the model {_OTHER} is used where the spec names none, because {_DEFAULT} is not installed"
        return ChosenModel(changed, told, Note(CODE, f"{told}. To settle it, write 'model: {_OTHER}'"))
    lowest = min(_measure_all(parts).items(), key=lambda one: one[1], default=None)
    if lowest is None:
        return ChosenModel(spec)
    dataset, share = lowest
    reason = f"minilm's vocabulary has {format_percent(share)} of the words in the dataset '{dataset}' by letters"
    if share >= COVERED_FROM:
        return ChosenModel(spec, f"the model {_DEFAULT} is used where the spec names none: {reason}")
    reason += " (of English prose, 77% to 91%)"
    if not has_other:
        told = (
            f"{reason}, so rankings and similarities will be poor; run `{EMBEDDED[_OTHER].install}`, and the model "
            f"{_OTHER} is used instead. To keep minilm without this note, write 'model: {_DEFAULT}'"
        )
        return ChosenModel(spec, told, Note(CODE, told, dataset, level="warning"))
    told = f"the model {_OTHER} is used where the spec names none: {reason}"
    return ChosenModel(changed, told, Note(CODE, f"{told}. To settle it, write 'model: {_OTHER}'", dataset))


def find_model_for(collection: Collection) -> str:
    """The name of the embedded model for the texts of a dataset; minilm if they have no letters.

    Raises:
        DataError: the dataset cannot be read.
    """
    share = _measure(collection)
    return _DEFAULT if share is None or share >= COVERED_FROM else _OTHER


def _rename(spec: Spec, declared: Mapping[str, Node]) -> Spec | None:
    """The spec with the other model for the default one; None if every block names its model."""
    sections: dict[str, Any] = {
        name: MappingProxyType(_rename_all(getattr(spec, name))) for name in ("systems", "sources", "judges")
    }
    metrics = tuple(one._replace(node=rename_defaults(one.node, _DEFAULT, _OTHER)) for one in spec.metrics)
    if metrics == spec.metrics and all(of == getattr(spec, name) for name, of in sections.items()):
        return None
    models = MappingProxyType({**spec.models, _OTHER: declared.get(_OTHER) or _read_block(_OTHER)})
    return replace(spec, metrics=metrics, models=models, **sections)


def _read_block(name: str) -> Node:
    """The block that the name of an embedded model means where the spec has none of that name."""
    block = DEFAULT_MODELS[name]
    node: Node = registry.load("models", block["use"]).node_type.model_validate(dict(block), by_alias=True)
    return node


def _rename_all(nodes: Mapping[str, T]) -> dict[str, T]:
    return {name: rename_defaults(node, _DEFAULT, _OTHER) for name, node in nodes.items()}


def _measure_all(parts: SpecPlugins) -> dict[str, float]:
    """How much of each dataset is in minilm's vocabulary. A dataset that cannot be read is left out; its error comes
    when it is opened.
    """
    found: dict[str, float] = {}
    for name, dataset in parts.datasets.items():
        with suppress(RagevalError):
            share = _measure(dataset.foresee())
            if share is not None:
                found[name] = share
    return found


def _measure(collection: Collection) -> float | None:
    """How much of a dataset is in minilm's vocabulary; None if that is not on this machine, or the texts are empty."""
    try:
        vocabulary = read_vocabulary(EMBEDDED[_DEFAULT].find_folder())
    except (UsageError, OSError, ValueError, LookupError, TypeError):
        return None  # not installed, or damaged, which whoever uses the model says
    return measure_coverage(_take_texts(collection), vocabulary)


def _take_texts(collection: Collection) -> list[str]:
    """The first documents, or the first questions and their references."""
    if collection.documents is not None:
        first = next(iter(collection.stream_corpus()), None)
        return [] if first is None else document_texts(first.head(_TEXTS)).to_list()
    texts = [] if collection.queries is None else collection.queries["text"].head(_TEXTS).to_list()
    references = collection.references
    told = [] if references is None else references["references"].head(_TEXTS).explode().drop_nulls().to_list()
    return [*filter(None, texts), *told]
