"""The settings of the manifest cache, as properties of a lake.

cache.memory-max-bytes   the size limit in memory; 0 disables the cache in memory
cache.dir                a directory for the cache on disk; without it, there is none
cache.max-bytes          the size limit of that directory

Raises InvalidInput.
"""

from collections.abc import Mapping
from pathlib import Path

from icefield.cache.disk import MAX_BYTES, SidecarDirectory
from icefield.cache.manifests import MEMORY_MAX_BYTES, ManifestCache
from icefield.errors import InvalidInput

PREFIX = "cache."
MEMORY, DIRECTORY, DISK = "cache.memory-max-bytes", "cache.dir", "cache.max-bytes"


def open_manifest_cache(properties: Mapping[str, str], scope: str) -> ManifestCache:
    """Open the cache that properties describe; `scope` distinguishes lakes that share a directory."""
    unknown = sorted(set(properties) - {MEMORY, DIRECTORY, DISK})
    if unknown:
        raise InvalidInput(f"unknown cache property {unknown[0]!r}", hint=f"Known: {MEMORY}, {DIRECTORY}, {DISK}")
    disk_bytes = _bytes(properties, DISK, MAX_BYTES)
    sidecars = None
    if DIRECTORY in properties:
        sidecars = SidecarDirectory(Path(properties[DIRECTORY]).expanduser().absolute(), scope, disk_bytes)
    return ManifestCache(_bytes(properties, MEMORY, MEMORY_MAX_BYTES), sidecars)


def _bytes(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"{name} must be a number of bytes, but is {text!r}")
    return int(text)
