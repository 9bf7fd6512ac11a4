from rageval_spec.data.evidence.citations import Citation, count_from, dump_citations, load_citations
from rageval_spec.data.evidence.citations import list_statements as list_all
from rageval_spec.recorded.citations import find_citations


def statements(answer: str) -> list[tuple[str, list[str]]]:
    found = list_all(answer, find_citations(answer, ["x"] * 5, None))
    return [(one.text, [cited.document for cited in one.citations]) for one in found]


def test_round_trip() -> None:
    cited = (Citation(0, 3, "1", (4, 7), 0), Citation(0, 3, "ä", None, None, 0.5))
    assert load_citations(dump_citations(cited)) == cited
    assert load_citations(None) is None


def test_statements() -> None:
    assert statements("The sky is blue [1][2]. Water is wet.[3] It is so.\n\nSources:\n[1] guide") == [
        ("The sky is blue.", ["1", "2"]),
        ("Water is wet.", ["3"]),
        ("It is so.", []),
    ]
    assert statements(" \n") == []
    assert statements("[1]") == []


def test_a_citation_of_several_sentences_makes_one_statement() -> None:
    answer = "One is so. Two is too. Three is not."
    found = list_all(answer, [Citation(0, 22, "a"), Citation(30, 33, "b")])
    assert [(one.text, len(one.citations)) for one in found] == [("One is so. Two is too.", 1), ("Three is not.", 1)]


def test_quotes() -> None:
    assert statements("[ 2 Nitrogen ] is a gas. It is light.") == [("Nitrogen is a gas.", ["2"]), ("It is light.", [])]


def test_counting() -> None:
    cited = [Citation(0, 3, "1", (4, 7), 0), Citation(0, 3, "a", (4, 7), 1), Citation(0, 3, "2", None, 0)]
    assert [one.context for one in count_from(cited, 2, 0)] == [1, 1, 0]
    assert [one.context for one in count_from(cited, 1, 0)] == [None, 1, 0]
