"""Each check rejects what it should, with its reason; nothing more is asked about a rejected question."""

from collections.abc import Callable
from typing import Any

import pytest

from rageval_spec.generation.question_sets import QuestionSet
from tests.generation.writing import Workshop, write_draft
from tests.models.chat_endpoint import refusal

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


def find_reason(made: QuestionSet) -> tuple[str, str]:
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
