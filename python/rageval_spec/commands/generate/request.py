"""What the command line asks `generate` for -> the spec whose dataset makes the questions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.datasets.generated import GeneratedNode
    from rageval_spec.plugin import Node
    from rageval_spec.reading.layouts import CorpusColumns
    from rageval_spec.spec.nodes import Spec

DATASET = "golden"
"""The name of the dataset in the spec that is made up."""
KEYS = {"openai": "OPENAI_API_KEY", "azure": "AZURE_OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""The variable with the key of each API's own endpoint."""
_SHARES = {"types": "--types", "difficulty": "--difficulty", "style": "--style"}
_PERCENTAGES = {"multi_hop": "--multi-hop", "unanswerable": "--unanswerable"}
_PRICE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*")


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes:
        corpus: the documents.
        model, checker, judge, embedding: the names of models and of a judge: of blocks of the spec if there is one,
            otherwise as endpoints know them.
        spec: the spec whose models, judges and limits are used; None to describe the model by the next four.
        base_url, dialect, api_key_env, price: the endpoint, its API, the variable with its key, and US dollars per
            million tokens in and out, such as `0.15/0.60`.
        keys: further keys of the dataset's block; shares are texts, and None means the default.
        limits: keys of `limits:`; None means the spec's.
        overrides: values that replace those of the spec.
    """

    corpus: Path
    model: str
    spec: Path | None = None
    checker: str | None = None
    judge: str | None = None
    embedding: str | None = None
    base_url: str | None = None
    dialect: str | None = None
    api_key_env: str | None = None
    price: str | None = None
    keys: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] | None = None
    overrides: Sequence[str] = ()


def build_spec(request: Request) -> Spec:
    """The spec with the dataset that was asked for, and with nothing else to evaluate.

    Raises:
        UsageError: an option is wrong.
        SpecError: the spec is wrong.
    """
    from rageval_spec.spec import load, load_dict

    keys = _read_keys(request)
    if request.spec is not None:
        return _extend(load(request.spec, overrides=request.overrides, check_files=False), request, keys)
    if request.overrides:
        raise UsageError("--set overrides values of a spec; give --spec too")
    spec = load_dict(_describe(request, keys), path="generate")
    return replace(spec, systems={}, metrics=())


def _read_keys(request: Request) -> dict[str, Any]:
    from rageval_spec.datasets.generated import NAMES
    from rageval_spec.generation.mixes import read_percentage, read_shares

    keys = {name: value for name, value in (request.keys or {}).items() if value is not None}
    for name, option in _SHARES.items():
        if name in keys:
            keys[name] = read_shares(keys[name], NAMES[name], option)
    for name, option in _PERCENTAGES.items():
        if name in keys:
            keys[name] = read_percentage(keys[name], option)
    if keys.get("multi_hop", 0) + keys.get("unanswerable", 0) > 100:
        raise UsageError("--multi-hop and --unanswerable are shares of the same questions, and sum to more than 100%")
    if "columns" in keys:
        keys["columns"] = read_columns(keys["columns"]).model_dump(exclude_none=True)
    named = {"model": request.model, "checker": request.checker, "judge": request.judge, "embedding": request.embedding}
    keys |= {name: value for name, value in named.items() if value is not None}
    return {"use": "generated", "path": str(Path.cwd() / request.corpus.expanduser()), **keys}


def read_columns(text: str) -> CorpusColumns:
    """The names of the keys of a corpus in a text such as `doc_id: url, text: body`, with or without braces.

    Raises:
        UsageError: the text is not of this form, or names something that a document does not have.
    """
    import yaml

    from rageval_spec.reading.layouts import CorpusColumns

    try:
        names = yaml.safe_load("{" + text.strip().removeprefix("{").removesuffix("}") + "}")
    except yaml.YAMLError:
        names = None
    known = tuple(CorpusColumns.model_fields)
    if not names or any(not isinstance(name, str) for name in names.values()):
        raise UsageError(f"--columns: '{text}' names no keys; write 'doc_id: url, text: body'")
    for key in names:
        if key not in known:
            hint = suggest(str(key), known) or f"a document has {list_names(known)}"
            raise UsageError(f"--columns: unknown name '{key}'; {hint}")
    return CorpusColumns.model_validate(names)


def _extend(spec: Spec, request: Request, keys: Mapping[str, Any]) -> Spec:
    """The spec with only this dataset, and with the limits that were given."""
    refused = {"--base-url": request.base_url, "--dialect": request.dialect, "--api-key-env": request.api_key_env,
               "--price": request.price}  # fmt: skip
    for option, value in refused.items():
        if value is not None:
            raise UsageError(f"{option} describes a model; with --spec, write it in the block of the model")
    models, judges = {**spec.models}, {**spec.judges}
    for option in ("model", "checker", "embedding"):
        _declare("models", keys.get(option), models, f"--{option}", request.spec)
    _declare("judges", keys.get("judge"), judges, "--judge", request.spec)
    given = {name: value for name, value in (request.limits or {}).items() if value is not None}
    return replace(
        spec,
        datasets={DATASET: _build_node(keys)},
        systems={}, sources={}, metrics=(), gates=(), reports=(), slices=(), labels={},
        models=models,
        judges=judges if "judge" in keys else {},
        limits=spec.limits.model_copy(update=given),
    )  # fmt: skip


def _build_node(keys: Mapping[str, Any]) -> GeneratedNode:
    from rageval_spec.datasets.generated import GeneratedNode

    return GeneratedNode.model_validate(keys)


def _declare(section: Any, name: str | None, blocks: dict[str, Node], option: str, spec: Path | None) -> None:
    """Add the block that a name means without being declared.

    Raises:
        UsageError: the spec has no such block.
    """
    from rageval_spec import registry
    from rageval_spec.spec.defaults import default_block

    if name is None or name in blocks:
        return
    block = default_block(section, name)
    if block is None:
        known = list(blocks)
        hint = suggest(name, known) or (f"it has {list_names(known)}" if known else "it has none")
        raise UsageError(f"{option}: {spec} has no {section.removesuffix('s')} '{name}'; {hint}")
    blocks[name] = registry.load(section, block["use"]).node_type.model_validate(block)


def _describe(request: Request, keys: dict[str, Any]) -> dict[str, Any]:
    """The spec of a model that only the command line describes."""
    from rageval_spec.spec.defaults import default_block
    from rageval_spec.spec.nodes import NAME_PATTERN

    models: dict[str, Any] = {}
    for option in ("model", "checker"):
        if option in keys:
            name = keys[option] if re.fullmatch(NAME_PATTERN, keys[option]) else option
            models[name] = _describe_model(request, keys[option])
            keys[option] = name
    if request.judge is not None and default_block("judges", request.judge) is None:
        raise UsageError(f"--judge: '{request.judge}' is not a judge that needs no settings; declare it in a spec, and "
                         "give --spec")  # fmt: skip
    if request.embedding is not None and default_block("models", request.embedding) is None:
        models[_EMBEDDING] = {"use": "onnx", "model": request.embedding}
        keys["embedding"] = _EMBEDDING
    return {
        "version": 1,
        "name": "generate",
        "datasets": {DATASET: keys},
        "models": models,
        "systems": {"bm25": {"use": "bm25"}},
        "metrics": ["ndcg@10"],
        "limits": {name: value for name, value in (request.limits or {}).items() if value is not None},
    }


_EMBEDDING = "embedding"


def _describe_model(request: Request, model: str) -> dict[str, Any]:
    dialect = request.dialect or ("anthropic" if model.startswith("claude") and not request.base_url else "openai")
    block: dict[str, Any] = {"use": "chat", "model": model, "dialect": dialect}
    if request.base_url is not None:
        block["base_url"] = request.base_url
    elif dialect == "azure":
        raise UsageError("--dialect azure needs --base-url: https://NAME.openai.azure.com")
    variable = request.api_key_env or (None if request.base_url else KEYS[dialect])
    if variable is not None:
        if not os.environ.get(variable):
            raise UsageError(
                f"--model {model}: the variable {variable} with the key of the endpoint is not set; set it, give "
                "--base-url for an endpoint of your own, or give --spec with a spec that declares the model"
            )
        block["api_key"] = f"${{secret:{variable}}}"
    if request.price is not None:
        block["price"] = _read_price(request.price)
    return block


def _read_price(text: str) -> dict[str, float]:
    found = _PRICE.fullmatch(text)
    if found is None:
        raise UsageError(f"--price: '{text}' is not a price; write US dollars per million tokens in and out: 0.15/0.60")
    return {"input": float(found[1]), "output": float(found[2])}
