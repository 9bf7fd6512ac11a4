from rageval_spec.generation.evidence import Span, find_quote

TEXTS = ["Refunds take 14 days.\nThey go to the card — never “cash”.", "A licence costs 40 EUR. A seat costs 5 EUR."]


def said(spans: list[Span] | None) -> list[str] | None:
    return None if spans is None else [TEXTS[place][start:end] for place, start, end in spans]


def test_a_quote_has_the_offsets_of_the_text_that_it_stands_in() -> None:
    assert find_quote("take 14 days", TEXTS) == [Span(0, 8, 20)]
    assert said(find_quote("take 14 days", TEXTS)) == ["take 14 days"]


def test_case_white_space_marks_and_dashes_may_differ() -> None:
    assert said(find_quote('"refunds take 14 days. They go to the card - never "cash"."', TEXTS)) == [
        "Refunds take 14 days.\nThey go to the card — never “cash"
    ]


def test_parts_around_a_gap_are_found_in_their_order() -> None:
    assert said(find_quote("A licence costs ... 5 EUR", TEXTS)) == ["A licence costs", "5 EUR"]
    assert find_quote("5 EUR ... A licence costs", TEXTS) is None
    assert find_quote("Refunds take ... 5 EUR", TEXTS) is None, "the parts stand in two texts"


def test_a_quote_is_found_in_another_text_than_the_model_said() -> None:
    assert find_quote("A seat costs 5 EUR", TEXTS, place=0) == [Span(1, 24, 42)]
    both = ["the same words", "the same words"]
    assert find_quote("same words", both, place=1) == [Span(1, 4, 14)]
    assert find_quote("same words", both, place=7) == [Span(0, 4, 14)]


def test_words_that_no_text_has_are_no_evidence() -> None:
    assert find_quote("take 15 days", TEXTS) is None
    assert find_quote("...", TEXTS) is None
    assert find_quote("", TEXTS) is None


def test_patterns_in_a_quote_are_plain_text() -> None:
    assert find_quote("a (b) [c] .*", ["See a (b) [c] .* there"]) == [Span(0, 4, 16)]
