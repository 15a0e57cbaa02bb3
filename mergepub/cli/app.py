"""The command ``mergepub`` itself: its verbs, loaded when asked for, and the one edge where errors become words.

Nothing else translates errors. Verbs return exit statuses and raise; ``run`` says what went wrong.
"""

from __future__ import annotations

import os
import re
import shlex

import click

from mergepub import status
from mergepub.cli.answers import write_json
from mergepub.cli.options import Call, HelpInBytes, store_option
from mergepub.cli.streams import INTERRUPTED, complain, given, printable, write_stdout
from mergepub.errors import BadPathError, InputError, OutputError

SECTIONS: dict[str, tuple[str, ...]] = {
    "Documents": ("publish", "fetch", "append", "merge", "versions", "list", "log", "diff", "delete", "revert"),
    "Tracked files": ("pull", "push", "status", "show-conflict", "resolve", "mv"),
    "Branches": ("branches", "branch", "decide", "decisions", "sync"),
    "Coordination": ("coord",),
    "Service, store and tool": ("serve", "token", "store", "verify", "mcp", "config", "doctor", "completion"),
}
MODULES = {"versions": "history", "list": "history", "show-conflict": "show_conflict"}
VERBS = tuple(verb for verbs in SECTIONS.values() for verb in verbs)


