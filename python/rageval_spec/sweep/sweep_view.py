"""What a sweep found, as a table on a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator

from rageval_spec import wording
from rageval_spec.data.evaluation import Comparison
from rageval_spec.drawing.view import Block, Heading, Line, Span, tabulate, write_page, write_text
from rageval_spec.sweep.field import Found, Placing

_SHOWN = {"best": "✓ best", "tied": "not told apart", "worse": "worse", "unscored": "no values"}


def render_sweep(found: Found, shown: wording.NumberFormat) -> tuple[bytes, bytes]:
    """The text and the page."""
    blocks = [*_draw(found, shown)]
    return write_text(blocks), write_page("Sweep", blocks)


def _draw(found: Found, shown: wording.NumberFormat) -> Iterator[Block]:
    def show(one: Comparison | None) -> tuple[str, str]:
        if one is None:
            return "", ""
        interval = wording.format_interval(one.interval, formatter=shown.change)
        told = wording.format_signed(one.difference, formatter=shown.change)
        return f"{told} {interval}", wording.format_probability(one.p_adjusted)

    def order(one: Placing) -> tuple[int, float]:
        return [*_SHOWN].index(one.standing), abs(one.comparison.difference) if one.comparison else 0.0

    count = wording.count_noun(len(found.combinations), "combination")
    yield Heading(f"Sweep: {count} of {found.system} on {found.dataset}, by {found.metric}", 2)
    yield Line([Span(f"{found.outcome}: ", style="bold"), _conclude(found, shown)])
    rows, axes = [], [*found.combinations[0].settings]
    for one in sorted(found.combinations, key=order):
        mean, scored = "", 0
        if one.aggregate is not None:
            interval = wording.format_interval(one.aggregate.interval, formatter=shown.number)
            mean, scored = f"{wording.format_mean(one.aggregate, shown=shown)} {interval}", one.aggregate.scored
        asked = f"{scored:,}" + (f" ({one.failed:,} failed)" if one.failed else "")
        told = (asked, f"{one.needed:,}" if one.needed else "", _SHOWN[one.standing], one.gates)
        rows.append((*one.settings.values(), mean, *show(one.comparison), *told))
    header = [found.metric, "difference from the best", "p (Holm)", "questions", "needs", "standing", "gates"]
    yield tabulate([*axes, *header], rows, range(len(axes), len(axes) + 5), range(len(axes)), ("p (Holm)", "gates"))
    yield Line("p (Holm) decides who is worse. Each interval is of one difference, as if it were the only one.")
    yield Heading("What each axis changes")
    if not found.effects:
        yield Line("Nothing is known of the axes: no two questions have a value with all combinations.")
        return
    effects = [(axis, one.baseline, one.system, *show(one), f"{one.queries:,}") for axis, one in found.effects]
    yield tabulate(("axis", "from", "to", "difference", "p (Holm)", "questions"), effects, (3, 4, 5), (0, 1, 2))
    yield Line("Each is the paired difference between two values, averaged over the values of all other axes.")


def _conclude(found: Found, shown: wording.NumberFormat) -> str:
    best = next((one.aggregate for one in found.combinations if one.standing == "best"), None)
    if best is None or found.corrected is None:
        return "no combination has a value."
    own, usual = (wording.format_interval(one.interval, formatter=shown.number) for one in (found.corrected, best))
    tied = [one.needed for one in found.combinations if one.standing == "tied"]
    unscored = sum(one.standing == "unscored" for one in found.combinations)
    others = wording.count_noun(len(found.combinations) - 1, "other combination")
    told = [f"{found.best} has the best mean, with the interval {own} (not corrected for being chosen: {usual})."]
    told += [f"{len(tied)} of {others} cannot be told from it."] if tied else []
    told += [f"There are no values of {unscored} of {others}."] if unscored else []
    told += ["All others are significantly worse."] if found.outcome == "best" else []
    if needed := [count for count in tied if count]:
        more = f", all of them {max(needed):,}" if len(needed) == len(tied) > 1 else ""
        told.append(f"To tell the first of them apart takes about {min(needed):,} questions{more},")
        told.append("if the differences are as large as they seem.")
    if any(one.failed for one in found.combinations):
        told.append("This is not final: questions failed or were not asked. To choose the best, each of them counts as")
        told.append("the worst value that there is. Run the sweep again to ask them.")
    return " ".join(told)
