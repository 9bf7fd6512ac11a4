"""The contracts of models that embed texts, read pairs of texts, label tokens, or write replies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from rageval_spec.data.outcomes import Note, Remark, add_counts, count_texts, digest_texts, remark, writes_notes
from rageval_spec.dataclass import dataclass
from rageval_spec.plugin.plugin import Model, N, Role
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.chat import ChatReply, ChatRequest
    from rageval_spec.store.vectors import VectorFile


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of texts, in the order of the texts.

    Attributes:
        vectors: float32 [texts, dimension]; finite.
        truncated: bool [texts]: whether the text was longer than the model takes, and was cut.
        reused: how many of the distinct texts were found among earlier answers.
        rows: int64 [texts]: the rows of the vectors in a file; None if they are in `vectors`, which else is empty.
    """

    vectors: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    reused: int = 0
    rows: NDArray[np.int64] | None = None


class EmbeddingModel(Model[N]):
    """Turns texts into vectors."""

    wanted = "an embedding model; name one, such as minilm"
    is_local: ClassVar[bool] = False
    """Whether texts stay on this machine, so that one more costs nothing."""
    file: VectorFile | None = None
    """Where `embed` stores vectors, instead of returning them; set only while `embed_into` holds the model's lock."""

    @property
    @abstractmethod
    def similarity(self) -> Literal["cosine", "dot"]:
        """The similarity that the model's vectors were trained for."""

    @property
    def is_calibrated(self) -> bool:
        """Whether this is MiniLM, with whose cosines thresholds were calibrated. Those of other models are scaled."""
        return False

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Vectors of texts. Equal texts are computed once; texts with a stored answer are not computed again.

        An empty text gets the vector that the model computes for it. Progress counts distinct texts.

        Raises:
            UsageError: the model does not give embeddings.
            DataError: the model's files are damaged, or do not belong together.
        """

    def unread_share(self, texts: Sequence[str]) -> float | None:  # noqa: ARG002 - for models that know their vocabulary
        """The share, 0 to 1, of the texts' letters that are not in the model's vocabulary, estimated from a sample.

        None if the model does not know. Computes no vectors.
        """
        return None


@dataclass(frozen=True, slots=True)
class PairScores:
    """A cross-encoder's output for pairs, in the order of the pairs; `truncated` and `reused` as in `Embeddings`.

    `logits` are float32 [pairs, labels]; finite. Rerankers have one label. Of a pair that is too long, the longer text
    is cut.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    reused: int = 0


class PairModel(Model[N]):
    """Reads two texts together, as rerankers and entailment classifiers do."""

    wanted = "a model that reads two texts together; name a cross-encoder: a reranker or an entailment classifier"

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits, named as in the model's configuration."""

    @property
    def named_labels(self) -> tuple[str, ...] | None:
        """The labels, if files on this machine name them; loads no model.

        Raises:
            UsageError: the files are not those of a classifier of pairs.
            DataError: the model's files are damaged.
        """
        return None

    fills_templates: ClassVar[bool] = False
    """Whether a model that was trained on one text, with the two texts of a pair in it, gets that text."""

    @property
    def room(self) -> int | None:
        """How many tokens the two texts of a pair may have together before they are cut; None if that is unknown."""
        return None

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int] | None:  # noqa: ARG002 - for models that can
        """How many tokens each text has as the document of a pair, without special ones; None if that is unknown.

        What is longer than the model reads may be counted as that long.
        """
        return None

    @abstractmethod
    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        """Logits of pairs. Equal pairs are computed once; pairs with a stored answer are not computed again.

        Raises:
            UsageError: the model is not a sequence classifier.
            DataError: the model's files are damaged, or do not belong together.
        """


@dataclass(frozen=True, slots=True)
class TokenTags:
    """What a token classifier says about the second text of each pair, in the order of the pairs.

    Tokens that stand for no character, such as special ones, are left out. `truncated` and `reused` as in `PairScores`;
    the tokens that were cut off the second text are missing.

    Attributes:
        offsets: for each pair int64 [tokens, 2]: the first character of each token in the second text, and the one
            after its last. Tokens are in the order of the text; parts of one character have the same offsets.
        logits: for each pair float32 [tokens, labels]; finite.
    """

    offsets: Sequence[NDArray[np.int64]]
    logits: Sequence[NDArray[np.float32]]
    truncated: NDArray[np.bool_]
    reused: int = 0


