"""Commands in hints, written so that they work when pasted: with the store that this command line named by flag.

What the environment and the configuration name holds for the pasted command too, and is not repeated.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Any

from mergepub.cli.streams import given

_VERBS = (
    "publish|fetch|append|versions|list|log|diff|delete|revert|pull|push|status|show-conflict|resolve|mv|branches|"
    "branch|decide|decisions|sync|serve|verify|doctor|token (?:create|list|revoke)|store init"
)
_COMMAND = re.compile(rf"\bmergepub (?=(?:{_VERBS})(?![\w-]))(?!.* --store )(?!(?:[\w-]+ )+--help\b)")


def pasteable(text: str) -> str:
    """``text`` with the flags of this call in every command whose verb takes a store."""
    if not given or not _COMMAND.search(text):
        return text
    flags = shlex.join(_flags())
    return _COMMAND.sub(lambda _: f"mergepub {flags} ", text) if flags else text


def with_pasteable_hints(answer: Any) -> Any:
    """A JSON answer whose hints, however deep, are pasteable."""
    if isinstance(answer, list | tuple):
        return [with_pasteable_hints(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        key: pasteable(value) if key == "hint" and isinstance(value, str) else with_pasteable_hints(value)
        for key, value in answer.items()
    }


def _flags() -> list[str]:
    """The flags that name the same store and token from any directory."""
    url = _without_secret(given["store"]) if "store" in given else None
    file = os.path.abspath(given["token-file"]) if "token-file" in given else None  # noqa: PTH100 - pathlib costs milliseconds
    return [*(["--store", url] if url else []), *(["--token-file", file] if file else [])]


def _without_secret(url: str) -> str | None:
    """The URL as the store itself shows it, absolute and free of secrets; None where it names no store."""
    from mergepub.cli.opening import opened
    from mergepub.errors import MergepubError

    try:
        with opened(url) as store:
            return store.url
    except MergepubError:
        return None
