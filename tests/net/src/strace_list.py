#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What strace saw of processes and files, or what ax trace build saw, as lines that can be compared.

  strace_list.py strace PREFIX     PREFIX.PID: the files of strace -ff -o PREFIX
  strace_list.py ax FILE           FILE: of ax trace build json

Each line: the process, what it did, the names that it gave, and the result (a descriptor counts as
such) or the error.
"""
import errno
import glob
import json
import re
import sys

EVENTS = {
    "open": "open", "openat": "open", "openat2": "open", "creat": "open",
    "rename": "rename", "renameat": "rename", "renameat2": "rename",
    "link": "link", "linkat": "link", "symlink": "symlink", "symlinkat": "symlink",
    "unlink": "unlink", "unlinkat": "unlink", "rmdir": "rmdir",
    "mkdir": "mkdir", "mkdirat": "mkdir", "mknod": "mknod", "mknodat": "mknod",
    "chdir": "chdir", "fchdir": "chdir", "truncate": "truncate", "ftruncate": "truncate",
    "chmod": "chmod", "fchmod": "chmod", "fchmodat": "chmod",
    "execve": "exec", "execveat": "exec",
}
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|\?)(?: (E[A-Z0-9]+))?")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def result(event, ret, error):
    return error if error else "fd" if event == "open" else str(ret)


def of_strace(prefix):
    for path in glob.glob(glob.escape(prefix) + ".*"):
        pid = path.rsplit(".", 1)[1]
        for line in open(path, encoding="latin-1"):
            exited = re.match(r"\+\+\+ exited with (\d+) \+\+\+", line)
            if exited:
                print(pid, "exit", exited[1])
            call = CALL.match(line)
            if not call or call[1] not in EVENTS or call[3] == "?":
                continue
            event = EVENTS[call[1]]
            names = STRING.findall(call[2])[: 1 if event == "exec" else 2]
            print(pid, event, *names, result(event, call[3], call[4]))


def of_ax(path):
    for line in open(path, encoding="utf-8"):
        r = json.loads(line)
        event = r.get("event")
        if event == "exit" and "status" in r:
            print(r["pid"], "exit", r["status"])
        if event not in EVENTS.values():
            continue
        ret = r.get("ret", 0)
        error = errno.errorcode[-ret] if ret < 0 else None
        names = [r[k] for k in ("name", "name2") if k in r]
        if event == "exec" and not names:
            names = [r["file"]]
        # strace shows the one of a thread, which the kernel numbers apart
        print(r["pid"] if event in ("exec", "exit") else r["tid"], event, *names,
              result(event, ret, error))


if __name__ == "__main__":
    (of_strace if sys.argv[1] == "strace" else of_ax)(sys.argv[2])
