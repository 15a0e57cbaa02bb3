"""Configuration files on their way to the options: parsed when there are any, given to click as defaults.

click counts a flag before a variable before these defaults. What a file may say is decided in ``configuration``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import click

from mergepub.cli import configuration_files, is_users_own
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.configuration import Layer, Path, Setting


def read_layers() -> list[Layer]:
    """The configuration files, parsed, the nearest last.

    Raises:
        InputError: a file that cannot be read or is no TOML.
    """
    return [_layer(name) for name in configuration_files()]


def _layer(name: str) -> Layer:
    import tomllib

    from mergepub.cli.streams import read_file
    from mergepub.configuration import Layer

    try:
        table = tomllib.loads(read_file(name).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not TOML: {error}", hint="mend the line, or move the file away") from None
    folder = os.path.dirname(name)  # noqa: PTH120 - pathlib costs every command milliseconds
    return Layer(name, folder, table, yours=is_users_own(name))


def defaults_for(command: click.Command, parent: click.Context, name: str) -> dict[str, Any] | None:
    """What the configuration files set for ``command``, by the names of its parameters; None where there is no file.

    Raises:
        InputError: something in a file that concerns this command cannot be, naming the file and the key.
    """
    if not configuration_files() or isinstance(command, click.Group):
        return None
    found = settings_of(command, parent, name, read_layers())
    return {option.name or "": value for option, value, _ in found}


def settings_of(
    command: click.Command, parent: click.Context, name: str, layers: list[Layer]
) -> list[tuple[click.Option, Any, Setting]]:
    """Every option of ``command`` that a layer sets, with its value as the option takes it."""
    from mergepub.configuration import settings

    options = options_of(command)
    kinds = {key: _kind(option) for key, option in options.items()}
    found = settings(layers, (*_path(parent), name), kinds, Tree(parent.find_root()))
    return [(options[key], _value(options[key], key, setting), setting) for key, setting in found.items()]


def _path(context: click.Context) -> Path:
    above = _path(context.parent) if context.parent else ()
    return (*above, context.info_name or "") if context.parent else ()


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command that can be configured, by long name."""
    found = {}
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            found[max(option.opts, key=len).lstrip("-")] = option
    return found


def _kind(option: click.Option) -> str:
    from mergepub import configuration

    if option.multiple:
        return configuration.LIST
    if option.is_flag:
        return configuration.FLAG
    return configuration.NUMBER if option.type.name in ("number", "integer") else configuration.TEXT


def _value(option: click.Option, key: str, setting: Setting) -> Any:
    """The value as the option takes it: checked by its type, file names starting from home or the file's folder."""
    from mergepub.configuration import anchored, beneath

    value, layer = setting
    if key == "store":
        return anchored(os.path.expanduser(value), layer.folder)  # noqa: PTH111 - pathlib costs milliseconds
    if option.metavar == "FILE":
        return beneath(os.path.expanduser(value), layer.folder)  # noqa: PTH111 - as above
    try:
        option.type_cast_value(click.Context(click.Command(key)), value)
    except click.BadParameter as error:
        reason = " ".join(error.message.split())
        raise InputError(f"{layer.file}: {key} = {value!r}: {reason}", hint="mend the value") from None
    return value


class Tree:
    """The commands of the program and their options, as configuration files may name them."""

    def __init__(self, root: click.Context) -> None:
        self._root = root

    def below(self, path: Path) -> Collection[str]:
        """The names of the commands below ``path``."""
        command = self._command(path)
        return command.list_commands(self._root) if isinstance(command, click.Group) else ()

    def options(self, path: Path) -> Collection[str]:
        """The long names of all options of the command ``path``, or of any command below it."""
        command = self._command(path)
        if not isinstance(command, click.Group):
            return options_of(command)
        return {name for below in self.below(path) for name in self.options((*path, below))}

    def commands(self, path: Path = ()) -> Iterator[Path]:
        """Every command that is no group, by path."""
        if not isinstance(self._command(path), click.Group):
            yield path
            return
        for below in self.below(path):
            yield from self.commands((*path, below))

    def context(self, path: Path, root: click.Context) -> tuple[click.Command, click.Context]:
        """The command ``path`` with a context for it, as if it were called without arguments."""
        context = root
        for depth in range(len(path)):
            context = click.Context(self._command(path[: depth + 1]), info_name=path[depth], parent=context)
        return context.command, context

    def _command(self, path: Path) -> click.Command:
        command = self._root.command
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(self._root, name)
            assert found is not None, f"the program lists {name}, but does not have it"
            command = found
        return command
