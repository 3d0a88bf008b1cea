"""The project speaks the language of Iceberg and of its field: words that it once coined itself do not come back.

To allow a word where it is meant literally, add it to EXCEPTIONS with the file; see docs/glossary.md for the words.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHERE = ("src", "docs", "tests", "benchmarks", "examples", "scripts")
SUFFIXES = (".py", ".md")
# Decisions are history, and this file quotes the words.
SKIPPED = ("docs/decisions/", "tests/test_vocabulary.py")

# Regular expressions from the start of a word on, in small letters, each with the words to use instead. A blank also
# matches a line break. (Each starts with a literal, which is what makes the search fast.)
BANNED = {
    r"lanes?\b": "commit queue",
    r"footing\b": "read set",
    r"workshops?\b": "write context",
    r"bells?\b": "wake-up",
    r"manners\b": "best effort",
    r"anew\b": "again; rewritten",
    r"meanwhile\b": "concurrently; since",
    r"say whether\b": "return whether",
    **{rf"{verb}(?<!there\s{verb}) no (?!\w+er\b|more\b|less\b)\w+": "is not a ..." for verb in ("is", "are", "was")},
    **{rf"{verb}[a-z]* in place\b": "merge-on-read" for verb in ("delete", "upsert", "update")},
    r"adopt(s|ed|ing|ion|ions)?\b": "add files; import",
    r"of others\b": "of another writer; written by another engine",
    r"dice\b": "random; rng",
    r"weathers?\b": "fault injection",
    r"the reference\b(?! (of|to|from|for|page)\b)": "Iceberg Java",
    r"told\b": "known; reported; distinguished",
    r"stands?\b(?! (for|in for)\b|-)": "is",
    r"texts\b": "strings",
    r"natural value": "Python value",
    r"civil\b": "calendar",
    r"funnel\b": "scan metrics",
    **{rf"{verb}[a-z]* by places?\b": "position delete" for verb in ("delete", "upsert")},
    r"notes? of places\b": "position delete",
    r"lies (at|in|there|below|beside|under|between|outside)\b": "is at",
    r"let go\b": "release",
    **{rf"{verb} up\b": "block" for verb in ("hold", "holds", "held")},
    r"rests? on\b": "depends on; requires",
    r"in the way\b": "conflicts with",
    r"shall\b": "should; is to",
    r"\(r\d+\)": "the history in words",
}

# Literal uses: (file, word as it is found).
EXCEPTIONS: set[tuple[str, str]] = set()


BLANKS = r"(?:[ \t]+|[ \t]*\n[ \t#]*)"  # not across an empty line
PATTERNS = {re.compile(expression.replace(" ", BLANKS)): instead for expression, instead in BANNED.items()}


def find_banned(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the banned word as it was found and the words to use instead."""
    text = text.lower()
    for pattern, instead in PATTERNS.items():
        for match in pattern.finditer(text):
            before = text[: match.start()][-1:]
            if not (before.isalnum() or before == "_"):
                yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead


def pages() -> Iterator[str]:
    """Yield every file with prose of ours, relative to the root."""
    paths = [*ROOT.glob("*.md"), *(p for folder in WHERE for p in (ROOT / folder).rglob("*") if p.suffix in SUFFIXES)]
    names = (path.relative_to(ROOT).as_posix() for path in sorted(paths))
    yield from (name for name in names if not name.startswith(SKIPPED))


def test_established_words_are_used() -> None:
    found = [
        f"{page}:{line}: {word!r} (use: {instead})"
        for page in pages()
        for line, word, instead in find_banned((ROOT / page).read_text("utf-8"))
        if (page, word) not in EXCEPTIONS
    ]
    assert not found, "\n".join(["banned words:", *found])


@pytest.mark.parametrize(
    "planted",
    [
        "Writers queue in lanes.",
        '"""Say whether it is there."""',
        "# Files that were written\n    # anew.",
        "'x' is no column of the table",
        "the rows\n    are no table",
        "as the reference does",
        "as the reference implementation writes it",
        "A delete in place marks the rows.",
        "files of\nothers",
        "as it stands",
        "It lies at the root.",
        "(R23)",
    ],
)
def test_finds_a_planted_word(planted: str) -> None:
    assert list(find_banned(planted))


@pytest.mark.parametrize(
    "plain",
    [
        "There is no table db.t.",
        "a page is no larger than 1 MiB, and is no longer read",
        "a reference to a column, or the reference of a page",
        "a stand-alone file whose name stands for the table",
        "Return whether the branch has moved since the plan.",
    ],
)
def test_lets_plain_words_pass(plain: str) -> None:
    assert not list(find_banned(plain))


def test_exceptions_are_still_needed() -> None:
    used = {(page, word) for page, _ in EXCEPTIONS for _, word, _ in find_banned((ROOT / page).read_text("utf-8"))}
    assert used >= EXCEPTIONS, f"no longer needed: {EXCEPTIONS - used}"
