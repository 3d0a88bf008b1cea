"""How much one run of upkeep may do: time, and bytes that are rewritten."""

from dataclasses import dataclass

from icefield.ambient import Ambient
from icefield.errors import InvalidInput


@dataclass
class Budget:
    """What is left of the time and bytes of a run; None is without a limit."""

    ambient: Ambient
    deadline: float | None = None
    bytes_left: int | None = None

    @classmethod
    def of(cls, ambient: Ambient, minutes: float | None, max_bytes: int | None) -> "Budget":
        """Return the budget of a run that begins now."""
        if minutes is not None and not 0 < minutes < float("inf"):
            raise InvalidInput(f"a run cannot take {minutes} minutes", hint="Give a positive number, such as 30")
        if max_bytes is not None and max_bytes < 0:
            raise InvalidInput(f"a run cannot rewrite {max_bytes} bytes", hint="Give a number that is not negative")
        return cls(ambient, None if minutes is None else ambient.monotonic() + minutes * 60, max_bytes)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and self.ambient.monotonic() >= self.deadline

    def until_half(self) -> "Budget":
        """Return half of the time that is left, for what comes before the work itself."""
        if self.deadline is None:
            return self
        now = self.ambient.monotonic()
        return Budget(self.ambient, now + (self.deadline - now) / 2)

    def spend(self, count: int) -> None:
        """Count bytes that were rewritten."""
        if self.bytes_left is not None:
            self.bytes_left = max(0, self.bytes_left - count)
