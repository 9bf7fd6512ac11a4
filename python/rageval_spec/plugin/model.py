"""The contracts of models: those that embed texts, read pairs of texts, or write replies."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Literal

from rageval_spec.data.evaluation import Note
from rageval_spec.plugin.plugin import N, Node, Plugin
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.chat import ChatReply, ChatRequest
    from rageval_spec.plugin.context import Context

Role = Literal["query", "document"]
"""What a text is embedded as: many models put another prefix before each."""


class ModelNode(Node):
    """A block under `models:`."""


class Model(Plugin[N]):
    """A model that systems, judges and metrics name. Its files are read, and fetched, when it is first needed."""

    not_in_answers: ClassVar[frozenset[str]] = frozenset()
    """Keys of the node on which no answer depends, such as a prefix that becomes part of the text that is asked."""

    counts: ClassVar[str] = "texts"
    """What its progress counts."""
    wanted: ClassVar[str] = "a model"
    """What such a model is called where another one was named, and what to name instead."""

    def __init__(self, node: N, context: Context) -> None:
        """Keep the validated node and the context; open nothing.

        `lock` is held while answers are looked up and computed, so that what two threads ask for is computed once.
        """
        super().__init__(node, context)
        self.lock = RLock()

    def prepare(self) -> None:
        """Fetch what is not on this machine yet, and pin its revision. Called before a run, never by validate or plan.

        Raises:
            RagevalError: it cannot be had; the message says what to do instead.
        """

    def describe(self) -> dict[str, str]:
        """What the results say of it: the model's id, its revision, whatever another person needs to have the same."""
        return {"use": self.node.use}

    @property
    def key(self) -> str:
        """The sha256 of everything that its answers depend on, its files' content included, in hex."""
        digests = [self.context.fingerprint(file) for file in self.inputs()]
        content = self.content()
        content["node"] = {key: value for key, value in content["node"].items() if key not in self.not_in_answers}
        text = json.dumps([content, digests], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of texts, in the order of the texts.

    Attributes:
        vectors: float32 [texts, dimension]; finite.
        truncated: bool [texts]: whether the text is longer than the model takes, and was cut.
        reused: how many of the distinct texts were not computed now, but found among earlier answers.
    """

    vectors: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    reused: int = 0


class EmbeddingModel(Model[N]):
    """Gives texts vectors."""

    wanted = "an embedding model; name one, such as minilm"

    @property
    @abstractmethod
    def similarity(self) -> Literal["cosine", "dot"]:
        """What its vectors were trained to be compared with."""

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Vectors of texts; equal texts are computed once, and those that were answered before not at all.

        An empty text has the vector that the model gives it. Progress counts distinct texts.

        Raises:
            UsageError: the model gives no embeddings.
            DataError: its files are damaged, or do not belong together.
        """

    def unread_share(self, texts: Sequence[str]) -> float | None:  # noqa: ARG002 - where nothing is known of it
        """The share of the texts' letters, 0 to 1, that the model's vocabulary does not have, judged by a sample.

        None where the model does not say. Computes no vectors.
        """
        return None


@dataclass(frozen=True, slots=True)
class PairScores:
    """What a cross-encoder says of pairs, in the order of the pairs.

    Attributes:
        logits: float32 [pairs, labels]; finite. Rerankers have one label.
        truncated: bool [pairs]: whether the pair is longer than the model takes, and its longer text was cut.
        reused: how many of the distinct pairs were found among earlier answers.
    """

    logits: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    reused: int = 0


class PairModel(Model[N]):
    """Reads two texts together: a reranker, an entailment classifier."""

    wanted = "a model that reads two texts together; name a cross-encoder: a reranker or an entailment classifier"

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of the logits, as the model's configuration names them."""

    @abstractmethod
    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        """Logits of pairs; equal pairs are computed once, and those that were answered before not at all.

        Raises:
            UsageError: the model is no sequence classifier.
            DataError: its files are damaged, or do not belong together.
        """


class ChatModel(Model[N]):
    """Writes replies: one call a question, however many threads ask."""

    counts = "calls"
    wanted = "a chat model; name one with `use: chat`"

    @abstractmethod
    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        """The reply, in the store before it is given; one that is there already is not asked for again.

        Equal requests that are under way at the same time are one call. With `fresh`, what the store has is not used,
        and is replaced.

        Raises:
            CallError: the call failed, after all tries.
            LimitError: the spec's limits allow no further call.
        """

    @abstractmethod
    def find(self, request: ChatRequest) -> ChatReply | None:
        """The reply that is kept; None where it would have to be asked for. Calls nobody."""

    @property
    @abstractmethod
    def price(self) -> tuple[float, float] | None:
        """US dollars per million tokens in and out; None where nobody says."""

    def stop(self) -> None:
        """End what is under way, because nobody waits for it any longer: after Ctrl-C."""


def note_truncated(
    cut: int,
    total: int,
    model: str,
    noun: str = "text",
    plural: str | None = None,
    *,
    code: str | None = None,
    advice: str | None = None,
) -> tuple[Note, ...]:
    """The note that a model cut `cut` of `total` texts; empty where it cut none.

    `code` names the kind of texts in the note's code, `<code>_truncated`; by default it is their plural. `advice` says
    what cuts fewer.
    """
    if not cut:
        return ()
    is_, was = ("is", "was") if cut == 1 else ("are", "were")
    message = f"{cut} of {count_noun(total, noun, plural)} {is_} longer than {model} reads and {was} cut"
    kind = code or plural or f"{noun}s"
    return (Note(f"{kind}_truncated", f"{message}; {advice}" if advice else message, count=cut),)
