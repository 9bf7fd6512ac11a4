"""`${VAR}`, `${VAR:-default}` and `${secret:VAR}` in the text of values, and secrets in plain text.

`${VAR}` is replaced by the variable's text. A secret stays out of the tree: its text is marked and keeps the
variable's name. Only a node's field of type `Secret` resolves it. `$${` is a literal `${`. API keys and tokens in
plain text get a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.plugin.secrets import MARK, is_credential
from rageval_spec.spec.text.places import TextPlace, quote
from rageval_spec.spec.text.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, walk_scalars

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)\}|\$\{")
_INSIDE = re.compile(r"(?P<secret>secret:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?", re.DOTALL)


@dataclass(frozen=True)
class FilledVariables:
    """The result of filling in variables. `secrets` maps each marked text to its actual text."""

    secrets: Mapping[str, str] = field(repr=False)
    diagnostics: list[Diagnostic]


def fill_in_variables(tree: YamlNode, environment: Mapping[str, str]) -> FilledVariables:
    """Fill in all variables of a tree, in place. A value with an error is diagnosed and marked as faulty."""
    filler = _Filler(environment)
    for scalar in walk_scalars(tree):
        if isinstance(scalar.value, str) and "${" in scalar.value:
            filler.fill(scalar)
    return FilledVariables(filler.secrets, filler.diagnostics)


class _Filler:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.secrets: dict[str, str] = {}
        self.diagnostics: list[Diagnostic] = []

    def fill(self, scalar: YamlScalar) -> None:
        """Replace the scalar's value."""
        text = str(scalar.value)
        shown, revealed, position, column = "", "", 0, 0
        has_secret = False
        for match in _REFERENCE.finditer(text):
            before, position = text[position : match.start()], match.end()
            place = scalar.place.narrow(match[0], column)
            column = place.position.column - scalar.place.position.column + len(match[0])
            literal, secret = self._look_up(match, scalar, place)
            has_secret |= secret is not None
            shown += before + literal
            revealed += before + (literal if secret is None else secret)
        shown += text[position:]
        scalar.value = shown
        scalar.from_environment = True
        if has_secret:
            scalar.value = MARK + shown
            self.secrets[scalar.value] = revealed + text[position:]

    def _look_up(self, match: re.Match[str], scalar: YamlScalar, place: TextPlace) -> tuple[str, str | None]:
        """The text to show in place of a reference, and the actual text if it is a secret."""
        if match[0] == "$${":
            return "${", None
        inside = _INSIDE.fullmatch(match["inside"] or "")
        if inside is None or (inside["secret"] and inside["default"]):
            self._report(scalar, place, *_explain_malformed(match))
            return match[0], None
        name, default = inside["name"], inside["default"]
        value = self.environment.get(name)
        if not value and default is not None:
            value = default.removeprefix(":-")
        if value is None:
            self._report_missing(scalar, place, name)
        elif "\0" in value:
            message = f"the environment variable {name} contains a NUL character"
            self._report(scalar, place, message, "remove the character; the value is not shown here")
        return (match[0], value or "") if inside["secret"] else (value or "", None)

    def _report_missing(self, scalar: YamlScalar, place: TextPlace, name: str) -> None:
        near = suggest(name, list(self.environment))
        self._report(scalar, place, f"the environment variable {name} is not set", near or f"set it: export {name}=...")

    def _report(self, scalar: YamlScalar, place: TextPlace, message: str, hint: str) -> None:
        scalar.faulty = True
        self.diagnostics.append(place.diagnose(message, "environment", hint))


def _explain_malformed(match: re.Match[str]) -> tuple[str, str]:
    if match["inside"] is None:
        return "'${' is not closed", "write ${NAME}, or $${ for a literal ${"
    if match["inside"].startswith("secret:") and ":-" in match["inside"]:
        return "a secret cannot have a default", "set the environment variable"
    message = f"{quote(match[0])} is not a valid variable"
    return message, "write ${NAME}, ${NAME:-default} or ${secret:NAME}; for a literal ${ write $${"


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
