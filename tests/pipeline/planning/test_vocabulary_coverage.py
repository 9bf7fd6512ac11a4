"""How much of texts is in minilm's vocabulary, by which its default is chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.pipeline.planning.default_model import COVERED_FROM, measure_coverage, read_vocabulary
from tests.embedded import require

SPECS = Path(__file__).parents[3] / "specs" / "data"


def read_texts(path: Path) -> Iterator[str]:
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        yield f"{row['title']} {row['text']}"


def test_letters_in_known_words_count_and_digits_do_not() -> None:
    vocabulary = {"the", "cat", "uber"}
    assert measure_coverage(["The CAT 42 sat."], vocabulary) == 6 / 9
    assert measure_coverage(["Über 3!"], vocabulary) == 1.0
    assert measure_coverage(["über"], vocabulary) == 1.0  # decomposed
    assert measure_coverage(["12 + 3", "", "—"], vocabulary) is None
    assert measure_coverage([], vocabulary) is None


@pytest.mark.parametrize(
    "text",
    [
        "Die Katze sitzt auf dem Dach und schaut den Vögeln zu, die im Garten nach Würmern suchen.",
        "El perro corre por el parque mientras los niños juegan con una pelota roja cerca del río.",
        "Le chat dort sur le canapé pendant que la pluie tombe doucement sur les toits de la ville.",
        "Con chó chạy qua công viên trong khi bọn trẻ chơi với quả bóng đỏ gần sông.",
        "Собака бежит по парку, пока дети играют с красным мячом у реки.",
        "الكلب يركض في الحديقة بينما يلعب الأطفال بكرة حمراء قرب النهر.",
        "狗在公园里跑，孩子们在河边玩红色的球。",
        "子供たちが川の近くで赤いボールで遊んでいる間、犬は公園を走ります。",
        "बच्चे नदी के पास लाल गेंद से खेलते हैं और कुत्ता दौड़ता है।",
    ],
)
def test_other_languages_are_not_covered(text: str) -> None:
    require("minilm")
    share = measure_coverage([text], read_vocabulary(EMBEDDED["minilm"].find_folder()))
    assert share is not None
    assert share < COVERED_FROM


def test_the_english_example_is_covered_and_the_german_one_is_not() -> None:
    require("minilm")
    vocabulary = read_vocabulary(EMBEDDED["minilm"].find_folder())
    english, german = (
        measure_coverage(read_texts(SPECS / name / "corpus.jsonl"), vocabulary) for name in ("support", "library_de")
    )
    assert english is not None
    assert german is not None
    assert english > 0.85
    assert german < 0.4
