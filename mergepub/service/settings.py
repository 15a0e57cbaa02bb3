"""What one service was started with. Values only, picklable: every worker process is given the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mergepub.stores.contract import MAX_BODY

LogFormat = Literal["text", "json"]

DEFAULT_PORT = 8470


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take. Sizes in bytes, times in seconds.

    ``head``: request line and headers together. ``header_time``: until the header is whole. ``body_time``: without a
    byte of the body, or without a byte of the answer taken. ``request_time``: for a request as a whole. ``idle_time``:
    between two requests of one connection. ``threads``: store calls at a time. ``shutdown_time``: for requests under
    way when the service ends.
    """

    body: int = MAX_BODY
    head: int = 32 * 1024
    connections: int = 512
    header_time: float = 30.0
    body_time: float = 60.0
    request_time: float = 300.0
    idle_time: float = 75.0
    shutdown_time: float = 60.0
    threads: int = 32


@dataclass(frozen=True, slots=True)
class Settings:
    """What ``mergepub serve`` was asked for."""

    store_url: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    public_names: tuple[str, ...] = ()
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    tls_cert: str | None = None
    tls_key: str | None = None
    open_to_everyone: bool = False
    log_format: LogFormat = "text"
    token_poll: float = 2.0
    """Seconds that a worker trusts the tokens it has read; a new or revoked token counts no later than that."""
