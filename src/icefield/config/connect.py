"""Connecting: from a target to a lake, with its catalog, its store and the commit queue of its writers.

What a target can be is the table `_OPENERS`, by scheme. Drivers that are extras are loaded when a target needs them.

Raises InvalidInput for settings that are wrong or missing, Unsupported for schemes that are unknown and for extras that
are not installed. Servers are not spoken to before the first verb that needs them, but for REST catalogs, which tell
their settings first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from icefield.ambient import Ambient, SystemAmbient
from icefield.cache.settings import DIRECTORY as CACHE_DIRECTORY
from icefield.cache.settings import PREFIX as CACHE_PREFIX
from icefield.cache.settings import open_manifest_cache
from icefield.catalog.commit_queue.queue import NO_QUEUE, CommitQueue, FileQueue
from icefield.deferred import deferred_imports
from icefield.engine.choose import AUTO, ENGINE, check_engine
from icefield.errors import InvalidInput, Unsupported
from icefield.model.snapshot import note_keys
from icefield.secrets import without_secrets

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.catalog.catalog import Catalog
    from icefield.catalog.memory import MemoryCatalog
    from icefield.catalog.missing import refuse_lost_catalog
    from icefield.catalog.object_store.catalog import ObjectStoreCatalog
    from icefield.catalog.rest import settings as rest_settings
    from icefield.catalog.rest.catalog import open_rest_catalog
    from icefield.catalog.rest.http import origin_of
    from icefield.catalog.rest.object_store import store_properties
    from icefield.catalog.rest.settings import RestSettings
    from icefield.catalog.sql.sqlite import SqliteSettings, open_sqlite_catalog
    from icefield.config.configuration import LakeSettings, suggest
    from icefield.config.file import ProcessEnvironment
    from icefield.config.sources import find_settings
    from icefield.config.target import local_path_of, scheme_of
    from icefield.lake import Lake
    from icefield.metrics import Listener
    from icefield.storage.local import LocalStore
    from icefield.storage.location import join_location, location_of_path, parse_location
    from icefield.storage.memory import MemoryStore
    from icefield.storage.object_store.directory import DirectoryStore
    from icefield.storage.routed import RoutedStore
    from icefield.storage.store import Store

CATALOG_FILE = "catalog.db"
CATALOG_FOLDER = "catalog.names"  # no namespace has a dot in its name, so that no table comes to lie in it
QUEUE_FOLDER = "catalog.queue"
# Loaded when they are asked for: their drivers are extras.
POSTGRES_CATALOG, POSTGRES_QUEUE = "icefield.catalog.sql.postgres", "icefield.catalog.commit_queue.postgres"
ZOOKEEPER_CATALOG = "icefield.catalog.zookeeper"
OBJECT_STORE, OBJECT_STORE_CLIENT = "icefield.storage.object_store.store", "icefield.storage.object_store.client"
# What the catalog of a local lake is, below its target.
_MARKERS = {"": CATALOG_FILE, "file": CATALOG_FILE, "files": CATALOG_FOLDER, "sqlite": ""}
_SHOWN = 200  # characters of a path in a message
BUCKET_SCHEMES = ("s3", "s3a", "s3n", "gs", "az")
AUTHOR_PROPERTY = "author"  # of the lake: who makes its new snapshots
STORE_PROPERTIES = ("s3.", "gs.", "az.", "client.region")


def connect(  # noqa: PLR0913 - one parameter per setting
    target: str | os.PathLike[str] | None = None,
    *,
    warehouse: str | os.PathLike[str] | None = None,
    catalog: str | None = None,
    properties: Mapping[str, str] | None = None,
    roots: Iterable[str | os.PathLike[str]] = (),
    durable: bool | None = None,
    create: bool | None = None,
    ambient: Ambient | None = None,
    metrics: Listener | None = None,
) -> Lake:
    """Open a lake, and create it if it does not exist.

    Args:
        target: A directory, a URL, or the name of a lake in the configuration file. Without a target, the lake that the
            environment or the configuration file names.
        warehouse: The directory or bucket of the tables, if the catalog is elsewhere. For a REST catalog, the name that
            the server has for it.
        catalog: The name of the catalog, in a database or below a ZooKeeper path that several catalogs share.
        properties: Client, cache and engine settings by Iceberg's names, such as `s3.endpoint`, `cache.dir`, `engine`;
            and `author`, who makes the new snapshots.
        roots: Further directories that tables of this lake may have files in.
        durable: False skips fsync. That is faster, but a power failure may lose the last commits or their files; the
            end of the process loses nothing.
        create: True creates an empty catalog even beside existing tables. By default that is refused, because the
            catalog file was probably lost.
        ambient: Clock, sleep and randomness, for tests.
        metrics: Called with the report of every scan and commit; see `Lake.on_report`.
    """
    said = {
        # A path is never a name, however it looks.
        "target": target if target is None or isinstance(target, str) else str(Path(target).absolute()),
        "warehouse": None if warehouse is None else os.fspath(warehouse),
        "catalog": catalog,
        "properties": properties,
        "roots": [os.fspath(root) for root in roots] or None,
        "durable": durable,
        "create": create,
    }
    given = {key: value for key, value in said.items() if value is not None}
    lake = open_lake(find_settings(given, ProcessEnvironment(os.environ, Path.cwd())), ambient)
    if metrics is not None:
        lake.on_report(metrics)
    return lake


def open_lake(settings: LakeSettings, ambient: Ambient | None = None) -> Lake:
    """Open the lake that settings describe, making it if it is not there."""
    with without_secrets(lambda: settings.secrets(os.environ)):
        return _open_lake(settings, ambient)


def _open_lake(settings: LakeSettings, ambient: Ambient | None) -> Lake:
    scheme = scheme_of(settings.target)
    if scheme not in _OPENERS:
        known = suggest(scheme, (name for name in _OPENERS if name))
        raise Unsupported(f"cannot connect: {scheme} is not supported", hint=f"A directory needs no scheme. {known}")
    own = {key: value for key, value in settings.properties.items() if key.startswith(CACHE_PREFIX)}
    engine = check_engine(settings.properties.get(ENGINE, AUTO))
    notes = note_keys(author=settings.properties.get(AUTHOR_PROPERTY))
    others = {key: value for key, value in settings.properties.items() if key not in (*own, ENGINE, AUTHOR_PROPERTY)}
    with _paths_checked():
        lake = _OPENERS[scheme](replace(settings, properties=others), ambient or SystemAmbient())
    if scheme == "memory" and CACHE_DIRECTORY in own:
        raise InvalidInput(f"{CACHE_DIRECTORY} cannot be used with a lake in memory", hint="Leave it out")
    # The same location may be another file behind another server.
    servers = sorted(f"{key}={value}" for key, value in others.items() if key.endswith("endpoint"))
    cache = open_manifest_cache(own, "\n".join([lake.warehouse, *servers]))
    lake.backend = replace(lake.backend, cache=cache, notes=notes)
    lake.use(engine=engine)
    if scheme != "memory":
        lake.opener = partial(open_lake, _anchored(settings))
    return lake


def is_there(settings: LakeSettings) -> bool:
    """Return whether a local lake exists; a lake on a server always counts as existing."""
    scheme = scheme_of(settings.target)
    return scheme not in _MARKERS or (local_path_of(settings.target) / _MARKERS[scheme]).exists()


def check_catalog_is_there(settings: LakeSettings) -> None:
    """Refuse a local lake that has tables and no catalog, unless an empty one was asked for."""
    scheme, warehouse = scheme_of(settings.target), _guarded_warehouse(settings)
    if scheme in _MARKERS and warehouse is not None:
        with _paths_checked():
            refuse_lost_catalog(local_path_of(settings.target) / _MARKERS[scheme], warehouse)


@contextmanager
def _paths_checked() -> Iterator[None]:
    """Tell in one short sentence of a path that the file system does not take, such as one that is too long."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot open the lake: {error.strerror}: {str(error.filename)[:_SHOWN]}") from error


