"""The verb ``completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mergepub.cli.options import verb
from mergepub.cli.streams import write_stdout
from mergepub.errors import InputError

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_MERGEPUB_COMPLETE"


def script_for(shell: str, command: click.Command) -> str:
    """The script that makes ``shell`` complete ``command``."""
    kind = get_completion_class(shell)
    if kind is None:
        raise InputError(f"there is no completion for {shell}", hint=f"take one of {', '.join(SHELLS)}")
    return kind(command, {}, "mergepub", VARIABLE).source()


@verb("completion", "mergepub completion bash > mergepub.bash", "mergepub completion fish > mergepub.fish")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> int:
    """Print the script that completes mergepub's commands and options in bash, zsh or fish."""
    write_stdout(script_for(shell, context.find_root().command).encode())
    return 0
