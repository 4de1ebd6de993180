# fish completion for ax, printed by 'ax completion fish'. Commands, options and fixed words stand
# in it; names of apps, services, rules and so on come from ax when they are asked for.

# Prints which command the line has so far, and then its arguments, one a line. Many conditions ask
# for the same line, so the last one's is kept.
function __ax_scan
    set -l tokens (commandline -opc)
    set -l line (string escape -- $tokens)
    if test "$line" != "$__ax_line"
        set -g __ax_scanned (__ax_scan_tokens $tokens)
        set -g __ax_line $line
    end
    printf '%s\n' $__ax_scanned
end

function __ax_scan_tokens # TOKEN...
    set -l tokens $argv
    set -l command ''
    set -l words
    set -l i 2
    while test $i -le (count $tokens)
        set -l token $tokens[$i]
        if __ax_is_program $command; and test $token = --
            set -a words $tokens[(math $i + 1)..]
            break
        else if contains -- $token (__ax_valued $command)
            set i (math $i + 1)
        else if string match -q -- '-?*' $token
        else if contains -- $token (__ax_below $command)
            set command (string trim -- "$command $token")
        else if __ax_is_program $command
            set -a words $tokens[$i..]
            break
        else
            set -a words $token
        end
        set i (math $i + 1)
    end
    echo $command
    set -q words[1]; and printf '%s\n' $words
end

# Whether the line is about this command, and has so many arguments (or that many at least).
function __ax_is # COMMAND [NUMBER [more]]
    set -l scan (__ax_scan)
    test "$scan[1]" = "$argv[1]"; or return 1
    set -l n (math (count $scan) - 1)
    test (count $argv) -lt 2; or test $n = $argv[2]; or test "$argv[3]" = more -a $n -ge $argv[2]
end

# Whether options are still ax's: those behind the program of 'ax run' are not.
function __ax_own
    set -l scan (__ax_scan)
    not __ax_is_program $scan[1]; or test (count $scan) -lt 2
end

function __ax_before
    set -l tokens (commandline -opc)
    contains -- $tokens[-1] $argv
end

# --instance and --socket, as they stand in the line.
function __ax_agent
    set -l tokens (commandline -opc)
    for i in (seq 2 (count $tokens))
        switch $tokens[$i]
            case '--instance=*' '--socket=*'
                echo $tokens[$i]
            case --instance --socket
                set -q tokens[(math $i + 1)]; and echo $tokens[$i]=$tokens[(math $i + 1)]
        end
    end
end

# What ax prints: lines, or a column of a table. Rows without a number or name begin with "-".
function __ax_ask # COLUMN WORD...
    set -l scan (__ax_scan)
    set -l words
    for word in $argv[2..]
        test $word = '{}'; and set word "$scan[2]"
        set -a words $word
    end
    command ax (__ax_agent) $words 2>/dev/null |
        awk -v c=$argv[1] '!c { print } c && NR > 1 && $1 != "-" && $c != "-" { print $c }' |
        sort -u
end

# The program that a command executes, and its own words.
function __ax_program
    set -l scan (__ax_scan)
    set -l from (math 2 + (__ax_leading $scan[1]))
    # (attached: what begins with a dash would be an option)
    complete --do-complete="$(string join ' ' -- (string escape -- $scan[$from..]) (commandline -ct))"
end

function __ax_processes
    printf '%s\n' /proc/[0-9]* | string replace /proc/ ''
end

function __ax_interfaces
    command ls /sys/class/net 2>/dev/null
end
