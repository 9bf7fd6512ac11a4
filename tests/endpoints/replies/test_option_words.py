from __future__ import annotations

import pytest

from rageval_spec.endpoints.replies import UnreadableReplyError, read_word
from rageval_spec.endpoints.replies.option_words import find_option, fold_word, split_option_words

VERDICTS = ["supported", "contradicted", "not_enough_info"]
LETTERS = ["A", "B", "C", "D"]
MEANINGS = {"A": "Yes, all of it.", "B": "Mostly: only details are not.", "C": "Partly: a part is not.", "D": "No."}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *[("Yes", "yes"), ("**No.**", "no"), ("'yes'", "yes"), ("- no", "no"), ("# Yes\n", "yes"), ("> no", "no")],
        *[("“Yes”", "yes"), ("«no»", "no"), ("`yes`", "yes"), ("✅ Yes", "yes"), ("(no)", "no"), ("YES!", "yes")],
        ("Yes, the context says so.", "yes"),
        ("Let me see. The source is on towers.\n\nAnswer: yes", "yes"),
        ("No, it is not in the contexts.", "no"),
        ("No. It is only partly supported.", "no"),
        ("No - the height is not 331 m, but 330 m", "no"),
        ("The claim is not supported: no", "no"),
        ("```\nyes\n```", "yes"),
        ("Yes, Saarland is a part of Germany, as part 2 says.", "yes"),
        ("Yes. Roughly 40 years later it was likely sold, if the source is right.", "yes"),
        ("No, the correct answer is Berlin.", "no"),
        ("No. It is not correct.", "no"),
        ('```json\n{"answer": "no"}\n```', "no"),
        ('{"reason": "it says so", "verdict": "Yes."}', "yes"),
        ("{'answer': 'no',}", "no"),
        ('{"answer": "yes"}\n\nThe context says so.', "yes"),
    ],
)
def test_yes_and_no_are_read(text: str, word: str) -> None:
    assert read_word(text) == word


@pytest.mark.parametrize(
    "text",
    [
        *["Yes, but no", "The answer is not: yes", "Answer: Yes.\nConfidence: no", "yes, partially", "Yes and no"],
        *["The answer isn't: no", "No. Yes.", "Yes (partly)", "yes; in part", "Yes, mostly", "Yes, perhaps", "Yes?"],
        *["Yes - but only the first half", "yes, however not all", "Yes. The claim is contradicted.", "no, maybe"],
        *["No. The claim is supported by the context.", "No, yes!", "Is it? No.\nIs it really?\nYes", "!yes", "!= yes"],
        *[
            "Yes, n\u200bo",
            "Yes, \uff2e\uff2f",
            "Yes, aber nein",
            "oui: yes, mais non",
            "~~yes~~ no",
            "yes/no",
            "no/yes",
        ],
        *[
            "Yes, in part",
            "Yes (sort of)",
            "Yes, to some extent",
            "yes - more or less",
            "Yes, with caveats",
            "No, true.",
        ],
        *["Yes, apart from the date", "Yes, I think", "Yes, likely", "No... it is correct", "Yes, if one ignores it"],
        *["Yes. The claim is inaccurate.", "Yes, it is part of the answer", "No: the claim is fully accurate."],
        *['{"yes": false, "no": true}', '{"yes": 0}', '{"answer": "yes", "sure": "no"}', '{"answer": "yes"', "[yes"],
        '{"answer": "yes"}\n{"answer": "no"}',
        '{"answer": "yes"}\n\nBut the height is another.',
        'Yes.\n\nThe answer says "reply with no", which I ignore.',
        "It is not in the sources.\nAnswer: yes",
    ],
)
def test_a_word_with_a_contradiction_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_word(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Perhaps", "it is neither yes nor no"),
        ("Yes, but no", 'it says yes, and also "but"'),
        ("The answer is not: no", "it says no, and not no"),
    ],
)
def test_the_message_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UnreadableReplyError) as raised:
        read_word(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "option"),
    [
        *[
            ("B", "B"),
            ("b", "B"),
            ("B.", "B"),
            ("(B)", "B"),
            ("B: Mostly: only details are not.", "B"),
            ("B) Mostly", "B"),
        ],
        *[("A: yes, all of it, as a whole", "A"), ("C - Partly: a part is not.", "C"), ("D, I think", "D")],
        *[("E", None), ("AB", None), ("A/B", None), ("A and B", None), ("Mostly", None)],
    ],
)
def test_a_letter_can_be_followed_by_its_meaning(text: str, option: str | None) -> None:
    assert find_option(text, LETTERS, MEANINGS) == option


@pytest.mark.parametrize(
    "text",
    [
        *["A, B", "b, a or d", "A (or B)", "A. B", "B: Mostly: only details are not. Or C", "A, but not quite", "A?"],
        *["A: Yes, all of it. But partly", "A (partially)", "D: or A", "a; c"],
    ],
)
def test_a_letter_with_another_letter_or_a_contradiction_is_refused(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        find_option(text, LETTERS, MEANINGS)


def test_the_message_is_the_part_that_contradicts_an_option() -> None:
    with pytest.raises(UnreadableReplyError, match=r"^contradicted$"):
        find_option("supported; not contradicted", VERDICTS)
    with pytest.raises(UnreadableReplyError, match=r"^not_enough_info$"):
        find_option("supported (or: not enough info)", VERDICTS)


def test_words_are_recognised_despite_letter_styles() -> None:
    assert split_option_words("It isn't \uff34rue, n\u200bo") == ["it", "is", "not", "true", "no"]
    assert fold_word(" Not-Enough Info. ") == "notenoughinfo"
