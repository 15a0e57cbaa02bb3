r"""mergepub: publish documents by compare-and-swap, merge what others published in between, never lose an edit.

    import mergepub

    store = mergepub.open_store("sqlite:///documents.db")
    mergepub.publish(store, "/docs/guide.md", b"# Guide\n", 0)
    base = mergepub.fetch(store, "/docs/guide.md").document
    outcome = mergepub.publish(store, base.path, base.body + b"More.\n", base.version.number, on_conflict="merge")

The names below are the public API; everything else may move. Each is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # what typing calls by this name, without the milliseconds of importing typing
if TYPE_CHECKING:
    from mergepub._version import __version__
    from mergepub.documents import Document
    from mergepub.errors import MergepubError
    from mergepub.merge import Merged, diff3
    from mergepub.outcomes import Outcome
    from mergepub.publishing import MergeOptions, append, delete, fetch, publish
    from mergepub.stores import open_store

__all__ = [
    "Document",
    "MergeOptions",
    "Merged",
    "MergepubError",
    "Outcome",
    "__version__",
    "append",
    "delete",
    "diff3",
    "fetch",
    "open_store",
    "publish",
]

_HOME = {
    "Document": "mergepub.documents",
    "MergeOptions": "mergepub.publishing",
    "Merged": "mergepub.merge",
    "MergepubError": "mergepub.errors",
    "Outcome": "mergepub.outcomes",
    "__version__": "mergepub._version",
    "append": "mergepub.publishing",
    "delete": "mergepub.publishing",
    "diff3": "mergepub.merge",
    "fetch": "mergepub.publishing",
    "open_store": "mergepub.stores",
    "publish": "mergepub.publishing",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'mergepub' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only the first use of a name needs it

    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