class TokenModel(Model[N]):
    """Reads two texts together and labels each token of the second one, as LettuceDetect does."""

    wanted = "a token classifier; name one, such as KRLabsOrg/lettucedect-base-modernbert-en-v1, with `use: onnx`"

    @property
    @abstractmethod
    def token_labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits, named as in the model's configuration.

        Raises:
            UsageError: the model is not a token classifier.
        """

    @property
    def named_token_labels(self) -> tuple[str, ...] | None:
        """The labels, if files on this machine name them; loads no model.

        Raises:
            UsageError: the files are not those of a token classifier.
            DataError: the model's files are damaged.
        """
        return None

    @property
    @abstractmethod
    def room(self) -> int | None:
        """The most tokens of a pair that the model reads, without special tokens; None if there is no bound."""

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """The number of tokens of each text by itself, without special tokens; nothing is cut."""

    @abstractmethod
    def tag(self, pairs: Sequence[tuple[str, str]]) -> TokenTags:
        """Logits of the tokens of each pair's second text. Equal pairs are computed once; stored answers are used.

        Raises:
            UsageError: the model is not a token classifier, or its tokenizer does not say where a token lies.
            DataError: the model's files are damaged, or do not belong together.
        """


class ChatModel(Model[N]):
    """Writes replies. A question takes one call, however many threads ask it."""

    counts = "calls"
    wanted = "a chat model; name one with `use: chat`"

    @abstractmethod
    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        """The reply to a request: the stored one, or a new one, which is stored before this returns.

        Equal requests that are under way at the same time share one call. With `fresh`, the model is asked again and
        the new reply replaces the stored one.

        Raises:
            CallError: the call failed, after all tries.
            LimitError: the spec's limits allow no further call.
        """

    @abstractmethod
    def find(self, request: ChatRequest) -> ChatReply | None:
        """The stored reply; None if there is none. Makes no call."""

    @property
    @abstractmethod
    def price(self) -> tuple[float, float] | None:
        """US dollars per million tokens in and out; None if the price is unknown."""

    @property
    def may_have_failed(self) -> bool:
        """Whether a call may have failed, now or in an earlier evaluation.

        Where it did, the stored reply can be to the same question in other words, and is searched for. False saves the
        search; a model that does not know says True.
        """
        return True

    @property
    def sample(self) -> int:
        """Which sample of each reply the model gives; 0 is its ordinary reply."""
        return 0

    def stop(self) -> None:
        """End the calls under way, because the user stopped the evaluation with Ctrl-C."""


def note_truncated(
    cut: int,
    total: int,
    model: str,
    noun: str = "text",
    plural: str | None = None,
    *,
    code: str | None = None,
    advice: str | None = None,
) -> tuple[Remark, ...]:
    """The note that a model cut `cut` of `total` texts; there is none if it cut none.

    The note's code is `<code>_truncated`; `code` defaults to the plural of the texts' noun. `advice` says how to have
    fewer texts cut. If a step is computed in parts, their numbers are added up; see `note_truncated_texts`.
    """
    return (remark(_write_truncated, [(cut, total)], model, noun, plural, code, advice),)


def note_truncated_texts(
    texts: Sequence[str], truncated: Sequence[bool], model: str, noun: str = "text"
) -> tuple[Remark, ...]:
    """The note of `note_truncated` on different texts. A text that several parts of a step read counts once."""
    cut = digest_texts(text for text, is_cut in zip(texts, truncated, strict=True) if is_cut)
    return (remark(_write_truncated_texts, [(cut, digest_texts(texts))], model, noun),)


@writes_notes
def _write_truncated(
    counts: Iterable[tuple[int, int]],
    model: str,
    noun: str,
    plural: str | None = None,
    code: str | None = None,
    advice: str | None = None,
) -> Iterator[Note]:
    cut, total = add_counts(counts)
    if cut:
        is_, was = ("is", "was") if cut == 1 else ("are", "were")
        message = f"{cut} of {count_noun(total, noun, plural)} {is_} longer than {model} reads and {was} cut"
        kind = code or plural or f"{noun}s"
        yield Note(f"{kind}_truncated", f"{message}; {advice}" if advice else message, count=cut)


@writes_notes
def _write_truncated_texts(digests: Iterable[tuple[str, str]], model: str, noun: str) -> Iterator[Note]:
    cut, total = (count_texts(side) for side in zip(("", ""), *digests, strict=True))
    yield from _write_truncated([(cut, total)], model, noun)
