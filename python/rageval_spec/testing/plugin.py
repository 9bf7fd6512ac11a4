"""What pytest loads in every session where this package is installed: it imports nothing until it is used.

Specs that are named on the command line, or by the setting `rageval_specs`, become tests: `pytest evals/support.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rageval_spec.testing.fixture import Rageval
    from rageval_spec.testing.spec_collection import SpecFile

SETTING = "rageval_specs"
_SUFFIXES = (".yaml", ".yml")
_KEYS = ("datasets:", "systems:", "metrics:")
"""Keys that begin a line of every spec, so that a YAML file of another plugin is left to it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting, and an option that limits the questions."""
    parser.addini(SETTING, "Specs to run as tests when pytest is called without paths: files or patterns.", "linelist")
    group = parser.getgroup("rageval-spec")
    group.addoption("--rageval-limit", type=int, metavar="N", help="Evaluate only the first N queries of each dataset.")


def pytest_configure(config: pytest.Config) -> None:
    """Add the specs of the setting to what is collected, unless the command line names what to test."""
    _leave_modules_alone(config)
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    for pattern in config.getini(SETTING):
        found = sorted(folder.glob(pattern))
        if not found:
            raise pytest.UsageError(f"{SETTING}: no file in {folder} matches '{pattern}'")
        config.args.extend(map(str, found))


def _leave_modules_alone(config: pytest.Config) -> None:
    """Import this package as programs do; pytest rewrites all modules of a distribution that has a plugin.

    An evaluation imports in several threads, and Python 3.11 raises SystemError where two of them rewrite at once.
    """
    hook = config.pluginmanager.rewrite_hook
    getattr(hook, "_must_rewrite", set()).discard("rageval_spec")
    getattr(hook, "_marked_for_rewrite_cache", {}).clear()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SpecFile | None:
    """Collect a spec that was named; any other YAML file in a folder that is collected is left alone."""
    if file_path.suffix not in _SUFFIXES or not _is_named(file_path, parent):
        return None
    text = file_path.read_text(encoding="utf-8", errors="replace")
    if not any(line.startswith(_KEYS) for line in text.splitlines()):
        return None
    from rageval_spec.testing.spec_collection import SpecFile

    return SpecFile.from_parent(parent, path=file_path)


def _is_named(path: Path, parent: pytest.Collector) -> bool:
    """Whether a path is an argument; pytest drops an argument that is in the folder of another one."""
    return parent.session.isinitpath(path) or str(path) in parent.config.args


@pytest.fixture(scope="session")
def rageval() -> Rageval:
    """Evaluate in tests: `rageval.run(...)`, `rageval.assert_passes(...)`, `rageval.assert_no_regression(...)`."""
    from rageval_spec.testing.fixture import Rageval

    return Rageval()
