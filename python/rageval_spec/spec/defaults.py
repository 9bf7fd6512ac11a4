"""The models and judges that a spec can name without declaring them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from rageval_spec import registry

DEFAULT_MODELS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"minilm": MappingProxyType({"use": "onnx", "model": "minilm"})}
)
"""The block under `models:` that each of these names means."""

DEFAULT_IDS: Mapping[str, str] = MappingProxyType({"all-minilm-l6-v2": "minilm"})
"""Their names on hubs, in lower case and without an owner."""


def default_block(section: Literal["models", "judges"], name: str) -> Mapping[str, str] | None:
    """The block that an undeclared name means; None if the name must be declared.

    A judge's word means the judge with its defaults, unless one of its keys is required.
    """
    if section == "models":
        return DEFAULT_MODELS.get(name)
    if name not in registry.builtin_words("judges") and name not in registry.words("judges"):
        return None
    fields = registry.load("judges", name).node_type.model_fields
    needs_more = any(field.is_required() for key, field in fields.items() if key != "use")
    return None if needs_more else MappingProxyType({"use": name})


def default_names(section: Literal["models", "judges"]) -> tuple[str, ...]:
    """All names that need no declaration."""
    if section == "models":
        return tuple(DEFAULT_MODELS)
    return tuple(word for word in registry.words("judges") if default_block("judges", word))


def default_blocks(section: str) -> dict[str, Mapping[str, str]]:
    """The blocks that need no declaration, by name. Only models and judges have any."""
    known: Literal["models", "judges"]
    if section == "models":
        known = "models"
    elif section == "judges":
        known = "judges"
    else:
        return {}
    return {name: default_block(known, name) or {} for name in default_names(known)}
