"""Options in the form `key=value`, which may be repeated."""

import rich_click as click

from icefield.errors import InvalidInput


def parse_pairs(_: click.Context, option: click.Parameter, strings: tuple[str, ...]) -> dict[str, str]:
    """Parse a repeatable option in the form `key=value`."""
    pairs: dict[str, str] = {}
    for text in strings:
        key, equals, value = text.partition("=")
        key = key.strip()  # as in --set "name = 'x'"
        if not key or not equals:
            name = option.opts[0]
            # The value is not shown: it may be a secret.
            raise InvalidInput(f"{name} has no key or no =", hint=f"Write it as {name} key=value")
        if key in pairs:
            raise InvalidInput(f"{option.opts[0]} {key}=… is given twice", hint="Give it once")
        pairs[key] = value
    return pairs
