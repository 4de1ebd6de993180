#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs modules of CPython's own test suite side by side: cpython_suite.py FOLDER MODULE[*PARTS]...

FOLDER/MODULE.PART.results gets a line 'NAME RESULT' for each test, .why one for each that did not
pass. A module with *N is split into N processes. @FILE instead runs the tests that FILE names."""

import gc
import os
import subprocess
import sys
import tempfile
import unittest

# Left out, by a part of the class's or the test's name:
LEFT_OUT = (
    "VSOCK",  # waits for ever where the machine is itself a guest
    "UDPLITE",  # apps get no sockets of that kind
    "del_collect",  # collects garbage 100 times, for 10 s; has no sockets
    "sendall_interrupted",  # waits for ever if its alarm comes before the call, on a busy machine
)
# of test.support's resources; without network and urlfetch, which ask servers of the internet
RESOURCES = ["cpu", "walltime", "largefile", "subprocess"]


class Results(unittest.TestResult):
    def __init__(self, results, why):
        super().__init__()
        self.results, self.why = results, why

    def startTest(self, test):
        super().startTest(test)
        self.result = "ok"

    def stopTest(self, test):
        super().stopTest(test)
        print(test.id(), self.result, file=self.results, flush=True)

    def not_passed(self, test, result, err):
        self.result = result
        print(test.id(), repr(err[1])[:500].replace("\n", " "), file=self.why, flush=True)

    def addError(self, test, err):
        self.not_passed(test, "error", err)

    def addFailure(self, test, err):
        self.not_passed(test, "failed", err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.not_passed(test, "failed", err)

    def addSkip(self, test, reason):
        self.result = "skipped"

    def addExpectedFailure(self, test, err):
        self.result = "failed as expected"

    def addUnexpectedSuccess(self, test):
        self.result = "passed unexpectedly"


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def load(module):
    loader = unittest.defaultTestLoader
    if not module.startswith("@"):
        return loader.loadTestsFromName("test." + module)
    with open(module[1:]) as names:
        return loader.loadTestsFromNames([n for n in names.read().split() if n.startswith("test.")])


def run_part(folder, module, part, parts):
    import test.support

    test.support.use_resources = RESOURCES
    tests = [
        t
        for t in flat(load(module))
        if not any(word in t.id() for word in LEFT_OUT)
    ]
    mine = tests[len(tests) * part // parts : len(tests) * (part + 1) // parts]
    gc.freeze()  # many tests collect garbage: let them find little
    name = f"{folder}/{os.path.basename(module)}.{part}"
    with open(name + ".results", "w") as results, open(name + ".why", "w") as why:
        unittest.TestSuite(mine).run(Results(results, why))


def main(folder, modules):
    running = []
    for module in modules:
        module, _, parts = module.partition("*")
        for part in range(int(parts or 1)):
            cwd = tempfile.mkdtemp(dir=folder)
            command = [sys.executable, __file__, folder, module, str(part), parts or "1"]
            with open(f"{folder}/{os.path.basename(module)}.{part}.log", "w") as log:
                running.append(subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log,
                                                env=dict(os.environ, TMPDIR=cwd)))
    for process in running:
        process.wait()


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[3].isdigit():
        run_part(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(sys.argv[1], sys.argv[2:])
