"""What configuration files say: checked against the commands and their options, the nearer file winning. Pure.

A file sets defaults by long option name: at its top for every command that has the option, in a table for one command
(``[push]``, ``[token.create]``). Reading files lives with the command line, as do variables and flags, which count
more than any file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

from mergepub.errors import InputError

FLAG, NUMBER, TEXT, LIST = "true or false", "a whole number", "text in quotes", "a list of texts"

OF_ONE_CALL = frozenset(
    {
        "ours",
        "theirs",
        "expected-version",
        "rebase-on",
        "idempotency-key",
        "stale",
        "allow-revert",
        "mark-resolved",
    }
)
"""Options that decide about one call; as a default they would decide about calls that nobody has thought of."""

OF_ITS_USER = frozenset({"token-host", "open-to-everyone"})
"""Options that say whom the user trusts. A file that came with a project cannot say so."""

Table = Mapping[str, Any]
Path = tuple[str, ...]


class Layer(NamedTuple):
    """One file, parsed. ``folder`` is where relative names in it start; ``yours``: it did not come with a project."""

    file: str
    folder: str
    table: Table
    yours: bool = True


class Setting(NamedTuple):
    """A value and the layer that it comes from."""

    value: Any
    layer: Layer


class Commands(Protocol):
    """What there is to configure; () names the whole program."""

    def below(self, path: Path) -> Collection[str]:
        """The names of the commands below ``path``."""
        ...

    def options(self, path: Path) -> Collection[str]:
        """The long names of all options of the command ``path``, or of any command below it."""
        ...


def settings(
    layers: Iterable[Layer], command: Path, kinds: Mapping[str, str], commands: Commands
) -> dict[str, Setting]:
    """What the layers, the nearest last, set for the options of ``command``, whose kinds are given by long name.

    Raises:
        InputError: a key, a table or a type that is none, naming file, key and the nearest known one.
    """
    found: dict[str, Setting] = {}
    for layer in layers:
        for depth, table in enumerate(_tables(layer, command)):
            path = command[:depth]
            for key, value in table.items():
                if isinstance(value, Mapping):
                    _check_table(layer, path, key, commands)
                elif _applies(layer, path, key, kinds, commands):
                    _check_kind(layer, path, key, value, kinds[key])
                    found[key] = Setting(value, layer)
    return found


def _tables(layer: Layer, command: Path) -> Iterable[Table]:
    """The table of every command on the way down to ``command``, as far as there are any."""
    table: Any = layer.table
    yield table
    for depth, name in enumerate(command):
        table = table.get(name, {})
        if not isinstance(table, Mapping):
            return  # the option of that name; what it may be is checked as a key
        if depth or table:
            yield table


def _check_table(layer: Layer, path: Path, key: str, commands: Commands) -> None:
    known = commands.below(path)
    if key not in known:
        name = ".".join((*path, key))
        raise InputError(f"{layer.file}: [{name}] is no command's table", hint=_nearest(key, known, "there is no such"))


def _applies(layer: Layer, path: Path, key: str, kinds: Mapping[str, str], commands: Commands) -> bool:
    """Whether ``key`` is for the command at hand; False where it is for another one."""
    if key == "token":
        _refuse_secret(layer, "token")
    if key in OF_ONE_CALL:
        raise InputError(
            f"{layer.file}: {_name(path, key)} cannot be configured: it decides about one call",
            hint=f"remove it, and give --{key} on the command line",
        )
    if key in OF_ITS_USER and not layer.yours:
        raise _not_for_projects(layer, _name(path, key), "says whom you trust")
    if key in kinds:
        return True
    known = commands.options(path)
    if key not in known:
        raise InputError(
            f"{layer.file}: {_name(path, key)} is no option{_of(path)}",
            hint=_nearest(key, sorted(set(known) - OF_ONE_CALL), "mergepub config lists what there is; there is no"),
        )
    return False


def _check_kind(layer: Layer, path: Path, key: str, value: object, kind: str) -> None:
    fits = {
        FLAG: isinstance(value, bool),
        NUMBER: isinstance(value, int) and not isinstance(value, bool),
        TEXT: isinstance(value, str),
        LIST: isinstance(value, list) and all(isinstance(each, str) for each in value),
    }
    if not fits[kind]:
        raise InputError(
            f"{layer.file}: {_name(path, key)} is {value!r}, but it takes {kind}",
            hint=f"write {key} = {_EXAMPLES[kind]}",
        )
    if key == "store":
        _refuse_password(layer, str(value))
    if key == "tool" and "$MERGED" in str(value) and not layer.yours:
        raise _not_for_projects(layer, _name(path, key), "is a command, and whoever wrote the project would run it")


def _not_for_projects(layer: Layer, name: str, why: str) -> InputError:
    return InputError(
        f"{layer.file}: {name} cannot come from a project's file: it {why}",
        hint="move it to your own configuration: ~/.config/mergepub/mergepub.toml",
    )


_EXAMPLES = {FLAG: "true", NUMBER: "3", TEXT: '"..."', LIST: '["...", "..."]'}


def _refuse_password(layer: Layer, url: str) -> None:
    if hidden(url) != url:
        _refuse_secret(layer, "store")


def _refuse_secret(layer: Layer, key: str) -> NoReturn:
    raise InputError(
        f"{layer.file}: {key} holds a secret in clear, where everybody reads it who reads the file",
        hint="put it into a file of your own and name that with token-file, or use a variable, the keyring or netrc",
    )


def _name(path: Path, key: str) -> str:
    return f"[{'.'.join(path)}] {key}" if path else key


def _of(path: Path) -> str:
    return f" of mergepub {' '.join(path)}" if path else ""


def _nearest(key: str, known: Collection[str], otherwise: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    near = get_close_matches(key.replace("_", "-"), known, n=1)
    return f"did you mean {near[0]}?" if near else f"{otherwise} {key}"


def anchored(url: str, folder: str) -> str:
    """The store that ``url`` names in a file of ``folder``: a relative file name starts there, nothing else changes."""
    scheme, colon, rest = url.partition(":")
    if colon and scheme.lower() == "sqlite" and rest.startswith("///"):
        return f"{scheme}:///{beneath(rest[3:], folder)}"
    is_url = scheme.isascii() and scheme.replace("+", "").isalnum() and (rest.startswith("//") or url == "memory:")
    return url if colon and is_url else beneath(url, folder)


def beneath(name: str, folder: str) -> str:
    """The file ``name``, relative to ``folder`` where it is not absolute."""
    return name if not name or name.startswith("/") else f"{folder.rstrip('/')}/{name}"


def hidden(url: str) -> str:
    """``url`` with a password in it masked."""
    scheme, slashes, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    name, colon, _ = user.partition(":")
    shown = f"{name}:***@{host}" if slashes and at and colon else place
    return f"{scheme}{slashes}{shown}{slash}{_without_password(path)}"


def _without_password(query: str) -> str:
    path, mark, asked = query.partition("?")
    return path + mark + "&".join(map(_masked_part, asked.split("&")))


def _masked_part(part: str) -> str:
    name, equals, _ = part.partition("=")
    return f"{name}=***" if equals and name.lower() in ("password", "sslpassword", "token") else part
