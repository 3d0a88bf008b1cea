"""One self-contained HTML page: no scripts, nothing loaded from elsewhere, light and dark.

Names and values may come from others: `text` escapes what HTML would read as markup, and control characters. A policy
in the page forbids scripts and requests, so that a mistake here cannot become one in the browser.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from icefield.cli.output import safe, talk
from icefield.errors import InvalidInput

SERIES = 6  # colours of lines and shares, by number
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_LIGHT = "--back: #fff; --fore: #1f2328; --dim: #59636e; --line: #d1d9e0; --ref: #ddf4ff;"
_DARK = "--back: #0d1117; --fore: #e6edf3; --dim: #9198a1; --line: #3d444d; --ref: #14304f;"
_LIGHT_SERIES = ("#2463eb", "#d97706", "#059669", "#c026d3", "#dc2626", "#0891b2")
_DARK_SERIES = ("#6ea8fe", "#f0a64b", "#3fc793", "#e07df0", "#f47c7c", "#4fc3d9")
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: var(--fore); background: var(--back) }
h1 { font-size: 1.5em; overflow-wrap: anywhere } h2 { font-size: 1.15em; margin-top: 2em }
p, .dim { color: var(--dim) } pre { overflow-x: auto }
table { border-collapse: collapse } td, th { padding: .1em .8em .1em 0; text-align: left; white-space: nowrap }
.number { text-align: right; font-variant-numeric: tabular-nums }
.ref { background: var(--ref); border-radius: 4px; padding: 0 .4em; margin-right: .3em }
.wide { overflow-x: auto }
svg { display: block; max-width: none } svg text { fill: var(--fore); font: 12px system-ui, sans-serif }
svg text.dim { fill: var(--dim) } svg .frame { fill: none; stroke: var(--line) } svg .empty { fill: var(--line) }
ul.tree { list-style: none; padding-left: 1.1em; border-left: 1px solid var(--line); margin: 0 }
ul.tree li { padding: .1em 0; overflow-wrap: anywhere } summary { cursor: pointer }
"""


def text(value: object) -> str:
    """Escape a value for HTML and SVG, in elements and in attributes."""
    return escape(safe(str(value)))


def page(title: str, parts: Iterable[str]) -> str:
    """Put a page together from parts that are HTML."""
    light, dark = (
        ":root {" + colours + "".join(f" --c{at}: {colour};" for at, colour in enumerate(series)) + "}"
        for colours, series in ((_LIGHT, _LIGHT_SERIES), (_DARK, _DARK_SERIES))
    )
    fills = "".join(f".f{at} {{ fill: var(--c{at}) }} .s{at} {{ stroke: var(--c{at}) }}\n" for at in range(SERIES))
    style = f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}{_STYLE}{fills}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n"
        f"<body><h1>{text(title)}</h1>\n{''.join(f'{part}{chr(10)}' for part in parts)}</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """Return a titled part of a page; the parts are HTML."""
    return f"<h2>{text(title)}</h2>\n" + "\n".join(parts)


def paragraph(words: str) -> str:
    """Return a sentence."""
    return f"<p>{text(words)}</p>"


def verbatim(lines: str) -> str:
    """Return lines of text as they are."""
    return "<pre>" + "\n".join(text(line) for line in lines.split("\n")) + "</pre>"


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; numbers are set to the right."""
    head = "".join(f"<th>{text(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>\n" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}</table></div>'


def svg(width: float, height: float, shapes: Iterable[str], label: str) -> str:
    """Return a drawing; its label is for those who do not see it."""
    return (
        f'<div class="wide"><svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="{text(label)}">{"".join(shapes)}</svg></div>'
    )


def box(place: tuple[float, float, float, float], kind: str, *, tip: str = "", opacity: float = 1) -> str:
    """Return a rectangle (x, y, width, height) in the colour of a class, with a text for those who point at it."""
    x, y, width, height = (f"{number:.1f}" for number in place)
    title = f"<title>{text(tip)}</title>" if tip else ""
    faint = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" class="{kind}"{faint}>{title}</rect>'


def label(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> str:
    """Return a text in a drawing."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{text(words)}</text>'


def write_page(file: Path, content: str) -> None:
    """Write a page, and say where. Raises InvalidInput if the file cannot be written."""
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            f"cannot write {file}: {error.strerror}", hint="Name a file in a directory that exists"
        ) from error
    talk(f"Wrote {file}.")


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{text(value)}</td>"
