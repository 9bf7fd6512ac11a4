"""The schema that `init` writes beside a spec is the same each time, and most of the work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from rageval_spec.spec import json_schema


@pytest.fixture(scope="module", autouse=True)
def schema_made_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_schema, "render_schema", cache(json_schema.render_schema))
        yield
