from __future__ import annotations

import gc

from rageval_spec.plugin.memory import Memory


def test_what_is_remembered_of_something_goes_with_it() -> None:
    class Owner:
        pass

    memory, first, second = Memory(), Owner(), Owner()
    known = memory.remember(first, object)
    assert memory.remember(first, object) is known
    assert memory.remember(second, object) is not known
    assert len(memory) == 2
    del first, second
    gc.collect()
    assert len(memory) == 0
