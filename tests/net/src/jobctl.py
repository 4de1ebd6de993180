#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Terminal, signals and job control of `ax run`, through a pseudo-terminal and an interactive shell.

Usage: jobctl.py [--user] COMMAND...    COMMAND: what is put before the app's command, for example
                                        ax --instance t1 run --net host --
--user: it says --user, so that the app has a terminal of its own.
Speaks TAP. Every wait has an end, and what is started here is gone afterwards.
"""
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
import traceback

USER = sys.argv[1:2] == ["--user"]
AX = " ".join(shlex.quote(a) for a in sys.argv[2 if USER else 1:])
PYTHON = shlex.quote(sys.executable)
WAIT = 20.0


class Failed(Exception):
    pass


class Terminal:
    """A program on a pseudo-terminal of its own."""

    def __init__(self, argv):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "outer> "
            os.execvp(argv[0], argv)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.fd is not None:
            self.close()
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.reap()

    def close(self):
        os.close(self.fd)
        self.fd = None

    def reap(self):
        pid, self.pid = self.pid, None
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def send(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        """What comes until nothing has come for so long, or the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def expect(self, pattern):
        end = time.monotonic() + WAIT
        while True:
            m = re.search(pattern, self.text)
            if m:
                self.before = self.text[:m.start()]
                self.text = self.text[m.end():]
                return m
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise Failed(f"{pattern!r} did not come; there was: {self.text[-500:]!r}")

    def settle(self, seconds=0.4):
        while self.read(seconds):
            pass


def shell():
    """An interactive shell that does not repeat what is typed."""
    t = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"])
    t.send("stty -echo; PS2=; echo rea''dy\n")
    t.expect("ready")
    return t


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(what, condition):
    end = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > end:
            raise Failed(what)
        time.sleep(0.02)


def counter(sig, seconds=1.0):
    """An app that counts a signal for a while after the first one."""
    return (f"{PYTHON} -c 'import signal,time,os\n"
            f"n=[0]\n"
            f"def h(*a): n[0]+=1\n"
            f"signal.signal(signal.{sig},h)\n"
            f"print(\"up=%d\" % os.getpid(),flush=True)\n"
            f"e=time.monotonic()+{WAIT}\n"
            f"while not n[0] and time.monotonic()<e: time.sleep(0.02)\n"
            f"time.sleep({seconds}/2); time.sleep({seconds}/2)\n"
            f"print(\"count=%d\" % n[0],flush=True)'")


def stat_of(pid):
    """What /proc/PID/stat says behind the name: state, parent, process group, session, ..."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def parents(app_pid):
    """The process of `ax run`, and, with a terminal of its own, that of the app's session."""
    first = int(stat_of(app_pid)[1])
    return [int(stat_of(first)[1]), first] if USER else [first]


def ax_pid(app_pid):
    return parents(app_pid)[0]


# --- the tests ---


def interrupt_key():
    """the interrupt key ends the app, and the exit status is 130"""
    with shell() as t:
        t.send(f"{AX} sh -c 'echo up; exec sleep 100'; echo rc=$?\n")
        t.expect("up")
        t.send("\x03")
        t.expect("rc=130")


def interrupt_once():
    """the interrupt key reaches the app exactly once"""
    with shell() as t:
        t.send(f"{AX} {counter('SIGINT')}\n")
        t.expect(r"up=\d+")
        t.send("\x03")
        t.expect("count=1\\b")


def quit_key():
    """the quit key ends the app, and the exit status is 131"""
    with shell() as t:
        t.send(f"ulimit -c 0; {AX} sh -c 'echo up; exec sleep 100'; echo rc=$?\n")
        t.expect("up")
        t.send("\x1c")
        t.expect("rc=131")


