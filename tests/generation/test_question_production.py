"""Each check rejects what it should, with its reason; nothing more is asked about a rejected question."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rageval_spec.data.findings import Failed
from rageval_spec.endpoints import pacing
from rageval_spec.generation.chunks import Chunk
from rageval_spec.generation.model_requests import Draft
from rageval_spec.generation.question_mix import Slot
from rageval_spec.generation.question_production import Candidate
from rageval_spec.generation.question_sets import GeneratedTestSet
from tests.generation.writing import NAMES, QUESTIONS, Workshop, find_name, find_type, write_draft
from tests.models.chat_endpoint import refusal
from tests.models.endpoint import Answer


def test_as_many_questions_as_ordered_in_the_wanted_mix(workshop: Workshop) -> None:
    made = workshop.make("count: 20, multi_hop: 0, unanswerable: 10")
    assert Counter(row["type"] for row in made.rows) == {
        "factual": 8, "analytical": 7, "comparative": 3, "procedural": 2
    }  # fmt: skip
    assert Counter(row["kind"] for row in made.rows) == {"single": 18, "unanswerable": 2}
    assert (made.stopped, made.shortages, made.rejected) == (None, (), ())
    assert len({row["query_id"] for row in made.rows}) == 20
    assert len({document for row in made.rows for document in row["relevant_documents"]}) == 18


def test_a_rejected_question_is_replaced_by_one_about_another_chunk(workshop: Workshop) -> None:
    write = workshop.writer.draft
    workshop.writer.draft = lambda asked: (  # type: ignore[method-assign]
        {**write(asked), "suitable": False, "why_not": "I would rather not."} if "Ember" in asked else write(asked)
    )
    made = workshop.make("count: 20, per_chunk: 2")
    assert len(made.rows) == 20
    assert [(row["reason"], row["detail"], row["chunks"]) for row in made.rejected] == [
        ("unsuitable", "I would rather not.", ["ember.md"])
    ]
    (replaced,) = [row for row in made.rows if row["made"]["slot"] == made.rejected[0]["slot"]]
    assert replaced["made"]["attempt"] == 2


def test_the_second_question_about_a_chunk_is_shown_the_first(workshop: Workshop) -> None:
    workshop.make("count: 26, per_chunk: 2")
    drafts = [body["messages"][-1]["content"] for body in workshop.writer.bodies]
    repeated = [asked for asked in drafts if asked.startswith("Write one") and "exist already" in asked]
    assert repeated
    for asked in repeated:
        assert any(question.format(name=find_name(asked)) in asked for question in QUESTIONS.values())


def test_a_corpus_that_is_too_small_gives_fewer_and_says_so(workshop: Workshop) -> None:
    made = workshop.make("count: 100, per_chunk: 1, types: 'factual:100'")
    assert len(made.rows) == 20
    assert made.shortages == ("80 questions: no chunk is left to ask about (20 chunks, at most 1 question each)",)
    assert made.stopped is None


def test_without_chunks_that_belong_together_questions_over_several_are_missing(workshop: Workshop) -> None:
    made = workshop.make("count: 10, multi_hop: 30")
    assert len(made.rows) == 7
    assert any("3 questions over several chunks: the chunks have nothing in common" in one for one in made.shortages)


def test_a_type_that_no_passage_can_give_falls_short(workshop: Workshop) -> None:
    write = workshop.writer.draft
    workshop.writer.draft = lambda asked: (  # type: ignore[method-assign]
        {**write(asked), "suitable": False} if find_type(asked) == "procedural" else write(asked)
    )
    made = workshop.make("count: 10, attempts: 3")
    assert len(made.rows) == 9
    assert made.shortages == ("1 question: none passed the checks in 3 attempts",)
    assert made.reasons == {"unsuitable": 3}


@pytest.mark.parametrize(
    ("said", "reason", "detail"),
    [
        ("I'm sorry, but I can't help with that.", "unreadable", "cannot be read"),
        ("<html><body>502 Bad Gateway</body></html>", "unreadable", "cannot be read"),
        ({"question": ""}, "unreadable", "'suitable' is missing"),
    ],
)
def test_nonsense_is_asked_again_and_then_rejected(workshop: Workshop, said: Any, reason: str, detail: str) -> None:
    write = workshop.writer.draft
    workshop.writer.draft = lambda asked: said if "Fathom" in asked else write(asked)  # type: ignore[method-assign]
    made = workshop.make("count: 20, per_chunk: 2")
    assert len(made.rows) == 20
    (rejected,) = made.rejected
    assert rejected["reason"] == reason
    assert detail in rejected["detail"]
    assert rejected["reply"]
    assert sum("Fathom" in str(body["messages"][1]) for body in workshop.writer.bodies) >= 3, "it was retried"


@pytest.mark.parametrize(
    "answer", [refusal("no such model", 404), Answer(b"<html>Bad gateway</html>", 502), Answer({"error": "busy"}, 429)]
)
def test_an_endpoint_that_never_answers_ends_it_at_once(
    workshop: Workshop, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(pacing, "LONGEST_PAUSE", 0.01)
    workshop.writer.draft = lambda asked: answer  # type: ignore[method-assign]
    path = workshop.write_spec()
    path.write_text(path.read_text("utf-8").replace("retries: 0", "retries: 0, patience: 0"), "utf-8")
    made = workshop.make("count: 10")
    assert not made.rows
    assert made.stopped is not None
    assert str(answer.status) in made.stopped
    assert made.reasons == {"no_reply": 10}
    assert workshop.writer.count("check") == 0


def test_a_limit_leaves_what_is_done_and_the_next_time_goes_on(workshop: Workshop) -> None:
    first = workshop.make("count: 10", "max_calls: 17, concurrency: 1")
    assert first.stopped is not None
    assert "max_calls" in first.stopped
    assert not first.rows, "a question counts when all its checks are done"
    paid = len(workshop.writer.bodies)
    assert paid == 17
    second = workshop.make("count: 10", "max_calls: 1000, concurrency: 1")
    assert (len(second.rows), second.stopped) == (10, None)
    assert len(workshop.writer.bodies) == 30, "nothing was asked twice"


def test_an_endpoint_that_dies_midway_costs_nothing_twice(workshop: Workshop) -> None:
    check = workshop.writer.check
    workshop.writer.check = lambda asked: (  # type: ignore[method-assign]
        check(asked) if workshop.writer.count("check") <= 4 else refusal("out of memory", 500)
    )
    first = workshop.make("count: 10", "concurrency: 1")
    assert first.stopped is not None
    assert "out of memory" in first.stopped
    workshop.writer.check = check  # type: ignore[method-assign]
    paid = workshop.writer.count("check") + workshop.writer.count("draft")
    second = workshop.make("count: 10", "concurrency: 1")
    other = Workshop(workshop.folder / "other")
    try:
        assert second.rows == other.make("count: 10").rows, "as if nothing had happened"
    finally:
        other.server.close()
    assert workshop.writer.count("draft") + workshop.writer.count("check") - paid == 6


def test_more_questions_keep_those_that_are_paid(workshop: Workshop) -> None:
    first = workshop.make("count: 5")
    paid = len(workshop.writer.bodies)
    second = workshop.make("count: 10")
    assert second.rows[:5] == first.rows
    assert len(workshop.writer.bodies) - paid == 15


def test_another_seed_asks_about_other_chunks(workshop: Workshop) -> None:
    first, second = (
        [row["relevant_chunks"] for row in workshop.make(f"count: 5, seed: {seed}").rows] for seed in (13, 14)
    )
    assert first != second


def test_the_order_of_replies_does_not_matter(workshop: Workshop) -> None:
    first = workshop.make("count: 12", "concurrency: 1")
    other = Workshop(workshop.folder / "other")
    try:
        assert other.make("count: 12", "concurrency: 16") == first
    finally:
        other.server.close()


def test_several_passages_are_asked_about_together(workshop: Workshop) -> None:
    add_makers(workshop)

    def write(asked: str) -> Any:
        if "needs all 2 passages" not in asked and "pump delivers" not in asked:
            return {**write_draft("", ""), "suitable": False}
        if "needs all 2 passages" not in asked:
            return type(workshop.writer).draft(workshop.writer, asked)
        name = find_name(asked)
        question = f"In which year did two brothers found the firm that makes the {name} pump?"
        return write_draft(question, "In 1921.", *write_quotes(asked, name))

    workshop.writer.draft = write  # type: ignore[method-assign]
    workshop.writer.check = lambda asked: {  # type: ignore[method-assign]
        "answer": "", "reason": "", "stands_alone": "yes",
        "answerable": "no" if "did two brothers found" in asked and asked.count("</passage>") == 1 else "yes",
    }  # fmt: skip
    made = workshop.make("count: 10, multi_hop: 30, within: 0")
    several = [row for row in made.rows if row["kind"] == "multi_hop"]
    assert len(several) == 3
    assert {*made.reasons} <= {"unsuitable"}
    for row in several:
        assert len(row["relevant_chunks"]) == len(row["relevant_documents"]) == len(row["sources"]) == 2
        assert {one["chunk"] for one in row["evidence"]} == {*row["relevant_chunks"]}


def add_makers(workshop: Workshop) -> None:
    """For each pump, the name of its maker, and a document about the maker that shares only this name."""
    for name in NAMES:
        path = workshop.folder / "corpus" / f"{name.lower()}.md"
        path.write_text(f"{path.read_text('utf-8')}\nIt is made by {name}works Industries.\n", "utf-8")
        about = (
            f"{name}works Industries began in 1921, when two brothers who had repaired ships opened a workshop beside "
            "their mother's bakery. Today ninety people work there, mostly on Fridays."
        )
        path.with_name(f"about {path.name}").write_text(about, "utf-8")


def write_quotes(asked: str, name: str) -> list[str]:
    """A quote from each passage, in the order of the passages."""
    quotes = [f"It is made by {name}works Industries", "began in 1921"]
    return sorted(quotes, key=asked.index)


def test_steering_reaches_the_wanted_difficulties_and_pays_no_check_for_what_is_set_aside(workshop: Workshop) -> None:
    write = workshop.writer.draft

    def write_harder_the_second_time(asked: str) -> Any:
        name = find_name(asked)
        other = next(one for one in NAMES if one != name)
        question = f"At night, is the {name} pump louder than the {other} pump, the {other}, or the {other}?"
        return {**write(asked), "question": question} if "exist already" in asked else write(asked)

    workshop.writer.draft = write_harder_the_second_time  # type: ignore[method-assign]
    keys = "count: 10, difficulty: 'easy:50,medium:50'"
    assert Counter(row["difficulty"] for row in workshop.make(keys).rows) == {"easy": 10}
    checked = workshop.writer.count("check")
    made = workshop.make(f"{keys}, steer_difficulty: true")
    assert Counter(row["difficulty"] for row in made.rows) == {"easy": 5, "medium": 5}
    assert made.shortages == ()
    assert {(row["reason"], row["detail"]) for row in made.rejected} == {("enough", "easy to find")}
    assert workshop.writer.count("check") - checked <= 5, "nothing was asked about what was set aside"


def test_where_all_questions_are_easy_steering_takes_them_after_all(workshop: Workshop) -> None:
    made = workshop.make("count: 10, difficulty: 'easy:20,hard:80', steer_difficulty: true")
    assert (len(made.rows), made.shortages, made.stopped) == (10, (), None)
    assert {row["difficulty"] for row in made.rows} == {"easy"}
    assert [row["made"]["slot"] for row in made.rows] == [*range(10)]
    assert made.reasons == {"enough": 24}, "32 were set aside, and 8 of them readmitted"
    with workshop.open("count: 10, difficulty: 'easy:20,hard:80', steer_difficulty: true") as dataset:
        assert not dataset.foresee_calls().calls, "all replies are stored"


QUESTION = "How many litres of water per minute does the Ember pump deliver?"
QUOTE = "delivers 44 litres"


def make_with(
    workshop: Workshop, *drafts: dict[str, Any], keys: str = "count: 1", **scripts: Callable[[str], Any]
) -> Any:
    """One question about the Ember pump, whose draft is the first of `drafts`, then the second, and so on."""
    for path in (workshop.folder / "corpus").iterdir():
        if path.stem != "ember":
            path.unlink()
    left = [*drafts]
    workshop.writer.draft = lambda asked: left.pop(0) if len(left) > 1 else left[0]  # type: ignore[method-assign]
    for name, script in scripts.items():
        setattr(workshop.writer, name, script)
    return workshop.make(f"types: factual, {keys}")


def find_reason(made: GeneratedTestSet) -> tuple[str, str]:
    assert not made.rows
    (rejected,) = made.rejected
    return rejected["reason"], rejected["detail"]


@pytest.mark.parametrize(
    ("draft", "reason", "detail"),
    [
        (write_draft("Wie viele Liter liefert die Pumpe Ember in der Minute?", "44", QUOTE), "wrong_language",
         "German instead of English"),
        (write_draft("According to the passage, what does the Ember pump deliver?", "44", QUOTE), "not_standalone",
         "it says 'According to the passage'"),
        (write_draft("Does the Ember pump deliver 44 litres?", "44 litres", QUOTE), "leak", "it says '44 litres'"),
        (write_draft(QUESTION, "45 litres", "delivers 45 litres"), "no_evidence",
         "the passage does not say 'delivers 45 litres'"),
        (write_draft(QUESTION, "44 litres"), "no_evidence", "the model quotes nothing"),
        (write_draft("Which zebra sleeps?", "44 litres", QUOTE), "not_found", "not among the first 20 of bm25"),
    ],
)  # fmt: skip
def test_what_costs_nothing_is_checked_first(
    workshop: Workshop, draft: dict[str, Any], reason: str, detail: str
) -> None:
    assert find_reason(make_with(workshop, draft)) == (reason, detail)
    assert len(workshop.writer.bodies) == 1, "nothing was asked about it"


@pytest.mark.parametrize(
    ("opinion", "reason"),
    [
        ({"answerable": "no", "stands_alone": "yes"}, "not_answerable"),
        ({"answerable": "yes", "stands_alone": "no"}, "not_standalone"),
        ({"answerable": "no", "stands_alone": "no"}, "not_standalone"),
    ],
)
def test_a_model_says_whether_the_chunk_answers_and_the_question_stands_alone(
    workshop: Workshop, opinion: dict[str, str], reason: str
) -> None:
    said = {"answer": "", "reason": "It names nobody.", **opinion}
    made = make_with(workshop, write_draft(QUESTION, "44 litres", QUOTE), check=lambda asked: said)
    assert find_reason(made) == (reason, "It names nobody.")
    assert workshop.writer.count("support") == 0


def test_the_products_judge_says_whether_the_answer_is_supported(workshop: Workshop) -> None:
    made = make_with(workshop, write_draft(QUESTION, "44 litres and a free lamp", QUOTE), support=lambda asked: "no")
    assert find_reason(made)[0] == "unsupported"
    shown = next(body for body in workshop.writer.bodies if "free lamp" in body["messages"][-1]["content"])
    assert "[" not in shown["messages"][-1]["content"].split("free lamp")[0].split("<answer>")[-1]
    assert "The Ember pump delivers 44 litres" in shown["messages"][-1]["content"]


def test_a_check_whose_reply_cannot_be_read_rejects(workshop: Workshop) -> None:
    made = make_with(workshop, write_draft(QUESTION, "44 litres", QUOTE), check=lambda asked: "<html>no</html>")
    assert find_reason(made)[0] == "check_failed"
    assert made.rejected[0]["reply"] == "<html>no</html>"


def test_a_check_whose_call_fails_ends_it_so_that_it_can_be_continued(workshop: Workshop) -> None:
    made = make_with(
        workshop, write_draft(QUESTION, "44 litres", QUOTE), check=lambda asked: refusal("no credit left", 402)
    )
    assert made.stopped is not None
    assert "402" in made.stopped


def test_a_repeated_question_is_a_duplicate(workshop: Workshop) -> None:
    draft = write_draft(QUESTION, "44 litres", QUOTE)
    made = make_with(workshop, draft, {**draft, "question": QUESTION.lower()}, keys="count: 2, style: plain")
    assert len(made.rows) == 1
    assert made.shortages == ("1 question: no chunk is left to ask about (1 chunk, at most 2 questions each)",)


def test_duplicates_among_chunks_name_the_question_they_repeat(workshop: Workshop) -> None:
    path = workshop.folder / "corpus" / "ember.md"
    path.with_name("ember2.md").write_text(path.read_text("utf-8"), "utf-8")
    kept = {"ember", "ember2"}
    for other in path.parent.iterdir():
        if other.stem not in kept:
            other.unlink()
    workshop.writer.draft = lambda asked: write_draft(QUESTION, "44 litres", QUOTE)  # type: ignore[method-assign]
    made = workshop.make("types: factual, count: 2, attempts: 1")
    assert len(made.rows) == 1
    assert made.rejected[0]["reason"] == "duplicate"
    assert made.rejected[0]["detail"] == "like question 1 of those accepted (100% of the shingles)"


def test_asked_closed_book_a_known_answer_rejects(workshop: Workshop) -> None:
    draft = write_draft(QUESTION, "44 litres", QUOTE)
    known = {"closed_book": lambda asked: {"answer": "44 l", "known": "yes"}}
    made = make_with(workshop, draft, keys="count: 1, closed_book: true", **known)
    assert find_reason(made) == ("known", "44 l")
    assert workshop.writer.count("same") == 1


@pytest.mark.parametrize("scripts", [{}, {"closed_book": {"answer": "7", "known": "yes"}, "same": {"correct": "no"}}])
def test_asked_closed_book_a_wrong_or_no_answer_does_not(workshop: Workshop, scripts: dict[str, Any]) -> None:
    said = {name: (lambda asked, one=one: {"reason": "", **one}) for name, one in scripts.items()}
    draft = write_draft(QUESTION, "44 litres", QUOTE)
    made = make_with(workshop, draft, keys="count: 1, closed_book: true", **said)
    assert (len(made.rows), made.rejected) == (1, ())
    assert workshop.writer.count("closed_book") == 1


def test_a_question_without_an_answer_must_not_have_one_in_the_corpus(workshop: Workshop) -> None:
    workshop.writer.check = lambda asked: {  # type: ignore[method-assign]
        "answer": "Blue paint.", "reason": "", "answerable": "yes", "stands_alone": "yes"
    }  # fmt: skip
    made = workshop.make("count: 1, unanswerable: 100, attempts: 2")
    assert [(row["reason"], row["detail"]) for row in made.rejected] == [("answerable", "Blue paint.")] * 2
    checks = [body["messages"][-1]["content"] for body in workshop.writer.bodies][1::2]
    assert all(asked.count("</passage>") > 1 for asked in checks), "also what retrievers find first"


def test_the_language_of_the_order_counts(workshop: Workshop) -> None:
    german = write_draft("Wie viele Liter liefert die Pumpe Ember in der Minute?", "44 Liter", QUOTE, language="de")
    made = make_with(workshop, german, keys="count: 1, language: de")
    assert [row["language"] for row in made.rows] == ["de"]
    assert "German (de)" in workshop.writer.bodies[0]["messages"][-1]["content"]


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
