"""The completion file of bash.

bash breaks words at `:`, `@` and `=`, which names, ids and URLs contain. So the file splits the line itself at spaces,
and takes off the candidates what bash regards as words of their own. It runs on bash 3.2, which macOS has.
"""

from __future__ import annotations

from collections.abc import Mapping

from solocron.cli.completion.described import PLACE, Argument, DescribedCommand

__all__ = ["bash_file"]

_HEAD = r"""# bash completion of solocron; made by `solocron completion bash`
_solocron_offer() {  # the words that begin like the one at hand, without what bash has split off
    local found breaks="${COMP_WORDBREAKS//[^:@=]/}" cut=''
    if [[ -n $breaks && $word == *[$breaks]* ]]; then cut="${word%"${word##*[$breaks]}"}"; fi
    while IFS= read -r found; do
        if [[ -n $found ]]; then COMPREPLY+=("${found#"$cut"}"); fi
    done
}
_solocron_words() {  # the words among these that fit; in a list such as a,b the last one is completed
    _solocron_offer < <(compgen -P "${word%"${word##*,}"}" -W "$1" -- "${word##*,}")
}
_solocron_values() {  # the names that the store has; none if it is away
    _solocron_offer < <("$program" ${place[@]+"${place[@]}"} completion --values "$1" --prefix="$word" 2>/dev/null)
}
_solocron() {
    local line="${COMP_LINE:0:COMP_POINT}" command='' program word before last i
    local -a words place
    read -ra words <<< "$line"
    if [[ $line == *[[:space:]] ]]; then words+=(''); fi
    while [[ ${#words[@]} -gt 1 && ${words[0]} == *=* ]]; do words=("${words[@]:1}"); done
    last=$((${#words[@]} - 1)) program="${words[0]/#\~/$HOME}" place=()
    word="${words[last]}" before="${words[last-1]}"
    COMPREPLY=()
    if [[ $word == --*=* ]]; then before="${word%%=*}" word="${word#*=}"; fi
    for ((i = 1; i < last; i++)); do
        case "${words[i]}" in
            @place@) place+=("${words[i]}" "${words[i+1]//[\"\']/}"); i=$((i + 1)) ;;
            @given@) place+=("${words[i]//[\"\']/}") ;;
            -*) ;;
            *) command="${command:-${words[i]}}" ;;
        esac
    done
    case "$command $before" in
"""


def bash_file(top: DescribedCommand, commands: Mapping[str, DescribedCommand]) -> str:
    """Return the file."""
    given = "|".join(f"{flag}=*" for flag in PLACE)
    lines = [_HEAD.replace("@place@", "|".join(PLACE)).replace("@given@", given).rstrip("\n")]
    for name, command in {"": top, **commands}.items():
        for flag in command.flags:
            if flag.needs_value:
                places = "|".join(f"'{name} {each}'" for each in flag.names)
                lines.append(f"        {places}) {_value(flag)}return ;;")
    lines += ["    esac", '    case "$command" in']
    lines.append(f"        '') _solocron_words '{' '.join([*top.plain, *commands])}' ;;")
    for name, command in commands.items():
        lines.append(f"        {name}) {_arguments(command)} ;;")
    return "\n".join([*lines, "    esac", "}", "complete -o default -F _solocron solocron", ""])


def _value(flag: Argument) -> str:
    if flag.kind is not None:
        return f"_solocron_values {flag.kind}; "
    words = flag.choices or flag.words
    return f"_solocron_words '{' '.join(words)}'; " if words else ""


def _arguments(command: DescribedCommand) -> str:
    flags = f"_solocron_words '{' '.join(command.plain)}'"
    kinds = [flag.kind for flag in command.positional if flag.kind is not None]
    if not kinds:
        return flags
    return f"if [[ $word == -* ]]; then {flags}; else _solocron_values {kinds[0]}; fi"
