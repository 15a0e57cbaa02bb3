"""The verb ``config``: every effective value with its source, secrets masked; and every configuration file checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from mergepub import status
from mergepub.cli.answers import write_json
from mergepub.cli.defaults import Tree, options_of, read_layers, settings_of
from mergepub.cli.history import show
from mergepub.cli.opening import store_url
from mergepub.cli.options import json_option, store_option, verb
from mergepub.configuration import OF_ONE_CALL, hidden
from mergepub.errors import InputError

if TYPE_CHECKING:
    from mergepub.configuration import Layer, Path

DEFAULT = "default"
SECRETS = ("MERGEPUB_TOKEN",)


class Effective(NamedTuple):
    """One line of the answer: ``name`` as a file would spell it, and where the value comes from."""

    name: str
    value: Any
    source: str


def effective(context: click.Context, only: str = "") -> Iterator[Effective]:
    """The general values, and those of the command or setting ``only`` (of all), for a command line without options.

    Raises:
        InputError: something in a configuration file cannot be, whichever command it concerns; or there is no ``only``.
    """
    root, layers = context.find_root(), read_layers()
    tree = Tree(root)
    of_all = {path: list(_of_command(tree, path, root, layers)) for path in tree.commands()}
    general = list(_general(context, of_all[CONFIG]))
    if only:
        _check_name(only, [".".join((*path, key)) for path in of_all for key in ("", *_settable(tree.options(path)))])
    yield from general
    told = [row[1:] for row in general]
    for rows in of_all.values():
        yield from (row for row in rows if _is_meant(row.name, only) and row[1:] not in told)


def _is_meant(name: str, only: str) -> bool:
    """Whether the setting ``name`` is ``only``, belongs to it where that is a command, or ends in it."""
    return not only or f"{name}.".startswith(f"{only}.") or name.endswith(f".{only}")


def _check_name(only: str, known: Iterable[str]) -> None:
    """Refuse what is neither a command nor a setting; the nearest name is named."""
    known = list(known)
    if any(_is_meant(name, only) for name in known):
        return
    from difflib import get_close_matches

    parts = [name.rstrip(".").split(".") for name in known]
    names = {".".join(each[:end]) for each in parts for end in range(1, len(each) + 1)} | {each[-1] for each in parts}
    near = get_close_matches(only, sorted(names), n=1)
    meant = f"did you mean mergepub config {near[0]}?" if near else "mergepub config shows them all"
    raise InputError(f"there is no command or setting {only!r}", hint=meant)


def _general(context: click.Context, own: list[Effective]) -> Iterator[Effective]:
    """What counts for every command: the store, and where the token is."""
    configured = {row.name: row for row in own}
    source = _source_of_store(context) or configured.get("config.store", _NOTHING).source
    yield Effective("store", hidden(store_url(context)), source)
    for name in SECRETS:
        if os.environ.get(name):
            yield Effective("token", "***", name)
    token_file = os.environ.get("MERGEPUB_TOKEN_FILE")
    if token_file:
        file = configured.get("config.token-file", _NOTHING)
        yield Effective("token-file", token_file, file.source if file.value == token_file else "MERGEPUB_TOKEN_FILE")


CONFIG = ("config",)
_NOTHING = Effective("", None, DEFAULT)


def _source_of_store(context: click.Context) -> str | None:
    """The flag or variable that says where the store is."""
    here, general = (place.get_parameter_source("store") for place in (context, context.find_root()))
    if ParameterSource.COMMANDLINE in (here, general):
        return "--store"
    if here is ParameterSource.ENVIRONMENT:
        return "MERGEPUB_CONFIG_STORE"
    return "MERGEPUB_STORE" if general is ParameterSource.ENVIRONMENT else None


def _of_command(tree: Tree, path: Path, root: click.Context, layers: list[Layer]) -> Iterator[Effective]:
    command, context = tree.context(path, root)
    assert context.parent is not None
    configured = settings_of(command, context.parent, path[-1], layers)
    files = {option.name or "": setting.layer.file for option, _, setting in configured}
    context.default_map = {option.name or "": value for option, value, _ in configured}
    options = options_of(command)
    for key in _settable(options):
        value, source = options[key].consume_value(context, {})
        if not (key == "store" and source is ParameterSource.DEFAULT):  # the general one counts
            yield Effective(".".join((*path, key)), _shown(key, value), _source(options[key], source, context, files))


def _settable(options: Iterable[str]) -> list[str]:
    """Those of the options that a file or a variable can set for good."""
    return [key for key in options if key not in OF_ONE_CALL and key not in ("help", "version")]


def _source(option: click.Option, source: ParameterSource, context: click.Context, files: dict[str, str]) -> str:
    if source is ParameterSource.ENVIRONMENT:
        return _variable(option, context)
    return files[option.name or ""] if source is ParameterSource.DEFAULT_MAP else DEFAULT


def _variable(option: click.Option, context: click.Context) -> str:
    own = [option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ())
    automatic = f"{context.auto_envvar_prefix}_{(option.name or '').upper()}"
    return next((name for name in own if os.environ.get(name)), automatic)


def _shown(key: str, value: Any) -> Any:
    if key == "store":
        return hidden(str(value))
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return value if isinstance(value, bool | int | str) else None


@verb("config", "mergepub config", "mergepub config publish --changed", "mergepub config retries --json")
@click.argument("names", nargs=-1, metavar="[COMMAND|SETTING]")
@click.option("--changed", is_flag=True, help="Leave out what nobody set.")
@json_option
@store_option
@click.pass_context
def config_command(context: click.Context, /, names: tuple[str, ...], **given: Any) -> int:
    """Show each effective value with its source: a variable, a mergepub.toml, or the default.

    A flag counts before a variable (MERGEPUB_STORE, MERGEPUB_PUBLISH_RETRIES), that before the mergepub.toml found
    upwards from here, and that before the one in the configuration folder of the user. A file holds defaults by long
    option name: store = "...", and in a table for one command: [publish] retries = 5. Every file is checked as a whole.
    """
    rows = [row for row in effective(context, ".".join(names)) if row.source != DEFAULT or not given["changed"]]
    if given["json"]:
        settings = [row._asdict() for row in rows]
        write_json(status.envelope({"status": "ok", "settings": settings}))
    else:
        show(("name", "value", "source"), [(row.name, _text(row.value), row.source) for row in rows])
    return 0


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(value) or "-"
    return "-" if value in (None, "") else str(value)
