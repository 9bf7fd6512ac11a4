"""The site has every page once, its links hold, and what is broken is found."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
sys.path.insert(0, str(SITE))

import build  # noqa: E402
import checks  # noqa: E402
import dialects  # noqa: E402
import markdown_text  # noqa: E402
import spec_reference  # noqa: E402
import staging  # noqa: E402

from rageval_spec.spec.diagnostic_codes import CODES  # noqa: E402

HOME = "# Home\n\n![Two bars](bar.svg)\n\n1. One\n2. Two, see [there](folder/page.md#a-part)\n"
PAGE = "# Page\n\n## A part\n\nBack [home](../index.md).\n\n| a | b |\n|---|---|\n| 1 | `x|y` |\n"


@pytest.fixture(scope="module")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The HTML of two pages, made by Zensical with the settings of the site."""
    folder = tmp_path_factory.mktemp("site")
    build.write(folder / "pages" / "index.md", HOME)
    build.write(folder / "pages" / "folder" / "page.md", PAGE)
    build.write(folder / "pages" / "bar.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>")
    for name in ("site.css", "site.js"):
        shutil.copy(SITE / name, folder / "pages" / name)
    nav = [{"Home": "index.md"}, {"Part": [{"Page": "folder/page.md"}]}]
    settings = (SITE / "zensical.toml").read_text(encoding="utf-8")
    build.write(folder / "zensical.toml", settings.replace("nav = []", f"nav = {build.write_toml(nav)}"))
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True, capture_output=True)
    return folder


def test_a_sound_site_has_no_fault_and_a_small_page(small_site: Path) -> None:
    site = checks.BuiltSite(small_site / "html")
    assert [*site.find_faults(), *dialects.find_differences(small_site / "pages", small_site / "html")] == []
    assert 50_000 < site.weigh_page("index.html") < checks.MOST_BYTES


@pytest.mark.parametrize(
    ("page", "old", "new", "fault"),
    [
        ("index.html", "folder/page.html#a-part", "folder/none.html", "'folder/none.html' leads to nothing"),
        ("index.html", "#a-part", "#b-part", "has an anchor that folder/page.html has not"),
        ("index.html", 'src="bar.svg"', 'src="none.svg"', "'none.svg' is not there"),
        ("index.html", 'alt="Two bars"', 'alt=""', "has no text for those who cannot see it"),
        ("index.html", "folder/page.html", "index.html", "folder/page.html: no page links to it"),
        ("index.html", 'href="./site.css"', 'href="https://fonts.example/a.css"', "from elsewhere"),
    ],
)
def test_what_is_broken_is_found(small_site: Path, tmp_path: Path, page: str, old: str, new: str, fault: str) -> None:
    shutil.copytree(small_site / "html", tmp_path / "html")
    text = (tmp_path / "html" / page).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "html" / page).write_text(text.replace(old, new), encoding="utf-8")
    found = [*checks.BuiltSite(tmp_path / "html").find_faults()]
    assert any(fault in one for one in found), found


def test_a_heavy_page_and_a_style_that_loads_elsewhere_are_found(small_site: Path, tmp_path: Path) -> None:
    shutil.copytree(small_site / "html", tmp_path / "html")
    (tmp_path / "html" / "bar.svg").write_text(
        "".join(sha256(bytes([i % 251, i // 251])).hexdigest() for i in range(5000))
    )
    (tmp_path / "html" / "site.css").write_text("@import url(https://fonts.example/a.css);")
    found = "\n".join(checks.BuiltSite(tmp_path / "html").find_faults())
    assert "site.css loads https://fonts.example/a.css from elsewhere" in found
    assert re.search(r"index.html: \d{3},\d{3} bytes with all that it loads, more than 200,000", found)


def test_every_page_of_the_repository_is_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "GENERATED", {})
    pages = [page for groups in build.read_parts().values() for group in groups.values() for page in group]
    assert [one for one, times in Counter(page.path for page in pages).items() if times > 1] == []
    wanted = {str(path.relative_to(ROOT)) for folder in ("docs", "benches") for path in (ROOT / folder).rglob("*.md")}
    assert wanted - {page.source for page in pages} == {"docs/index.md"}
    assert [page.path for page in pages if not page.path.startswith("files/") and not page.summary] == []


def test_a_page_without_a_part_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nav.yaml").write_text("Reference:\n  All: [docs/gates.md]\n")
    monkeypatch.setattr(build, "HERE", tmp_path)
    with pytest.raises(build.UnplacedPageError, match=r"nav.yaml has no place for .*docs/asking\.md"):
        build.read_parts()


def test_links_lead_to_the_places_of_the_site() -> None:
    text = "[a](asking.md#x) [`b`](../specs/retriever.yaml) [c](../README.md) [d](decisions/) `[e](none.md)`\n"
    assert staging.lead_links(text, "docs/gates.md") == (
        "[a](asking.md#x) [`b`](files/specs/retriever.yaml.md) [c](index.md) [d](decisions/index.md) `[e](none.md)`\n"
    )
    assert staging.lead_links("[a](../docs/models.md)\n", "benches/dense.md") == "[a](../models.md)\n"
    assert staging.lead_links("```\n[a](none.md)\n```\n", "docs/gates.md") == "```\n[a](none.md)\n```\n"
    with pytest.raises(staging.BrokenLinkError, match=r"docs/gates.md links to none.md, but there is no docs/none.md"):
        staging.lead_links("[a](none.md)\n", "docs/gates.md")


def test_lists_are_written_as_python_markdown_reads_them() -> None:
    text = "Some:\n- one\n  more\n\n  ```\n  code\n  ```\n- two\n  1. inner\n\nA\n480. paragraph\n"
    assert dialects.indent_lists(text) == (
        "Some:\n\n- one\n    more\n\n    ```\n    code\n    ```\n\n- two\n    1. inner\n\nA\n480\\. paragraph\n"
    )


def test_text_of_the_code_is_no_markup() -> None:
    assert markdown_text.escape("a <b> | *c* `d|e` [f]") == r"a &lt;b\> \| \*c\* `d|e` \[f\]"


def test_every_code_has_an_anchor_on_the_page_of_diagnostics() -> None:
    assert re.findall(r"^## `(.+)`$", spec_reference.write_diagnostics_page().text, re.MULTILINE) == [*CODES]


def test_every_variable_that_the_package_reads_is_on_its_page() -> None:
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    asked = r'(?:environ(?:\.get)?[(\[]|envvar=)"([A-Z_]+)"|"((?:RAGEVAL|HF|OTEL|TRANSFORMERS)_[A-Z_]+)"'
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "python" / "rageval_spec").rglob("*.py")]
    names = {name for text in sources for found in re.findall(asked, text) for name in found if name} - {
        "HF_HUB_DISABLE_TELEMETRY"
    }  # set, not read
    assert len(names) > 8
    assert [name for name in sorted(names) if f"`{name}`" not in page and not name.endswith("_")] == []
