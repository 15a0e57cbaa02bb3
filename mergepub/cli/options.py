"""What the verbs' command lines share: the help, the option types, the options that several verbs have.

Every option is named by its long form, so that the environment (``MERGEPUB_PUBLISH_RETRIES``) and a table of defaults
(click's ``default_map``) can set it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from mergepub.cli.defaults import defaults_for
from mergepub.cli.streams import given, write_stdout
from mergepub.paths import MAX_VERSION

if TYPE_CHECKING:
    IntType = click.ParamType[int]
    TextType = click.ParamType[str]
else:
    IntType = TextType = click.ParamType  # older releases of click have no parameter there

Shell = TypeVar("Shell", bound=Callable[..., Any])


@dataclass
class Call:
    """What the edge must know of a command line to report its errors: filled in while it is parsed."""

    verb: str | None = None
    json: bool = False


class HelpInBytes(click.Command):
    """A command with defaults from configuration files.

    Its help page leaves through ``write_stdout``: a closed pipe or a full disk is no crash.
    """

    _help: click.Option | None = None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse ``args``, what the configuration sets counting less than variables and flags."""
        asked_for_help = parent is not None and not _HELP.isdisjoint(args)
        if parent is not None and not parent.resilient_parsing and not asked_for_help:
            extra.setdefault("default_map", defaults_for(self, parent, info_name or ""))
        return super().make_context(info_name, args, parent, **extra)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The help option, printing in bytes.

        It is made here since click looks up a translation for its own, in every process: a millisecond for nothing.
        """
        names = self.get_help_option_names(ctx)
        if names and self._help is None:
            text = "Show this message and exit."
            self._help = click.Option(
                names, is_flag=True, expose_value=False, is_eager=True, help=text, callback=_print_help
            )
        return self._help

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options; numbers and choices with their defaults."""
        for option in self.params:
            if isinstance(option, click.Option) and isinstance(option.type, click.Choice | Digits):
                option.show_default = option.get_default(ctx, call=False) is not None
        super().format_options(ctx, formatter)


_HELP = frozenset({"-h", "--help"})


def _print_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_stdout(f"{ctx.get_help()}\n".encode())
        ctx.exit()


def verb(name: str, *examples: str) -> Callable[[Callable[..., int]], click.Command]:
    """Make a function a verb: its docstring is the help, below the options stand ``examples``, one command each."""
    return click.command(name, cls=HelpInBytes, epilog=epilog(*examples))


def epilog(*examples: str) -> str:
    """The end of a help page: ``examples``, one command each."""
    lines = "\n".join(f"  $ {example}" for example in examples)
    return f"\b\nExamples:\n{lines}"


def group(
    name: str, *examples: str, cls: type[click.Group] | None = None
) -> Callable[[Callable[..., Any]], click.Group]:
    """Make a function a group of verbs, as ``verb`` does."""
    return click.group(name, cls=cls or Group, no_args_is_help=False, epilog=epilog(*examples))


