"""Where a dataset comes from: its version, how it was made, and how many of its questions people reviewed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Origin:
    """What a dataset, or the spec, says about itself. What neither says is None.

    Attributes:
        version, created, audited: as they are written.
        made: how the questions were made: `model gpt-4o, seed 1 (180 questions) and by hand (20 questions)`.
        reviewed: the number of questions that people reviewed.
        questions: the number of all questions of the dataset; None if they were not counted.
        documents: the version of each source document, by id; of many, the first `MOST_DOCUMENTS` by id.
        documents_digest: the sha256 of the versions of all source documents.
    """

    version: str | None = None
    created: str | None = None
    made: str | None = None
    audited: str | None = None
    reviewed: int | None = None
    questions: int | None = None
    documents: dict[str, str] = field(default_factory=dict)
    documents_digest: str | None = None

    def describe(self) -> str:
        """`version 2.1; created 2026-05-01; 180 of 200 questions reviewed by people`; "" if nothing is known."""
        return "; ".join(self._list_facts())

    def _list_facts(self) -> Iterator[str]:
        if self.version is not None:
            yield f"version {self.version}"
        if self.created is not None:
            yield f"created {self.created}"
        if self.made is not None:
            yield f"made: {self.made}"
        if self.audited is not None:
            yield f"audited {self.audited}" if self.audited != "true" else "audited"
        if self.reviewed is not None:
            of = "" if self.questions is None else f" of {self.questions:,}"
            yield f"{self.reviewed:,}{of} questions reviewed by people"
        if self.documents:
            yield f"source documents {_list_versions(self.documents)}"


MOST_DOCUMENTS = 100
_MOST_SHOWN = 3


def _list_versions(documents: dict[str, str]) -> str:
    shown = [f"{name} {version}" for name, version in list(documents.items())[:_MOST_SHOWN]]
    return ", ".join(shown) + (" and others" if len(documents) > _MOST_SHOWN else "")
