"""What a judge's scores depend on, as plain data: so that what was learned about a judge is used for no other one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.dataclass import dataclass, field
from rageval_spec.plugin.block_names import names_in, number_names

if TYPE_CHECKING:
    from rageval_spec.data.findings import Criterion
    from rageval_spec.plugin.plugin import Judge, Model

Identity = Mapping[str, Any]
_CALLING = frozenset(
    {
        "api_key", "base_url", "batch", "concurrency", "headers", "patience", "price", "requests_per_minute", "retries",
        "timeout", "tokens_per_minute", "url",
    }
)  # fmt: skip
"""Keys of models that say where and how they are asked, on which no reply depends."""
_ELSEWHERE = frozenset({"use", "calibration", "prompts"})
"""Keys of judges that the identity has in another form."""


@dataclass(frozen=True)
class Surroundings:
    """The blocks that judges name, and what is known of them.

    `prompts` has the sha256 of prompts, "strict.verify"; None to ask the judges themselves. `calibrations` has that of
    the calibration of each judge that has one, by name.
    """

    judges: Mapping[str, Judge[Any]]
    models: Mapping[str, Model[Any]]
    prompts: Mapping[str, str] | None = None
    calibrations: Mapping[str, str] = field(default_factory=dict)


def identify_judge(judge: Judge[Any], around: Surroundings) -> dict[str, Any]:
    """What a judge's scores depend on, in JSON types.

    Settings at their defaults are left out, so that a key that a later version adds changes nothing. Names of blocks
    are left out too: renaming a model changes no score.

    Raises:
        RagevalError: a prompt file of the judge cannot be read.
        KeyError: the judge names a block that is not there.
    """
    name, start = judge.context.name, f"{judge.context.name}."
    known = around.prompts
    if known is None:
        prompts = dict(judge.prompt_digests())
    else:
        prompts = {key.removeprefix(start): digest for key, digest in known.items() if key.startswith(start)}
    content: dict[str, Any] = {
        "use": judge.node.use,
        "version": judge.version,
        "settings": _list_settings(judge, _ELSEWHERE),
        "prompts": prompts,
        "models": [
            {"name": model.context.name, "use": model.node.use, "version": model.version}
            | {"settings": _list_settings(model, _CALLING | {"use"})}
            for model in (around.models[one] for one in names_in(judge.node, "models"))
        ],
        "judges": [
            {**identify_judge(around.judges[other], around), "calibration": around.calibrations.get(other)}
            for other in names_in(judge.node, "judges")
        ],
    }
    return {"name": name} | {key: value for key, value in content.items() if value}


def digest_identity(identity: Identity) -> str:
    """The sha256 of an identity, whatever its blocks are called."""
    return _digest(_drop_names(identity))


def digest_criterion(criterion: Criterion) -> str:
    """The sha256 of what a metric asks a judge."""
    return _digest(dataclasses.asdict(criterion))


def explain_difference(now: Identity, before: Identity) -> str | None:
    """How a judge differs from the one that something was learned about; None if it does not.

    `made with model llama3.1:8b of the model 'local', this spec has llama3.2:3b`.
    """
    unnamed = None if digest_identity(now) == digest_identity(before) else "made for a judge with other settings"
    return next(_list_differences(now, before, ""), unnamed)


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _drop_names(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {
            key: value if key in ("settings", "prompts") else _drop_names(value)
            for key, value in content.items()
            if key != "name"
        }
    return [_drop_names(one) for one in content] if isinstance(content, list) else content


def _list_settings(plugin: Any, left_out: frozenset[str]) -> dict[str, Any]:
    """The keys of a node that differ from their defaults, with numbers in place of the names of blocks."""
    written = plugin.node.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    content = number_names({"node": plugin.node.model_dump(mode="json", by_alias=True)}, plugin.node)["node"]
    return {key: content[key] for key in written if key not in left_out}


def _list_differences(now: Identity, before: Identity, of: str) -> Iterator[str]:
    """How a judge, or a model that it asks, differs. Another kind has other settings, so then the kind says it all."""
    if now["use"] != before.get("use"):
        yield _tell("the kind", now["use"], before.get("use"), of)
        return
    for part in ("models", "judges"):
        mine, its = now.get(part, ()), before.get(part, ())
        if len(mine) != len(its):
            yield _tell(part, len(mine), len(its), of)
        for one, other in zip(mine, its, strict=False):
            yield from _list_differences(one, other, f" of the {part.removesuffix('s')} '{one['name']}'")
    for key in _find_different("prompts", now, before):
        yield f"made with another prompt{of}: {key}"
    for key in sorted(_find_different("settings", now, before), key=lambda key: (key != "model", key)):
        yield _tell(key, now.get("settings", {}).get(key), before.get("settings", {}).get(key), of)
    if now.get("calibration") != before.get("calibration"):
        yield f"made with another calibration{of}, or none"
    if now.get("version") != before.get("version"):
        yield _tell("version", now.get("version"), before.get("version"), of)


def _find_different(part: str, now: Identity, before: Identity) -> list[str]:
    mine, its = now.get(part, {}), before.get(part, {})
    return sorted(key for key in {*mine, *its} if mine.get(key) != its.get(key))


def _tell(what: str, now: Any, before: Any, of: str) -> str:
    return f"made with {what} {_show(before)}{of}, this spec has {_show(now)}"


def _show(value: Any) -> str:
    return "the default" if value is None else str(value) if isinstance(value, (str, int, float)) else json.dumps(value)
