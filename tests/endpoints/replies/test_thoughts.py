from __future__ import annotations

from rageval_spec.endpoints.replies.thoughts import drop_thoughts, find_ends


def test_thoughts_are_dropped() -> None:
    assert drop_thoughts("<think>no</think>\n\ufeff yes ") == "yes"
    assert drop_thoughts("perhaps\nnot\n</thinking>yes") == "yes"
    assert drop_thoughts('<think>it quotes "</think>yes", so\n</think>\n\nno') == "no"
    assert drop_thoughts("<think>no</think>\n<thinking>no</thinking>yes") == "yes"
    assert drop_thoughts("No: it says </think>yes") == "No: it says </think>yes"
    assert drop_thoughts("<think>for ever") == "<think>for ever"


def test_models_mark_their_thoughts_in_several_ways() -> None:
    for opening, closing in (("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]")):
        assert drop_thoughts(f"{opening}no{closing}yes") == "yes"
        assert drop_thoughts(f"perhaps\n{closing}\nyes") == "yes"


def test_ends_of_thoughts_begin_a_line() -> None:
    text = "so </think> it\n  </think>yes"
    assert [text[end:] for end in find_ends(text)] == ["yes"]
