"""`http`: embeddings from an endpoint with OpenAI's `/v1/embeddings`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec.endpoints import pacing
from rageval_spec.endpoints.addresses import BaseUrl, complete_url
from rageval_spec.endpoints.tries import EndpointNode, Limits, Tries, WrongReplyError
from rageval_spec.libraries import np
from rageval_spec.plugin import EmbeddingModel, Embeddings, ModelNode, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.endpoints.calls import Batches
    from rageval_spec.inference.stored_outputs import Batch


LEAST_LIMIT = 2**20
BYTES_A_TEXT = 2**18
"""The most bytes of a reply per text, in addition to `LEAST_LIMIT`: a vector of 10,000 values in decimal digits."""


class HttpModelNode(EndpointNode, ModelNode):
    """Embeddings over HTTP, from OpenAI, vLLM, Ollama, TEI, llama.cpp's server, LiteLLM and others."""

    base_url: BaseUrl = Field(
        description="The URL of the endpoint, with or without `/v1`: `http://localhost:11434`. It must not contain "
        "credentials."
    )
    model: str = Field(min_length=1, description="The model's name at the endpoint, such as `text-embedding-3-small`.")
    dimensions: int | None = Field(
        default=None, ge=1, description="How many values a vector should have, for models with a choice."
    )
    encoding_format: Literal["float", "base64"] = Field(
        default="float",
        description="How vectors are transferred; base64 takes a third of the bytes, if the endpoint supports it.",
    )
    query_prefix: str = Field(default="", description="Text to put before each query, such as `query: `.")
    document_prefix: str = Field(default="", description="Text to put before each document, such as `passage: `.")
    max_characters: int | None = Field(
        default=None,
        ge=1,
        description="Cut texts, prefix included, to this length; a note reports it. For endpoints that refuse long "
        "texts.",
    )
    normalize: bool = Field(default=False, description="Scale each vector to length 1.")
    similarity: Literal["cosine", "dot"] = Field(
        default="cosine", description="The similarity that the model's vectors were trained for."
    )
    batch: int = Field(default=64, ge=1, description="Texts per call.")
    concurrency: int = Field(default=4, ge=1, le=256, description="The most calls at once.")
    timeout: float = Field(default=60, gt=0, le=86400, description="How many seconds a try may take.")


