"""The pages of `--html`: self-contained, escaped whatever names they show, readable in a browser, light and dark."""

import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests import browser
from tests.cli.conftest import Icefield

import icefield as package
from icefield.cli.pictures.layout import Layout, PartitionTotals
from icefield.cli.pictures.report_page import SHARES, render_report
from icefield.report.result import StorageReport

HOSTILE = "<script>document.title='hit'</script><img src=x onerror=\"x\">'&\u202e"
PAGES = {
    "tree": ("tree", "shop.kinds"),
    "log": ("log", "shop.kinds"),
    "explain": ("explain", "shop.kinds", "--where", f"kind = '{HOSTILE.replace(chr(39), chr(39) * 2)}'"),
    "report": ("report",),
}
VOID = {"meta", "img", "br"}


class Document(HTMLParser):
    """The elements of a page, which must be nested as they should; and what scripts or other hosts could come by."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.shown: list[str] = []
        self.suspicious: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("script", "img", "link", "iframe", "object", "embed", "a", "base"):
            self.suspicious.append(tag)
        self.suspicious += [name for name, _ in attrs if name.startswith("on") or name in ("href", "src", "style")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


@pytest.fixture
def hostile(icefield: Icefield, tmp_path: Path) -> Icefield:
    """A lake in which names and values are markup."""
    with package.connect(tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("shop.kinds", "kind string, n long", partition_by=["kind"])
        table.append([{"kind": kind, "n": at} for at, kind in enumerate([HOSTILE, "a/b", "ü", "%41", None])])
        table.create_branch("audit")
        table.at("audit").append([{"kind": "b", "n": 7}])
        table.noting(author=HOSTILE, message=HOSTILE).append([{"kind": "a", "n": 8}])
        table.publish("audit", message=HOSTILE)
        table.create_tag("<img src=q1>")
        lake.create_table("shop.empty", "id long")
    return icefield


@pytest.mark.every_case
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_what_others_wrote_is_text(hostile: Icefield, name: str) -> None:
    ran = hostile(*PAGES[name], "--html", "page.html")
    assert (ran.code, ran.out, ran.err.splitlines()[-1]) == (0, "", "Wrote page.html.")
    page = Path("page.html").read_text(encoding="utf-8")
    document = Document(page)
    assert document.suspicious == []
    assert {"svg", "style", "h1"} <= set(document.elements)
    assert "\u202e" not in page
    assert not re.search(r"https?://|url\(|@import", page)
    assert "default-src &#x27;none&#x27;" in page
    assert "prefers-color-scheme: dark" in page
    said = "".join(document.shown)
    assert "<script>document.title" in said or "%3Cscript" in said


def test_json_comes_with_the_page_and_text_in_place_of_it(hostile: Icefield) -> None:
    plain = hostile("tree", "shop.kinds", "--json")
    both = hostile("tree", "shop.kinds", "--json", "--html", "page.html")
    assert both.json == plain.json
    assert Path("page.html").exists()


def test_the_report_of_a_table_has_a_cell_for_each_partition_and_a_bar_for_each_size(hostile: Icefield) -> None:
    assert hostile("report", "shop.kinds", "--html", "page.html").code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    cells = re.findall(r"<title>kind=(.*?): 1 file, 1 row, ", page)
    assert len(cells) == 7
    assert {"a/b", "ü", "%41", "null"} <= set(cells)
    sizes = re.findall(r"<title>[\d,]+ \w+ to [\d,]+ \w+: (\d+) files?</title>", page)
    assert sum(map(int, sizes)) == 7
    assert all(f">{share}</text>" in page for share in SHARES)


@pytest.mark.parametrize(("more", "said"), [(0, "drawn"), (1, "1 more is not drawn"), (2, "2 more are not drawn")])
def test_the_heat_map_says_how_many_partitions_it_leaves_out(more: int, said: str) -> None:
    days = [f"day={number}" for number in range(1_500 + more)]
    partitions: dict[tuple[str, ...], PartitionTotals] = {(day,): PartitionTotals(1, 1, 10) for day in days}
    layout = Layout("t.t", (10,) * len(partitions), 100, partitions)
    assert (said in render_report(StorageReport("t.t"), [layout], 0)) is bool(more)


def test_the_funnel_has_the_counts_of_explain(hostile: Icefield) -> None:
    where = ("--where", "kind = 'ü'")
    counts = hostile("explain", "shop.kinds", *where, "--json").json
    assert hostile("explain", "shop.kinds", *where, "--html", "page.html").code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    shown = [int(count) for count in re.findall(r"<title>[^<:]*: (\d+) \(", page.partition("<h2>Files</h2>")[2])][:4]
    left = counts["files"] - counts["files-in-pruned-manifests"]
    assert shown == [counts["files"], left, left - counts["files-pruned-by-partition"], counts["files-read"]]
    assert (shown[0], shown[-1]) == (7, 1)


def test_pages_of_an_empty_table(hostile: Icefield) -> None:
    for command in ("tree", "log", "explain", "report"):
        assert hostile(command, "shop.empty", "--html", "page.html").code == 0
        Document(Path("page.html").read_text(encoding="utf-8"))
        assert command != "log" or "There are no snapshots" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_no_page_is_wider_than_the_browser(hostile: Icefield, tmp_path: Path) -> None:
    """Long names are wrapped, cut, or in a box that scrolls; the page itself is not."""
    try:
        browser.find_chromium()
    except browser.NoBrowser as why:
        pytest.skip(str(why))
    with package.connect(tmp_path / "lake") as lake:
        table = lake.table("shop.kinds")
        table.create_tag("w" * 200)
        table.noting(message="long " * 100).append([{"kind": "x" * 150, "n": 1}])
    probe = "<script>document.title = document.documentElement.scrollWidth</script></body>"
    for name, arguments in PAGES.items():
        assert hostile(*arguments, "--html", "page.html").code == 0
        page = Path("page.html").read_text(encoding="utf-8")
        free = re.sub(r"<meta http-equiv=[^>]*>", "", page)  # the policy that forbids scripts
        assert free != page
        Path("probe.html").write_text(free.replace("</body>", probe), encoding="utf-8")
        dom = browser.show(Path("probe.html"), tmp_path / "probe.png", "light")
        assert int(re.findall("<title>(.*?)</title>", dom)[0]) <= 1000, name


def test_what_cannot_be_drawn_or_written_is_one_error(hostile: Icefield) -> None:
    ran = hostile("explain", "shop.kinds", "--why", "x.parquet", "--html", "page.html")
    assert (ran.code, ran.out) == (1, "")
    assert "--html draws a whole query" in ran.err
    ran = hostile("tree", "shop.kinds", "--html", "none/page.html")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot write none/page.html: No such file or directory" in ran.err


@pytest.mark.slow
def test_a_browser_shows_the_pages_light_and_dark(hostile: Icefield, tmp_path: Path) -> None:
    try:
        browser.find_chromium()
    except browser.NoBrowser as why:
        pytest.skip(str(why))
    for name, arguments in PAGES.items():
        assert hostile(*arguments, "--html", f"{name}.html").code == 0
    backs = {}
    for scheme, name in (("light", "report"), ("dark", "log")):
        dom = browser.show(Path(f"{name}.html"), tmp_path / f"{name}.png", scheme)
        document = Document(dom.removeprefix("<!DOCTYPE html>"))
        assert document.suspicious == []
        assert "hit" not in dom.partition("<title>")[2].partition("</title>")[0]
        backs[scheme] = first_pixel(tmp_path / f"{name}.png")
    assert min(backs["light"]) > 200 > 60 > max(backs["dark"])


def first_pixel(picture: Path) -> tuple[int, int, int]:
    """Return the colour of the first pixel of a PNG picture, which is that of the page behind everything."""
    data, at, packed = picture.read_bytes(), 8, b""
    channels = {2: 3, 6: 4}[data[25]]
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    line = zlib.decompress(packed)[: 1 + channels]
    red, green, blue = line[1:4]  # the filters of the first pixel of the first line leave it as it is
    return red, green, blue