def suspend_and_foreground():
    """the suspend key stops the app, fg lets it go on, twice, and it reads the terminal"""
    with shell() as t:
        t.send(f"{AX} sh -c 'echo up; read a; echo a=$a; read b; echo b=$b'\n")
        t.expect("up")
        for word in ("a", "b"):
            t.settle(0.2)
            t.send("\x1a")
            t.expect("Stopped")
            t.send("jobs\n")
            t.expect(r"\[1\]\+ +Stopped")
            t.send("fg\n")
            t.settle(0.3)
            t.send(f"x{word}\n")
            t.expect(f"{word}=x{word}")
        t.expect("outer> ") # until then the keyboard is the app's
        t.send("echo rc=$?\n")
        t.expect("rc=0")


def suspended_is_stopped():
    """a suspended app does nothing until bg, then goes on in the background"""
    with shell() as t:
        # not a shell: one that is in vfork() when the stop comes is never stopped itself
        t.send(f"{AX} {PYTHON} -c 'import time\n"
               f"for i in range(200): print(\"ti\"+\"ck\",flush=True); time.sleep(0.1)'\n")
        t.expect("tick")
        t.send("\x1a")
        t.expect("Stopped")
        t.settle(0.5)
        t.text = ""
        if t.read(1.0):
            raise Failed(f"it went on: {t.text!r}")
        t.send("bg\n")
        t.expect("tick")
        t.send("kill %1; wait %1; echo rc=$?\n")
        t.expect("rc=143")


def stops_itself():
    """an app that stops its process group by itself (as editors do) stops once"""
    with shell() as t:
        t.send(f"{AX} {PYTHON} -c 'import os,signal\n"
               f"os.kill(0,signal.SIGTSTP)\nprint(\"wo\"+\"ken\",flush=True)'\n")
        t.expect("Stopped")
        t.send("fg\n")
        t.expect("woken")
        t.expect("outer> ")
        t.send("echo rc=$?\n")
        t.expect("rc=0")


def background_read():
    """a background app that reads the terminal is stopped, and reads after fg"""
    with shell() as t:
        t.send(f"{AX} sh -c 'read a; echo a=$a' &\n")
        t.settle(0.5)
        t.send("\n")
        t.expect("Stopped")
        t.send("fg\n")
        t.settle(0.3)
        t.send("word\n")
        t.expect("a=word")


def inner_shell():
    """an interactive shell as the app has job control of its own"""
    with shell() as t:
        t.send(f"{AX} env PS1='inner> ' bash --norc --noprofile --noediting -i; echo rc=$?\n")
        t.expect("inner> ")
        t.send("sleep 100\n")
        t.settle(0.3)
        t.send("\x03")
        t.expect("inner> ")
        t.send("echo st=$?\n")
        t.expect("st=130")
        t.send("sleep 100\n")
        t.settle(0.3)
        t.send("\x1a")
        t.expect("Stopped")
        t.send("fg\n")
        t.settle(0.3)
        t.send("\x03")
        t.settle(0.3)
        t.send("exit 5\n")
        t.expect("rc=5")
        t.send("read x; echo x=$x\n")
        t.settle(0.2)
        t.send("word\n")
        t.expect("x=word")


def inner_shell_suspended():
    """a shell as the app can be suspended and brought back"""
    with shell() as t:
        t.send(f"{AX} env PS1='inner> ' bash --norc --noprofile --noediting -i\n")
        t.expect("inner> ")
        t.send("suspend\n")
        t.expect("Stopped")
        t.send("fg\n")
        t.settle(0.3)
        t.send("echo back=$((40+2))\n")
        t.expect("back=42")
        t.send("exit 0\n")
        t.settle(0.3)
        t.send("echo out''er\n")
        t.expect("outer")


def killed_shell_gives_back():
    """after a shell that had the terminal was killed, a script goes on reading the terminal"""
    with shell() as t:
        t.send(f"sh -c '{AX} bash --norc --noprofile --noediting -i; echo rc=$?; "
               f"read x; echo x=$x'\n")
        t.settle(0.6)
        t.send("kill -9 $$\n")
        t.expect("rc=137")
        t.settle(0.2)
        t.send("word\n")
        t.expect("x=word")


