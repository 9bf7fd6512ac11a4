from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rageval_spec.pipeline.planning.preflight import inspect
from rageval_spec.spec import Spec


def validate(path: Path, overrides: Sequence[str] = ()) -> Spec:
    """The spec of a file whose blocks fit together; else a `SpecError`."""
    return inspect(path, overrides)[0]