class HttpModel(EmbeddingModel[HttpModelNode]):
    """Sends texts in calls of `batch`, several calls at once, and stores each vector as it arrives.

    Stored vectors depend on the URL, the model's name, the headers and the settings that influence them, but not on the
    API key, the secrets in headers and how calls are made. An empty text is sent as a space, because most endpoints
    refuse empty texts. The environment names proxies and certificates (`https_proxy`, `no_proxy`, `SSL_CERT_FILE`).
    """

    known_as = ("tei", "api", "endpoint", "remote", "cohere", "voyage", "jina", "infinity", "text_embedding")
    not_in_answers = frozenset({"query_prefix", "document_prefix", "similarity"})

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return self.node.similarity

    @property
    def url(self) -> str:
        """The URL to which texts are posted: `base_url` with `/v1/embeddings`, as far as its path lacks that."""
        return complete_url(self.node.base_url, ("embeddings",))

    def describe(self) -> dict[str, str]:
        return {"use": self.node.use, "model": self.node.model, "url": self.url.partition("?")[0]}

    def content(self) -> dict[str, Any]:
        dump = self.node.model_dump(
            mode="json",
            include={
                "model", "dimensions", "query_prefix", "document_prefix", "max_characters", "normalize", "similarity"
            },
        )  # fmt: skip
        node = {**dump, **self.node.identify_headers(), "url": self.url}
        return {"word": self.node.use, "version": self.version, "node": node}

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Vectors of texts. Only texts that `max_characters` cuts are flagged as truncated."""
        from rageval_spec.inference.stored_outputs import embed_texts

        prefix = self.node.query_prefix if role == "query" else self.node.document_prefix
        wanted = [prefix + text for text in texts]
        sent = [text[: self.node.max_characters] or " " for text in wanted]
        found = embed_texts(self, sent, self._compute)
        is_cut = np.array([len(whole) > len(text) for whole, text in zip(wanted, sent, strict=True)], np.bool_)
        return replace(found, truncated=found.truncated | is_cut)

    def _compute(self, texts: Sequence[str]) -> Iterator[Batch]:
        batches = self._open()
        starts = range(0, len(texts), self.node.batch)
        return batches.post_all(starts, lambda start: self._ask(batches, texts, start), self._at_once)

    @property
    def _at_once(self) -> int:
        return self.context.shard.take_at_once(self.node.concurrency)

    def _open(self) -> Batches:
        from rageval_spec.endpoints.calls import Batches
        from rageval_spec.endpoints.endpoint import Endpoint

        headers = self.node.list_headers()
        where = f"models.{self.context.name}"
        most = LEAST_LIMIT + self.node.batch * BYTES_A_TEXT
        endpoint = Endpoint(self.url, where, headers=headers, timeout=self.node.timeout, most_bytes=most)
        limits = Limits(self._at_once, self.node.retries, patience=self.node.patience)
        return Batches(endpoint, Tries(limits, pacing.Clock(), make_pace=self.context.make_pace(where)))

    def _ask(self, batches: Batches, texts: Sequence[str], start: int) -> Batch:
        from rageval_spec.inference.stored_outputs import Batch

        asked = texts[start : start + self.node.batch]
        content: dict[str, Any] = {"model": self.node.model, "input": asked}
        if self.node.dimensions is not None:
            content["dimensions"] = self.node.dimensions
        if self.node.encoding_format != "float":
            content["encoding_format"] = self.node.encoding_format
        vectors = batches.post(content, lambda reply: self._read(reply, len(asked)))
        return Batch(np.arange(start, start + len(asked)), vectors, np.zeros(len(asked), np.bool_))

    def _read(self, content: Any, count: int) -> NDArray[np.float32]:
        """The vectors in the order of the texts, from `{"data": [{"index": 0, "embedding": [0.1, ...]}, ...]}`."""
        items = content.get("data") if isinstance(content, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise WrongReplyError("with no list 'data' of embeddings")
        if len(items) != count:
            raise WrongReplyError(f"with {len(items)} embeddings for {count} texts")
        ordered = [_read_vector(item, index) for index, item in enumerate(_order(items))]
        dimensions = {len(vector) for vector in ordered}
        if len(dimensions) > 1:
            raise WrongReplyError(f"with vectors of {min(dimensions)} and of {max(dimensions)} values")
        if (wanted := self.node.dimensions) not in (None, *dimensions):
            raise WrongReplyError(f"with vectors of {dimensions.pop()} values where 'dimensions' asks for {wanted}")
        vectors = np.stack(ordered)
        return _scale(vectors) if self.node.normalize else vectors


def _order(items: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The items in the order of the texts, which is that of the reply if it has no indexes."""
    if not any("index" in item for item in items):
        return items
    placed = {item.get("index"): item for item in items if type(item.get("index")) is int}
    if placed.keys() != set(range(len(items))):
        raise WrongReplyError(f"with an 'index' that is missing, repeated, or not below {len(items)}")
    return [placed[index] for index in range(len(items))]


def _read_vector(item: dict[str, Any], index: int) -> NDArray[np.float32]:
    embedding = item.get("embedding")
    vector = _decode(embedding, index) if isinstance(embedding, str) else _read_numbers(embedding, index)
    if not len(vector):
        raise WrongReplyError(f"with an empty embedding for text {index} of the call")
    if not np.isfinite(vector).all():
        raise WrongReplyError(f"with NaN or infinity in the embedding of text {index} of the call")
    return vector


def _read_numbers(embedding: Any, index: int) -> NDArray[np.float32]:
    if not isinstance(embedding, list) or not set(map(type, embedding)) <= {int, float}:
        raise WrongReplyError(f"with an embedding of text {index} of the call that is not a list of numbers")
    try:
        with np.errstate(over="ignore"):
            return np.array(embedding, np.float64).astype(np.float32)
    except OverflowError:
        return np.full(len(embedding), np.inf, np.float32)


def _decode(embedding: str, index: int) -> NDArray[np.float32]:
    """Decode little-endian float32 values in base64."""
    from binascii import Error, a2b_base64

    try:
        content = a2b_base64(embedding, strict_mode=True)
    except (Error, ValueError):
        raise WrongReplyError(f"with an embedding of text {index} of the call that is not base64") from None
    if len(content) % 4:
        raise WrongReplyError(
            f"with {len(content)} bytes as the embedding of text {index} of the call, which are not whole float32 "
            "values"
        )
    return np.frombuffer(content, "<f4").astype(np.float32)


def _scale(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length 1; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


PLUGIN = HttpModel
