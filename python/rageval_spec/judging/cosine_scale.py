"""What a cosine of an embedding model means: where it lies between the cosines of unrelated and of equal texts.

Each model has a scale of its own. Of two texts that have nothing in common, MiniLM makes a cosine of about 0.2, and
multilingual-e5-small one of 0.8. Thresholds were calibrated with MiniLM, so the cosines of another model are read on
MiniLM's scale: three landmarks of the model go where MiniLM has them, and what is between two of them is linear. These
are the mean and the 95th percentile of the cosines between the texts in `unrelated_texts.toml`, and the 1 of equal
texts. `benches/judges.md` compares this with other maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError
from rageval_spec.libraries import np
from rageval_spec.plugin import EmbeddingModel, Model, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cosines: TypeAlias = "NDArray[np.floating[Any]]"
Roles: TypeAlias = tuple[Role, Role]

SCALED = "s1"
"""Part of the version of judges that scale cosines. Raise it with every change of the texts or of the map."""
_CLOSE = 0.95
"""Above this mean, the cosines of a model hardly tell texts apart."""
_CLOSEST = 1 - 1e-4
"""Above this mean, they are rounding errors."""


class CosineScale(NamedTuple):
    """The cosines of a model between unrelated texts: their mean, and their 5th and 95th percentile."""

    mean: float
    low: float
    high: float

    def read(self, cosines: Cosines) -> Cosines:
        """What cosines would be with MiniLM; below 0 where they are far below the mean."""
        return cosines if self == OWN else _bend(cosines, self, OWN)

    def find_cosine(self, threshold: float) -> float:
        """The model's cosine that is read as `threshold`."""
        return threshold if self == OWN else float(_bend(threshold, OWN, self))


OWN = CosineScale(0.194, -0.026, 0.551)
"""MiniLM's, which leaves every cosine as it is."""


def _bend(values: Cosines | float, before: CosineScale, after: CosineScale) -> Cosines:
    """Move the landmarks of one scale to those of another. A percentile that is the mean, or 1, is no landmark."""
    has_spread = all(scale.mean < scale.high < 1 for scale in (before, after))
    start, end = ([scale.mean, scale.high, 1.0] if has_spread else [scale.mean, 1.0] for scale in (before, after))
    slope = (end[1] - end[0]) / (start[1] - start[0])
    given = np.asarray(values)
    return np.where(given < start[0], end[0] + (given - start[0]) * slope, np.interp(given, start, end))


def find_scale(model: EmbeddingModel[Any], roles: Roles = ("document", "document")) -> CosineScale:
    """The scale of a model's cosines between texts in these roles. Embeds the unrelated texts, unless they are stored.

    Raises:
        DataError: the vectors of the unrelated texts are all nearly the same, or one of them has no direction.
        RagevalError: as for `embed`.
    """
    if model.is_calibrated:
        return OWN
    with model.lock:
        known = _FOUND.setdefault(model, {})
        if roles not in known:
            first, second = (model.embed(list_unrelated(), role).vectors for role in roles)
            known[roles] = measure_scale(first, second, f"models.{model.context.name}")
        return known[roles]


def measure_scale(first: NDArray[np.float32], second: NDArray[np.float32], where: str) -> CosineScale:
    """The scale from the vectors [texts, dimension] of the same texts in two roles; `where` names the model.

    Raises:
        ValueError: there are fewer than two texts.
        DataError: as for `find_scale`.
    """
    if len(first) < 2:
        raise ValueError(f"a scale needs two texts or more, not {len(first)}")
    sides = [vectors.astype(np.float64) for vectors in (first, second)]
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    if not all(length.all() for length in lengths):
        raise DataError(
            f"{where}: gives a text a vector of zeros, which has no direction; check its pooling and weights"
        )
    cosines = (sides[0] / lengths[0]) @ (sides[1] / lengths[1]).T
    apart = cosines[~np.eye(len(first), dtype=bool)]
    scale = CosineScale(float(apart.mean()), *map(float, np.percentile(apart, (5, 95))))
    if scale.mean > _CLOSEST:
        told = f"texts that have nothing in common have a mean cosine of {scale.mean:.5f}"
        raise DataError(f"{where}: gives nearly the same vector for all texts ({told}); check its pooling and weights")
    return scale


_FOUND: WeakKeyDictionary[EmbeddingModel[Any], dict[Roles, CosineScale]] = WeakKeyDictionary()


@cache
def list_unrelated() -> tuple[str, ...]:
    """The texts that have nothing in common."""
    import tomllib

    texts: Mapping[str, list[str]] = tomllib.loads((Path(__file__).parent / "unrelated_texts.toml").read_text("utf-8"))
    return tuple(chain.from_iterable(texts.values()))


def foresee_scale(model: EmbeddingModel[Any], roles: Roles) -> dict[str, int]:
    """What `find_scale` would have to embed, as `Model.foresee` says it."""
    if model.is_calibrated:
        return {}
    return {key: size for role in roles for key, size in model.foresee("embed", list_unrelated(), role).items()}


def name_version(version: str, model: Model[Any] | None) -> str:
    """The version of a judge: with a model whose cosines are scaled, it has given other scores since they are."""
    return f"{version}.{SCALED}" if isinstance(model, EmbeddingModel) and not model.is_calibrated else version


def explain_scale(model: EmbeddingModel[Any], scale: CosineScale, threshold: float | None = None) -> tuple[Note, ...]:
    """A note on what the cosines of a model mean that is not MiniLM; a warning if they hardly tell texts apart.

    `threshold` is one on MiniLM's scale, if the cosines were read on it; None if they are values as they are.
    """
    if scale == OWN:
        return ()
    name, (mean, low, high) = model.context.name, scale
    message = f"with {name}, unrelated texts have a mean cosine of {mean:.2f} (90% of pairs: {low:.2f} to {high:.2f})"
    if threshold is None:
        message += f", so a value near {mean:.2f} is that of texts without anything in common"
    else:
        message += f", so its cosines were put on the scale of minilm: {scale.find_cosine(threshold):.2f} counts as "
        message += f"{threshold:.2f}"
    if is_close := mean > _CLOSE:
        message += "; that is close to the 1 of equal texts: check the model's pooling and prefixes, or use another one"
    return (Note("cosine_scale", message, level="warning" if is_close else "note"),)


def explain_values(model: EmbeddingModel[Any], roles: Roles) -> tuple[Note, ...]:
    """The note of `explain_scale` where values are cosines. An endpoint, which can cost money, is not asked for it."""
    from rageval_spec.inference.hub import LocalModel

    if not isinstance(model, LocalModel):
        return ()
    try:
        return explain_scale(model, find_scale(model, roles))
    except DataError as error:
        return (Note("cosine_scale", str(error), level="warning"),)
