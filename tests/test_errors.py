from __future__ import annotations

import argparse
import sys

import pytest

from rageval_spec.errors import RagevalError, no_exit


def leave() -> None:
    sys.exit(3)


def parse() -> None:
    argparse.ArgumentParser().parse_args(["--unknown"])


@pytest.mark.parametrize(("function", "code"), [(leave, 3), (parse, 2)])
def test_an_exit_names_the_function_that_was_called(function: object, code: int) -> None:
    assert callable(function)

    def call() -> None:
        with no_exit():
            function()

    with pytest.raises(RagevalError, match=rf"called sys\.exit\({code}\); it must return or raise an exception"):
        call()