class Verbs(HelpInBytes, click.Group):
    """A group that imports a verb's module only when that verb (or the list of all) is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click gives it
        """All verbs, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click gives it
        """The verb's command, or None."""
        if cmd_name not in VERBS:
            return None
        from importlib import import_module

        module = import_module(f"mergepub.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Note which verb it is, for its errors; an unknown one is answered with the nearest."""
        name = args[0]
        ctx.ensure_object(Call).verb = name
        if name not in VERBS:
            raise InputError(f"there is no command {name!r}", hint=_nearest(name))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs under their headings."""
        for heading, verbs in SECTIONS.items():
            commands = ((verb, self.get_command(ctx, verb)) for verb in verbs)
            rows = [(verb, command.get_short_help_str(130)) for verb, command in commands if command]
            with formatter.section(heading):
                formatter.write_dl(rows)


_CALLED_ELSEWHERE = {
    "version": "--version", "ls": "list", "cat": "fetch", "get": "fetch", "show": "fetch", "put": "publish",
    "save": "publish", "rm": "delete", "remove": "delete", "history": "log", "move": "mv", "init": "store init",
}  # fmt: skip
"""What other programs call by these names."""


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    near = [_CALLED_ELSEWHERE[name]] if name in _CALLED_ELSEWHERE else get_close_matches(name, VERBS, n=1)
    return f"did you mean mergepub {near[0]}?" if near else "mergepub --help lists the commands"


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from mergepub._version import __version__

        write_stdout(f"mergepub {__version__}\n".encode())
        ctx.exit()


@click.group(
    cls=Verbs,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Each command has --help with an example. Every option can be set in the environment: "
    "MERGEPUB_STORE, MERGEPUB_PUBLISH_ON_CONFLICT, ...; or in mergepub.toml: mergepub config shows what counts.",
)
@store_option
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def mergepub(store: str | None) -> None:
    """Publish documents by compare-and-swap; merge what others published in between; never lose an edit."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status; whatever goes wrong ends as words on standard error."""
    call = Call()
    given.clear()
    _mend_descriptors()
    try:
        return _invoke(arguments, call)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _fail(KeyboardInterrupt("interrupted"), call, arguments)
    except click.ClickException as error:
        return _fail(_as_input_error(error, call), call, arguments)
    except Exception as error:  # nobody ever sees a traceback
        return _fail(_as_lost_directory(error) or error, call, arguments)


def _invoke(arguments: list[str], call: Call) -> int:
    if "_MERGEPUB_COMPLETE" in os.environ:
        mergepub.main(arguments, "mergepub", complete_var="_MERGEPUB_COMPLETE")
    with mergepub.make_context("mergepub", list(arguments), obj=call, auto_envvar_prefix="MERGEPUB") as context:
        return mergepub.invoke(context) or 0


def _as_input_error(error: click.ClickException, call: Call) -> InputError:
    context = getattr(error, "ctx", None)
    place = context.command_path if context else " ".join(["mergepub", *filter(None, [call.verb])])
    message = " ".join(error.format_message().split())
    if context and isinstance(context.command, click.Group):
        bare = message.startswith("Usage:")  # a group without a command: click would print its help
        early = "options of a command go after its name; " if isinstance(error, click.NoSuchOption) else ""
        return InputError("Missing command." if bare else message, hint=f"{early}{place} --help lists the commands")
    usage = f"{place} --help shows how it is called"
    if context is None:
        return InputError(message, hint=usage)
    settled = _settled_by_resolve(error, context)
    if settled:
        return InputError(message.partition(" Did you mean")[0], hint=settled)
    return InputError(message, hint=_version_belongs_to_path(error, context) or f"{_advice(error, context)}{usage}")


def _settled_by_resolve(error: click.ClickException, context: click.Context) -> str | None:
    """What to type where a pull was to settle conflicts by itself."""
    option = getattr(error, "option_name", "")
    if context.info_name != "pull" or option not in ("--ours", "--theirs", "--union"):
        return None
    return f"pull marks both sides in FILE, and this settles what overlaps: mergepub resolve FILE {option}"


def _version_belongs_to_path(error: click.ClickException, context: click.Context) -> str | None:
    """What to type where a version was given to fetch as an argument or option of its own."""
    if context.info_name != "fetch":
        return None
    asked = re.search(r"argument \((v?\d+)\)", error.format_message())
    if asked is None and getattr(error, "option_name", "") not in ("--version", "--revision"):
        return None
    path = context.params.get("path") or "PATH"
    version = asked[1].removeprefix("v") if asked else "N"
    return f"a version is the end of the path: mergepub fetch {shlex.quote(f'{path}/v{version}')}"


def _advice(error: click.ClickException, context: click.Context) -> str:
    """Where an argument is missing, the first example of the command's help; where several are too many, quotes."""
    if "extra arguments" in error.format_message():
        return "words that belong together need quotes; "
    found = re.search(r"^  \$ (.*)$", context.command.epilog or "", re.MULTILINE)
    return f"such as: {found[1]}; " if found and isinstance(error, click.MissingParameter) else ""


def _as_lost_directory(error: Exception) -> InputError | None:
    """What a missing file comes to where the working directory itself was deleted: no relative name means anything."""
    try:
        os.getcwd()  # noqa: PTH109 - only the error is of interest
    except FileNotFoundError:
        if isinstance(error, FileNotFoundError):
            return InputError("the working directory was deleted", hint="change to one that exists, and try again")
    return None


def _fail(error: BaseException, call: Call, arguments: list[str]) -> int:
    """Say what went wrong, on standard error and, where JSON is wanted, on standard output; return the exit status."""
    code = status.exit_status_of(error)
    if isinstance(error, BadPathError):
        _name_tracked(error, arguments)
    if call.verb == "merge" and code != INTERRUPTED:
        from mergepub.cli.mergefile import ERROR  # the verb's own, which no other has to load

        code = ERROR
    complain(error)
    if call.json or "--json" in arguments:
        answer = status.error_json(error)
        answer["error"] |= {"code": code, "message": printable(answer["error"]["message"])}
        try:
            write_json(answer)
        except OutputError as unwritable:
            complain(unwritable)
    return code


def _name_tracked(error: BadPathError, arguments: list[str]) -> None:
    """Where a tracked file stands in the place of a document, put that document into the hint."""
    for word in arguments:
        if error.hint == f"did you mean /{word}?" and os.path.isfile(word):  # noqa: PTH113 - pathlib costs milliseconds
            from mergepub.cli.diff_tracked import path_of

            path = path_of(word)
            if path:
                error.hint = f"{word} is a file that is tracked as a document: did you mean {shlex.quote(path)}?"


def _mend_descriptors() -> None:
    """Fill the places of closed standard streams, or the next file opened would be written to as one of them."""
    for fd, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, mode)  # the wrong way round: using a closed stream stays an error
