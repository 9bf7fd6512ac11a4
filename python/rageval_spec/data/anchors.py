"""A frozen set of labelled answers, with what a judge said of them: asked again, it shows whether the judge changed."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rageval_spec.diagnostics import describe_invalid, dump_visible
from rageval_spec.errors import DataError

FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Anchor:
    """A labelled answer.

    Attributes:
        label: the mean of its labels, from 0 to 1.
        value: the judge's score when the set was frozen, from 0 to 1.
        columns: the question's other columns.
    """

    dataset: str
    system: str
    query_id: str
    question: str
    answer: str
    label: float
    value: float
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    references: tuple[str, ...] = ()
    reference_contexts: tuple[str, ...] | None = None
    columns: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class AnchorSet:
    """The content of a file of anchors.

    Attributes:
        format_version: of this shape.
        judge, metric: their names in the spec whose results were frozen.
        criterion: the sha256 of what the metric asks the judge.
        identity: what the judge's scores depend on.
        digest: the sha256 of `identity`.
        threshold: from which score on, of 0 to 1, the judge says yes.
        anchors: the answers, in the order of the labels.
    """

    format_version: int
    judge: str
    metric: str
    criterion: str
    identity: dict[str, Any]
    digest: str
    threshold: float
    anchors: tuple[Anchor, ...]

    @classmethod
    def parse(cls, content: bytes, path: str) -> AnchorSet:
        """Read a file's content; `path` is its name in errors.

        Raises:
            DataError: the content is not JSON, not a set of anchors, or has another format version.
        """
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not JSON: {error}; is it complete?") from error
        version = data.get("format_version") if isinstance(data, dict) else None
        if version != FORMAT_VERSION or "anchors" not in data:
            raise DataError(
                f"{path} is not a set of anchors of format_version {FORMAT_VERSION}; make one with: "
                "rageval-spec calibrate --labels labels.csv --freeze anchors.json"
            )
        try:
            found = TypeAdapter(cls).validate_python(data)
        except ValidationError as error:
            raise DataError(f"{path} is not a set of anchors: {describe_invalid(error)}") from error
        if not found.anchors:
            raise DataError(f"{path} has no anchors")
        return found

    def dump(self) -> bytes:
        """The file as JSON text, in UTF-8."""
        return dump_visible(dataclasses.asdict(self), sort_keys=True).encode("utf-8", "backslashreplace")
