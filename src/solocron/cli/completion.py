"""Completion files for bash, zsh and fish, made from the parser, so that they cannot fall behind it.

They complete commands, flags and the values that a flag can have. They never open a store.
"""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["FILES", "SHELLS", "script"]

SHELLS = ("bash", "zsh", "fish")
FILES = {
    "bash": "share/bash-completion/completions/solocron",
    "zsh": "share/zsh/site-functions/_solocron",
    "fish": "share/fish/vendor_completions.d/solocron.fish",
}
"""Path at which each shell looks for its file, below the prefix of an installation."""


@dataclass(frozen=True, slots=True)
class _Flag:
    """An option, or a positional argument where `names` is empty."""

    names: tuple[str, ...]
    help: str
    value: str | None
    """The name of its value; None if it takes none."""
    choices: tuple[str, ...]
    optional: bool = False
    """True if its value may be left out."""


@dataclass(frozen=True, slots=True)
class _Command:
    help: str
    flags: tuple[_Flag, ...]


def script(shell: str, parser: ArgumentParser) -> str:
    """Return the completion file of a shell."""
    makers: Mapping[str, Callable[[_Command, Mapping[str, _Command]], str]] = {
        "bash": _bash,
        "zsh": _zsh,
        "fish": _fish,
    }
    (found,) = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    helps = {action.dest: action.help or "" for action in found._choices_actions}
    commands = {name: _Command(helps[name], tuple(_flags(sub))) for name, sub in found.choices.items()}
    return makers[shell](_Command("", tuple(_flags(parser))), commands)


def _flags(parser: ArgumentParser) -> Iterator[_Flag]:
    for action in parser._actions:
        if not isinstance(action, _SubParsersAction) and action.help is not SUPPRESS:
            takes = action.nargs != 0
            choices = tuple(map(str, action.choices or ()))
            optional = bool(action.option_strings) and action.nargs == "?"
            yield _Flag(
                tuple(action.option_strings), _line(action), _name(action) if takes else None, choices, optional
            )


def _name(action: Action) -> str:
    return str(action.metavar or action.dest).upper()


def _line(action: Action) -> str:
    return re.sub(r"\s+", " ", (action.help or "").replace("%%", "%"))


def _words(command: _Command) -> list[str]:
    """Return the words that may stand where no value is expected."""
    flags = [name for flag in command.flags for name in flag.names]
    return flags + [choice for flag in command.flags if not flag.names for choice in flag.choices]


def _needs_value(flag: _Flag) -> bool:
    """Return whether the next word must be its value."""
    return bool(flag.names) and flag.value is not None and not flag.optional


# --- bash ------------------------------------------------------------------------------------------------------------


def _bash(top: _Command, commands: Mapping[str, _Command]) -> str:
    asking = "|".join(name for flag in top.flags if _needs_value(flag) for name in flag.names)
    lines = [
        "# bash completion of solocron; made by `solocron completion bash`",
        "_solocron() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" i',
        "    COMPREPLY=()",
        "    for ((i = 1; i < COMP_CWORD; i++)); do",
        '        case "${COMP_WORDS[i]}" in',
        f"            {asking}) ((i++)) ;;",
        "            -*) ;;",
        '            *) command="${COMP_WORDS[i]}"; break ;;',
        "        esac",
        "    done",
        '    case "$command $before" in',
    ]
    for name, command in {"": top, **commands}.items():
        for flag in command.flags:
            if _needs_value(flag):
                places = "|".join(f"'{name} {each}'" for each in flag.names)
                found = f"COMPREPLY=($(compgen -W '{' '.join(flag.choices)}' -- \"$word\")); " if flag.choices else ""
                lines.append(f"        {places}) {found}return ;;")
    lines += ["    esac", '    case "$command" in']
    first = " ".join([*_words(top), *commands])
    lines.append(f"        '') COMPREPLY=($(compgen -W '{first}' -- \"$word\")) ;;")
    for name, command in commands.items():
        lines.append(f"        {name}) COMPREPLY=($(compgen -W '{' '.join(_words(command))}' -- \"$word\")) ;;")
    return "\n".join([*lines, "    esac", "}", "complete -o default -F _solocron solocron", ""])


# --- zsh -------------------------------------------------------------------------------------------------------------


def _zsh(top: _Command, commands: Mapping[str, _Command]) -> str:
    lines = [
        "#compdef solocron",
        "# zsh completion of solocron; made by `solocron completion zsh`",
        "_solocron() {",
        "    local context state state_descr line",
        "    typeset -A opt_args",
        "    local -a commands",
        "    commands=(",
        *(f"        {_quoted(name + ':' + command.help)}" for name, command in commands.items()),
        "    )",
        "    _arguments -C \\",
        *(f"        {spec} \\" for flag in top.flags for spec in _zsh_specs(flag)),
        "        '1: :->command' '*:: :->arguments'",
        '    case "$state" in',
        "        command) _describe -t commands command commands ;;",
        '        arguments) case "$words[1]" in',
    ]
    for name, command in commands.items():
        specs = [spec for flag in command.flags for spec in _zsh_specs(flag)]
        lines += [f"            {name}) _arguments \\", *(f"                {spec} \\" for spec in specs[:-1])]
        lines.append(f"                {specs[-1]} ;;")
    return "\n".join([*lines, "        esac ;;", "    esac", "}", '_solocron "$@"', ""])


def _zsh_specs(flag: _Flag) -> Iterator[str]:
    what = re.sub(r"([\[\]:\\])", r"\\\1", flag.help)
    value = ""
    if flag.value is not None:
        action = f"({' '.join(flag.choices)})" if flag.choices else "_files" if flag.value == "TARGET" else ""
        value = f"{'::' if flag.optional else ':'}{flag.value.replace(':', ' ')}:{action}"
    if not flag.names:
        yield _quoted(f"*{value}")
    for name in flag.names:
        yield _quoted(f"*{name}[{what}]{value}")


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


# --- fish ------------------------------------------------------------------------------------------------------------


def _fish(top: _Command, commands: Mapping[str, _Command]) -> str:
    lines = ["# fish completion of solocron; made by `solocron completion fish`", "complete -c solocron -f"]
    for name, command in commands.items():
        lines.append(f"complete -c solocron -n __fish_use_subcommand -a {name} -d {_fish_quoted(command.help)}")
    for flag in top.flags:
        lines.append(f"complete -c solocron -n __fish_use_subcommand {_fish_flag(flag)}")
    for name, command in commands.items():
        seen = _fish_quoted(f"__fish_seen_subcommand_from {name}")
        for flag in command.flags:
            if flag.names or flag.choices or flag.value == "TARGET":
                lines.append(f"complete -c solocron -n {seen} {_fish_flag(flag)}")
    return "\n".join([*lines, ""])


def _fish_flag(flag: _Flag) -> str:
    words = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names]
    if flag.value is not None and flag.names and not flag.optional:
        words.append("-x")
    if flag.choices:
        words.append(f"-a {_fish_quoted(' '.join(flag.choices))}")
    elif not flag.names:
        words.append("-F")
    return " ".join([*words, f"-d {_fish_quoted(flag.help)}"])


def _fish_quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
