# complete.zsh DIR LINE...: each line as the completion DIR/_ax completes it when TAB is pressed.
zmodload zsh/zpty
dir=$1
shift
zpty shell 'TERM=dumb zsh -f -i'
zpty -w shell "PS1= fpath=($dir \$fpath); autoload -Uz compinit; compinit -u -D; stty -echo"
zpty -w shell 'show() { print -r -- "<$BUFFER>"; BUFFER= }; zle -N show; bindkey "^X" show'
zpty -w shell 'bindkey "^I" complete-word; unsetopt automenu autolist zle_bracketed_paste'
zpty -w shell 'print re''ady'
zpty -r shell out '*ready*'
for line; do
	zpty -w -n shell "$line"$'\t\x18'
	zpty -r shell out '*>*'
	print -r -- "${${out#*<}%%>*}"
done
zpty -d shell
