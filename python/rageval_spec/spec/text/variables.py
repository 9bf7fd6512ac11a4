"""`${VAR}`, `${VAR:-default}` and `${secret:VAR}` in the text of values, and secrets in plain text.

`${VAR}` is replaced by the variable's text. A secret stays out of the tree: its text is marked and keeps the
variable's name. Only a node's field of type `Secret` resolves it. `$${` is a literal `${`. API keys and tokens in
plain text get a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.secrets import MARK, is_credential
from rageval_spec.spec.text.places import TextPlace, quote
from rageval_spec.spec.text.yaml_tree import YamlNode, YamlScalar, walk_named

_REFERENCE = compile_later(r"\$\$\{|\$\{(?P<inside>[^}]*)\}|\$\{")
_INSIDE = compile_later(r"(?P<secret>secret:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?", re.DOTALL)


def fill_in_variables(tree: YamlNode, environment: Mapping[str, str]) -> FilledVariables:
    """Fill in all variables of a tree, in place. A value with an error is diagnosed and marked as faulty."""
    filled = FilledVariables(environment)
    for _, scalar in walk_named(tree):
        if isinstance(scalar.value, str) and "${" in scalar.value:
            filled.fill(scalar)
    return filled


class FilledVariables:
    """The result of filling in variables. `secrets` maps each marked text to its actual text."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.secrets: dict[str, str] = {}
        self.diagnostics: list[Diagnostic] = []

    def fill(self, scalar: YamlScalar) -> None:

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
            hint = suggest(name, list(self.environment)) or f"set it: export {name}=..."
            self._report(scalar, place, f"the environment variable {name} is not set", hint)
        elif "\0" in value:
            message = f"the environment variable {name} contains a NUL character"
            self._report(scalar, place, message, "remove the character; the value is not shown here")
        return (match[0], value or "") if inside["secret"] else (value or "", None)

    def _report(self, scalar: YamlScalar, place: TextPlace, message: str, hint: str) -> None:
        scalar.faulty = True
        self.diagnostics.append(place.diagnose(message, "environment-variable", hint))


def _explain_malformed(match: re.Match[str]) -> tuple[str, str]:
    if match["inside"] is None:
        return "'${' is not closed", "write ${NAME}, or $${ for a literal ${"
    if match["inside"].startswith("secret:") and ":-" in match["inside"]:
        return "a secret cannot have a default", "set the environment variable"
    message = f"{quote(match[0])} is not a valid variable"
    return message, "write ${NAME}, ${NAME:-default} or ${secret:NAME}; for a literal ${ write $${"


def warn_of_credentials(tree: YamlNode) -> list[Diagnostic]:
    """A warning for each value that looks like a key or token, whether written in the spec or filled in by `${VAR}`."""
    texts = ((name, scalar, scalar.value) for name, scalar in walk_named(tree) if not scalar.faulty)
    return [
        _warn(scalar)
        for name, scalar, text in texts
        if isinstance(text, str) and not text.startswith(MARK) and is_credential(text, name)
    ]


def _warn(scalar: YamlScalar) -> Diagnostic:
    origin = "comes from ${VAR}, which results can show" if scalar.from_environment else "is written in plain text"
    found = f"this looks like a key or token, and {origin}"
    hint = "put it in an environment variable such as NAME, and write ${secret:NAME}"
    if "://" in scalar.text:
        found = f"this URL contains what looks like a key or token, and {origin}"
        hint = "put the key in an environment variable such as NAME, and send it as a header: ${secret:NAME}"
    return scalar.place.diagnose(found, "plain-credential", hint, "warning")
