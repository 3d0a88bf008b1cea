"""What a target of `connect` is: its scheme, and its path if it is local.

    lake  →  "", ./lake      sqlite:///c.db  →  "sqlite", ./c.db      postgresql+psycopg://db/x  →  "postgresql"

Raises InvalidInput for what is neither a directory nor a URL. No message quotes a target that may hold a password.
"""

import re
from pathlib import Path

from icefield.errors import InvalidInput
from icefield.storage.location import local_path

# What libpq's keywords and URLs with a slash too few look like: no names of directories.
_LIKE_A_SERVER = re.compile(
    r"\bpassword\s*=|^(postgres(ql)?(\+\w+)?|https?|s3[an]?|gs|az|sqlite|mysql|zookeeper):(?!//)|^[^/]*:[^/]*@"
)
# Servers of databases and catalogs take a user and a password; buckets and files do not, and must not see them.
_USER_OF_NO_SERVER = re.compile(
    r"(s3[an]?|gs|gcs|az|azure|adls?|abfss?|wasbs?|sqlite|files?)(\+\w+)?://[^/?#]*:[^/?#]*@", re.IGNORECASE
)


def scheme_of(target: str) -> str:
    """Return the scheme of a target, without a driver as SQLAlchemy writes it; a directory has none."""
    if _LIKE_A_SERVER.search(target):
        # The target is not quoted: there may be a password in it.
        raise InvalidInput(
            "the target must be a directory or a URL",
            hint="A server is named as postgresql://user:password@host/database or https://host/path",
        )
    if "\0" in target:
        raise InvalidInput("the target contains a NUL character")
    if _USER_OF_NO_SERVER.match(target):
        raise InvalidInput(
            f"a {target.partition('://')[0]}:// target must not contain a user or password",
            hint="Pass keys as properties, such as s3.access-key-id and s3.secret-access-key",
        )
    for word in ("memory", "files", "file"):
        if target.startswith(f"{word}:"):
            return word
    scheme, separator, _ = target.partition("://")
    return scheme.lower().partition("+")[0] if separator else ""


def local_path_of(target: str) -> Path:
    """Return the directory or file of a target that is local."""
    if target.startswith("file:"):
        return Path(local_path(target)).resolve()
    for prefix in ("files:", "sqlite:///"):
        target = target.removeprefix(prefix)
    return Path(target).resolve()
