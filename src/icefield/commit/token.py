"""Commit tokens: a change that is made again under its token is not made twice.

The token stands in the summary of the snapshot that the change made, for as long as that snapshot is kept; there it is
looked for before the change is proposed, on every base. So a retry after a lost answer, a second run of a job, or two
runs at once land once. (The words of known histories: a lost response and a blind retry are a duplicate append.)
Raises InvalidInput for what is no token.
"""

import re

from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot

TOKEN_KEY = "icefield.commit-token"
_TOKEN = re.compile(r"[\w.:/@+-]{1,200}", re.ASCII)


def check_token(token: str) -> None:
    """Refuse a token that could not be told from other text in metadata."""
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise InvalidInput(f"{token!r} is no commit token", hint="Take 1 to 200 letters, digits and . : / @ + - _")


def find_commit(metadata: TableMetadata, token: str | None) -> Snapshot | None:
    """Return the snapshot that a change under this token made."""
    return None if token is None else metadata.snapshots.find_by_summary(TOKEN_KEY, token)