class Group(HelpInBytes, click.Group):
    """A group whose help page leaves in bytes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its commands, each with the whole of its first sentence."""
        commands = [self.commands[name] for name in self.list_commands(ctx)]
        rows = [(str(command.name), command.get_short_help_str(150)) for command in commands if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Digits(IntType):
    """A whole number in ASCII digits and nothing else: no sign, no point, no digits of other scripts."""

    name = "number"

    def __init__(self, least: int = 0, most: int = MAX_VERSION) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """``value`` as an integer, or a usage error that says what is wrong with it."""
        text = str(value)
        if not (text.isascii() and text.isdigit()):
            self.fail(f"{text!r} is not a whole number in digits.", param, ctx)
        if len(text) > len(str(MAX_VERSION)) or not self.least <= int(text) <= self.most:
            self.fail(f"{text} is not between {self.least} and {self.most}.", param, ctx)
        return int(text)


class VersionName(Digits):
    """A version as paths name it, ``v5``, or its number alone."""

    name = "version"

    def __init__(self) -> None:
        super().__init__(least=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or a usage error that says what is wrong with it."""
        return super().convert(str(value).removeprefix("v"), param, ctx)


class Label(TextType):
    """Text that stands on one line: UTF-8 without control characters."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """``value`` itself, or a usage error that says what is wrong with it."""
        text = str(value)
        if any(c < " " or "\x7f" <= c <= "\x9f" for c in text):
            self.fail(f"{text!r} holds a control character.", param, ctx)
        if any("\ud800" <= c <= "\udfff" for c in text):
            self.fail(f"{text!r} is not UTF-8.", param, ctx)
        return text


class Ordered(click.Option):
    """One of several options of which the last one given counts; each keeps its own name, variable and default."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """As for every option, and note when it is met on the command line."""
        super().add_to_parser(parser, ctx)
        for name in self.opts:
            met = parser._long_opt[name]
            met.process = self._noting(met.process, ctx)

    def _noting(self, process: Callable[[Any, Any], None], ctx: click.Context) -> Callable[[Any, Any], None]:
        def note(value: Any, state: Any) -> None:
            ctx.meta[_ORDER] = [*ctx.meta.get(_ORDER, []), self.name]
            process(value, state)

        return note


_ORDER = "mergepub.order"


def last_given(ctx: click.Context, *names: str) -> str | None:
    """Which of the ``Ordered`` options counts: the last on the command line, else one set otherwise, else None."""
    met = [name for name in ctx.meta.get(_ORDER, []) if name in names]
    return next(iter(met[-1:] or [name for name in names if ctx.params.get(name)]), None)


def switch(name: str, text: str) -> Callable[[Shell], Shell]:
    """A flag of which the last of several counts."""
    return click.option(f"--{name}", name, cls=Ordered, is_flag=True, help=text)


def path_argument(function: Shell) -> Shell:
    """The argument PATH."""
    return click.argument("path", metavar="PATH")(function)


def file_argument(function: Shell) -> Shell:
    """The argument FILE, standard input where it is missing or ``-``."""
    return click.argument("file", metavar="[FILE|-]", default="-")(function)


def store_option(function: Shell) -> Shell:
    """``--store URL``, and for the stores that ask for a secret ``--token-file FILE`` and ``--token-host HOST``."""
    function = click.option(
        "--token-file",
        metavar="FILE",
        expose_value=False,
        callback=_use_token_file,
        help="Holds the store's token, for your eyes alone (chmod 600).",
    )(function)
    function = click.option(
        "--token-host",
        metavar="HOST",
        multiple=True,
        expose_value=False,
        callback=_note_hosts,
        help="The token is for HOST, though only a project's files name it.",
    )(function)
    text = "Where the documents are: sqlite:///FILE or a plain path, postgresql://HOST/DATABASE, http(s)://HOST:PORT."
    return click.option("--store", metavar="URL", callback=_note_given, help=text)(function)


def _note_given(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Note a flag for the hints, which name the same store."""
    if value and ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
        given[param.opts[0].lstrip("-")] = value
    return value


def _use_token_file(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Put the file where stores look for it.

    Given to a command, it is nearer than a token of the environment; configured, it is farther.
    """
    _note_given(ctx, param, value)
    source = ctx.get_parameter_source(param.name or "")
    general = ctx.parent is None and source is ParameterSource.ENVIRONMENT
    outdone = source is ParameterSource.DEFAULT_MAP and any(map(os.environ.get, _TOKEN_VARIABLES))
    if value and not general and not outdone:
        os.environ["MERGEPUB_TOKEN_FILE"] = value
        os.environ.pop("MERGEPUB_TOKEN", None)


def _note_hosts(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> None:
    if value:
        from mergepub.cli.vouching import HOSTS

        ctx.meta[HOSTS] = (*ctx.meta.get(HOSTS, ()), *value)


_TOKEN_VARIABLES = ("MERGEPUB_TOKEN", "MERGEPUB_TOKEN_FILE")


def json_option(function: Shell) -> Shell:
    """``--json``, known to the edge as soon as it is parsed."""
    return click.option(
        "--json", "json", is_flag=True, is_eager=True, callback=_note_json, help="Print one JSON object."
    )(function)


def _note_json(ctx: click.Context, _param: click.Parameter, value: bool) -> bool:
    ctx.ensure_object(Call).json |= value
    return value


def body_options(function: Shell) -> Shell:
    """``-o``, ``--no-body``: where the body of the answer goes."""
    function = click.option("--no-body", is_flag=True, help="Leave the body out.")(function)
    return click.option("-o", "--output", metavar="FILE", help="Write the body to FILE, print the block alone.")(
        function
    )


def label_options(command: str) -> Callable[[Shell], Shell]:
    """``--author`` and ``-m`` of a verb that writes."""
    variables = [f"MERGEPUB_{command.upper()}_AUTHOR", "MERGEPUB_AUTHOR"]

    def decorate(function: Shell) -> Shell:
        function = click.option("-m", "--message", type=Label(), default="", help="What this version is about.")(
            function
        )
        return click.option(
            "--author", type=Label(), envvar=variables, default=default_author, help="Who writes (USER@HOST)."
        )(function)

    return decorate


def default_author() -> str:
    """``user@host``, as far as the system tells; never an error."""
    name = next((os.environ[key] for key in ("LOGNAME", "USER") if os.environ.get(key)), None) or _name_of_uid()
    author = f"{name}@{os.uname().nodename}"
    return "".join(c if c.isprintable() else "?" for c in author)


def _name_of_uid() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
