from __future__ import annotations

from rageval_spec.reading.conversations import ask_last_turn, holds_conversation

CHAT = [{"role": "user", "content": "Rome?"}, {"role": "assistant", "content": "Yes"}]
RAGAS = [{"type": "human", "content": "Rome?"}]


def test_the_last_turn_of_a_conversation_is_the_question_and_the_conversation_stays() -> None:
    assert ask_last_turn({"id": 1, "messages": CHAT}) == {"id": 1, "messages": CHAT, "question": "Rome?"}
    assert ask_last_turn({"user_input": RAGAS}) == {"user_input": "Rome?", "messages": RAGAS}
    assert ask_last_turn({"input": {"messages": CHAT}})["input"] == "Rome?"


def test_other_rows_stay_as_they_are() -> None:
    for row in (
        {"question": "Why?", "messages": CHAT},
        {"messages": "none"},
        {"messages": CHAT[1:]},
        {"question": ["a", "b"]},
        {"question": "Why?"},
    ):
        assert ask_last_turn(dict(row)) == row
    assert not holds_conversation({"question": "Why?"})
