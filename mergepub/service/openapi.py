"""How the service describes itself in OpenAPI, and as a page. Data for FastAPI; nothing here serves requests."""

from __future__ import annotations

from html import escape
from typing import Any

DESCRIPTION = "Documents published by compare-and-swap."


def is_described(method: str, path: str) -> bool:
    """Whether the operation stands in the description."""
    return bool(method and path)


def description(method: str, path: str) -> dict[str, Any]:
    """The arguments that describe an operation to FastAPI."""
    return {"operation_id": f"{method}{path}"}


def as_page(document: dict[str, Any]) -> str:
    """The description as one HTML page that needs nothing else."""
    return f"<!doctype html><title>mergepub</title><pre>{escape(str(document))}</pre>"
