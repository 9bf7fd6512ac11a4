"""From YAML text with positions to a validated, frozen `Spec`, or every diagnostic at once."""

from __future__ import annotations

from typing import Any

from rageval_spec.spec.blocks.input_files import check_inputs
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.spec_file import load, load_dict, load_tree, loads

__all__ = ["Spec", "check_inputs", "load", "load_dict", "load_tree", "loads", "schema"]


def schema(*, builtin_only: bool = False) -> dict[str, Any]:
    """The JSON Schema (draft-07) of a spec, from the node types of this package and of all installed plugins.

    Args:
        builtin_only: whether to leave out the plugins of other distributions, as in the published schema.
    """
    from rageval_spec.spec.json_schema import build_schema

    return build_schema(builtin_only=builtin_only)
