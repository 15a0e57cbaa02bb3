"""The command line: one file a verb, each a thin shell over a plain function that tests call without it.

``streams`` and ``mergefile`` are light on purpose (nothing beyond ``os`` and ``sys``): the fast path of
``mergepub.__main__`` runs them before click is imported. So is this package itself: here stands only what every command
asks first, which configuration files there are.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # what typing calls by this name, without importing typing
if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_NAME = "mergepub.toml"


def configuration_files() -> list[str]:
    """The configuration files that exist: the user's, then the project's, which counts more."""
    user = _users_own()
    found = [user] if os.path.isfile(user) else []  # noqa: PTH113 - pathlib costs every command milliseconds
    project = next((name for name in _upwards() if os.path.isfile(name)), None)  # noqa: PTH113 - as above
    return found if project is None or project in found else [*found, project]


def is_users_own(name: str) -> bool:
    """Whether that configuration file is the user's own, not one that came with a project."""
    return name == _users_own()


def _users_own() -> str:
    return os.path.join(_user_folder(), "mergepub", FILE_NAME)  # noqa: PTH118 - as above


def _user_folder() -> str:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return folder if folder.startswith("/") else os.path.expanduser("~/.config")  # noqa: PTH111 - as above


def _upwards() -> Iterator[str]:
    try:
        folder = os.getcwd()  # noqa: PTH109 - as above
    except OSError:  # the working directory was removed
        return
    while True:
        yield os.path.join(folder, FILE_NAME)  # noqa: PTH118 - as above
        above = os.path.dirname(folder)  # noqa: PTH120 - as above
        if above == folder:
            return
        folder = above
