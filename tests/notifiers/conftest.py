from collections.abc import Iterator

import pytest

from tests.notifiers.alert_messages import BUILT


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while BUILT:
        BUILT.pop().close()
