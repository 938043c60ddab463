"""Draws curves as SVG: axes with round numbers, one line for each series, broken where there is no value.

Promises: pure text, without script, style or anything from elsewhere; colours come as classes (`s0`, `s1`, ...), which
the page sets for light and dark; every text of others is escaped.
"""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEFT, RIGHT, TOP, BOTTOM = 52, 12, 10, 26
"""Room around the plot, for the numbers."""
COLOURS = 8
_STEPS = (1, 2, 2.5, 5, 10)
_TIMES = (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 5 * 86_400, 10 * 86_400)
_LOG_TIMES = (1, 10, 60, 600, 3600, 86_400, 864_000, 8_640_000, 86_400_000)
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Curve:
    """Points that are joined, and how: `s0` to `s7`, `dashed` besides."""

    label: str
    points: Sequence[tuple[float, float | None]]
    look: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a number stands on an axis, between 0 and 1, and which numbers are written there."""

    place: Callable[[float], float]
    ticks: Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Size:
    """Of a picture, in its own units."""

    width: int
    height: int


WIDE = Size(540, 200)
SMALL = Size(340, 160)


def plot(curves: Sequence[Curve], x: Scale, y: Scale, *, size: Size = WIDE, about: str) -> str:
    """A picture of the curves. `about` says what it shows to those who cannot see it."""
    inner = (size.width - LEFT - RIGHT, size.height - TOP - BOTTOM)
    parts = [
        f'<svg viewBox="0 0 {size.width} {size.height}" role="img" aria-label="{html.escape(about)}">',
        *_grid(x, y, inner, size),
    ]
    for curve in curves:
        path = _path(curve.points, x, y, inner=inner)
        parts.append(f'<path class="line {curve.look}" d="{path}"><title>{html.escape(curve.label)}</title></path>')
    parts.append("</svg>")
    return "".join(parts)


def legend(curves: Sequence[Curve]) -> str:
    """Which line is which."""
    items = [
        f'<li><svg viewBox="0 0 22 8" aria-hidden="true"><path class="line {one.look}" d="M1 4H21"/></svg>'
        f"{html.escape(one.label)}</li>"
        for one in curves
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def linear(most: float, write: Callable[[float], str], *, least: float = 0) -> Scale:
    """From `least` to a round number not below `most`."""
    return _stepwise(most, write, least=least, step=_round_step(max(most - least, 1e-9) / 4))


def counts(most: float) -> Scale:
    """From zero to a round number not below `most`, in whole steps: of what there is no half."""
    most = max(most, 4)
    return _stepwise(most, "{:,.0f}".format, least=0, step=math.ceil(_round_step(most / 4)))


def _stepwise(most: float, write: Callable[[float], str], *, least: float, step: float) -> Scale:
    count = max(1, math.ceil((most - least) / step - 1e-9))
    end = least + count * step
    ticks = [(least + index * step, write(least + index * step)) for index in range(count + 1)]
    return Scale(lambda value: (value - least) / (end - least), ticks)


def parts(most: float = 1.0) -> Scale:
    """Parts of the whole, in percent."""
    return linear(min(1.0, max(most, 0.01)), lambda value: f"{value * 100:.3g} %")


def times(most: float, *, wanted: int = 6) -> Scale:
    """From the beginning on, in the units in which people count time."""
    most = max(most, 1.0)
    fitting = [step for step in _TIMES if most / step <= wanted]
    step = fitting[0] if fitting else 86_400 * _round_step(most / 86_400 / wanted)
    unit, name = next((unit, name) for unit, name in _UNITS if step >= unit)
    ticks = [(index * step, f"{index * step / unit:g} {name}") for index in range(int(most / step) + 1)]
    return Scale(lambda value: value / most, ticks)


def log_times(most: float) -> Scale:
    """Spans from a second on, each step about ten times the one before."""
    end = math.log10(max(most, 10.0))
    ticks = [(span, _span(span)) for span in _LOG_TIMES if math.log10(span) <= end]
    return Scale(lambda value: math.log10(max(value, 1.0)) / end, ticks)


def _span(seconds: float) -> str:
    unit, name = next((unit, name) for unit, name in _UNITS if seconds >= unit)
    return f"{seconds / unit:g} {name}"


def _round_step(least: float) -> float:
    scale = math.pow(10, math.floor(math.log10(least)))
    return next(step * scale for step in _STEPS if step * scale >= least * (1 - 1e-9))


def _grid(x: Scale, y: Scale, inner: tuple[int, int], size: Size) -> list[str]:
    width, height = inner
    right, bottom = LEFT + width, TOP + height
    found: list[str] = []
    for value, text in y.ticks:
        up = _short(bottom - y.place(value) * height)
        found += [
            f'<path class="grid" d="M{LEFT} {up}H{right}"/>',
            f'<text class="tick" x="{LEFT - 6}" y="{up}" dy="0.32em" text-anchor="end">{html.escape(text)}</text>',
        ]
    for value, text in x.ticks:
        across = LEFT + x.place(value) * width
        place = f'x="{_short(across)}" y="{size.height - 6}" text-anchor="{"middle" if across < right - 14 else "end"}"'
        found += [
            f'<path class="grid" d="M{_short(across)} {bottom}v4"/>',
            f'<text class="tick" {place}>{html.escape(text)}</text>',
        ]
    return found


def _path(points: Sequence[tuple[float, float | None]], x: Scale, y: Scale, *, inner: tuple[int, int]) -> str:
    width, height = inner
    found: list[str] = []
    is_down = False
    for across, up in points:
        if up is None:
            is_down = False
            continue
        place = f"{_short(LEFT + x.place(across) * width)} {_short(TOP + height - y.place(up) * height)}"
        found.append(f"{'L' if is_down else 'M'}{place}")
        is_down = True
    return "".join(found)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
