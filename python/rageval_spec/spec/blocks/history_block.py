"""The node of `history:`, which says where evaluations are recorded.

`SpecBlock` is the base of YAML blocks that belong to no plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.errors import UnusablePathError, check_path, expand_home
from rageval_spec.plugin.secrets import Secret
from rageval_spec.spec.text.places import KeyPath, TextPlace, nearest_place


class SpecBlock(BaseModel):
    """A YAML block without `use:`. Frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


HistoryWord: TypeAlias = Literal["none", "sqlite"]


class HistoryNode(SpecBlock):
    """`history:` where evaluations are recorded."""

    use: Literal["none", "sqlite", "postgres"] = Field(
        description="none: nowhere; sqlite: in a file; postgres: in PostgreSQL, which needs the extra `postgres`."
    )
    path: str | None = Field(
        default=None, description="The file of `use: sqlite`. Default: `.rageval/history.db` next to the spec."
    )
    url: Secret | None = Field(
        default=None,
        description="The database of `use: postgres`, for example `${secret:HISTORY_URL}` where the variable holds "
        "postgresql://user:password@host/database.",
    )

    def find_mistake(self) -> tuple[str, str, str | None] | None:
        """The key that contradicts `use`, what is wrong with it, and what to do; None if nothing is wrong."""
        if self.use == "postgres" and self.url is None:
            return "use", "'use: postgres' needs the address of a database", "add 'url: ${secret:HISTORY_URL}'"
        if self.use != "postgres" and self.url is not None:
            return "url", f"'use: {self.use}' has no 'url'", "write 'use: postgres', or remove 'url'"
        if self.use != "sqlite" and self.path is not None:
            return "path", f"'use: {self.use}' has no 'path'", "write 'use: sqlite', or remove 'path'"
        return None


def expand_history(written: HistoryWord | HistoryNode) -> HistoryNode:
    """The block that a bare word means."""
    return HistoryNode(use=written) if isinstance(written, str) else written


def check_history(
    written: HistoryWord | HistoryNode | None, places: Mapping[KeyPath, TextPlace], folder: Path
) -> Iterator[Diagnostic]:
    """The keys of `history:` must suit its `use`, and its file must have a path that can be followed."""
    mistake = written.find_mistake() if isinstance(written, HistoryNode) else None
    if isinstance(written, HistoryNode) and written.path is not None and mistake is None:
        try:
            check_path(folder / expand_home(written.path), written.path)
        except UnusablePathError as error:
            mistake = "path", str(error), None
    if mistake is not None:
        key, message, hint = mistake
        place = nearest_place(places, ("history", key))
        if place is not None:
            yield place.diagnose(message, "history", hint)