def _guarded_warehouse(settings: LakeSettings) -> Path | None:
    """Return the local directory whose tables must have a catalog; None where an empty one was asked for."""
    place = settings.warehouse if scheme_of(settings.target) == "sqlite" else settings.target
    if settings.create or place is None or scheme_of(place) not in ("", "file", "files"):
        return None
    return local_path_of(place)


def _anchored(settings: LakeSettings) -> LakeSettings:
    """Return the same settings for a process that works in another directory."""
    prefixes = {"": "", "file": "", "files": "files:", "sqlite": "sqlite:///"}
    scheme, warehouse = scheme_of(settings.target), settings.warehouse
    target = f"{prefixes[scheme]}{local_path_of(settings.target)}" if scheme in prefixes else settings.target
    is_local = warehouse is not None and scheme not in ("http", "https") and scheme_of(warehouse) == ""
    return replace(
        settings,
        target=target,
        warehouse=str(Path(warehouse).resolve()) if warehouse is not None and is_local else warehouse,
        roots=tuple(str(Path(root).resolve()) if scheme_of(root) == "" else root for root in settings.roots),
    )


def _open_memory(settings: LakeSettings, ambient: Ambient) -> Lake:
    _refuse(settings, "warehouse", "properties")
    return Lake(Backend(MemoryCatalog(settings.catalog), MemoryStore(), ambient), "memory://lake")


