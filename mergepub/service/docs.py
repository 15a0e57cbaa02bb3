"""The description of the service as one HTML page: no script, nothing from anywhere else."""

from __future__ import annotations

from html import escape
from typing import Any

from starlette.responses import HTMLResponse, Response

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { border-top: 1px solid #ccc; padding-top: 1rem; } code { background: #f3f3f3; padding: 0 .2rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #ddd; padding: .2rem .6rem; text-align: left; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } code { background: #333; } }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def page(document: dict[str, Any]) -> Response:
    """The OpenAPI ``document`` for people."""
    title = f"{document['info']['title']} {document['info']['version']}"
    sections = [_section(path, method, each) for path, of in document["paths"].items() for method, each in of.items()]
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{_prose(document['info']['description'])}"
        f'<p>The same for machines: <a href="/-/openapi.json">/-/openapi.json</a></p>{"".join(sections)}</body></html>'
    )
    return HTMLResponse(html, headers={"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"})


def _prose(text: str) -> str:
    return "".join(f"<p>{_with_code(paragraph)}</p>" for paragraph in text.split("\n\n"))


def _with_code(text: str) -> str:
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    if method == "head":
        return ""  # its GET without the body
    given = [(each["name"], each["in"], each["description"]) for each in operation.get("parameters", ())]
    answers = [(status, answer["description"]) for status, answer in sorted(operation["responses"].items())]
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>"
        f"{_table(('name', 'in', 'meaning'), given)}{_table(('status', 'meaning'), answers)}"
    )


def _table(headings: tuple[str, ...], rows: list[Any]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{_with_code(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
