# Completion of meshwright in bash, and in zsh after `autoload -U bashcompinit && bashcompinit`:
#   source resources/completions/meshwright.bash
# Verbs, flags and formats are asked of the program itself, so they are those of the version that is installed.

_meshwright_help() { "${COMP_WORDS[0]}" "$@" --help 2>/dev/null; }

_meshwright() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} words=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words="help $(_meshwright_help | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z]*\) .*/\1/p')"
    else
        case $verb:$before in
        help:*) words=$(_meshwright_help | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z]*\) .*/\1/p') ;;
        *:--format) words=$(_meshwright_help "$verb" | sed -n 's/^  --format FORMAT *What to write: //p' | tr -d ,) ;;
        *:--color) words="auto always never" ;;
        *:--fidelity) words="closed fluid message" ;;
        *:--engine) words="auto threads fibers" ;;
        *:--hw | *:--on | *:--base) words=$("${COMP_WORDS[0]}" list hardware 2>/dev/null | awk -F '  +' 'NF > 1 && $1 !~ / |^chip$|^machine$/ { print $1 }') ;;
        *:--model | plan:plan) words=$("${COMP_WORDS[0]}" list models 2>/dev/null | awk 'NR > 1 { print $1 }') ;;
        list:list) words=$(_meshwright_help list | sed -n 's/^  WHAT *//p' | sed 's/,//g; s/ or / /') ;;
        *) [[ $word == -* ]] && words=$(_meshwright_help "$verb" | grep -oE '^  (-[a-z],)?--[a-z-]+' | grep -oE '\-\-[a-z-]+') ;;
        esac
    fi
    if [[ -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    fi
}

complete -o default -F _meshwright meshwright
