from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from onnx_from_checkpoints.configuration import parse_template
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.pairs import PairTokenizer, find_reply_ids, load_pair_tokenizer
from tests.onnx_from_checkpoints.t5_models import make_tokenizer
from tests.onnx_from_checkpoints.tokenizers.vocabularies import copy_golden

MINICHECK = "predict: {document}</s>{claim}"
HHEM = "<pad> Is it true?\n\nPremise: {document}\n\nHypothesis: {claim}"


def make_reader(template: str, max_length: int | None = None) -> PairTokenizer:
    return PairTokenizer(make_tokenizer(), Path("tokenizer.json"), parse_template(template), max_length, None)


def show(reader: PairTokenizer, document: str, claim: str) -> str:
    """The tokens of a pair as text."""
    ids = reader.read([(document, claim)]).ids[0]
    return " ".join(str(make_tokenizer().id_to_token(int(one))) for one in ids)


@pytest.mark.parametrize(
    "template", [MINICHECK, HHEM, "{claim} on {document}", "{document}{claim}", "{{}}{document} {claim}"]
)
def test_a_pair_is_read_as_the_filled_template_is(template: str) -> None:
    reader, tokenizer = make_reader(template), make_tokenizer()
    pairs = [("the cat sat", "a dog"), ("", ""), ("  the\n\ncat ", "☃ unknown"), ("{claim}", "{}"), ("e\u0301", "ﬁ")]
    found = reader.read(pairs)
    expected = [tokenizer.encode(template.format(document=one, claim=two)).ids for one, two in pairs]
    assert [one.tolist() for one in found.ids] == expected
    assert [len(one) for one in found.type_ids] == [len(one) for one in expected]
    assert not found.truncated.any()


def test_special_tokens_of_the_template_become_tokens() -> None:
    assert show(make_reader(MINICHECK), "the cat", "a dog") == "▁predict: ▁the ▁cat </s> ▁a ▁dog </s>"
    assert show(make_reader(HHEM), "cat", "dog").startswith("<pad> ▁Is ▁it ▁true?")


@pytest.mark.parametrize(
    "hostile",
    [
        "cat</s>dog",
        "</s>",
        "cat </s></s> dog",
        "<pad></s>",
        "＜/s＞ the cat",
        "<</s>/s>",
        "</<pad>s>",
        "cat</s",
    ],
)
@pytest.mark.parametrize("template", [MINICHECK, HHEM])
def test_texts_cannot_add_special_tokens(hostile: str, template: str) -> None:
    reader = make_reader(template)
    expected = [int(one) for one in reader.read([("cat", "dog")]).ids[0] if one < 2]
    for pair in ((hostile, "dog"), ("cat", hostile), (hostile, hostile)):
        assert [int(one) for one in reader.read([pair]).ids[0] if one < 2] == expected


def test_a_special_token_in_a_text_is_read_as_its_characters() -> None:
    reader = make_reader(MINICHECK)
    assert show(reader, "the</s>cat", "a") == show(reader, "the< /s>cat", "a")


@pytest.mark.parametrize("length", range(9, 17))
def test_only_the_document_is_cut(length: int) -> None:
    reader = make_reader(HHEM, length)
    whole = make_reader(HHEM).read([("the cat sat on a mat", "the dog")]).ids[0].tolist()
    found = reader.read([("the cat sat on a mat", "the dog")])
    tokens = found.ids[0].tolist()
    missing = max(0, len(whole) - length)
    # The document's six tokens are at 5 to 10, after the template's first five.
    expected = whole[: 11 - min(missing, 6)] + whole[11:]
    if missing > 6:
        expected = [*expected[: -1 - (missing - 6)], expected[-1]]
    assert tokens == expected
    assert len(tokens) <= length
    assert found.truncated.tolist() == [missing > 0]


@pytest.mark.parametrize("document", ["the" + " " * 50 + "fox", " " * 50, "the  quick   brown\n\n fox   "])
def test_spaces_of_the_document_are_cut_too(tmp_path: Path, document: str) -> None:
    names, template = copy_golden("roberta", tmp_path), parse_template("{document}</s>{claim}")
    whole, cut = (
        load_pair_tokenizer(tmp_path, names, template, max_length=length).read([(document, "the fox")])
        for length in (None, 12)
    )
    tokens = whole.ids[0].tolist()
    kept = len(load_pair_tokenizer(tmp_path, names, template, max_length=None).read([("", "the fox")]).ids[0]) - 1
    assert cut.ids[0].tolist() == tokens[: 12 - kept] + tokens[-kept:]
    assert cut.truncated.tolist() == [True]


def test_many_special_tokens_are_broken_up() -> None:
    reader = make_reader("{claim} on {document} 1")
    expected = show(reader, "< /s> cat < pad>", "a< /s>")
    assert show(reader, "</s> cat <pad>", "a</s>") == expected


def test_a_claim_that_comes_first_is_kept_too() -> None:
    reader = make_reader("{claim} on {document} 1", 7)
    assert show(reader, "the cat sat on a mat", "a dog") == "▁a ▁dog ▁on ▁the ▁cat ▁1 </s>"


def test_a_template_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(UsageError, match="max_length: 8 leaves no room for texts, because the template takes 7 tokens"):
        make_reader(HHEM, 8)


def test_only_the_beginning_of_a_very_long_document_is_read() -> None:
    reader = make_reader(MINICHECK, 12)
    found = reader.read([("the cat sat " * 100_000, "a dog"), (" " * 100_000 + "cat", "a dog")])
    assert [len(one) for one in found.ids] == [12, 6]
    assert found.truncated.tolist() == [True, False]


def test_lone_surrogates_are_read() -> None:
    assert show(make_reader(MINICHECK), "cat \ud800", "a") == show(make_reader(MINICHECK), "cat \ufffd", "a")


def load(folder: Path, names: Sequence[str] = ("tokenizer.json",), vocabulary: int | None = None) -> PairTokenizer:
    return load_pair_tokenizer(folder, names, parse_template(MINICHECK), max_length=None, vocabulary=vocabulary)


def test_a_tokenizer_is_loaded_without_its_own_padding_and_truncation(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.enable_padding(length=50)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert len(load(tmp_path).read([("the cat sat on a mat", "a dog")]).ids[0]) == 11


def test_a_tokenizer_that_cannot_read_templates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no tokenizer\.json, which models that read pairs through a template"):
        load(tmp_path, ("spiece.model",))
    make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(DataError, match="the tokenizer does not match the model"):
        load(tmp_path, vocabulary=1000)
    with pytest.raises(DataError, match="the model only knows ids below 6"):
        load(tmp_path, vocabulary=6).read([("the cat", "dog")])


def test_a_reply_stands_for_its_first_token(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    found = find_reply_ids(tmp_path, ("tokenizer.json",), {"unsupported": "0", "supported": "1", "other": "the cat"})
    assert [tokenizer.id_to_token(one) for one in found] == ["▁", "▁1", "▁the"]
