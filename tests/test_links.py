"""Every link of a Markdown page leads to a file, and to a heading of it; every page can be reached from the README.

The site has a check of its own (`make site`); this one needs no build. Addresses on the web are not checked.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"^(```|~~~).*?^\1|^(?: {4}|\t)[^\n]*|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+[\"'][^)]*[\"'])?\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
# Written for the site alone; the rest of docs/site is reStructuredText, which Sphinx checks.
BUILT = ("build", "demo-lake")


def pages() -> list[Path]:
    found = (path for path in ROOT.rglob("*.md") if not any(_is_hidden(part) for part in path.relative_to(ROOT).parts))
    return sorted(found)


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part in BUILT


def links(text: str) -> Iterator[str]:
    """Yield what a page links to inside of the project; code is not a link."""
    for inline, reference in LINK.findall(CODE.sub("", text)):
        target = inline or reference
        if not re.match(r"[a-z][a-z0-9+.-]*:", target):
            yield target


@lru_cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub, and the site, give to the headings of a page."""
    taken: dict[str, int] = {}
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in HEADING.findall(text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = taken[slug] = taken.get(slug, -1) + 1
        if count:
            taken[f"{slug}-{count}"] = 0
    return frozenset(taken)


def fault(page: Path, link: str) -> str | None:
    """Return what is wrong with a link, if anything is."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(ROOT.resolve()) or not target.exists():
        return "no such file"
    if target.is_dir():
        return "a directory has no page on the site: link to a file in it"
    if anchor and (target.suffix != ".md" or anchor not in anchors(target)):
        return "no such heading"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert {link: why for link in links(page.read_text()) if (why := fault(page, link))} == {}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, new = set[Path](), {(ROOT / "README.md").resolve()}
    while new:
        reached |= new
        targets = {(page.parent / link.split("#")[0]).resolve() for page in new for link in links(page.read_text())}
        new = {target for target in targets if target.suffix == ".md"} - reached
    lonely = {page for page in pages() if page.resolve() not in reached}
    assert {str(page.relative_to(ROOT)) for page in lonely} == set()


def test_the_index_has_every_page_of_the_docs() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link.split("#")[0]).resolve() for link in links(index.read_text())}
    assert {page.name for page in index.parent.glob("*.md") if page.resolve() not in listed} == {"README.md"}


def test_the_check_can_fail(tmp_path: Path) -> None:
    guide = ROOT / "docs" / "guide.md"
    assert fault(guide, "views.md") is fault(guide, "#writing") is fault(guide, "types.md#types") is None
    assert fault(guide, "veiws.md") == "no such file"
    assert fault(guide, "../../elsewhere.md") == "no such file"
    assert fault(guide, "decisions/") == "a directory has no page on the site: link to a file in it"
    assert fault(guide, "#wirting") == fault(guide, "types.md#writing") == "no such heading"
    text = "[a](b.md) `[c](d.md)` [e](https://f) [g](h.md#i 'j')\n\n    [k](l.md)\n\n```\n[m](n.md)\n```\n\n[o]: p.md\n"
    assert list(links(text)) == ["b.md", "h.md#i", "p.md"]
    page = tmp_path / "page.md"
    page.write_text("# `a.b`: a *title*\n## Twice\n## Twice\n```\n# no heading\n```\n")
    assert anchors(page) == {"ab-a-title", "twice", "twice-1"}
