"""Token buckets. Pure: the time is given, as seconds of any clock; one that goes back gives and takes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Bucket:
    """``burst`` tokens at first and at most, ``rate`` new ones a second."""

    burst: float
    rate: float
    _tokens: float = field(init=False)
    _then: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._tokens = self.burst

    def take(self, now: float) -> float | None:
        """Take a token: None, or the seconds until there is one again."""
        if self._then is not None:
            self._tokens = min(self.burst, self._tokens + max(0.0, now - self._then) * self.rate)
        self._then = now
        # Tokens of a tenth of a second ten times are one, whatever binary fractions make of it.
        if self._tokens >= 1 - 1e-9:
            self._tokens = max(0.0, self._tokens - 1)
            return None
        return (1 - self._tokens) / self.rate
