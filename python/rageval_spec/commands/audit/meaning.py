"""Finds a model with which questions can be compared by their meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import EmbeddingModel
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.audit.pairs import Embed
    from rageval_spec.pipeline.parts import Parts

_LOCAL = ("onnx", "sentence_transformers")
"""Models that run on this machine, so that asking them costs nothing."""
_BY_WORDS = "Compared by their words"


class Meaning(NamedTuple):
    """How questions are compared: what gives their vectors, or None, and a sentence about it."""

    embed: Embed | None
    remark: str


def find_meaning(parts: Parts | None, wanted: str | None) -> Meaning:
    """The model to compare questions with: the one that is named, else the first one of the spec that is local.

    A local model that cannot be opened is left out, with its reason; a model behind an endpoint is only asked if it
    is named.

    Raises:
        UsageError: the spec has no embedding model of this name.
        RagevalError: the named model cannot be opened.
    """
    models = {} if parts is None else dict(parts.models)
    known = {name: model for name, model in models.items() if isinstance(model, EmbeddingModel)}
    if wanted is not None and wanted not in known:
        hint = suggest(wanted, list(known)) or (f"it has {list_choices([*known])}" if known else "it has none")
        raise UsageError(f"--model {wanted}: the spec has no embedding model of this name; {hint}")
    name = wanted or next((name for name, model in known.items() if model.node.use in _LOCAL), None)
    if name is None:
        return Meaning(None, f"{_BY_WORDS}; an embedding model in the spec also compares their meaning.")
    model = known[name]
    try:
        model.prepare()
    except RagevalError as error:
        if wanted is not None:
            raise
        return Meaning(None, f"{_BY_WORDS}, because the model '{name}' cannot be opened: {error}")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return model.embed(texts, "query").vectors

    return Meaning(embed, f"{_BY_WORDS} and, with the model '{name}', by their meaning.")
