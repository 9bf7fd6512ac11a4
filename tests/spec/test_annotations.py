from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from rageval_spec.plugin.names import Reference
from rageval_spec.spec.annotations import models_at, named_section


class Inner(BaseModel):
    model: Annotated[str, Reference("models")] = ""


class Other(BaseModel):
    size: int = 1


class Outer(BaseModel):
    one: Inner | Other | None = None
    several: tuple[Inner, ...] = ()
    by_name: dict[str, Other] = Field(default_factory=dict)
    systems: list[Annotated[str, Reference("systems")]] = Field(default_factory=list)
    as_: str = Field(default="", alias="as")


def test_the_nodes_that_a_path_can_lead_to() -> None:
    assert list(models_at(Outer, ())) == [Outer]
    assert list(models_at(Outer, ("one",))) == [Inner, Other]
    assert list(models_at(Outer, ("several", 3))) == [Inner]
    assert list(models_at(Outer, ("by_name", "any"))) == [Other]
    assert list(models_at(Outer, ("one", "size"))) == []
    assert list(models_at(Outer, ("absent",))) == []


def test_the_section_whose_names_a_path_takes() -> None:
    assert named_section(Outer, ("one", "model")) == "models"
    assert named_section(Outer, ("several", 0, "model")) == "models"
    assert named_section(Outer, ("systems", 0)) == "systems"
    assert named_section(Outer, ("one", "size")) is None
    assert named_section(Outer, ("as",)) is None