def _open_directory(settings: LakeSettings, ambient: Ambient) -> Lake:
    _refuse(settings, "warehouse", "properties")
    folder = _make_folder(local_path_of(settings.target))
    catalog = _sqlite_catalog(folder / CATALOG_FILE, None if settings.create else folder, settings, ambient)
    return _lake(catalog, _location_of(folder), settings, ambient, FileQueue(folder / QUEUE_FOLDER, ambient))


def _open_files(settings: LakeSettings, ambient: Ambient) -> Lake:
    _refuse(settings, "warehouse", "properties")
    folder = _make_folder(local_path_of(settings.target))
    check_catalog_is_there(settings)
    location = _location_of(folder)
    root = join_location(location, CATALOG_FOLDER)
    catalog = ObjectStoreCatalog(DirectoryStore(durable=settings.durable), root, settings.catalog, ambient=ambient)
    return _lake(catalog, location, settings, ambient, FileQueue(folder / QUEUE_FOLDER, ambient))


def _open_bucket(settings: LakeSettings, ambient: Ambient) -> Lake:
    _refuse(settings, "warehouse")
    root = settings.target.rstrip("/")
    store = _bucket_store(root, settings, ambient)
    catalog = ObjectStoreCatalog(store, join_location(root, CATALOG_FOLDER), settings.catalog, ambient=ambient)
    return Lake(Backend(catalog, store, ambient), root)


def _open_sqlite(settings: LakeSettings, ambient: Ambient) -> Lake:
    warehouse = _warehouse(settings)
    if not settings.target.startswith("sqlite:///"):
        raise InvalidInput(
            "a SQLite URL has three slashes", hint="Write sqlite:///catalog.db or sqlite:////full/path.db"
        )
    path = local_path_of(settings.target)
    catalog = _sqlite_catalog(path, _guarded_warehouse(settings), settings, ambient)
    return _lake(catalog, warehouse, settings, ambient, FileQueue(path.with_name(f"{path.name}.queue"), ambient))


def _open_postgres(settings: LakeSettings, ambient: Ambient) -> Lake:
    warehouse = _warehouse(settings)
    postgres, queue = (_load_driver(each, "PostgreSQL", "postgres") for each in (POSTGRES_CATALOG, POSTGRES_QUEUE))
    url = f"postgresql://{settings.target.partition('://')[2]}"
    options = postgres.PostgresSettings(durable=settings.durable)
    catalog = postgres.open_postgres_catalog(url, name=settings.catalog, settings=options, ambient=ambient)
    # After the catalog: see PostgresQueue.
    return _lake(catalog, warehouse, settings, ambient, queue.PostgresQueue(url, settings.catalog))


def _open_zookeeper(settings: LakeSettings, ambient: Ambient) -> Lake:
    warehouse = _warehouse(settings)
    zookeeper = _load_driver(ZOOKEEPER_CATALOG, "ZooKeeper", "zookeeper")
    url = f"zookeeper://{settings.target.partition('://')[2]}"
    catalog = zookeeper.open_zookeeper_catalog(url, settings.catalog, ambient)
    return _lake(catalog, warehouse, settings, ambient, NO_QUEUE)


