import pytest

from rageval_spec.datasets.generated import DIFFICULTIES, STYLE_NAMES, TYPES
from rageval_spec.generation.prompts import NAMES, describe_prompts, load, read_wordings


def test_every_type_difficulty_and_style_has_its_wording() -> None:
    wordings = read_wordings()
    assert [*wordings["types"]] == [*TYPES]
    assert [*wordings["difficulties"]] == [*DIFFICULTIES]
    assert [*wordings["styles"]] == [*STYLE_NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_has_a_version_and_a_digest(name: str) -> None:
    assert load(name).version == "1"
    assert len(describe_prompts()[name]["sha256"]) == 64
