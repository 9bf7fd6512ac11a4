from __future__ import annotations

import gc

from rageval_spec.plugin.memory import Memory


def test_a_memory_forgets_an_object_that_is_freed() -> None:
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
