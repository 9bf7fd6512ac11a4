from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest, Message
from rageval_spec.data.reply_counts import ReplyCounts
from rageval_spec.plugin.usage import Asked, Usage, Used


def ask(text: str) -> ChatRequest:
    return ChatRequest((Message("user", text),))


def test_equal_requests_count_once_for_each_model_and_sample() -> None:
    usage, reply = Usage(), ChatReply("yes", 7, 3)
    usage.count("llm", [(ask("a"), reply), (ask("b"), reply), (ask("a"), reply)])
    usage.count("llm", [(ask("a"), reply)])
    assert usage.of("llm") == Used(2, 14, 6)
    usage.count("llm", [(ask("a"), reply)], sample=1)
    usage.count("other", [(ask("a"), reply)])
    assert (usage.of("llm"), usage.of("other")) == (Used(3, 21, 9), Used(1, 7, 3))


def test_tokens_are_unknown_as_soon_as_one_reply_does_not_report_them() -> None:
    usage = Usage()
    usage.count("llm", [(ask("a"), ChatReply("yes", 7, 3)), (ask("b"), ChatReply("yes", None, 3))])
    usage.count("llm", [(ask("c"), ChatReply("yes", 7, 3))])
    assert usage.of("llm") == Used(3, None, 9)


def test_a_model_that_was_not_asked_has_used_nothing() -> None:
    assert Usage().of("llm") == Used(0, 0, 0)


def test_threads_that_get_the_same_replies_count_them_once() -> None:
    usage, reply = Usage(), ChatReply("yes", 7, 3)
    with ThreadPoolExecutor(8) as pool:
        for number in range(400):
            pool.submit(usage.count, "llm", [(ask(str(number % 100)), reply)])
    assert usage.of("llm") == Used(100, 700, 300)


def test_the_seconds_of_a_metric_are_those_of_its_samples() -> None:
    usage = Usage()
    assert usage.time_of("faithfulness") is None
    usage.time("faithfulness", 10, 2.0)
    usage.time("faithfulness", 30, 2.0)
    usage.time("faithfulness", 0, 0.1)
    assert usage.time_of("faithfulness") == pytest.approx(4.1 / 40)
    assert usage.time_of("other") is None


def test_questions_count_by_whether_their_last_reply_could_be_read() -> None:
    usage, reply = Usage(), ChatReply("yes", seconds=0.5)
    usage.count_question("llm", ask("a"), [reply], is_read=True)
    usage.count_question("llm", ask("a"), [reply], is_read=True)
    usage.count_question("llm", ask("b"), [reply, reply], is_read=True)
    usage.count_question("llm", ask("c"), [reply] * 3, is_read=False)
    usage.count_question("llm", ask("d"), [], is_read=False)
    assert usage.replies_of("llm") == ReplyCounts(1, 1, 1, 3)
    assert usage.replies_of("other") == ReplyCounts()


def test_only_new_replies_take_seconds() -> None:
    usage, new = Usage(), ChatReply("yes", seconds=0.5)
    stored = ChatReply("yes", reused=True)
    usage.count_question("llm", ask("a"), [stored], is_read=True)
    assert usage.asked_now() == {}
    usage.count_question("llm", ask("b"), [stored, new], is_read=True)
    usage.count_question("llm", ask("c"), [new], is_read=True)
    assert usage.asked_now() == {"llm": Asked(2, 1.0, ReplyCounts(1, 1, 0, 1))}
    assert usage.replies_of("llm") == ReplyCounts(2, 1, 0, 1)
