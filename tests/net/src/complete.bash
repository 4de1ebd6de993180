# complete.bash SCRIPT WORD...: what the completion in SCRIPT offers for the last word, one a line.
# shellcheck shell=bash disable=SC1090,SC2034
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_ax 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
