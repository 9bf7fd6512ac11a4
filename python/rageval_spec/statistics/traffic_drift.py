"""Whether the questions of production have changed: as a whole, by new kinds of question, and by their categories.

- **As a whole**: the maximum mean discrepancy of embeddings (A. Gretton et al., "A kernel two-sample test", JMLR 13,
  2012) with a Gaussian kernel as wide as the median distance, tested by permutation.
- **New kinds**: the distance of each question to the nearest one of the baseline, as a conformal p-value: its rank
  among the distances of baseline questions that were set aside (S. Bates et al., "Testing for outliers with conformal
  p-values", Annals of Statistics 51, 2023). Benjamini and Hochberg's procedure then bounds the expected share of old
  kinds among those that are called new.
- **Categories** such as language, route or length: their total variation distance, tested by permutation.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec import kernels
from rageval_spec.libraries import Floats, Ints, np
from rageval_spec.statistics.intervals import number_clusters
from rageval_spec.statistics.percentiles import split_draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Embeddings: TypeAlias = NDArray[np.floating]


SAMPLE = 400
"""How many questions of each side are compared; all pairs of them are."""
PERMUTATIONS = 999
_SEED = 20_240_601
_ROUNDING = 1e-12
_PLACES = 1024
_FEWEST_NEW, _RARE = 3, 0.01
"""How many questions a new word must be in, and in which share of the baseline it may be."""
_FEWEST = 2


class Shift(NamedTuple):
    """How far two sets of questions are apart.

    Attributes:
        distance: the squared maximum mean discrepancy, which can be a little below 0 without a shift; or the total
            variation, from 0 to 1.
        p_value: of no shift.
        moved: for categories, what each has more of the questions now than before, the largest change first.
    """

    distance: float
    p_value: float
    moved: tuple[tuple[Hashable, float], ...] = ()


class NewKinds(NamedTuple):
    """Questions of kinds that the baseline does not have.

    Attributes:
        places: the rows of the new questions, farthest first.
        distances: the distance of each question to the nearest one of the baseline, 1 less the cosine; shape (m,).
        p_values: the conformal p-value of each, of shape (m,).
    """

    places: tuple[int, ...]
    distances: Floats
    p_values: Floats


def embed_words(*sides: Sequence[str]) -> list[Floats]:
    """Texts as vectors where there is no embedding model: tf-idf of their words and of parts of three letters, hashed.

    Each side has the shape (n, 1024), with rows of length 1. How rare a word is follows from all sides together.
    """
    texts = [text for side in sides for text in side]
    found = np.zeros((len(texts), _PLACES))
    for row, text in zip(found, texts, strict=True):
        words = re.findall(r"\w+", text.casefold()) or [text]
        for part in (*words, *(word[at : at + 3] for word in words for at in range(len(word) - 2))):
            row[zlib.crc32(part.encode("utf-8", "replace")) % _PLACES] += 1
    rarity = np.log((1 + len(texts)) / (1 + (found > 0).sum(axis=0))) + 1
    found = np.log1p(found) * rarity
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    ends = np.cumsum([len(side) for side in sides])
    return [found[end - len(side) : end] for side, end in zip(sides, ends, strict=True)]


def compare_embeddings(
    before: Embeddings, now: Embeddings, *, sample: int = SAMPLE, permutations: int = PERMUTATIONS, seed: int = _SEED
) -> Shift | None:
    """Whether the embeddings of questions have another distribution; None for fewer than two questions on a side.

    `before` and `now` have the shapes (n, d) and (m, d). At most `sample` questions of each are drawn. The discrepancy
    is the unbiased estimate of its square.
    """
    random = np.random.default_rng(seed)
    sides = [_draw(side, sample, random) for side in (before, now)]
    if min(map(len, sides)) < _FEWEST:
        return None
    kernel = _compute_kernel(np.concatenate(sides))
    first, count = len(sides[0]), len(kernel)
    seen = float(_measure_discrepancy(kernel, (np.arange(count) < first)[None, :].astype(np.float64))[0])
    extreme = 0
    for rows in split_draws(permutations, count):
        dealt = random.permuted(np.tile((np.arange(count) < first).astype(np.float64), (rows, 1)), axis=1)
        extreme += int((_measure_discrepancy(kernel, dealt) >= seen - _ROUNDING).sum())
    return Shift(seen, (1 + extreme) / (1 + permutations))


def _draw(rows: Embeddings, sample: int, random: np.random.Generator) -> Floats:
    chosen = rows if len(rows) <= sample else rows[np.sort(random.choice(len(rows), sample, replace=False))]
    drawn: Floats = np.asarray(chosen, dtype=np.float64)
    return drawn


def _compute_kernel(rows: Floats) -> Floats:
    """The Gaussian kernel of all pairs, with 0 for a row and itself."""
    squares = (rows**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0.0)
    median = float(np.median(apart[np.triu_indices(len(rows), 1)]))
    kernel: Floats = np.exp(-apart / (2 * (median if median > _ROUNDING * squares.max() else 1.0)))
    np.fill_diagonal(kernel, 0.0)
    return kernel


def _measure_discrepancy(kernel: Floats, is_first: Floats) -> Floats:
    """The unbiased squared discrepancy for each row of 1 (first side) and 0."""
    total, own = float(kernel.sum()), is_first @ kernel
    within, touching = (own * is_first).sum(axis=1), own.sum(axis=1)
    across, rest = touching - within, total - 2 * touching + within
    first = is_first.sum(axis=1)
    second = len(kernel) - first
    found: Floats = within / (first * (first - 1)) + rest / (second * (second - 1)) - 2 * across / (first * second)
    return found


def find_new_kinds(before: Embeddings, now: Embeddings, *, share: float = 0.05, seed: int = _SEED) -> NewKinds | None:
    """The questions that are of no kind that the baseline has; None for fewer than two questions in the baseline.

    Half of `before`, of shape (n, d), drawn at random, are the questions to be near to, and the others, set aside, say
    how far a question usually is. At most an expected `share` of the questions that are named are of old kinds. With n
    baseline questions, the smallest p-value is 2 / (n + 2), so that to name one question among m, n must be at least
    2 m / share.
    """
    if len(before) < _FEWEST:
        return None
    order = np.random.default_rng(seed).permutation(len(before))
    kept, aside = np.sort(order[: len(before) // 2]), np.sort(order[len(before) // 2 :])
    usual = np.sort(_find_nearest(before[aside], before[kept]))
    distances = _find_nearest(now, before[kept])
    as_far = len(usual) - np.searchsorted(usual, distances - _ROUNDING, side="left")
    p_values = (1 + as_far) / (1 + len(usual))
    places = np.array(select_discoveries(p_values, share), dtype=np.int64)
    farthest = places[np.argsort(-distances[places], kind="stable")]
    return NewKinds(tuple(farthest.tolist()), distances, p_values)


def _find_nearest(rows: Embeddings, among: Embeddings) -> Floats:
    if not len(rows):
        return np.empty(0)
    scores = kernels.top_k(np.ascontiguousarray(rows), np.ascontiguousarray(among), 1, metric="cosine").scores
    found: Floats = 1 - np.asarray(scores, dtype=np.float64)[:, 0]
    return found


def find_new_words(before: Sequence[str], now: Sequence[str], *, alpha: float = 0.01) -> list[int]:
    """The questions of `now` with words that few questions of `before` have and surely more do now: most words first.

    For where there is no embedding model. Each word has a one-sided exact test (R. A. Fisher, 1922); together they name
    a word wrongly with a probability of at most `alpha`.
    """
    sides = [[set(re.findall(r"\w{3,}", text.casefold())) for text in side] for side in (before, now)]
    earlier, later = (Counter(word for words in side for word in words) for side in sides)
    tested = sum(count + earlier[one] >= _FEWEST_NEW for one, count in later.items())
    rare = [one for one, count in later.items() if count >= _FEWEST_NEW and earlier[one] <= _RARE * len(before)]
    new = {
        one for one in rare
        if _test_rise(earlier[one], len(before), later[one], len(now)) * tested <= alpha
    }  # fmt: skip
    found = [(-len(words & new), place) for place, words in enumerate(sides[1]) if words & new]
    return [place for _, place in sorted(found)]


def _test_rise(before: int, of_before: int, now: int, of_now: int) -> float:
    """The probability that so many, or more, of the texts with a word are of now, if that is by chance."""
    total, whole = before + now, math.comb(of_before + of_now, before + now)
    return sum(math.comb(of_now, k) * math.comb(of_before, total - k) for k in range(now, total + 1)) / whole


def select_discoveries(p_values: Floats, share: float) -> list[int]:
    """The hypotheses to reject, so that at most an expected `share` of them is true (Benjamini and Hochberg, 1995)."""
    order = np.argsort(p_values, kind="stable")
    reached = np.flatnonzero(p_values[order] <= share * np.arange(1, len(order) + 1) / max(1, len(order)))
    return sorted(order[: reached[-1] + 1].tolist()) if len(reached) else []


def compare_categories(
    before: Sequence[Hashable], now: Sequence[Hashable], *, permutations: int = PERMUTATIONS, seed: int = _SEED
) -> Shift | None:
    """Whether categories (languages, routes) have other shares of the questions; None if a side has no question.

    The distance is the total variation: the share of questions that would have to change their category.
    """
    if not before or not now:
        return None
    rows = number_clusters([*before, *now], len(before) + len(now))
    names = list(dict.fromkeys([*before, *now]))
    counts = [np.bincount(own, minlength=len(names)) for own in (rows[: len(before)], rows[len(before) :])]
    changes = counts[1] / len(now) - counts[0] / len(before)
    seen = float(np.abs(changes).sum() / 2)
    random = np.random.default_rng(seed)
    dealt = random.multivariate_hypergeometric(counts[0] + counts[1], len(before), permutations)
    apart = np.abs((counts[0] + counts[1] - dealt) / len(now) - dealt / len(before)).sum(axis=1) / 2
    p_value = (1 + int((apart >= seen - _ROUNDING).sum())) / (1 + permutations)
    order = np.argsort(-np.abs(changes).round(12), kind="stable").tolist()
    return Shift(seen, p_value, tuple((names[at], float(changes[at])) for at in order))


def compare_lengths(
    before: Sequence[float] | Floats, now: Sequence[float] | Floats, *, parts: int = 10
) -> Shift | None:
    """Whether lengths have another distribution, by the shares between the baseline's quantiles; None as above.

    `moved` has the shares by the interval of lengths, such as (12.0, 20.0).
    """
    if not len(before) or not len(now):
        return None
    ends = np.unique(np.quantile(np.asarray(before, dtype=np.float64), np.linspace(0, 1, parts + 1)[1:-1]))
    edges = [-np.inf, *ends.tolist(), np.inf]
    named = [[(edges[at], edges[at + 1]) for at in _place(ends, of).tolist()] for of in (before, now)]
    return compare_categories(named[0], named[1])


def _place(ends: Floats, lengths: Sequence[float] | Floats) -> Ints:
    found: Ints = np.searchsorted(ends, np.asarray(lengths, dtype=np.float64), side="left").astype(np.int64)
    return found
