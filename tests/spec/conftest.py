from __future__ import annotations

from collections.abc import Iterator

import pytest

from rageval_spec import registry
from tests.spec import plugins


@pytest.fixture(scope="module")
def installation() -> Iterator[None]:
    """Let the registry have only the plugins of `tests.spec.plugins`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("words", "builtin_words", "load"):
            patch.setattr(registry, name, getattr(plugins, name))
        yield
