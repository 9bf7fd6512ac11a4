"""Compares the meanings of texts by the cosine of their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rageval_spec.data.assessment import Failed
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Context, EmbeddingModel, Role, note_truncated

if TYPE_CHECKING:
    from rageval_spec.data.note import Note


def find_embedding_model(context: Context, name: str) -> EmbeddingModel[Any]:
    """The embedding model of that name.

    Raises:
        UsageError: there is no model of that name, or it is of another kind.
    """
    return context.model(name, EmbeddingModel)  # type: ignore[type-abstract]


def check_embedding_model(context: Context, name: str) -> str | None:
    """Why the spec has no embedding model of that name; None if it has one."""
    try:
        find_embedding_model(context, name)
    except UsageError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines of pairs of texts, in their order; `Failed` if a text has a vector of zeros."""

    values: Sequence[float | Failed]
    notes: tuple[Note, ...] = ()


def compare_meanings(model: EmbeddingModel[Any], pairs: Sequence[tuple[str, str]], role: Role) -> Cosines:
    """The cosine of the embeddings of each pair of texts, in [-1, 1]; the distinct texts are embedded at once."""
    import numpy as np

    from rageval_spec import kernels

    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not texts:
        return Cosines(())
    embeddings = model.embed(texts, role)
    vectors, place = embeddings.vectors, {text: index for index, text in enumerate(texts)}
    without_direction = ~np.any(vectors, axis=1)
    values: list[float | Failed] = []
    for pair in pairs:
        lost = next((text for text in pair if without_direction[place[text]]), None)
        values.append(
            0.0 if lost is None else Failed(f"{model.context.name} gives a vector of zeros for {lost[:80]!r}")
        )
    rows = [index for index, value in enumerate(values) if not isinstance(value, Failed)]
    if rows:
        first, second = (vectors[[place[pairs[row][side]] for row in rows]] for side in (0, 1))
        for row, cosine in zip(rows, kernels.cosine_rows(first, second).tolist(), strict=True):
            values[row] = cosine
    return Cosines(values, note_truncated(int(embeddings.truncated.sum()), len(texts), model.context.name))
