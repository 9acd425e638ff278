"""The completion file of fish."""

from __future__ import annotations

from collections.abc import Mapping

from solocron.cli.completion.described import PLACE, Argument, DescribedCommand

__all__ = ["fish_file"]

_HEAD = """# fish completion of solocron; made by `solocron completion fish`
function __solocron_values  # the names that the store has; none if it is away
    set -l words (commandline -opc)
    set -l place
    for i in (seq 2 (count $words))
        switch $words[$i]
            case @place@
                set -a place $words[$i] $words[(math $i + 1)]
            case @given@
                set -a place $words[$i]
        end
    end
    $words[1] $place completion --values $argv[1] --prefix=(__solocron_word) 2>/dev/null
end
function __solocron_words  # in a list such as a,b the last word is completed
    set -l given (__solocron_word | string match -r '^.*,')
    printf "$given%s\\n" $argv
end
function __solocron_word  # the word at hand, without its flag
    commandline -ct | string replace -r '^--[a-z-]+=' ''
end
complete -c solocron -f"""


def fish_file(top: DescribedCommand, commands: Mapping[str, DescribedCommand]) -> str:
    """Return the file."""
    given = " ".join(f"'{flag}=*'" for flag in PLACE)
    lines = [_HEAD.replace("@place@", " ".join(PLACE)).replace("@given@", given)]
    for name, command in commands.items():
        lines.append(f"complete -c solocron -n __fish_use_subcommand -a {name} -d {_quoted(command.help)}")
    for flag in top.flags:
        lines.append(f"complete -c solocron -n __fish_use_subcommand {_flag(flag)}")
    for name, command in commands.items():
        seen = _quoted(f"__fish_seen_subcommand_from {name}")
        for flag in command.flags:
            if flag.names or flag.choices or flag.kind or flag.value == "TARGET":
                lines.append(f"complete -c solocron -n {seen} {_flag(flag)}")
    return "\n".join([*lines, ""])


def _flag(flag: Argument) -> str:
    words = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names]
    if flag.value is not None and flag.names and not flag.optional:
        words.append("-x")
    if flag.kind is not None:
        words.append(f"-a {_quoted('(__solocron_values ' + flag.kind + ')')}")
    elif flag.words:
        words.append(f"-a {_quoted('(__solocron_words ' + ' '.join(flag.words) + ')')}")
    elif flag.choices:
        words.append(f"-a {_quoted(' '.join(flag.choices))}")
    elif not flag.names:
        words.append("-F")
    return " ".join([*words, f"-d {_quoted(flag.help)}"])


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
