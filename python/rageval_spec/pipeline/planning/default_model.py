"""Chooses the embedding model of blocks that name none: minilm, or multilingual for texts that minilm cannot read.

The choice becomes part of the spec's nodes, so that plans, keys, results and baselines have it as if it were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from rageval_spec import registry
from rageval_spec.data.outcomes import Note
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.dataclass import replace
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference.coverage import COVERED_FROM, measure_coverage, read_vocabulary
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin.block_names import rename_defaults
from rageval_spec.spec.blocks.spec_node import DEFAULT_MODELS, Spec
from rageval_spec.wording import format_percent

CODE = "default_model"
"""The code of the note that says which model was chosen, and why."""
_DEFAULT, _OTHER = "minilm", "multilingual"
_TEXTS = 200
"""How many documents of a dataset, or questions if it has none, show its language."""
T = TypeVar("T")


def choose_default_model(spec: Spec) -> tuple[Spec, tuple[Note, ...]]:
    """The spec with the model that its texts need wherever a block names none, and a note if that is not minilm.

    If the texts need multilingual and it is not installed, the spec stays as it is, and the note says what to do.
    """
    declared = registry.load("models", "onnx").node_type.model_validate(dict(DEFAULT_MODELS[_DEFAULT]), by_alias=True)
    changed = _rename(spec)
    if changed is None or spec.models.get(_DEFAULT) != declared:
        return spec, ()
    lowest = min(_measure(spec).items(), key=lambda one: one[1], default=None)
    if lowest is None or lowest[1] >= COVERED_FROM:
        return spec, ()
    dataset, share = lowest
    reason = (
        f"minilm's vocabulary has {format_percent(share)} of the words in the dataset '{dataset}' (counted by letters; "
        f"English texts have {format_percent(COVERED_FROM)} or more)"
    )
    try:
        EMBEDDED[_OTHER].find_folder()
    except UsageError:
        told = (
            f"{reason}, so rankings and similarities will be poor; run `{EMBEDDED[_OTHER].install}`, and the model "
            f"{_OTHER} is used instead. To keep minilm and this note away, write 'model: {_DEFAULT}'"
        )
        return spec, (Note(CODE, told, dataset, level="warning"),)
    told = f"the model {_OTHER} is used where the spec names none: {reason}. To settle it, write 'model: {_OTHER}'"
    return changed, (Note(CODE, told, dataset),)


def find_model_for(collection: Collection) -> str:
    """The name of the embedded model for the texts of a dataset; minilm if its vocabulary is not on this machine.

    Raises:
        DataError: the dataset cannot be read.
    """
    try:
        vocabulary = read_vocabulary(EMBEDDED[_DEFAULT].find_folder())
    except (UsageError, OSError):
        return _DEFAULT
    share = measure_coverage(_take_texts(collection), vocabulary)
    return _DEFAULT if share is None or share >= COVERED_FROM else _OTHER


def _rename(spec: Spec) -> Spec | None:
    """The spec with the other model for the default one; None if every block names its model."""
    sections: dict[str, Any] = {
        name: MappingProxyType(_rename_all(getattr(spec, name))) for name in ("systems", "sources", "judges")
    }
    metrics = tuple(one._replace(node=rename_defaults(one.node, _DEFAULT, _OTHER)) for one in spec.metrics)
    if metrics == spec.metrics and all(of == getattr(spec, name) for name, of in sections.items()):
        return None
    block = DEFAULT_MODELS[_OTHER]
    node = registry.load("models", block["use"]).node_type.model_validate(dict(block), by_alias=True)
    models = MappingProxyType({**spec.models, _OTHER: spec.models.get(_OTHER, node)})
    return replace(spec, metrics=metrics, models=models, **sections)


def _rename_all(nodes: Mapping[str, T]) -> dict[str, T]:
    return {name: rename_defaults(node, _DEFAULT, _OTHER) for name, node in nodes.items()}


def _measure(spec: Spec) -> dict[str, float]:
    """How much of each dataset is in minilm's vocabulary. A dataset that cannot be read is left out; its error comes
    when it is opened.
    """
    found: dict[str, float] = {}
    try:
        vocabulary = read_vocabulary(EMBEDDED[_DEFAULT].find_folder())
    except (UsageError, OSError):
        return found
    for name, dataset in build_parts(spec).datasets.items():
        try:
            share = measure_coverage(_take_texts(dataset.foresee()), vocabulary)
        except RagevalError:
            continue
        if share is not None:
            found[name] = share
    return found


def _take_texts(collection: Collection) -> list[str]:
    """The first documents, or the first questions and their references."""
    if collection.documents is not None:
        first = next(iter(collection.stream_corpus()), None)
        return [] if first is None else document_texts(first.head(_TEXTS)).to_list()
    texts = [] if collection.queries is None else collection.queries["text"].head(_TEXTS).to_list()
    references = collection.references
    told = [] if references is None else references["references"].head(_TEXTS).explode().drop_nulls().to_list()
    return [*filter(None, texts), *told]
