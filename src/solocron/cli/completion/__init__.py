"""Completion files for bash, zsh and fish, made from the parser, so that they cannot fall behind it.

They complete commands, flags and the values that a flag can have. Where a job or a run is expected, they ask `solocron
completion --values`, which looks into the store that the command line names.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping

from solocron.cli.completion.bash import bash_file
from solocron.cli.completion.described import DescribedCommand, described
from solocron.cli.completion.fish import fish_file
from solocron.cli.completion.zsh import zsh_file

__all__ = ["FILES", "SHELLS", "script"]

FILES = {
    "bash": "share/bash-completion/completions/solocron",
    "zsh": "share/zsh/site-functions/_solocron",
    "fish": "share/fish/vendor_completions.d/solocron.fish",
}
"""Path at which each shell looks for its file, below the prefix of an installation."""
SHELLS = tuple(FILES)

_MAKERS: Mapping[str, Callable[[DescribedCommand, Mapping[str, DescribedCommand]], str]] = {
    "bash": bash_file,
    "zsh": zsh_file,
    "fish": fish_file,
}


def script(shell: str, parser: ArgumentParser) -> str:
    """Return the completion file of a shell."""
    return _MAKERS[shell](*described(parser))