def _load_driver(module: str, server: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"Run pip install 'icefield[{extra}]'"
        raise Unsupported(f"cannot connect to {server}: {error}", hint=hint) from error


def _open_rest(settings: LakeSettings, ambient: Ambient) -> Lake:
    known = (*rest_settings.REST_PROPERTIES, rest_settings.HEADER, *STORE_PROPERTIES)
    _check_properties(settings, "REST catalog", known)
    options = RestSettings(settings.warehouse, settings.properties)
    catalog = open_rest_catalog(settings.target, name=settings.catalog, settings=options, ambient=ambient)
    try:
        return Lake(
            Backend(catalog, _store_of_rest(settings, options, catalog.properties, ambient), ambient), settings.target
        )
    except BaseException:
        catalog.close()
        raise


def _store_of_rest(
    settings: LakeSettings, options: RestSettings, agreed: Mapping[str, str], ambient: Ambient
) -> RoutedStore:
    # The server says where tables are. Its word is not enough to read and write any file of this machine.
    place = settings.warehouse or ""
    local = [place] if scheme_of(place) == "file" or place.startswith("/") else []
    roots = [_location(local_path_of(root)) for root in (*local, *settings.roots)]
    own = {key: value for key, value in settings.properties.items() if key.startswith(STORE_PROPERTIES)}
    properties = store_properties(agreed, own, options.trusted_origins | {origin_of(settings.target)})
    return RoutedStore(LocalStore(roots=roots, durable=settings.durable), _buckets(properties, ambient))


def _buckets(properties: Mapping[str, str], ambient: Ambient) -> Store | None:
    try:
        store: Store = import_module(OBJECT_STORE).ObjectStore(properties, ambient=ambient)
    except Unsupported:
        return None
    return store


def _check_properties(settings: LakeSettings, owner: str, known: tuple[str, ...]) -> None:
    for key in settings.properties:
        if key not in known and not key.startswith(tuple(name for name in known if name.endswith("."))):
            names = (f"{name}*" if name.endswith(".") else name for name in known)
            raise InvalidInput(f"unknown {owner} property {key!r}", hint=suggest(key, names))


def _sqlite_catalog(path: Path, guarded: Path | None, settings: LakeSettings, ambient: Ambient) -> Catalog:
    """Open the catalog in a file. guarded: the directory whose tables must have a catalog."""
    if guarded is not None:
        refuse_lost_catalog(path, guarded)
    options = SqliteSettings(durable=settings.durable, warehouse=guarded)
    return open_sqlite_catalog(path, name=settings.catalog, settings=options, ambient=ambient)


def _lake(catalog: Catalog, warehouse: str, settings: LakeSettings, ambient: Ambient, queue: CommitQueue) -> Lake:
    return Lake(Backend(catalog, _store(warehouse, settings, ambient), ambient, queue), warehouse)


def _store(warehouse: str, settings: LakeSettings, ambient: Ambient) -> Store:
    if scheme_of(warehouse) not in BUCKET_SCHEMES:
        _refuse(settings, "properties")
        roots = [warehouse, *(_location(Path(root)) for root in settings.roots)]
        return LocalStore(roots=roots, durable=settings.durable)
    store: Store = _bucket_store(warehouse, settings, ambient)
    return store


def _bucket_store(location: str, settings: LakeSettings, ambient: Ambient) -> Any:
    """Return a store that is a ConditionalStore too."""
    _check_properties(settings, "object store", STORE_PROPERTIES)
    # The settings are tried here, without a word to the server, so that a wrong one shows before any work.
    import_module(OBJECT_STORE_CLIENT).Clients(settings.properties).reading(location)
    roots = [location, *settings.roots]
    return import_module(OBJECT_STORE).ObjectStore(settings.properties, roots=roots, ambient=ambient)


def _warehouse(settings: LakeSettings) -> str:
    """Return the location of the tables, for a catalog that says nothing of it."""
    if settings.warehouse is None:
        raise InvalidInput(
            f"a {scheme_of(settings.target)}:// catalog needs a warehouse",
            hint="Pass warehouse= with a directory or an object store, such as s3://bucket/lake",
        )
    scheme = scheme_of(settings.warehouse)
    if scheme in BUCKET_SCHEMES:
        return str(parse_location(settings.warehouse)).rstrip("/")
    if scheme not in ("", "file"):
        raise Unsupported(
            f"a warehouse cannot be at {scheme}://",
            hint=f"Give a directory, or one of {'://, '.join(BUCKET_SCHEMES)}://",
        )
    return _location(_make_folder(local_path_of(settings.warehouse)))


def _refuse(settings: LakeSettings, *names: str) -> None:
    for name in names:
        if getattr(settings, name):
            kind = scheme_of(settings.target) or "directory"
            raise InvalidInput(f"{name}= cannot be used with this type of lake ({kind})", hint=_REFUSED[name])


_REFUSED = {
    "warehouse": "warehouse= is where the tables are, for a catalog that is somewhere else",
    "properties": "properties= are of object stores and REST catalogs",
}


def _make_folder(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"cannot open a lake at {folder}: it is a file", hint="Give a directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot create the directory {folder}: {error.strerror}") from error
    return folder


def _location(path: Path) -> str:
    if "\0" in str(path):
        raise InvalidInput(f"the directory {str(path)[:_SHOWN]!r} contains a NUL character")
    return _location_of(path.resolve())


def _location_of(resolved: Path) -> str:
    return location_of_path(str(resolved))


_OPENERS: Mapping[str, Callable[[LakeSettings, Ambient], Lake]] = {
    "": _open_directory,
    "file": _open_directory,
    "files": _open_files,
    "memory": _open_memory,
    "sqlite": _open_sqlite,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
    "zookeeper": _open_zookeeper,
    "http": _open_rest,
    "https": _open_rest,
    **dict.fromkeys(BUCKET_SCHEMES, _open_bucket),
}
