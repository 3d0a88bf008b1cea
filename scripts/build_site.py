"""Build the docs site into build/site, and fail on any warning or broken link.

    .venv-site/bin/python scripts/build_site.py

Sphinx checks links between sources. What it wrote is then read once more: every link to a page, an anchor or a file
must lead somewhere inside the site, and nothing may be loaded from another host, so that the site works offline.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
CACHE = ROOT / "build" / "site-cache"
FIRST_PAGE = "docs/README.html"
REDIRECT = """<!doctype html>
<meta charset="utf-8"><title>Icefield</title>
<meta http-equiv="refresh" content="0; url={0}"><a href="{0}">Icefield</a>
"""
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)")
# Elements that load what they name, rather than lead to it.
LOADING = {"audio", "embed", "iframe", "img", "link", "object", "script", "source", "video"}


def main() -> None:
    """Build the site, check its links, and say where it is."""
    shutil.rmtree(SITE, ignore_errors=True)
    # From nothing: what is kept from an earlier build does not know of a change in how pages are made.
    options = [
        "--builder=html",
        "--fresh-env",
        "--fail-on-warning",
        "--keep-going",
        "--quiet",
        f"--doctree-dir={CACHE}",
    ]
    command = [sys.executable, "-m", "sphinx", *options, f"--conf-dir={ROOT / 'docs' / 'site'}", str(ROOT), str(SITE)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit("icefield: the site has the faults above")
    (SITE / "index.html").write_text(REDIRECT.format(FIRST_PAGE))
    faults = find_faults(SITE)
    if faults:
        sys.exit("\n".join([*faults, f"icefield: the site has {len(faults)} broken links"]))
    print(f"{SITE.relative_to(ROOT)}/index.html")


@dataclass
class Page(HTMLParser):
    """The anchors of a page, and what it links to and loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element names."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src", "data"):
                (self.loaded if tag in LOADING else self.links).append(value)


def find_faults(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each thing that is loaded from another host."""
    pages = {path.resolve(): _read(path) for path in sorted(site.rglob("*.html"))}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        faults += [f"{name}: loads {url}" for url in page.loaded if _is_external(url)]
        wanted = [url for url in (*page.links, *page.loaded) if not _is_external(url)]
        faults += [
            f"{name}: {url} leads nowhere" for url in dict.fromkeys(wanted) if not _leads(url, path, pages, site)
        ]
    for path in sorted(site.rglob("*.css")):
        urls = IN_STYLES.findall(path.read_text())
        faults += [f"{path.relative_to(site)}: loads {url}" for url in urls if urlsplit(url).netloc]
    return faults


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def _is_external(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme not in ("", "file")


def _leads(url: str, path: Path, pages: dict[Path, Page], site: Path) -> bool:
    parts = urlsplit(url)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_relative_to(site.resolve()) or not target.is_file():
        return False
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors


if __name__ == "__main__":
    main()
