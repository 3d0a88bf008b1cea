"""The check of the built site finds what a reader would stumble over."""

from pathlib import Path

from scripts.build_site import find_faults


def test_broken_links_and_external_resources_are_found(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "other page.html").write_text('<h1 id="there">x</h1><a href="../index.html#top">up</a>')
    (tmp_path / "style.css").write_text("")
    (tmp_path / "index.html").write_text(
        '<body id="top"><link href="style.css"><a href="folder/other%20page.html#there">a</a><a href="#top">b</a>'
        '<a href="https://example.com/">external pages are not followed</a><a href="mailto:a@example.com">c</a>'
    )
    assert find_faults(tmp_path) == []
    (tmp_path / "index.html").write_text(
        '<script src="https://cdn.example.com/x.js"></script><img src="//cdn.example.com/x.png"><img src="gone.png">'
        '<a href="folder/gone.html">a</a><a href="folder/other%20page.html#gone">b</a><a href="#gone">c</a>'
        '<a href="../outside.html">d</a><a href="folder/">e</a>'
    )
    (tmp_path.parent / "outside.html").write_text("")
    (tmp_path / "style.css").write_text("@import 'https://cdn.example.com/x.css'; p { background: url(x.png) }")
    assert find_faults(tmp_path) == [
        "folder/other page.html: ../index.html#top leads nowhere",
        "index.html: loads https://cdn.example.com/x.js",
        "index.html: loads //cdn.example.com/x.png",
        "index.html: folder/gone.html leads nowhere",
        "index.html: folder/other%20page.html#gone leads nowhere",
        "index.html: #gone leads nowhere",
        "index.html: ../outside.html leads nowhere",
        "index.html: folder/ leads nowhere",
        "index.html: gone.png leads nowhere",
        "style.css: loads https://cdn.example.com/x.css",
    ]