def window_size():
    """a change of the terminal's size reaches the app once"""
    with shell() as t:
        t.send(f"{AX} {counter('SIGWINCH')}\n")
        t.expect(r"up=\d+")
        fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
        t.expect("count=1\\b")


def passed_on():
    """signals that are sent to ax are passed on to the app, once each"""
    for n, sig in enumerate(("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2",
                             "SIGWINCH", "SIGALRM", "SIGRTMIN")):
        with shell() as t:
            t.send(f"{AX} {counter(sig, 0.4)}; echo rc=$?\n")
            pid = int(t.expect(r"up=(\d+)").group(1))
            to = parents(pid)
            os.kill(to[n % len(to)], getattr(signal, sig))
            t.expect("count=1\\b")
            t.expect("rc=0")


def terminated():
    """kill -TERM of ax ends the app, and the exit status is 143"""
    with shell() as t:
        t.send(f"{AX} sh -c 'echo up=$$; exec sleep 100'; echo rc=$?\n")
        pid = int(t.expect(r"up=(\d+)").group(1))
        os.kill(ax_pid(pid), signal.SIGTERM)
        t.expect("rc=143")
        until("the app is still there", lambda: not alive(pid))


def killed_parent():
    """kill -9 of ax leaves the app running"""
    if USER:
        return killed_terminal()
    with shell() as t:
        t.send(f"{AX} sh -c 'echo up=$$; exec sleep 100'; echo rc=$?\n")
        pid = int(t.expect(r"up=(\d+)").group(1))
        os.kill(ax_pid(pid), signal.SIGKILL)
        t.expect("rc=137")
        time.sleep(0.2)
        if not alive(pid):
            raise Failed("the app died with ax")
        os.kill(pid, signal.SIGKILL)
        until("the app is still there", lambda: not alive(pid))


def killed_terminal():
    """kill -9 of ax, or of the leader of its session, takes the app's terminal away"""
    for n in range(2):
        with shell() as t:
            t.send(f"{AX} sh -c 'echo up=$$; exec sleep 100'; echo rc=$?\n")
            pid = int(t.expect(r"up=(\d+)").group(1))
            os.kill(parents(pid)[n], signal.SIGKILL)
            t.expect("rc=137")
            until("the app is still there", lambda: not alive(pid))


def hangup():
    """the app gets SIGHUP when its terminal goes away, with ax as the session's leader"""
    with Terminal(["sh", "-c", f"exec {AX} sh -c 'echo up=$$; exec sleep 100'"]) as t:
        pid = int(t.expect(r"up=(\d+)").group(1))
        t.close()
        until("the app is still there", lambda: not alive(pid))
        status = t.reap()
        if status != 129:
            raise Failed(f"the exit status is {status}")


def ignored_kept():
    """a signal that the caller ignores is ignored by the app (nohup)"""
    script = f"trap '' HUP; {AX} sh -c 'kill -HUP $$; echo alive'"
    r = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, timeout=WAIT,
                       stdout=subprocess.PIPE)
    if r.stdout != b"alive\n" or r.returncode:
        raise Failed(f"{r}")


