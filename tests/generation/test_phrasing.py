import pytest

from rageval_spec.generation.phrasing import find_leak, find_unanchored, split_words


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What does the author say about refunds?", "does the author say"),
        ("According to the passage, when do refunds arrive?", "According to the passage"),
        ("What is shown in this table?", "shown in this table"),
        ("What is the  given\nexcerpt about, in the given excerpt?", "in the given excerpt"),
        ("Was steht laut dem Text über Erstattungen?", "laut dem Text"),
        ("Selon le texte, quand arrive le remboursement ?", "Selon le texte"),
        ("¿Qué dice, según el autor, la política?", "según el autor"),
    ],
)
def test_words_that_point_at_a_text_nobody_has_are_found(question: str, words: str) -> None:
    assert find_unanchored(question) == words


@pytest.mark.parametrize(
    "question",
    [
        "Who is the author of Dune?",
        "How do I share the document with a colleague?",
        "How do I change the colour of the text in a cell?",
        "Which paragraph of the GDPR covers consent?",
        "Wer ist der Autor von Faust?",
        "Qui est l'auteur de Candide ?",
    ],
)
def test_such_words_in_another_meaning_are_not(question: str) -> None:
    assert find_unanchored(question) is None


@pytest.mark.parametrize(
    ("question", "answer", "leak"),
    [
        ("Who founded Apple with Steve Jobs?", "Steve Jobs", "steve jobs"),
        ("Is the limit of 14 days for refunds 14 days?", "It is 14 days.", "14 days"),
        ("Why does a float switch open the circuit of the pump?", "A float switch opens the circuit", None),
        ("Does the pump stop because a float switch opens its circuit?", "A float switch opens its circuit.",
         "a float switch opens its circuit"),
        ("How long do refunds take?", "Refunds take 14 days.", None),
        ("Are refunds possible?", "Yes.", None),
        ("返金は十四日かかりますか", "十四日", "十四 四日"),
        ("What is it?", "The of and", None),
    ],
)  # fmt: skip
def test_an_answer_in_the_question_is_found(question: str, answer: str, leak: str | None) -> None:
    assert find_leak(question, answer, "factual", "en") == leak


def test_a_comparative_question_may_name_its_answer() -> None:
    assert find_leak("Which is longer, the Nile or the Rhine?", "The Nile", "factual", "en") == "nile"
    assert find_leak("Which is longer, the Nile or the Rhine?", "The Nile", "comparative", "en") is None


def test_frequent_words_of_the_language_do_not_count() -> None:
    assert find_leak("Wann wird die Rechnung bezahlt?", "die Rechnung", "factual", "de") == "rechnung"
    assert find_leak("Was ist das?", "Das ist es", "factual", "de-AT") is None


def test_words_have_no_marks_and_wide_scripts_give_pairs() -> None:
    assert split_words("Don't: re-use!") == ["don", "t", "re", "use"]
    assert split_words("東京都 Tokyo") == ["東京", "京都", "tokyo"]
