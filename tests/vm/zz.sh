. /tests/lib.sh
printf 'FEATURE STATE\nconns  on\nhold_syn   off  x\n' >/tmp/doctor
needs conns
tap "a" true
needs conns hold_syn
tap "b" false
like "c" '^x' echo xyz
like "d" '^y' echo xyz
eventually 1 false || echo no
done_testing
