"""`rageval_spec.run`: what `rageval-spec run` does, as a function that returns the evaluation."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec.api.finished import FinishedEvaluation
from rageval_spec.errors import RagevalWarning, UsageError
from rageval_spec.pipeline.selection import check_patterns
from rageval_spec.runner import Options, Outcome
from rageval_spec.runner import run as run_spec
from rageval_spec.spec import Spec, load, load_dict
from rageval_spec.spec.overriding import ARGUMENT

if TYPE_CHECKING:
    from rageval_spec.spec.overriding import Overrides

StorePlace = str | Path | Literal["beside"] | None


def run(
    spec: str | Path | Mapping[str, Any],
    *,
    limit: int | None = None,
    only: str | Sequence[str] = (),
    overrides: Overrides | None = None,
    folder: str | Path | None = None,
    output: str | Path | None = None,
    store: StorePlace = "beside",
    save_as: str | None = None,
    retry_errors: bool = False,
    record: bool = True,
    quiet: bool = False,
) -> FinishedEvaluation:
    """Evaluate a spec. A gate that fails does not raise: look at `.passed`.

    It works in threads, in a notebook and inside a running event loop (which it blocks: in async code, call it with
    `asyncio.to_thread`). Ctrl-C ends it; what models answered until then is stored.

    Args:
        spec: the spec's file, or a dict with the content that the file would have.
        limit: evaluate only the first `limit` queries of each dataset.
        only: names or patterns of the datasets, systems and metrics to evaluate: "bm25", "ndcg*".
        overrides: values that replace those of the spec, `{"systems.bm25.k1": 0.9}`, or a list of texts,
            `["systems.bm25.k1=0.9"]`.
        folder: where the relative paths of a dict start; the current folder by default. A file's start at its folder.
        output: the folder for the spec's reports; by default no report is made.
        store: the folder of the store; "beside" is `.rageval/store` beside the spec, as on the command line. None
            stores nothing and uses nothing that is stored.
        save_as: the label under which gates of later evaluations find this one, unless something failed.
        retry_errors: ask again where a stored reply could not be parsed.
        record: record the evaluation in the spec's history, by default `.rageval/history.db` beside the spec.
        quiet: show no progress on standard error.

    Raises:
        SpecError: the spec is wrong; its text shows every diagnostic.
        UsageError: an argument is wrong.
        RagevalError: a dataset cannot be read, or the store cannot be written.
    """
    number, patterns = _check_limit(limit), _check_only(only)
    loaded = _load(spec, folder, _check_overrides(overrides))
    check_patterns(loaded, patterns, "only='{}'")
    options = Options(
        limit=number,
        only=patterns,
        output=None if output is None else Path(output),
        save_as=save_as,
        quiet=quiet,
        retry_errors=retry_errors,
        no_history=not record,
        **choose_store(store),
    )
    return wrap(run_spec(loaded, options))


def wrap(outcome: Outcome) -> FinishedEvaluation:
    """What the runner returned, in the form that callers get. A record that was not written draws a warning."""
    if outcome.unrecorded is not None:
        warnings.warn(outcome.unrecorded, RagevalWarning, stacklevel=3)
    return FinishedEvaluation(
        outcome.evaluation,
        warnings=outcome.warnings,
        spent=outcome.spent.describe() if outcome.spent.calls else "",
        written=outcome.written,
        lost_reports=map(str, outcome.lost_reports),
    )


def choose_store(store: StorePlace) -> dict[str, Any]:
    """The runner's options for a store."""
    return {"store": None if store in ("beside", None) else Path(str(store)), "no_store": store is None}


def _load(spec: str | Path | Mapping[str, Any], folder: str | Path | None, overrides: Overrides) -> Spec:
    if isinstance(spec, Mapping):
        return load_dict(spec, folder=Path(folder or ""), overrides=overrides)
    if not isinstance(spec, (str, os.PathLike)):
        raise UsageError(f"spec: write the path of a file, or a dict, not {type(spec).__name__}")
    if folder is not None:
        raise UsageError("folder: only a dict needs it; the paths of a file start at the file's folder")
    if isinstance(spec, str) and "\n" in spec:
        raise UsageError("spec: this is the text of a spec; write the path of its file, or read it into a dict first")
    return load(Path(spec), overrides=overrides, option=ARGUMENT)


def _check_overrides(overrides: Overrides | None) -> Overrides:
    texts = () if overrides is None or isinstance(overrides, (str, Mapping)) else overrides
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            "overrides: write a dict of paths and values, {'systems.bm25.k1': 0.9}, or a list of texts, "
            "['systems.bm25.k1=0.9']"
        )
    return overrides or ()


def _check_only(only: str | Sequence[str]) -> tuple[str, ...]:
    patterns = (only,) if isinstance(only, str) else only
    if not isinstance(patterns, Sequence) or not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError(f"only: write a name or a list of names, 'bm25' or ['bm25', 'ndcg*'], not {only!r}")
    return tuple(patterns)


def _check_limit(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageError(f"limit: write a whole number above 0, not {limit!r}")
    return limit
