from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rageval_spec import registry
from tests.spec import plugins


@contextmanager
def only_own_plugins() -> Iterator[None]:
    """Let the registry have only the plugins of `tests.spec.plugins`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("words", "builtin_words", "load"):
            patch.setattr(registry, name, getattr(plugins, name))
        yield


@pytest.fixture(scope="module")
def installation() -> Iterator[None]:
    """Only these plugins, for all tests of a file."""
    with only_own_plugins():
        yield


@pytest.fixture
def own_plugins() -> Iterator[None]:
    """Only these plugins, for a test beside others that need the real ones."""
    with only_own_plugins():
        yield
