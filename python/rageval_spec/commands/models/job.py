"""What `rageval-spec models bench` has a model do: embed texts, score pairs, or label the tokens of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from rageval_spec.commands.models.measured import Agreement, Difference
from rageval_spec.commands.models.texts import pair_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.commands.models.named import Named
    from rageval_spec.commands.models.trial import Outcome, Trial
    from rageval_spec.inference.tasks import Task
    from rageval_spec.plugin import Embeddings, PairScores, Progress, TokenTags


@dataclass(frozen=True)
class Job(ABC):
    """Texts or pairs of texts, and what is done with them."""

    content: Sequence[Any]
    unit: ClassVar[Literal["text", "pair"]]

    def start(self, count: int) -> Self:
        """The same for only the first `count`."""
        return replace(self, content=self.content[:count])

    @abstractmethod
    def run(self, trial: Trial, progress: Progress) -> Outcome[Any]:
        """Have a model do it."""

    @abstractmethod
    def compare(self, answer: Any, reference: Any) -> dict[str, Any]:
        """How well two forms of a model agree, by the name of the attribute of `Measured`."""


class _Embedding(Job):
    content: Sequence[str]
    unit = "text"

    def run(self, trial: Trial, progress: Progress) -> Outcome[Embeddings]:
        return trial.embed(self.content, progress=progress)

    def compare(self, answer: Embeddings, reference: Embeddings) -> dict[str, Any]:
        import numpy as np

        first, second = answer.vectors.astype(np.float64), reference.vectors.astype(np.float64)
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosines = (first * second).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)
        return {"agreement": Agreement(float(cosines.mean()), float(cosines.min()))}


class _Scoring(Job):
    content: Sequence[tuple[str, str]]
    unit = "pair"

    def run(self, trial: Trial, progress: Progress) -> Outcome[PairScores]:
        return trial.score(self.content, progress)

    def compare(self, answer: PairScores, reference: PairScores) -> dict[str, Any]:
        return {"difference": _compare_logits(answer.logits, reference.logits)}


class _Tagging(Job):
    content: Sequence[tuple[str, str]]
    unit = "pair"

    def run(self, trial: Trial, progress: Progress) -> Outcome[TokenTags]:
        return trial.tag(self.content, progress)

    def compare(self, answer: TokenTags, reference: TokenTags) -> dict[str, Any]:
        import numpy as np

        return {"difference": _compare_logits(np.concatenate(answer.logits), np.concatenate(reference.logits))}


def make_job(task: Task | None, texts: Sequence[str]) -> Job:
    """What a model of this task is measured with; without a task, that of an embedding model."""
    if task == "classification":
        return _Scoring(pair_texts(texts))
    return _Tagging(pair_texts(texts)) if task == "token_classification" else _Embedding(texts)


def _compare_logits(logits: NDArray[np.float32], reference: NDArray[np.float32]) -> Difference:
    import numpy as np

    apart = np.abs(_find_probabilities(logits) - _find_probabilities(reference))
    return Difference(float(apart.mean()), float(apart.max())) if apart.size else Difference(0.0, 0.0)


def _find_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """The softmax of the logits of several labels, and the logistic function of the logit of a single one."""
    import numpy as np

    wide = logits.astype(np.float64)
    if wide.shape[-1] == 1:
        logistic: NDArray[np.float64] = 0.5 * (1 + np.tanh(0.5 * wide))
        return logistic
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def count_tokens(named: Named, revision: str | None, job: Job) -> int:
    """How many tokens the model reads, special tokens included."""
    from rageval_spec.inference.hub import find_published_name
    from rageval_spec.inference.pairing import load_pair_tokenizer
    from rageval_spec.inference.tokens import load_tokenizer
    from rageval_spec.inference.verifiers import find_reading

    source, configuration = named.source, named.configuration
    known = None
    if configuration.task == "classification":
        known = find_reading(find_published_name(source.location, revision), configuration.encoder)
    lengths = [configuration.max_length] if known is None else [known.max_length, configuration.positions]
    limits: dict[str, Any] = {
        "max_length": min((length for length in lengths if length is not None), default=None),
        "lowercase": configuration.lowercase,
    }
    if known is not None and known.pair_format is not None:
        pairs = load_pair_tokenizer(source.tokenizer_folder, source.tokenizer, known.pair_format, **limits)
        return sum(map(len, pairs.read(job.content).ids))
    prefix = configuration.document_prefix if job.unit == "text" else ""
    content = [prefix + text for text in job.content] if prefix else job.content
    return sum(map(len, load_tokenizer(source.tokenizer_folder, source.tokenizer, **limits).read(content).ids))
