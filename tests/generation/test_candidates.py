from rageval_spec.data.assessment import Failed
from rageval_spec.generation.candidates import Candidate
from rageval_spec.generation.chunks import Chunk
from rageval_spec.generation.mixes import Slot
from rageval_spec.generation.requests import Draft

SLOT = Slot(0, "factual", "easy", "plain", "single")


def make(question: str = "Why?", chunk: str = "a#1") -> Candidate:
    return Candidate(SLOT, 0, (Chunk(chunk, "a", 0, 1, "x"),), draft=Draft(question, "So."))


def test_an_id_depends_on_the_question_and_its_chunks_alone() -> None:
    other = Candidate(SLOT._replace(number=9), 3, make().chunks, draft=Draft("Why?", "Because."))
    assert make().query_id == other.query_id
    assert len({make().query_id, make("How?").query_id, make(chunk="a#2").query_id}) == 3


def test_the_first_reason_counts() -> None:
    one = make()
    one.reject("leak", "it says 'So'")
    one.reject("known")
    assert (one.reason, one.detail) == ("leak", "it says 'So'")


def test_a_limit_rejects_nothing_and_a_failed_call_can_be_repeated() -> None:
    limited, failed, unread = make(), make(), make()
    limited.fail(Failed("limits.max_calls: 3 of 3", is_unfinished=True), "no_reply")
    assert (limited.reason, limited.unfinished) == (None, "limits.max_calls: 3 of 3")
    failed.fail(Failed("status 500"), "no_reply")
    assert (failed.reason, failed.is_call_failed) == ("no_reply", True)
    unread.fail(Failed("no JSON", "{"), "unreadable")
    assert (unread.reason, unread.is_call_failed, unread.raw) == ("unreadable", False, "{")
