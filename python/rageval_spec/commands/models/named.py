"""Models named on the command line: found on this machine, or downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.commands.models.listing import fetched_names
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import RagevalError

if TYPE_CHECKING:
    from rageval_spec.inference.configuration import Configuration
    from rageval_spec.inference.sources import Source


@dataclass(frozen=True)
class Named:
    """A model named on the command line, with its files and its configuration."""

    name: str
    source: Source
    configuration: Configuration


def find_model(name: str, revision: str | None = None, file: str | None = None) -> Named:
    """The model with this name. It is downloaded if it is not on this machine.

    Raises:
        UsageError: there is no such model.
        RagevalError: the model cannot be downloaded.
        DataError: the model's configuration is damaged.
    """
    from rageval_spec.inference import hub
    from rageval_spec.inference.sources import EMBEDDED, find_source, locate
    from rageval_spec.progress import ProgressDisplay

    location = locate(name, Path(), revision)
    source = find_source(location, file)
    if source is None:
        try:
            with ProgressDisplay() as display:
                display.announce(f"download {name}")
                source = find_source(hub.fetch(name, revision, file), file)
        except RagevalError as error:
            near = suggest(name, [other for other in (*fetched_names(), *EMBEDDED) if other != name])
            raise type(error)(f"{error}; {near}" if near else str(error)) from error
    if source is None:
        raise RagevalError(f"'{name}' was downloaded, but some of its files are missing; run the command again")
    return Named(name, source, source.read_configuration())
