"""Imports that happen on first use, as PEP 810 plans `lazy import` for a later Python.

    with deferred_imports(__name__):
        from icefield.table.transaction import Transaction

    Transaction(...)   loads icefield.table.transaction, and puts the class in the place of its stand-in

A program then loads what its verbs need, not all that the handles could do. Annotations with such names need
`from __future__ import annotations`. Base classes, decorators, values of constants, and classes in `except` and `case`
need a plain import.
"""

import builtins
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

_ONE_BLOCK = threading.Lock()  # no module is loaded while it is held


@contextmanager
def deferred_imports(importer: str) -> Iterator[None]:
    """Let the import statements of a block in a module bind stand-ins. Imports of other modules are not affected."""
    with _ONE_BLOCK:
        load = builtins.__import__
        builtins.__import__ = _deferring(importer, load)
        try:
            yield
        finally:
            builtins.__import__ = load


def resolved(value: object) -> object:
    """Return what a stand-in stands for, loading it; any other value as it is."""
    return value.load() if isinstance(value, Deferred) else value


class Deferred:
    """Stands for a module, or for a name in it, until it is used."""

    def __init__(self, module: str, name: str, namespace: dict[str, Any]) -> None:
        self._module, self._name, self._namespace = module, name, namespace

    def load(self) -> Any:
        """Import what this stands for, and put it where the stand-in was."""
        value = import_module(self._module)
        if self._name:
            value = getattr(value, self._name, None) or import_module(f"{self._module}.{self._name}")
        for name in [name for name, known in self._namespace.items() if known is self]:
            self._namespace[name] = value
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.load()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.load())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self.load())

    def __or__(self, other: Any) -> Any:
        return self.load() | resolved(other)

    def __ror__(self, other: Any) -> Any:
        return other | self.load()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.load())

    def __contains__(self, item: object) -> bool:
        return item in self.load()

    def __getitem__(self, key: Any) -> Any:
        return self.load()[key]

    def __reduce__(self) -> tuple[Callable[[object], object], tuple[object]]:
        return resolved, (self.load(),)


def _deferring(importer: str, load: Callable[..., Any]) -> Callable[..., Any]:
    def defer(
        name: str,
        namespace: dict[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if namespace is None or namespace.get("__name__") != importer:
            return load(name, namespace, local, fromlist or (), level)
        if fromlist:
            return SimpleNamespace(**{each: Deferred(name, each, namespace) for each in fromlist})
        _, _, inner = name.partition(".")  # `import a.b as c` takes b from what is returned for a
        return SimpleNamespace(**{inner: Deferred(name, "", namespace)}) if inner else Deferred(name, "", namespace)

    return defer
