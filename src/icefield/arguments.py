"""Check what callers give to the public handles, by the annotations of their methods.

    @check_arguments
    class Table:
        def remove_snapshots(self, snapshot_ids: Iterable[int]) -> None: ...

    table.remove_snapshots("71")   InvalidInput: remove_snapshots: snapshot_ids takes a list of whole numbers, not '71'

A value of a wrong type would otherwise surface as an error of Python or Arrow from deep inside, or be taken for
something else: a string is a list of letters too. Annotations with a plain meaning are checked (strings, numbers,
flags, times, other classes, lists and mappings of them, None); whatever else a method takes is its own to check.
"""

import datetime
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from icefield.deferred import resolved
from icefield.errors import InvalidInput

T = TypeVar("T")

_WORDS: dict[Any, tuple[str, str]] = {
    str: ("a string", "strings"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "True or False"),
    datetime.datetime: ("a datetime", "datetimes"),
    type(None): ("None", "None"),
}
_LONGEST_NUMBER = len(str(2**63))
_LISTS = (Sequence, Iterable, list, tuple)
_UNIONS = (typing.Union, types.UnionType)


def whole_number(text: str | None) -> int | None:
    """Read a number of up to 64 bits that others wrote as a text; None for any other text, and where there is none."""
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) > _LONGEST_NUMBER:
        return None
    number = int(text)
    return number if number < 2**63 else None


def check_arguments(handle: type[T]) -> type[T]:
    """Let every public method of a class check its arguments."""
    for name, method in list(vars(handle).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(handle, name, _checked(method))
    return handle


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.cache
    def expected() -> tuple[inspect.Signature, dict[str, Any]]:
        # On the first call: annotations may name classes that were not there before, and most methods are never called.
        return inspect.signature(method), typing.get_type_hints(method, localns=_LoadedNames(method.__globals__))

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        signature, kinds = expected()
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in kinds and signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
                _check(method.__name__, name, value, kinds[name])
            _check_text(method.__name__, name, value)
        return method(*args, **kwargs)

    return call


class _LoadedNames(dict[str, Any]):
    """The names of a module, with those loaded that a deferred import has not loaded yet."""

    def __getitem__(self, name: str) -> Any:
        return resolved(super().__getitem__(name))


def _check(method: str, name: str, value: object, kind: Any) -> None:
    if _fits(value, kind):
        return
    hint = None
    if isinstance(value, str) and any(typing.get_origin(k) in _LISTS for k in _members(kind)):
        hint = f"Write {name}=[{value!r}]"
    raise InvalidInput(f"{method}: {name} takes {_describe(kind)}, not {repr(value)[:80]}", hint=hint)


def _check_text(method: str, name: str, value: object) -> None:
    """Refuse text that no file, database or server can hold: it has no UTF-8."""
    strings: Iterable[object] = ()
    if isinstance(value, str):
        strings = (value,)
    elif isinstance(value, list | tuple | set | frozenset):
        strings = value
    elif isinstance(value, Mapping):
        strings = (*value.keys(), *value.values())
    for text in strings:
        if isinstance(text, str) and not is_utf8(text):
            raise InvalidInput(
                f"{method}: {name} contains a lone surrogate, which is not a valid character: {text[:80]!r}",
                hint="Decode the bytes with their actual encoding",
            )


def is_utf8(text: str) -> bool:
    """Return whether a text can be written as UTF-8: lone surrogates cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(value: object, kind: Any) -> bool:
    """Return whether a value is of a kind; True for kinds that are not checked here."""
    members = _members(kind)
    if not all(_is_simple(member) for member in members):
        return True
    return any(_fits_one(value, member) for member in members)


def _fits_one(value: object, kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
        )
    if origin in _LISTS:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        # Whatever can be read once only is left to the method.
        return not isinstance(value, list | tuple | set | frozenset) or all(_fits(item, inner[0]) for item in value)
    if kind is int or kind is float:
        is_number = hasattr(value, "__index__") or (kind is float and isinstance(value, float))
        return is_number and not isinstance(value, bool)
    return isinstance(value, origin or kind)


def _is_simple(kind: Any) -> bool:
    if typing.get_origin(kind) is Mapping:
        return True
    if typing.get_origin(kind) in _LISTS:
        return all(_is_simple(member) for item in typing.get_args(kind) for member in _members(item))
    plain = typing.get_origin(kind) or kind
    return inspect.isclass(plain) and plain not in (object, Any) and not getattr(plain, "_is_protocol", False)


def _members(kind: Any) -> Sequence[Any]:
    return typing.get_args(kind) if typing.get_origin(kind) in _UNIONS else (kind,)


def _describe(kind: Any) -> str:
    return " or ".join(_describe_one(member) for member in _members(kind) if member is not type(None))


def _describe_one(kind: Any) -> str:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Mapping:
        return (
            "a mapping"
            if inner[0] not in _WORDS or inner[1] not in _WORDS
            else (f"a mapping of {_WORDS[inner[0]][1]} to {_WORDS[inner[1]][1]}")
        )
    if origin in _LISTS:
        return f"a list of {' or '.join(_words(member)[1] for member in _members(inner[0]))}"
    return _words(kind)[0]


def _words(kind: Any) -> tuple[str, str]:
    """Return what one and what several of a kind are called."""
    name = (typing.get_origin(kind) or kind).__name__
    return _WORDS.get(kind, (f"a {name}", f"{name} values"))
