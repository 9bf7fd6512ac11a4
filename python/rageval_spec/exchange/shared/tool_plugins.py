"""Makes a dataset, a system and a report of a tool.

A folder of `exchange/` with `source.py` gives its word to `datasets:` and `systems:`, one with `target.py` to
`reports:`. The keys of their blocks are the options of `import` and `export`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import create_model

from rageval_spec.exchange.shared.contracts import Exporter, TraceSource, load

if TYPE_CHECKING:
    from rageval_spec.plugin import Plugin

_BASES: Mapping[str, tuple[str, str, str]] = {
    "datasets": ("rageval_spec.datasets.shared.trace_dataset", "TraceDataset", "source_type"),
    "systems": ("rageval_spec.systems.shared.trace_system", "TraceSystem", "source_type"),
    "reports": ("rageval_spec.reports.shared.tool_report", "SendingReport", "target_type"),
}
"""The class that a section's plugins of tools derive from, and its attribute with the tool's source or target."""

T = TypeVar("T", bound=TraceSource[Any] | Exporter[Any])


def make_plugin(section: str, word: str) -> type[Plugin[Any]]:
    """The plugin class of a tool's word in `datasets`, `systems` or `reports`."""
    module, name, attribute = _BASES[section]
    base = getattr(import_module(module), name)
    tool = load(word)
    part: Any = tool.target if section == "reports" else tool.source and (tool.source.for_specs or tool.source)
    named = word.capitalize() + section.removesuffix("s").capitalize()
    node = create_model(f"{named}Node", __base__=(base.node_type, part.node_type), __doc__=part.summary)
    members = {"node_type": node, attribute: part, "known_as": part.known_as, "__doc__": base.__doc__}
    return type(named, (base,), {**members, "__module__": module})


def open_part(part: type[T], plugin: Plugin[Any]) -> T:
    """The source or the target of a plugin's tool, with what the plugin's block says."""
    node = part.node_type(**{name: getattr(plugin.node, name) for name in part.node_type.model_fields})
    return part(node, replace(plugin.context, models={}, judges={}))
