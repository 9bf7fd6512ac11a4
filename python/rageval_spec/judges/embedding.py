"""`embedding`: the similarity of claims to the sentences of the contexts, by an embedding model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, Reader, Verdict
from rageval_spec.data.outcomes import Remark
from rageval_spec.data.samples import Sample
from rageval_spec.judging import cosine_scale, segments
from rageval_spec.libraries import np
from rageval_spec.plugin import EmbeddingModel, Judge, JudgeNode, ModelName, Role, note_truncated_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.judging.mentions import Mentions


SUPPORTED_FROM = 0.63
"""Without a threshold, a claim with at least this cosine is supported; `benches/judges.md` has the calibration."""
USEFUL_FROM = 0.45
"""Without a threshold, a text with at least this cosine is useful."""


class EmbeddingNode(JudgeNode):
    """Scores each sentence by its highest cosine with the sentences of the contexts, or of another text."""

    model: ModelName = Field(default="minilm", description="The embedding model: the name of a block under `models:`.")
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The cosine from which a claim counts as supported, on the scale of minilm; the score is then the "
        "share of supported claims. By default the score is the mean of the claims' cosines.",
    )
    window: int = Field(
        default=1,
        ge=1,
        le=10,
        description="The most neighbouring sentences that are compared with a claim as one text. Each increase by one "
        "embeds about as many texts again.",
    )


class _Comparison(NamedTuple):
    """What is compared for one sample: the claims with the texts that represent them, and the windows.

    `verbatim` has, for each claim, the number of the window that contains it word for word, or None.
    """

    claims: list[segments.Segment]
    shown: list[list[str]]
    windows: list[segments.Segment]
    verbatim: list[int | None]


class EmbeddingJudge(Judge[EmbeddingNode]):
    """Compares the meanings of texts without a chat model; a cosine below 0 counts as 0.

    The cosines of other models than `minilm` are put on its scale, by those between texts that have nothing in common;
    a note says how. So thresholds mean the same with every model.

    Support: a claim is a sentence. Its score is its highest cosine with one to `window` neighbouring sentences of a
    source, which are the evidence. A claim that a source contains word for word scores 1; a claim of fewer than five
    words must equal a whole window for that, and is otherwise read after the sample's question. Usefulness: the highest
    cosine of the text, or of one to `window` of its sentences, with the text that it is meant to be useful for. A claim
    with a number or name that no source contains stays just below the score of a supported claim; the reason names it.
    Similarity is not entailment: a sentence and its negation are similar, and "it is false that" before the same words
    makes no difference.
    """

    known_as = ("semantic", "cosine", "similarity", "bertscore")
    declared = frozenset[Ability]({"support", "usefulness", "claims"})

    @property
    def version(self) -> str:  # type: ignore[override]
        return cosine_scale.name_version("4", self.context.models.get(self.node.model))

    def check(self) -> str | None:
        self._model()
        return None

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        return [tuple(segment.text for segment in segments.split_segments(text)) for _, text in texts]

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        if criterion.kind == "grade":
            raise self._cannot("grade", samples)
        comparisons = self._compare(criterion, samples)
        vectors = _Vectors(self._model(), _list_texts(criterion, comparisons), _find_role(criterion))
        mentions = self._look_up(criterion, samples, comparisons)
        pairs = zip(comparisons, mentions, strict=True)
        findings = [self._find(criterion, comparison, vectors, named) for comparison, named in pairs]
        return Assessment(findings, (*vectors.remark_on_cut(self.node.model), *vectors.notes))

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        if criterion.kind == "grade":
            return Estimate()
        reads: dict[str, int] = {}
        for role, texts in _list_texts(criterion, self._compare(criterion, samples)).items():
            reads |= self._model().foresee("embed", texts, role)
            if texts:
                reads |= cosine_scale.foresee_scale(self._model(), role)
        return Estimate(reads={Reader(self.node.model, "text"): reads})

    def _model(self) -> EmbeddingModel[Any]:
        return self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]

    def _compare(self, criterion: Criterion, samples: Sequence[Sample]) -> list[_Comparison]:
        compare = self._compare_claims if criterion.kind == "support" else self._compare_pieces
        return [compare(criterion, sample) for sample in samples]

    def _compare_claims(self, criterion: Criterion, sample: Sample) -> _Comparison:
        claims = segments.split_segments(criterion.text_of(sample))
        shown = [[segments.complete_claim(claim.text, criterion, sample)] for claim in claims]
        windows = segments.slide_windows(criterion.sources_of(sample), self.node.window)
        return _Comparison(claims, shown, windows, segments.find_verbatim(claims, windows))

    def _compare_pieces(self, criterion: Criterion, sample: Sample) -> _Comparison:
        targets = criterion.sources_of(sample)
        pieces = segments.list_pieces(criterion, sample)
        shown = [[*self._parts(piece.text)] for piece in pieces]
        windows = [segments.Segment(text, 0, len(text), source) for source, text in enumerate(targets) if text.strip()]
        return _Comparison(pieces, shown, windows, [None] * len(pieces))

    def _parts(self, text: str) -> dict[str, None]:
        """The text itself, which can be longer than the model reads, and the windows of its sentences."""
        windows = segments.slide_windows([text], self.node.window)
        return dict.fromkeys([text.strip(), *(window.text for window in windows)]) if text.strip() else {}

    def _look_up(
        self, criterion: Criterion, samples: Sequence[Sample], comparisons: Sequence[_Comparison]
    ) -> Iterator[list[Mentions]]:
        """What the sources of each sample contain of the numbers and names of its claims; for usefulness, nothing."""
        from rageval_spec.judging.mentions import Mentions, find_mentions

        if criterion.kind != "support":
            yield from ([Mentions(0, ())] * len(comparison.claims) for comparison in comparisons)
            return
        named = [
            (claim.text, criterion.sources_of(sample))
            for sample, comparison in zip(samples, comparisons, strict=True)
            for claim in comparison.claims
        ]
        found = iter(find_mentions(named, threads=self.context.threads))
        yield from ([next(found) for _ in comparison.claims] for comparison in comparisons)

    def _find(
        self, criterion: Criterion, comparison: _Comparison, vectors: _Vectors, mentions: Sequence[Mentions]
    ) -> Finding:
        if not comparison.claims or segments.is_blank([claim.text for claim in comparison.claims]):
            return Finding(None, reason=segments.describe_blank(criterion.text))
        if not comparison.windows:
            return segments.find_without_sources(criterion, comparison.claims)
        others = vectors.of([window.text for window in comparison.windows], _find_role(criterion))
        claims = [
            self._judge(criterion, claim, vectors.compare(parts, others), comparison.windows, named)
            if verbatim is None
            else claim.as_claim(1.0, "supported", comparison.windows[verbatim])
            for claim, parts, verbatim, named in zip(
                comparison.claims, comparison.shown, comparison.verbatim, mentions, strict=True
            )
        ]
        return Finding(segments.score_claims(claims, self.node.threshold), tuple(claims))

    def _judge(
        self,
        criterion: Criterion,
        claim: segments.Segment,
        cosines: cosine_scale.Cosines,
        windows: Sequence[segments.Segment],
        named: Mentions,
    ) -> Claim:
        """Judge a claim by its cosines [texts that represent it, windows]."""
        if not cosines.size:
            return claim.as_claim(0.0, "not_enough_info", reason="it has no text")
        best = int(cosines.max(axis=0).argmax())
        score = min(max(float(cosines[:, best].max()), 0.0), 1.0)
        is_support = criterion.kind == "support"
        least = (SUPPORTED_FROM if is_support else USEFUL_FROM) if self.node.threshold is None else self.node.threshold
        score = named.hold_back(score, least)
        verdict: Verdict = "supported" if score >= least and not named.missing else "not_enough_info"
        return claim.as_claim(score, verdict, windows[best], named.describe(criterion.against.replace("_", " ")))


def _list_texts(criterion: Criterion, comparisons: Sequence[_Comparison]) -> dict[Role, list[str]]:
    role = _find_role(criterion)
    texts = [text for comparison in comparisons for parts in comparison.shown for text in parts]
    others = [window.text for comparison in comparisons if comparison.shown for window in comparison.windows]
    return {"document": texts, role: [*texts, *others] if role == "document" else others}


def _find_role(criterion: Criterion) -> Role:
    return "query" if criterion.against == "question" else "document"


class _Vectors:
    """Unit vectors by role and text, and the scale of their cosines."""

    def __init__(self, model: EmbeddingModel[Any], texts: Mapping[Role, list[str]], others: Role) -> None:
        has_texts = any(texts.values())
        self._scale = cosine_scale.find_scale(model, "document", others) if has_texts else cosine_scale.OWN
        self.notes = cosine_scale.explain_scale(model, self._scale)
        self._embedded: list[str] = []
        self._truncated: list[bool] = []
        self._vectors: dict[Role, NDArray[np.float32]] = {}
        self._places: dict[Role, dict[str, int]] = {}
        for role, wanted in texts.items():
            distinct = list(dict.fromkeys(wanted))
            self._places[role] = {text: place for place, text in enumerate(distinct)}
            if distinct:
                embeddings = model.embed(distinct, role)
                self._vectors[role] = _scale(embeddings.vectors, distinct, model)
                self._embedded += [f"{role} {text}" for text in distinct]
                self._truncated += embeddings.truncated.tolist()

    def of(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """The vectors of texts, float32 [texts, dimension]."""
        if not texts:
            return np.empty((0, next(iter(self._vectors.values())).shape[1]), np.float32)
        return self._vectors[role][[self._places[role][text] for text in texts]]

    def compare(self, texts: Sequence[str], others: NDArray[np.float32]) -> cosine_scale.Cosines:
        """The cosines of documents and other vectors, [texts, others], on the scale of `minilm`."""
        return self._scale.read(self.of(texts, "document") @ others.T)

    def remark_on_cut(self, model: str) -> tuple[Remark, ...]:
        return note_truncated_texts(self._embedded, self._truncated, model)


def _scale(vectors: NDArray[np.float32], texts: Sequence[str], model: EmbeddingModel[Any]) -> NDArray[np.float32]:
    from rageval_spec.errors import DataError

    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not lengths.all():
        text = texts[int(np.argmin(lengths))]
        raise DataError(f"models.{model.context.name}: the vector of {text[:80]!r} is all zeros and has no direction")
    scaled: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return scaled


PLUGIN = EmbeddingJudge
