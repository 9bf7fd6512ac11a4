"""What a cosine of an embedding model means: where it lies between the cosines of unrelated and of equal texts.

Of two texts that have nothing in common, MiniLM makes a cosine of about 0.2, and multilingual-e5-small one of 0.8.
Thresholds were calibrated with MiniLM, so the cosines of other models are read on its scale: the mean of the cosines
between the texts in `unrelated_texts.txt` goes where MiniLM has it, the 1 of equal texts stays, and what is between is
linear. Models that crowd all cosines near 1 crowd the higher ones most. So the more a model does that, the nearer the
95th percentile of these cosines goes to where MiniLM has it, too. `benches/judges.md` has the figures.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError
from rageval_spec.libraries import np
from rageval_spec.plugin import EmbeddingModel, Model, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cosines: TypeAlias = "NDArray[np.floating[Any]]"

SCALED = "s1"
"""Part of the version of judges that scale cosines. Raise it with every change of the texts or of the map."""
_CLOSE, _CLOSEST = 0.95, 1 - 1e-4
"""Above these means, the cosines of a model hardly tell texts apart, or are rounding errors."""


class CosineScale(NamedTuple):
    """The cosines of a model between unrelated texts: their mean, and their 5th and 95th percentile."""

    mean: float
    low: float
    high: float

    def read(self, cosines: Cosines) -> Cosines:
        """What cosines would be with MiniLM; below 0 where they are far below the mean."""
        return cosines if self == OWN else _bend(cosines, *self._list_landmarks())

    def find_cosine(self, threshold: float) -> float:
        """The model's cosine that is read as `threshold`."""
        return threshold if self == OWN else float(_bend(threshold, *reversed(self._list_landmarks())))

    def _list_landmarks(self) -> tuple[list[float], list[float]]:
        """Cosines, and where they are on MiniLM's scale. A percentile that is the mean, or 1, is no landmark."""
        if not self.mean < self.high < 1:
            return [self.mean, 1.0], [OWN.mean, 1.0]
        straight = OWN.mean + (self.high - self.mean) / (1 - self.mean) * (1 - OWN.mean)
        crowded = max(0.0, (self.mean - OWN.mean) / (1 - OWN.mean))
        return [self.mean, self.high, 1.0], [OWN.mean, straight + crowded * (OWN.high - straight), 1.0]


OWN = CosineScale(0.194, -0.026, 0.551)
"""MiniLM's, which leaves every cosine as it is."""


def _bend(values: Cosines | float, start: list[float], end: list[float]) -> Cosines:
    """Move landmarks from their start to their end, and what is between or below them in proportion."""
    slope = (end[1] - end[0]) / (start[1] - start[0])
    given = np.asarray(values)
    return np.where(given < start[0], end[0] + (given - start[0]) * slope, np.interp(given, start, end))


_FOUND: WeakKeyDictionary[EmbeddingModel[Any], dict[tuple[Role, Role], CosineScale]] = WeakKeyDictionary()


def find_scale(model: EmbeddingModel[Any], first: Role = "document", second: Role = "document") -> CosineScale:
    """The scale of a model's cosines between texts in these roles. Embeds the unrelated texts, unless they are stored.

    Raises:
        DataError: the vectors of the unrelated texts are all nearly the same, or one of them has no direction.
        RagevalError: as for `embed`.
    """
    if model.is_calibrated:
        return OWN
    with model.lock:
        known = _FOUND.setdefault(model, {})
        if (first, second) not in known:
            where, texts = f"models.{model.context.name}", list_unrelated()
            scale = measure_scale(model.embed(texts, first).vectors, model.embed(texts, second).vectors, where)
            if scale.mean > _CLOSEST:
                told = f"the mean cosine of texts that have nothing in common is {scale.mean:.5f}"
                raise DataError(f"{where}: gives nearly the same vector for all texts: {told}; check its pooling")
            known[first, second] = scale
        return known[first, second]


def measure_scale(first: NDArray[np.float32], second: NDArray[np.float32], where: str) -> CosineScale:
    """The scale from the vectors [texts, dimension] of two texts or more, in two roles; `where` names the model."""
    if len(first) < 2:
        raise ValueError(f"a scale needs two texts or more, not {len(first)}")
    try:
        cosines = kernels.cosine_matrix(first, second).astype(np.float64)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    apart = cosines[~np.eye(len(first), dtype=bool)]
    return CosineScale(float(apart.mean()), *map(float, np.percentile(apart, (5, 95))))


@cache
def list_unrelated() -> tuple[str, ...]:
    """Ten texts in each of eight languages, with nothing in common. Each has a subject of its own."""
    return tuple(Path(__file__).with_name("unrelated_texts.txt").read_text("utf-8").splitlines())


def foresee_scale(model: EmbeddingModel[Any], *roles: Role) -> dict[str, int]:
    """What `find_scale` would have to embed, as `Model.foresee` says it."""
    texts = () if model.is_calibrated else list_unrelated()
    return {key: size for role in roles for key, size in model.foresee("embed", texts, role).items()}


def name_version(version: str, model: Model[Any] | None) -> str:
    """The version of a judge: with a model whose cosines are scaled, it has given other scores since they are."""
    return f"{version}.{SCALED}" if isinstance(model, EmbeddingModel) and not model.is_calibrated else version


def explain_scale(model: EmbeddingModel[Any], scale: CosineScale) -> tuple[Note, ...]:
    """A note on what the cosines of a model mean that is not MiniLM; a warning if they hardly tell texts apart."""
    name, (mean, low, high), even = model.context.name, scale, scale.find_cosine(0.5)
    message = (
        f"with {name}, unrelated texts have a mean cosine of {mean:.2f} (90% of pairs: {low:.2f} to {high:.2f}); "
        f"judges read cosines on the scale of minilm, where {even:.2f} is 0.50; metrics keep them as they are"
    )
    if is_close := mean > _CLOSE:
        message += "; the mean is close to the 1 of equal texts: check the model's pooling, or use another model"
    return () if scale == OWN else (Note("cosine_scale", message, level="warning" if is_close else "note"),)


def explain_values(model: EmbeddingModel[Any], role: Role) -> tuple[Note, ...]:
    """The note of `explain_scale` where values are cosines. An endpoint, which can cost money, is not asked for it."""
    try:
        return explain_scale(model, find_scale(model, role, role)) if model.is_local else ()
    except DataError as error:
        return (Note("cosine_scale", str(error), level="warning"),)
