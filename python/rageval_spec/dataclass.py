"""Dataclasses that are cheap to define. What modules need of `dataclasses` they import from here.

The standard library compiles up to seven methods for each class, which takes half a millisecond, and a command defines
hundreds of classes. Here `__init__` is compiled when it is first used, and the other methods are shared by all classes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, astuple, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING

__all__ = ["KW_ONLY", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    import sys
    from functools import cache
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False):
        """What `dataclasses.dataclass` does with these options."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, slots=slots, kw_only=kw_only)
        own = {name for name, value in vars(cls).items() if value is not None}
        if "__doc__" not in own:
            cls.__doc__ = cls.__name__  # for which the standard library works out the signature
        derives = any(map(is_dataclass, cls.__mro__[1:]))
        made = dataclasses.dataclass(
            init=False, repr=False, eq=False, frozen=frozen and derives, slots=slots, kw_only=kw_only
        )(cls)
        made.__dataclass_params__.frozen = frozen
        methods = {"__init__": _Initializer(made)}
        methods |= {"__repr__": _show} if repr else {}
        methods |= {"__eq__": _equals, "__hash__": _hash if frozen else None} if eq else {}
        methods |= {"__setattr__": _refuse_to_assign, "__delattr__": _refuse_to_delete} if frozen else {}
        methods |= {"__getstate__": _list_values, "__setstate__": _set_values} if frozen and slots else {}
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        return made

    _MADE_ANEW = type("_MadeAnew", (), {"__repr__": lambda _: "<factory>"})()  # the default in signatures

    class _Initializer:
        """Stands for the `__init__` of a class until somebody looks it up."""

        def __init__(self, made):
            self.made = made

        def __get__(self, instance, owner):
            self.made.__init__ = found = _compile_init(self.made)
            return found.__get__(instance, owner)

    def _compile_init(made):
        known, positional, named, lines = {"__set": object.__setattr__, "__anew": _MADE_ANEW}, [], [], ["pass"]
        put = "__set(self, {0!r}, {1})" if made.__dataclass_params__.frozen else "self.{0} = {1}"
        for one in fields(made):
            name, default, value = one.name, None, one.name
            if one.default_factory is not dataclasses.MISSING:
                known[f"__make_{name}"], default = one.default_factory, "__anew"
                value = f"__make_{name}() if {name} is __anew else {name}" if one.init else f"__make_{name}()"
            elif one.default is not dataclasses.MISSING:
                known[default := f"__default_{name}"] = one.default
                value = name if one.init else default
            if one.init:
                (named if one.kw_only else positional).append(f"{name}={default}" if default else name)
            if one.init or default:
                lines.append(put.format(name, value))
        lines += ["self.__post_init__()"] if hasattr(made, "__post_init__") else []
        parameters = ", ".join(("self", *positional, *(("*", *named) if named else ())))
        body = f"def make({', '.join(known)}):\n def __init__({parameters}):\n  " + "\n  ".join(lines)
        spaces = {}
        exec(f"{body}\n return __init__", vars(sys.modules.get(made.__module__, dataclasses)), spaces)
        found = spaces["make"](**known)
        found.__qualname__, found.__module__ = f"{made.__qualname__}.__init__", made.__module__
        found.__annotations__ = {one.name: one.type for one in fields(made) if one.init} | {"return": None}
        return found

    @cache
    def _compared(cls):
        """What lists the fields of an instance that are compared."""
        names = [one.name for one in fields(cls) if one.compare]
        return attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)

    def _equals(self, other):
        of = _compared(type(self))
        return of(self) == of(other) if type(other) is type(self) else NotImplemented

    def _hash(self):
        return hash(_compared(type(self))(self))

    @recursive_repr()
    def _show(self):
        shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__qualname__}({shown})"

    def _refuse_to_assign(self, name, value):
        _refuse(self, name, "assign to")
        object.__setattr__(self, name, value)

    def _refuse_to_delete(self, name):
        _refuse(self, name, "delete")
        object.__delattr__(self, name)

    def _refuse(self, name, verb):
        if "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")

    def _list_values(self):
        return [getattr(self, one.name) for one in fields(self)]

    def _set_values(self, values):
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)
