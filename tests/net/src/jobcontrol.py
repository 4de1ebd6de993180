# SPDX-License-Identifier: GPL-2.0-or-later
"""jobcontrol.py COMMAND...

Runs an interactive shell on a terminal of its own and drives it as a person would: COMMAND (an
`ax run ... --` prefix) starts cat, gets a line, is stopped by ^Z, brought back by fg, gets another
line, is interrupted by ^C. Prints one line for each thing that was seen, "missing WHAT" if not.
"""
import os
import pty
import select
import shlex
import sys
import time


class Terminal:
    def __init__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "PROMPT> "
            os.environ["TERM"] = "dumb"
            os.execlp("bash", "bash", "--norc", "--noprofile", "--noediting", "-i")
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, what, timeout=8):
        """Reads until `what` shows up after what was looked for before."""
        end = time.monotonic() + timeout
        while what not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                print("missing %r in %r" % (what, self.seen))
                return False
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            if not data:
                print("missing %r in %r" % (what, self.seen))
                return False
            self.seen += data.decode(errors="replace")
        self.seen = self.seen.split(what, 1)[1]
        return True


def main():
    command = " ".join(shlex.quote(word) for word in sys.argv[1:])
    t = Terminal()
    steps = [
        ("the prompt", "", "PROMPT> "),
        ("the command has the terminal",
         command + " sh -c 'test -t 0 && test -t 1 && echo is-a-\"\"tty; stty size >/dev/null && cat'\n",
         "is-a-tty"),
        ("a line comes back", "first line\n", "first line\r\nfirst line\r\n"),
        ("^Z stops the job", "\x1a", "Stopped"),
        ("the shell has the terminal again", "echo sta\"\"tus=$?\n", "status=148"),
        ("fg goes on", "fg\n", "cat'"),
        ("a line comes back after fg", "second line\n", "second line\r\nsecond line\r\n"),
        ("^C interrupts", "\x03", "PROMPT> "),
        ("the status is 128 + SIGINT", "echo sta\"\"tus=$?\n", "status=130"),
        ("a job in the background is stopped when it reads the terminal",
         command + " cat & sleep 1; jobs\n", "Stopped"),
        ("kill %1 ends it", "kill %1; fg; echo do\"\"ne\n", "done"),
    ]
    good = True
    for name, text, what in steps:
        if text:
            t.type(text)
        if not t.expect(what):
            print("missing: " + name)
            good = False
            break
        print("seen: " + name)
    os.close(t.fd)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if os.waitpid(t.pid, os.WNOHANG)[0]:
            break
        time.sleep(0.05)
    else:
        os.kill(t.pid, 9)
        os.waitpid(t.pid, 0)
    sys.exit(0 if good else 1)


main()
