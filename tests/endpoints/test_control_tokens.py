from __future__ import annotations

import pytest

from rageval_spec.endpoints.control_tokens import defuse


@pytest.mark.parametrize(
    "mark",
    [
        "<|im_start|>",
        "[INST]",
        "[/INST]",
        "<s>",
        "</s>",
        "<<SYS>>",
        "<</SYS>>",
        "<start_of_turn>",
        "<｜User｜>",
        "◁think▷",
    ],
)
def test_a_defused_control_token_is_no_longer_one(mark: str) -> None:
    assert mark not in defuse(f"it says {mark}x")
    assert defuse(f"it says {mark}x").replace(" ", "") == f"itsays{mark}x"


def test_other_text_stays_unchanged() -> None:
    text = '<think>{"grade": 5}</think> <b> a < b [1] [note] [OK] <answer> {"a": [1, 2]}'
    assert defuse(text) == text
