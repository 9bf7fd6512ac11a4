"""`rageval-spec view`: its options, where it looks for records, and how long it runs."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import click

from rageval_spec import signals
from rageval_spec.commands import console
from rageval_spec.errors import PASSED, UsageError, expand_home

if TYPE_CHECKING:
    from rageval_spec.local_view.application import Address, Asked, Reply
    from rageval_spec.local_view.record_catalog import RecordCatalog

_MOST_BYTES = 1_000_000
"""What is read of a file to see whether it is a spec."""
_ENDED = "every label that the page called saved is in its file"


@click.command("view")
@click.argument("path", required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="NUMBER", help="The port.  [default: any]")
@click.option(
    "--labels", type=click.Path(path_type=Path), metavar="FILE", help="The file of labels.  [default: labels.csv]"
)
@click.option(
    "--scale", default="yes_no", show_default=True, metavar="SCALE",
    help="What labels are: yes_no, or grades such as 1..5.",
)  # fmt: skip
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
def view(path: str | None, port: int, labels: Path | None, scale: str, no_open: bool) -> int:
    """Look at records in a browser, side by side, and label answers.

    PATH is a folder with evaluations, a spec or a results folder; by default the current folder. Only this machine
    reaches the pages, and only with the printed address. Ctrl-C ends this.

    \b
    rageval-spec view
    rageval-spec view spec.yaml --labels labels.csv --scale 1..5
    """
    import secrets
    import tempfile

    from rageval_spec.local_view.application import make_view_app
    from rageval_spec.review.criteria import make_criterion

    if scale == "claims":  # those of one answer are not drawn one by one, which the confidence sequence asks for
        raise UsageError(
            "the view labels whole answers; for claims, write a form: rageval-spec review select --scale claims"
        )
    make_criterion("", scale)  # what is no scale is refused before the pages open
    catalog, folder, spec = find_catalog(path)
    token = secrets.token_urlsafe(24)
    with (
        tempfile.TemporaryDirectory(prefix="rageval-view-", ignore_cleanup_errors=True) as kept,
        signals.explained(lambda: _ENDED),
    ):
        app = make_view_app(list_addresses(catalog, Path(kept), labels or folder / "labels.csv", spec, scale), token)
        from rageval_spec.endpoints.http_server import Server

        server = Server(app, "127.0.0.1", port)
        address = f"{server.url}/?token={token}"
        console.tell(f"the view is at {address}; Ctrl-C ends this")
        if not no_open:
            import webbrowser

            from rageval_spec.commands.demo.command import has_browser

            if has_browser():
                webbrowser.open(address)
        try:
            Event().wait()
        finally:
            server.close()
    return PASSED


_PLACES = {
    "rageval_spec.local_view.record_pages:RecordPages": {
        "/": "show_list",
        "/record/{record}/": "show_report",
        "/record/{record}/parts/{name}.js": "send_part",
        "/trends": "show_trends",
        "/favicon.ico": "send_icon",
    },
    "rageval_spec.commands.view.comparison_page:ComparisonPage": {"/compare": "show"},
    "rageval_spec.commands.view.labelling_page:LabellingPage": {
        "/label": "show_choice",
        "/label/{record}": "show",
        "/label/{record}/opinion": "tell_opinion",
        "/label/{record}/standing": "tell_standing",
        "/label/{record}/save": "save",
    },
    "rageval_spec.commands.view.command:MonitorPage": {"/monitor": "show"},
    "rageval_spec.local_view.judging_page:JudgingPage": {
        "/judge/{record}": "show",
        "/judge/{record}/plan": "plan",
        "/judge/{record}/run": "judge",
        "/judge/{record}/keep": "keep",
    },
}
"""The methods that answer, by path and by the class that has them, which is imported when a page of it is opened."""
_ACTIONS = ("save", "plan", "judge", "keep")


def list_addresses(
    catalog: RecordCatalog, kept: Path, labels: Path, spec: Path | None, scale: str = "yes_no"
) -> list[Address]:
    """All pages of the records of a catalog.

    Args:
        catalog: the records.
        kept: an empty folder for what is written once and served often.
        labels: the file of labels, which need not exist.
        spec: the spec by which questions are judged again, if it is known.
        scale: what people enter, as `make_criterion` takes it.
    """
    from rageval_spec.local_view.application import Address

    given = {
        "RecordPages": (kept, spec),
        "ComparisonPage": (),
        "LabellingPage": (labels, scale),
        "MonitorPage": (spec, kept),
        "JudgingPage": (spec,),
    }

    making = Lock()

    @cache
    def make(place: str) -> Any:
        module, _, name = place.partition(":")
        return getattr(import_module(module), name)(catalog, *given[name])

    def answer(place: str, method: str, asked: Asked) -> Reply:
        with making:  # one object has the pages and the actions of a class
            page = make(place)
        found: Reply = getattr(page, method)(asked)
        return found

    return [
        Address(path, partial(answer, place, method), method in _ACTIONS)
        for place, methods in _PLACES.items()
        for path, method in methods.items()
    ]


class MonitorPage:
    """The page of `monitor page`, if the spec watches production."""

    def __init__(self, _: RecordCatalog, spec: Path | None, kept: Path) -> None:
        """Of the spec; `kept` is a folder for the page."""
        self._spec = spec
        self._file = kept / "monitor.html"

    def show(self, _: Asked) -> Reply:
        """The page as it is now."""
        import time

        from rageval_spec.local_view.application import Reply, add_links, write_message
        from rageval_spec.monitoring.assembly import make_page, make_watch, open_ledger
        from rageval_spec.pipeline.planning.spec_plugins import build_parts
        from rageval_spec.spec import load

        spec = None if self._spec is None else load(self._spec)
        if spec is None or spec.monitor is None:
            told = "Start the view with a spec that has 'monitor:': rageval-spec view spec.yaml"
            return Reply(write_message(told), status=404)
        with open_ledger(spec) as ledger:
            parts = build_parts(spec)
            make_page(spec, make_watch(spec, ledger, parts), parts, self._file).write(time.time())
        return Reply(add_links(self._file.read_bytes()))


def find_catalog(path: str | None) -> tuple[RecordCatalog, Path, Path | None]:
    """The records that a path means, the folder in which the labels are looked for, and the spec.

    The spec is the path itself, else the only one in that folder, else None.
    """
    from dataclasses import replace

    from rageval_spec.commands.results_argument import find_places, is_results, is_spec
    from rageval_spec.history.database import FILE, exists
    from rageval_spec.history.evaluation_lookup import SearchPlaces
    from rageval_spec.history.saved_evaluations import FOLDER
    from rageval_spec.local_view.record_catalog import RecordCatalog
    from rageval_spec.plugin.report import RESULTS_FOLDER

    here = find_places()
    if path is None:
        return RecordCatalog(here, _list_results(Path())), Path(), _find_spec(Path())
    if is_spec(path):
        from rageval_spec.spec import load

        spec = load(expand_home(path))
        folders = [Path(RESULTS_FOLDER), *_list_results(spec.folder)]
        return RecordCatalog(SearchPlaces.of(spec), folders), spec.folder, expand_home(path)
    place = expand_home(path)
    if is_results(path):
        folder = place if place.is_dir() else place.parent
        beside = folder.resolve().parent
        own = replace(here, labels=beside / FOLDER, database=beside / FILE, folder=beside)
        return (
            RecordCatalog(own if own.labels.is_dir() or exists(own.database) else here, [folder]),
            beside,
            _find_spec(beside),
        )
    if not place.is_dir():
        raise UsageError(f"{path} is not a folder, a spec or a results folder; name one, or leave it out")
    places = SearchPlaces(place / FOLDER, place / FILE, place)
    return RecordCatalog(places, _list_results(place)), place, _find_spec(place)


def _list_results(folder: Path) -> list[Path]:
    """The folder itself and those directly in it, if they hold results; one that cannot be read has none."""
    from rageval_spec.errors import describe_os_error
    from rageval_spec.history.saved_evaluations import holds_results

    try:
        inner = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise UsageError(f"{folder}: {describe_os_error(error)}") from error
    return [one for one in (folder, *inner) if holds_results(one)]


def _find_spec(folder: Path) -> Path | None:
    """The only file directly in a folder that looks like a spec of an evaluation."""
    found = []
    for path in (*folder.glob("*.yaml"), *folder.glob("*.yml")):
        with suppress(OSError), path.open("rb") as file:
            keys = re.findall(rb"(?m)^(\w+)\s*:", file.read(_MOST_BYTES))
            found += [path] if {b"version", b"datasets", b"metrics"} <= {*keys} else []
    return found[0] if len(found) == 1 else None
