"""What a model on this machine is, read from its files without loading its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rageval_spec.errors import RagevalError

if TYPE_CHECKING:
    from rageval_spec.inference.configuration import Configuration
    from rageval_spec.inference.sources import Location, Source
    from rageval_spec.inference.tasks import Task

HEADS: Mapping[Task, str] = {
    "embedding": "embedding",
    "classification": "classifier",
    "token_classification": "token classifier",
}
"""What a model gives, in the words of the list."""
T = TypeVar("T")

_PRECISIONS: Mapping[str, str] = {
    "F64": "fp64",
    "F32": "fp32",
    "F16": "fp16",
    "BF16": "bf16",
    "I8": "int8",
    "U8": "int8",
}
_MOST_FRONT_MATTER = 20_000
"""How many characters of a card are read; its front matter is at the beginning."""
_CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Inspected:
    """What a model's files say; empty where they do not.

    Attributes:
        format: `onnx` or `safetensors`; empty if neither is there.
        architecture: transformers' `model_type`.
        head: what the model gives, as in `HEADS`.
        labels: a classifier's labels in the order of its logits.
        precision: that of the largest part of the safetensors weights, such as `fp16`.
        license: as the model's card states it, or else the table of known verifiers.
        problem: why the model cannot be run, and what to do.
    """

    format: str = ""
    architecture: str = ""
    head: str = ""
    labels: tuple[str, ...] = ()
    precision: str = ""
    license: str = ""
    problem: str = ""


def inspect(location: Location, name: str) -> Inspected:
    """What the model at a place is. A damaged file is described in `problem`; the other files are read all the same."""
    from rageval_spec.inference.configuration import read_configuration
    from rageval_spec.inference.sources import find_source
    from rageval_spec.inference.translation import translated

    folder = location.folder
    facts: dict[str, Any] = {}
    problems: list[str] = []

    def attempt(read: Callable[[], T]) -> T | None:
        try:
            with translated():
                return read()
        except (RagevalError, OSError) as error:
            problems.append(str(error))
            return None

    source = attempt(lambda: find_source(location))
    if source is not None:
        facts |= {"format": source.format, "precision": attempt(lambda: _read_precision(source)) or ""}
    elif not problems:
        problems.append("incomplete, or not in a format that onnx can use")
    if folder is not None:
        configuration = attempt(lambda: read_configuration(folder))
        if configuration is not None:
            facts |= _describe(configuration)
            if source is not None and source.format == "safetensors":
                attempt(lambda: _check_architecture(configuration))
        facts["license"] = read_license(folder / _CARD) or _list_known_licenses().get(name.casefold(), "")
    return Inspected(**facts, problem="; ".join(dict.fromkeys(problems)))


def _describe(configuration: Configuration) -> dict[str, Any]:
    head = "" if configuration.task is None else HEADS[configuration.task]
    return {"architecture": configuration.model_type, "head": head, "labels": configuration.labels}


def _check_architecture(configuration: Configuration) -> None:
    from rageval_spec.inference.graph import find_architecture

    find_architecture(configuration.encoder)


def _read_precision(source: Source) -> str:
    """The type of most weights according to the headers of the safetensors files; "" for other formats.

    Raises:
        DamagedFile: a file is damaged or truncated.
    """
    from rageval_spec.inference.tensors import Tensors

    files = [source.path(name) for name in source.weights if name.endswith(".safetensors")]
    kind = Tensors(files).find_commonest_kind()
    return _PRECISIONS.get(kind, kind.lower())


def read_license(card: Path) -> str:
    """The license in a model card's YAML front matter; "" without one, or if it cannot be read."""
    import yaml

    try:
        with card.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MOST_FRONT_MATTER)
        start, front, _ = text.split("---", 2)
        content = None if start.strip("\ufeff \n") else yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return ""
    if not isinstance(content, dict):
        return ""
    found = content.get("license")
    names = found if isinstance(found, list) else [found]
    named = content.get("license_name")
    told = [str(named) if name == "other" and named else str(name) for name in names if name]
    return ", ".join(told)


@cache
def _list_known_licenses() -> Mapping[str, str]:
    """The licenses of the verifiers that people use, by the model's id in lower case."""
    from rageval_spec.inference.verifiers import VERIFIERS

    return {verifier.name.casefold(): verifier.license for verifier in VERIFIERS.values()}
