"""The completion file of zsh."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from solocron.cli.completion.described import PLACE, Argument, DescribedCommand

__all__ = ["zsh_file"]

_HEAD = """#compdef solocron
# zsh completion of solocron; made by `solocron completion zsh`
_solocron_values() {  # the names that the store has; none if it is away
    local -a found
    found=(${(f)"$($program $place completion --values $1 --prefix=$PREFIX 2>/dev/null)"})
    compadd -a found
}
_solocron() {
    local context state state_descr line program=${(Q)words[1]/#\\~/$HOME} i
    typeset -A opt_args
    local -a commands place
    for ((i = 2; i < CURRENT; i++)); do
        case "$words[i]" in
            @place@) place+=("$words[i]" "${(Q)words[i+1]}") ;;
            @given@) place+=("${(Q)words[i]}") ;;
        esac
    done
    commands=("""


def zsh_file(top: DescribedCommand, commands: Mapping[str, DescribedCommand]) -> str:
    """Return the file."""
    given = "|".join(f"{flag}=*" for flag in PLACE)
    lines = [
        _HEAD.replace("@place@", "|".join(PLACE)).replace("@given@", given),
        *(f"        {_quoted(name + ':' + command.help)}" for name, command in commands.items()),
        "    )",
        "    _arguments -C \\",
        *(f"        {spec} \\" for spec in _specs(top)),
        "        '1: :->command' '*:: :->arguments'",
        '    case "$state" in',
        "        command) _describe -t commands command commands ;;",
        '        arguments) case "$words[1]" in',
    ]
    for name, command in commands.items():
        specs = list(_specs(command))
        lines += [f"            {name}) _arguments \\", *(f"                {spec} \\" for spec in specs[:-1])]
        lines.append(f"                {specs[-1]} ;;")
    return "\n".join([*lines, "        esac ;;", "    esac", "}", '_solocron "$@"', ""])


def _specs(command: DescribedCommand) -> Iterator[str]:
    for flag in command.flags:
        value = (
            ""
            if flag.value is None
            else f"{'::' if flag.optional else ':'}{flag.value.replace(':', ' ')}:{_action(flag)}"
        )
        if not flag.names:
            yield _quoted(f"{command.positional.index(flag) + 1}{value}")
        what = re.sub(r"([\[\]:\\])", r"\\\1", flag.help)
        for name in flag.names:
            yield _quoted(f"*{name}[{what}]{value}")


def _action(flag: Argument) -> str:
    """Return what completes a value. One that begins with a space is called without further options."""
    if flag.kind is not None:
        return f" _solocron_values {flag.kind}"
    if flag.words:
        return f"_values -s , {flag.names[0][2:]} {' '.join(flag.words)}"
    if flag.choices:
        return f"({' '.join(flag.choices)})"
    return "_files" if flag.value == "TARGET" else ""


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"
