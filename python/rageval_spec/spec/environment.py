"""`${VAR}`, `${VAR:-default}` and `${secret:VAR}` in the text of values.

`${VAR}` is replaced by the variable's text. A secret stays out of the tree: its text is marked (`secret.MARK`) and
keeps the variable's name. Only a node's field of type `Secret` resolves it. `$${` is a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.plugin.secret import MARK
from rageval_spec.spec.places import Place, quote
from rageval_spec.spec.reading import YamlNode, YamlScalar, walk_scalars

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)\}|\$\{")
_INSIDE = re.compile(r"(?P<secret>secret:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?", re.DOTALL)


@dataclass(frozen=True)
class Filled:
    """The result of filling in variables. `secrets` maps each marked text to its actual text."""

    secrets: Mapping[str, str] = field(repr=False)
    diagnostics: list[Diagnostic]


def fill_in_variables(tree: YamlNode, environment: Mapping[str, str]) -> Filled:
    """Fill in all variables of a tree, in place. A value with an error is diagnosed and marked as faulty."""
    filler = _Filler(environment)
    for scalar in walk_scalars(tree):
        if isinstance(scalar.value, str) and "${" in scalar.value:
            filler.fill(scalar)
    return Filled(filler.secrets, filler.diagnostics)


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

    def _look_up(self, match: re.Match[str], scalar: YamlScalar, place: Place) -> tuple[str, str | None]:
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

    def _report_missing(self, scalar: YamlScalar, place: Place, name: str) -> None:
        near = suggest(name, list(self.environment))
        self._report(scalar, place, f"the environment variable {name} is not set", near or f"set it: export {name}=...")

    def _report(self, scalar: YamlScalar, place: Place, message: str, hint: str) -> None:
        scalar.faulty = True
        self.diagnostics.append(place.diagnose(message, "environment", hint))


def _explain_malformed(match: re.Match[str]) -> tuple[str, str]:
    if match["inside"] is None:
        return "'${' is not closed", "write ${NAME}, or $${ for a literal ${"
    if match["inside"].startswith("secret:") and ":-" in match["inside"]:
        return "a secret cannot have a default", "set the environment variable"
    message = f"{quote(match[0])} is not a valid variable"
    return message, "write ${NAME}, ${NAME:-default} or ${secret:NAME}; for a literal ${ write $${"
