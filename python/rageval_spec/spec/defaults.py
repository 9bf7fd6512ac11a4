"""The models that a spec may name without declaring them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_MODELS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"minilm": MappingProxyType({"use": "onnx", "model": "minilm"})}
)
"""The block under `models:` that each of these names stands for."""

DEFAULT_IDS: Mapping[str, str] = MappingProxyType({"all-minilm-l6-v2": "minilm"})
"""How hubs call them, in lower case and without an owner."""
