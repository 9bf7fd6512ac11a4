"""Warns of API keys and tokens in plain text."""

from __future__ import annotations

from collections.abc import Iterator

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.plugin.credentials import is_credential
from rageval_spec.plugin.secret import MARK
from rageval_spec.spec.reading import YamlMapping, YamlNode, YamlScalar, YamlSequence


def warn_of_credentials(tree: YamlNode) -> list[Diagnostic]:
    """A warning for each value that looks like a key or token, whether written in the spec or filled in by `${VAR}`."""
    return [_warn(scalar) for name, scalar in _walk(tree) if _is_literal(name, scalar)]


def _is_literal(name: str, scalar: YamlScalar) -> bool:
    text = scalar.value
    return isinstance(text, str) and not scalar.faulty and not text.startswith(MARK) and is_credential(text, name)


def _warn(scalar: YamlScalar) -> Diagnostic:
    origin = "comes from ${VAR}, which results can show" if scalar.from_environment else "is written in plain text"
    found = f"this looks like a key or token, and {origin}"
    hint = "put it in an environment variable such as NAME, and write ${secret:NAME}"
    if "://" in scalar.text:
        found = f"this URL contains what looks like a key or token, and {origin}"
        hint = "put the key in an environment variable such as NAME, and send it as a header: ${secret:NAME}"
    return scalar.place.diagnose(found, "credential", hint, "warning")


def _walk(tree: YamlNode) -> Iterator[tuple[str, YamlScalar]]:
    """Each scalar with the key that it is under. A scalar that aliases share appears once."""
    seen: set[int] = set()
    waiting = [("", tree)]
    while waiting:
        name, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, YamlScalar):
            yield name, node
        elif isinstance(node, YamlSequence):
            waiting += [(name, item) for item in reversed(node.items)]
        elif isinstance(node, YamlMapping):
            waiting += [(key, entry.value) for key, entry in reversed(node.entries.items())]
