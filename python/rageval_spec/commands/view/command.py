"""`rageval-spec view`: its options, where it looks for records, and how long it runs."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from rageval_spec import signals
from rageval_spec.commands import console
from rageval_spec.commands.results_argument import find_places, is_results, is_spec
from rageval_spec.errors import PASSED, UsageError, expand_home

if TYPE_CHECKING:
    from rageval_spec.local_view.application import Address
    from rageval_spec.local_view.record_catalog import RecordCatalog

_ENDED = "every label that the page called saved is in its file"


@click.command("view")
@click.argument("path", required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="NUMBER", help="The port.  [default: any]")
@click.option(
    "--labels", type=click.Path(path_type=Path), metavar="FILE", help="The file of labels.  [default: labels.csv]"
)
@click.option("--open/--no-open", "opens", default=True, help="Open the page in the browser.")
def view(path: str | None, port: int, labels: Path | None, opens: bool) -> int:
    """Look at records in a browser, side by side, and label answers.

    PATH is a folder with evaluations, a spec or a results folder; by default the current folder. Only this machine
    reaches the pages, and only with the printed address. Ctrl-C ends this.

    \b
    rageval-spec view
    rageval-spec view spec.yaml --labels labels.csv
    """
    import secrets
    import tempfile

    from rageval_spec.local_view.application import make_view_app

    catalog, folder = find_catalog(path)
    spec = expand_home(path) if path is not None and is_spec(path) else None
    token = secrets.token_urlsafe(24)
    with (
        tempfile.TemporaryDirectory(prefix="rageval-view-", ignore_cleanup_errors=True) as kept,
        signals.explained(lambda: _ENDED),
    ):
        app = make_view_app(list_addresses(catalog, Path(kept), labels or folder / "labels.csv", spec), token)
        from rageval_spec.endpoints.http_server import Server

        server = Server(app, "127.0.0.1", port)
        address = f"{server.url}/?token={token}"
        console.tell(f"the view is at {address}; Ctrl-C ends this")
        if opens:
            import webbrowser

            webbrowser.open(address)
        try:
            Event().wait()
        finally:
            server.close()
    return PASSED


def list_addresses(catalog: RecordCatalog, kept: Path, labels: Path, spec: Path | None) -> list[Address]:
    """All pages of the records of a catalog.

    Args:
        catalog: the records.
        kept: an empty folder for what is written once and served often.
        labels: the file of labels, which need not exist.
        spec: the spec by which questions are judged again, if it is known.
    """
    from rageval_spec.commands.view.comparison_page import ComparisonPage
    from rageval_spec.commands.view.labelling_page import LabellingPage
    from rageval_spec.local_view.judging_page import JudgingPage
    from rageval_spec.local_view.record_pages import RecordPages

    pages = (
        RecordPages(catalog, kept),
        ComparisonPage(catalog),
        LabellingPage(catalog, labels),
        JudgingPage(catalog, spec),
    )
    return [address for page in pages for address in page.list_addresses()]


def find_catalog(path: str | None) -> tuple[RecordCatalog, Path]:
    """The records that a path means, and the folder in which the labels are looked for."""
    from dataclasses import replace

    from rageval_spec.history.database import FILE, exists
    from rageval_spec.history.evaluation_lookup import SearchPlaces
    from rageval_spec.history.saved_evaluations import FOLDER
    from rageval_spec.local_view.record_catalog import RecordCatalog
    from rageval_spec.plugin.report import RESULTS_FOLDER

    here = find_places()
    if path is None:
        return RecordCatalog(here, _list_results(Path())), Path()
    if is_spec(path):
        from rageval_spec.spec import load

        spec = load(expand_home(path))
        return RecordCatalog(SearchPlaces.of(spec), [Path(RESULTS_FOLDER), *_list_results(spec.folder)]), spec.folder
    place = expand_home(path)
    if is_results(path):
        folder = place if place.is_dir() else place.parent
        beside = folder.resolve().parent
        own = replace(here, labels=beside / FOLDER, database=beside / FILE, folder=beside)
        return RecordCatalog(own if own.labels.is_dir() or exists(own.database) else here, [folder]), beside
    if not place.is_dir():
        raise UsageError(f"{path} is not a folder, a spec or a results folder; name one, or leave it out")
    places = SearchPlaces(place / FOLDER, place / FILE, place)
    return RecordCatalog(places, _list_results(place)), place


def _list_results(folder: Path) -> list[Path]:
    """The folder itself and those directly in it, if they hold results; one that cannot be read has none."""
    from rageval_spec.errors import describe_os_error
    from rageval_spec.history.saved_evaluations import holds_results

    try:
        inner = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except OSError as error:
        raise UsageError(f"{folder}: {describe_os_error(error)}") from error
    return [one for one in (folder, *inner) if holds_results(one)]
