"""List many objects: several directories at a time, because a server returns one page of a listing after the other.

The first page of a listing shows whether it is worth it, and where to split it:

    less than a page                                nothing is split: one request, as for most listings
    all below t/data/                               t is split: t/data, t/metadata, …
    all below t/data/d=1/, t/data/d=2/, t/data/d=3/ t/data is split too, because its directories have many objects
    many directories with few objects each          these are not split: it would take a request for each

An object that is written during the listing may be missing in it, as in any listing. Raises what the client raises.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from icefield.storage.object_store.client import obstore

if TYPE_CHECKING:
    from obstore import ObjectMeta

PAGE = 1_000  # what a server returns at once
AT_ONCE = 16
FEW_DIRECTORIES = 10  # of which a page has objects: each has a hundred or more


def list_pages(client: Any, key: str) -> "Iterator[Sequence[ObjectMeta]]":
    """Yield all objects below a key, in no order."""
    pages = _open(client, key)
    first: Sequence[ObjectMeta] = next(pages, [])
    if len(first) < PAGE:
        return chain([first], pages)
    objects, directories = find_directories(client, key, [found["path"] for found in first])
    if len(directories) < 2:
        return chain([first], pages)
    return chain([objects], _list_at_once(client, directories))


def find_directories(client: Any, key: str, page: Sequence[str]) -> "tuple[list[ObjectMeta], list[str]]":
    """Split a key into directories that can be listed alone; return also the objects that are in none of them.

    page: some of the keys below it, as they follow each other.
    """
    objects: list[ObjectMeta] = []
    directories: list[str] = []
    inner = _children(key, page)
    while inner:
        found = obstore.list_with_delimiter(client, key or None)
        objects += found["objects"]
        directories += found["common_prefixes"]
        if len(inner) > 1:
            return objects, directories
        (key,) = inner
        inner = _children(key, page)
        if inner and key in directories:
            directories.remove(key)
    return objects, directories


def _children(key: str, page: Sequence[str]) -> set[str]:
    """Return the directories in a directory, as far as a page shows them; none if it is not worth splitting."""
    start = len(key) + 1 if key else 0
    ends = [path.find("/", start) for path in page]
    if min(ends) < 0:
        return set()  # it has objects of its own, maybe very many
    found = {path[:end] for path, end in zip(page, ends, strict=True)}
    return found if len(found) <= FEW_DIRECTORIES else set()


def _list_at_once(client: Any, directories: Sequence[str]) -> "Iterator[Sequence[ObjectMeta]]":
    """List directories, some at a time; no more pages are in memory than requests are in flight."""
    listings = (_open(client, directory) for directory in directories)
    with ThreadPoolExecutor(AT_ONCE, "icefield-list") as pool:
        running: set[Future[Any]] = {pool.submit(_next_page, listing) for listing in islice(listings, AT_ONCE)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                listing, page = each.result()
                following = next(listings, None) if page is None else listing
                if following is not None:
                    running.add(pool.submit(_next_page, following))
                if page is not None:
                    yield page


def _open(client: Any, key: str) -> "Iterator[Sequence[ObjectMeta]]":
    return iter(obstore.list(client, key or None, chunk_size=PAGE))


def _next_page(listing: "Iterator[Sequence[ObjectMeta]]") -> "tuple[Any, Sequence[ObjectMeta] | None]":
    return listing, next(listing, None)
