"""Writes the table of tools in docs/exchange/README.md, from the first table of each tool's page.

python docs/exchange_table.py --write    # after a page came, went, or changed its first table
python docs/exchange_table.py --check    # exit code 1 if the overview says something else
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "exchange"
_HEADER = "| tool | in | out |\n|---|---|---|\n"
_REGION = re.compile(r"(<!-- generated: tools -->\n)(.*?)(<!-- /generated -->)", re.DOTALL)


def tabulate_tools(folder: Path) -> str:
    """A row for each tool with a link to its page, from the table that each page begins with.

    Raises:
        ValueError: a page does not begin with that table.
    """
    rows: list[str] = []
    for page in sorted(folder.glob("*.md")):
        if page.name != "README.md":
            _, begin, rest = page.read_text(encoding="utf-8").partition(f"\n\n{_HEADER}")
            if not begin:
                raise ValueError(f"{page} does not begin with the table {_HEADER.splitlines()[0]}")
            own = rest.partition("\n\n")[0].splitlines()
            rows += [re.sub(r"^\| (.+?) \(", rf"| [\1]({page.name}) (", row) for row in own]
    return _HEADER + "".join(f"{row}\n" for row in rows)


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    """`--write` or `--check`."""
    if arguments not in (["--write"], ["--check"]):
        print("usage: python docs/exchange_table.py --write|--check", file=sys.stderr)
        return 2
    overview = folder / "README.md"
    text = overview.read_text(encoding="utf-8")
    filled = _REGION.sub(lambda found: f"{found[1]}{tabulate_tools(folder)}{found[3]}", text)
    if arguments == ["--write"]:
        overview.write_text(filled, encoding="utf-8")
    elif filled != text:
        print(f"the table in {overview} is out of date; run: python docs/exchange_table.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
