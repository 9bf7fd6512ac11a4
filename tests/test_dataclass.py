from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from typing import Any, ClassVar

import pytest

from rageval_spec import dataclass as ours
from rageval_spec.dataclass import field, replace


@ours.dataclass(frozen=True, slots=True)
class Kept:
    """A class at the top of a module, as pickle needs it."""

    name: str
    size: int = 3


class Bare:
    name: str
    parts: list[int] = field(default_factory=list)
    seen: int = field(default=0, compare=False)
    secret: str = field(default="", repr=False)
    total: int = field(init=False, default=7)
    words: set[str] = field(init=False, default_factory=set)
    kind: ClassVar[str] = "bare"


class Keyed:
    name: str
    _: dataclasses.KW_ONLY
    left: int
    right: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", self.left + 1)


class Own:
    """It has methods of its own, which stay."""

    name: str

    def __repr__(self) -> str:
        return "own"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 5


class Empty:
    pass


OPTIONS: tuple[dict[str, bool], ...] = (
    {}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}, {"eq": False}, {"repr": False},
    {"frozen": True, "eq": False}, {"kw_only": True},
)  # fmt: skip
CALLS: dict[type[Any], tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]] = {
    Bare: (
        (("a",), {}), (("a", [1]), {}), (("b",), {}), (("a",), {"seen": 2}), ((), {"name": "a"}), ((), {}),
        ((1,) * 5, {}),
    ),
    Keyed: ((("a",), {"left": 1}), ((), {"name": "a", "left": 1, "right": 9}), (("a", 1), {}), (("a",), {})),
    Own: ((("a",), {}), (("b",), {})),
    Empty: (((), {}), ((1,), {})),
}  # fmt: skip


def define(decorate: Any, kind: type[Any], options: dict[str, bool]) -> Any:
    """A fresh copy of a class, decorated."""
    content = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
    content = {n: copy.copy(v) if isinstance(v, dataclasses.Field) else v for n, v in content.items()}
    return decorate(**options)(type(kind.__name__, (), content))


def attempt(action: Any) -> Any:
    """What an action gives, or its error."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


def describe(made: Any, calls: Any) -> list[Any]:
    """All that programs can see of a dataclass."""
    seen: list[Any] = [str(inspect.signature(made)), made.__match_args__, made.__doc__ or None]
    seen += [[(one.name, one.type, one.kw_only) for one in dataclasses.fields(made)], made.__init__.__qualname__]
    instances = []
    for values, named in calls:
        one = attempt(lambda values=values, named=named: made(*values, **named))
        if isinstance(one, tuple):
            seen.append(one)
            continue
        instances.append(one)
        shown = repr(one) if not repr(one).startswith("<") else ""
        hashed = attempt(lambda one=one: hash(one) == hash(copy.copy(one)))
        seen += [shown, dataclasses.asdict(one), hashed, hasattr(one, "__dict__")]
        seen.append(attempt(lambda one=one: dataclasses.asdict(replace(one, name="new"))))
        changed = copy.copy(one)
        refused = attempt(lambda changed=changed: setattr(changed, "other", 1))
        seen.append("refused" if refused else "done")  # of frozen classes with slots, Python 3.11 tells it badly
        if made.__match_args__:
            seen.append(attempt(lambda changed=changed: setattr(changed, "name", 1)))
            seen.append(attempt(lambda changed=changed: delattr(changed, "name")))
    seen.append([[a == b for a in instances] for b in instances])
    seen.append([a == 1 for a in instances])
    return seen


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_are_as_the_standard_library_makes_them(kind: type[Any], options: dict[str, bool]) -> None:
    expected, found = (
        describe(define(decorate, kind, options), CALLS[kind]) for decorate in (dataclasses.dataclass, ours.dataclass)
    )
    assert found[3:] == expected[3:]
    assert found[:2] == expected[:2]


def test_nothing_is_compiled_before_the_first_instance() -> None:
    made = define(ours.dataclass, Bare, {})
    assert not inspect.isfunction(vars(made)["__init__"])
    made("a")
    assert inspect.isfunction(vars(made)["__init__"])


def test_frozen_classes_with_slots_can_be_copied_and_sent() -> None:
    one = Kept("a")
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    assert hash(one) == hash(Kept("a")) != hash(Kept("b"))


def test_classes_can_derive_from_one_another() -> None:
    class Wide(Kept):
        pass

    @ours.dataclass(frozen=True, slots=True)
    class Long(Kept):
        length: float = 1.0

    @dataclasses.dataclass(frozen=True)
    class Theirs(Kept):
        more: int = 4

    assert repr(Long("a")).endswith("Long(name='a', size=3, length=1.0)")
    assert repr(Wide("a", 4)).endswith("Wide(name='a', size=4)")
    assert Theirs("a").more == 4
    assert Long("a") != Kept("a")
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        ours.dataclass(type("Loose", (Kept,), {}))


def test_values_that_contain_themselves_can_be_shown() -> None:
    one = define(ours.dataclass, Bare, {})("a")
    one.parts.append(one)
    assert "parts=[...]" in repr(one)


def test_types_of_parameters_can_be_resolved() -> None:
    assert typing.get_type_hints(Kept.__init__) == {"name": str, "size": int, "return": type(None)}