def stopped_without_terminal():
    """without a terminal, kill -STOP and -CONT of the app alone leave ax working"""
    p = subprocess.Popen(["sh", "-c", f"exec {AX} sh -c 'echo $$; sleep 1; exit 4'"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    with p:
        pid = int(p.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(pid, signal.SIGCONT)
        if p.wait(WAIT) != 4:
            raise Failed(f"the exit status is {p.returncode}")


# What an app with the rights of another user does to the terminal of root: each way to it.
INTRUDER = r"""
import fcntl, os, sys, termios
def type_into(fd):
    for c in b"echo intru''der\n":
        fcntl.ioctl(fd, termios.TIOCSTI, bytes([c]))
for fd in range(32):
    try: type_into(fd)
    except OSError: pass
try: type_into(os.open("/dev/tty", os.O_RDWR))
except OSError: pass
print("tr''ied".replace("'", ""), flush=True)
"""


def no_typing():
    """an app of another user cannot type into the caller's terminal"""
    with shell() as t:
        t.send(f"{AX} {PYTHON} -c {shlex.quote(INTRUDER)}\n")
        t.expect("tried")
        t.settle()
        t.send("echo e''nd\n")
        t.expect("end")
        t.settle()
        # neither has root's shell done what it was told, nor does it with other streams
        if "intruder" in t.text:
            raise Failed(f"root's shell was typed into: {t.text!r}")
        t.send(f"{AX} {PYTHON} -c {shlex.quote(INTRUDER)} </dev/null | cat; echo e''nd\n")
        t.expect("end")
        t.settle()
        if "intruder" in t.text:
            raise Failed(f"root's shell was typed into: {t.text!r}")


def own_session():
    """the session and the terminal of an app of another user are its own, and of the same size"""
    with shell() as t:
        fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 27, 91, 0, 0))
        t.send(f"{AX} sh -c 'echo up=$$ tty=$(tty) size=$(stty size); read a' ; tty\n")
        m = t.expect(r"up=(\d+) tty=(\S+) size=27 91")
        pid = int(m.group(1))
        if stat_of(pid)[3] == stat_of(ax_pid(pid))[3]:
            raise Failed("the app is in the caller's session")
        t.send("x\n")
        if t.expect(r"(/dev/\S+)").group(1) == m.group(2):
            raise Failed("the app has the caller's terminal")


def pipeline():
    """in a pipeline the app leaves the keyboard to the others, and its signals still work"""
    with shell() as t:
        t.send(f"{AX} sh -c 'echo one; echo two; exec sleep 100' | "
               f"{PYTHON} -c 'import sys,os\n"
               f"for l in sys.stdin: print(repr(l), flush=True)\n'\n")
        t.expect(r"'one\\n'\s+'two\\n'")
        t.send("\x03")
        t.expect("outer> ")
        t.send("echo rc=${PIPESTATUS[0]}\n")
        t.expect("rc=130")
        t.send(f"{AX} sh -c 'exec sleep 3' | sh -c 'read a </dev/tty; echo a=$a'\n")
        t.settle(0.7)
        t.send("word\n")
        t.expect("a=word")


def reads_late():
    """an app whose input is a pipe reads the terminal (a password) when it wants to"""
    with shell() as t:
        t.send(f"echo in | {AX} sh -c 'read a; echo a=$a; read b </dev/tty; echo b=$b'; echo rc=$?\n")
        t.expect("a=in")
        t.settle(0.3)
        t.send("secret\n")
        t.expect("b=secret")
        t.expect("rc=0")


def all_output():
    """the end of the output is not lost with the terminal, and lines end as without one"""
    with shell() as t:
        t.send(f"{AX} seq 1 5000; echo rc=$?\n")
        t.expect(r"rc=0\b")
        lines = [x for x in t.before.replace("outer> ", "").split("\r\n") if x]
        if lines != [str(n) for n in range(1, 5001)]:
            raise Failed(f"{len(lines)} lines, the end is {t.before[-60:]!r}")


TESTS = [interrupt_key, interrupt_once, quit_key, suspend_and_foreground, suspended_is_stopped,
         stops_itself, background_read, inner_shell, inner_shell_suspended,
         killed_shell_gives_back, window_size, passed_on, terminated, killed_parent, hangup,
         ignored_kept, stopped_without_terminal, all_output, pipeline, reads_late]
if USER:
    TESTS += [no_typing, own_session]


def main():
    if not AX:
        sys.exit(__doc__)
    failed = 0
    print(f"1..{len(TESTS)}", flush=True)
    for n, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {n} - {test.__doc__}", flush=True)
        except Exception as e:
            failed += 1
            print(f"not ok {n} - {test.__doc__}")
            why = str(e) if isinstance(e, Failed) else traceback.format_exc()
            for line in why.splitlines():
                print(f"# {line}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
