"""The values that programs recorded: texts, numbers and times; JSON, and objects as Python prints them.

Nothing here fails: what is not of the wanted kind is None, or stays the text that it is.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from numbers import Real
from threading import Lock
from typing import Any

from rageval_spec.libraries import compile_later

CLASS = "_class"
"""The key of a printed object's class: `Note(text='a')` is read as `{"_class": "Note", "text": "a"}`."""
_MOST_DEPTH = 32
_LONGEST_PRINTED = 200_000
_CAN_BE_MORE = compile_later(r"\s*(?:[{\[\"<]|\(\s*['\"\[({A-Z]|[A-Za-z_][\w.]*[(=])")
"""How texts begin that can be JSON or printed objects. Most texts begin otherwise and are looked at no further."""
_SHOWN = 60
_PARSING = Lock()
_PRINTED = compile_later(
    r"\s*(?:<?[A-Z][\w.]*\(\s*(?:\w+\s*[=:]|<|'|\"|[A-Z]\w*\(|\)\s*$)|[\[(]\s*<?[A-Z]\w*\(\s*\w+\s*[=:]"
    r"|[a-z_]\w*=(?:['\"\[{<]|None\b|True\b|False\b|[A-Z]\w*\())"
)
"""How printed objects begin: `Name(field=`, a list of those, or the fields alone, as pydantic prints them."""
_OPAQUE = compile_later(
    r"\s*(?:<[\w.]+ (?:object|[^\n]* at 0x[0-9A-Fa-f]+)>+|<class '[\w.]+'>|<Response \[[^\]]*\]>)\s*"
)
"""Objects of which Python prints only the address: generators, coroutines, streams."""
_PIECES = compile_later(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|<(?:[\w.]+: (?P<value>'[^']*'|\"[^\"]*\"|-?\d+)"
    r"|(?P<opaque>[\w.]+ [^\n<>]* at 0x[0-9A-Fa-f]+|[\w.]+))>|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?<!\s)\s+(?P<field>\w+=)",
    re.DOTALL,
)


def open_text(content: Any) -> Any:
    """What a text holds: its JSON if that is an object, a list or a quoted text, the fields of a printed object, or
    the text itself. Anything else as it is."""
    if not isinstance(content, str) or _CAN_BE_MORE.match(content) is None:
        return content
    if content.lstrip()[:1] in ("{", "[", '"'):
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            pass
    printed = _read_printed(content)
    return content if printed is None else printed


def is_dump(text: str) -> bool:
    """Whether a text is an object or a list that a program wrote down, and no text that was meant to be read.

    That is JSON, what Python prints of an object, and the address of one, as of a generator.
    """
    if _CAN_BE_MORE.match(text) is None:
        return False
    return is_opaque(text) or not isinstance(open_text(text), str)


def is_printed(text: str) -> bool:
    """Whether a text is what Python prints of an object, with or without its fields."""
    if _CAN_BE_MORE.match(text) is None or text.lstrip()[:1] in ("{", '"'):
        return False
    opened = open_text(text)
    first = opened[0] if isinstance(opened, list) and opened else opened
    return is_opaque(text) or (isinstance(first, Mapping) and CLASS in first)


def is_opaque(text: str) -> bool:
    """Whether a text is what Python prints of an object, and cannot be read: an address, or a part of the fields."""
    if _CAN_BE_MORE.match(text) is None:
        return False
    if _OPAQUE.fullmatch(text) is not None:
        return True
    is_whole = _PRINTED.match(text) is not None and text.rstrip().endswith((")", ")>", "]"))
    return is_whole and text.lstrip()[0] not in "[(" and _read_printed(text) is None


def _read_printed(text: str) -> Any:
    """The fields of objects as Python prints them, and of its own lists and mappings; None for anything else."""
    text = text.strip()
    if len(text) > _LONGEST_PRINTED or not (text[:1] in ("{", "[", "(") or _PRINTED.match(text)):
        return None
    if text.startswith("<") and text.endswith(")>"):
        text = text[1:-1]
    source = _make_source(text)
    try:
        # Python counts the depth of the trees for all threads at once: two that parse can raise SystemError.
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _evaluate(ast.parse(source, mode="eval").body, 0, is_field=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict | list) else None


def _make_source(text: str) -> str:
    """A printed object as Python could read it: enumerations as their values, addresses as None, fields in a call."""
    is_call = _PRINTED.match(text) is not None and re.match(r"[a-z_]\w*=", text) is not None
    written, depth, end = list[str](), 0, 0
    for piece in _PIECES.finditer(text):
        written.append(text[end : piece.start()])
        end = piece.end()
        shown = piece[0]
        if piece["open"] or piece["close"]:
            depth += 1 if piece["open"] else -1
        elif piece["value"] or piece["opaque"]:
            shown = piece["value"] or "None"
        elif piece["field"] and is_call and depth == 0:
            shown = f", {piece['field']}"
        written.append(shown)
    source = "".join((*written, text[end:]))
    return f"Fields({source})" if is_call else source


def _evaluate(node: ast.expr, depth: int, *, is_field: bool) -> Any:
    """The value of an expression; a call is its arguments by name. Names count only as the value of a field."""
    if depth > _MOST_DEPTH:
        raise ValueError("too deep")
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_evaluate(item, depth + 1, is_field=is_field) for item in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [str(_evaluate(key, depth + 1, is_field=is_field)) for key in node.keys if key is not None]
        return dict(zip(keys, (_evaluate(one, depth + 1, is_field=is_field) for one in node.values), strict=True))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        words = [(word.arg, word.value) for word in node.keywords if word.arg is not None]
        fields = {name: _evaluate(value, depth + 1, is_field=True) for name, value in words}
        given = [_evaluate(one, depth + 1, is_field=True) for one in node.args]
        if len(given) == 1 and not fields and isinstance(given[0], dict):
            return given[0]  # `defaultdict({...})`, `mappingproxy({...})`
        return {CLASS: ast.unparse(node.func).rpartition(".")[2], **fields, **({"args": given} if given else {})}
    if isinstance(node, ast.Name | ast.Attribute) and is_field:
        return ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return ast.literal_eval(node)
    raise ValueError("not what an object is printed as")


def load_json(value: Any) -> Any:
    """JSON in a text; the text itself if it is none, and any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def read_number(found: Any) -> float | None:
    """A finite number, also one that is written as text; None for anything else."""
    if isinstance(found, bool) or not isinstance(found, int | float | str | Real):
        return None
    try:
        number = float(found)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_count(found: Any) -> int | None:
    """A whole number of at least 0, also of a text; None for anything else."""
    number = read_number(found)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def read_time(found: Any) -> datetime | None:
    """A moment in UTC: a `datetime`, or ISO 8601 text, in UTC if it names no zone; None for anything else."""
    try:
        moment = datetime.fromisoformat(found.strip()) if isinstance(found, str) else found
        if not isinstance(moment, datetime):
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def write_time(moment: datetime | None) -> str | None:
    """The moment as ISO 8601 text with `Z`."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def read_text(found: Any) -> str | None:
    """A text that is not empty; a number becomes text; None for anything else."""
    if isinstance(found, str):
        return clean_text(found) or None
    return str(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


VERSIONS = (
    "service.version", "release", "version", "app_version", "revision_id", "git_commit", "mlflow.source.git.commit",
    "mlflow.modelId",
)  # fmt: skip
"""Under which names tools record the version of an application."""


def find_version(*said: Any) -> str | None:
    """The version of the application in what was recorded of a trace; several that differ are joined by a space.

    Whichever of them changes, it is another version: of two releases, of two versions of a part of it, of two commits.
    """
    mappings = [one for one in said if isinstance(one, Mapping)]
    found = dict.fromkeys(text for name in VERSIONS for one in mappings if (text := read_text(one.get(name))))
    return " ".join(found) or None


def dump_text(value: Any) -> str | None:
    """A value as text: text as it is, anything else as JSON; None for None and for what is empty."""
    if isinstance(value, str):
        return clean_text(value) or None
    if value is None or value == {} or value == []:
        return None
    try:
        return clean_text(json.dumps(clean(value), ensure_ascii=False))
    except RecursionError:
        return f"{type(value).__name__} that nests too deeply"


def show(value: Any) -> str:
    """A value as it can stand in a message: JSON in ASCII, its end left out if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=True, default=str)
    except (ValueError, TypeError, RecursionError):
        text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def clean_text(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which JSON can name but no file can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean(value: Any, depth: int = 0) -> Any:
    """A value as JSON types: bytes as hexadecimal digits, NaN and infinities as null, what is too deep as text."""
    kind = type(value)  # comparing types is cheaper than isinstance, and almost all values have one of these
    if kind is str:
        return value if value.isascii() else clean_text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict and depth <= _MOST_DEPTH:
        return {
            (key if type(key) is str and key.isascii() else clean_text(str(key))): clean(inner, depth + 1)
            for key, inner in value.items()
        }
    return _clean_other(value, depth)


def _clean_other(value: Any, depth: int) -> Any:
    """`clean` of what is neither text nor a number of Python's own types."""
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex()
    if depth > _MOST_DEPTH:
        return f"{type(value).__name__} more than {_MOST_DEPTH} levels deep"
    if isinstance(value, Mapping):
        return {clean_text(str(key)): clean(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner, depth + 1) for inner in value]
    return str(value)
