""""""

from __future__ import annotations

from rageval_spec.audit.mix_and_size import DIFFICULTY, TYPE, Power, check_languages, check_mix, check_size
from tests.question_sets import ask


def test_shares_far_from_the_wanted_ones_are_a_warning() -> None:
    types = ["factual"] * 8 + ["Analytical"] * 2
    check = check_mix(ask(*map(str, range(10)), columns=[{"type": one} for one in types]), TYPE)
    (found,) = check.findings
    assert found.message == (
        "type: factual 80% instead of 40%, analytical 20% instead of 35%, comparative 0% instead of 15%"
    )
    assert "2 more questions of type analytical, 2 more questions of type comparative" in found.advice
    assert check.tables[0].rows[0] == ("factual", "8", "80%", "40%")


def test_shares_near_the_wanted_ones_are_fine() -> None:
    levels = ["easy"] * 3 + ["medium"] * 5 + ["hard"] * 2
    questions = ask(*map(str, range(10)), columns=[{"difficulty": one} for one in levels])
    assert check_mix(questions, DIFFICULTY).state == "clean"
    wanted = DIFFICULTY._replace(shares={"easy": 100.0}, is_default=False)
    assert check_mix(questions, wanted).state == "found"


def test_other_words_get_a_table_and_the_option_to_write() -> None:
    questions = ask("a", "b", "c", columns=[{"category": "billing"}, {"category": "billing"}, {"category": "travel"}])
    check = check_mix(questions, TYPE)
    assert check.skipped is not None and "--types 'billing:67,travel:33'" in check.skipped
    assert check.tables[0].rows[-1] == ("travel", "1", "33.3%", "")


def test_shares_are_of_the_questions_with_a_value() -> None:
    check = check_mix(ask("a", "b", "c", columns=[{"type": "factual"}, {"type": ""}]), TYPE)
    assert check.tables[0].rows[0] == ("factual", "1", "100%", "40%")
    assert check.remark == "2 questions without a type; shares are of the others."


def test_without_a_column_the_check_is_skipped() -> None:
    check = check_mix(ask("a", columns=[{"other": 1}]), DIFFICULTY)
    assert check.skipped is not None and "'difficulty' or 'level'" in check.skipped


def test_a_question_in_another_language_is_named() -> None:
    english = [f"What is the capital of the country that is number {number}?" for number in range(30)]
    check = check_languages(ask(*english, "Wie heißt die Hauptstadt von Frankreich und wo liegt sie?"))
    (found,) = check.findings
    assert (found.code, found.severity, found.rows[0].query_id) == ("language", "info", "q31")
    assert check.tables[0].rows[:2] == (("English", "30", "96.8%"), ("German", "1", "3.2%"))


def test_levels_can_be_numbers_and_tables_have_numbers_for_programs() -> None:
    questions = ask("a", "b", "c", columns=[{"level": 1}, {"level": 1}, {"level": 2}])
    (table,) = check_mix(questions, DIFFICULTY).tables
    assert table.rows == (("1", "2", "66.7%", ""), ("2", "1", "33.3%", ""))
    assert table.values == (("1", 2, 2 / 3, None), ("2", 1, 1 / 3, None))


def test_a_question_that_does_not_show_its_language_counts_as_its_reference_shows() -> None:
    english = "You can find it in the settings of the page, and it is the first one that is shown there."
    german = "Sie finden es in den Einstellungen der Seite, und es ist das erste, das dort gezeigt wird."
    check = check_languages(
        ask("What is the capital of France and where is it?", "invoice pdf", "error 3007", "Rechnung pdf", "ipad",
            references=["It is in the north of the country, on the river.", english, english, german])
    )  # fmt: skip
    assert check.tables[0].rows == (("English", "3", "60%"), ("(too few common words to tell)", "2", "40%"))
    assert check.remark.startswith("2 questions with too few common words to tell count as English")
    assert check.findings == ()


def test_a_reference_in_another_language_than_its_question_is_named() -> None:
    answer = "Die Hauptstadt von Frankreich ist Paris, und sie liegt an der Seine."
    check = check_languages(ask("What is the capital of France and where is it?", references=[answer]))
    assert [one.code for one in check.findings] == ["reference_language"]
    assert check_languages(ask("42?")).state == "skipped"


def test_too_few_questions_and_a_gate_that_they_cannot_decide() -> None:
    power = Power("flat", "ndcg@10", "bm25", 2, 0.3, 0.25, 0.02, 1770)
    check = check_size(ask("a", "b"), 200, [power], "")
    assert [(one.code, one.severity) for one in check.findings] == [
        ("few_questions", "warning"),
        ("weak_gate", "warning"),
    ]
    assert "takes 1,770 questions; there are 2" in check.findings[1].message
    assert "raise max_drop to 0.250" in check.findings[1].advice
    assert check.tables[0].rows == (("flat", "ndcg@10", "bm25", "2", "0.300", "0.250"),)
    assert check.tables[0].values == (("flat", "ndcg@10", "bm25", 2, 0.3, 0.25),)


def test_the_drop_to_raise_a_gate_to_is_one_that_the_questions_show() -> None:
    (found,) = check_size(ask("a"), 1, [Power("s", "m", "b", 40, 0.156, 0.0711, 0.02, 483)], "").findings
    assert found.advice == "add 443 questions, or raise max_drop to 0.072"


def test_a_drop_without_a_second_evaluation_is_said_to_be_an_upper_estimate() -> None:
    alone = check_size(ask("a"), 1, [Power("s", "m", "another evaluation", 40, 0.3, 0.1)], "")
    assert "upper estimate" in alone.remark and "plan --power --from A --from B" in alone.remark
    assert "upper estimate" not in check_size(ask("a"), 1, [Power("s", "m", "b", 40, 0.3, 0.1)], "").remark


def test_without_values_the_check_says_what_is_missing() -> None:
    check = check_size(ask("a"), 1, None, "'x' has not been evaluated")
    assert check.state == "clean" and "'x' has not been evaluated" in check.remark


def test_a_gate_that_the_questions_can_decide_is_fine() -> None:
    assert check_size(ask("a"), 1, [Power("s", "m", "b", 500, 0.1, 0.01, 0.02, 300)], "").state == "clean"


def test_equal_values_say_nothing_about_the_spread() -> None:
    check = check_size(ask("a"), 1, [Power("s", "m", "b", 8, 0.0, 0.0)], "")
    assert check.tables[0].rows[0][-1] == "unknown: too few questions, or all values are equal"
