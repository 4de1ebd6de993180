#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the tree against tests/headers/rooms.table, as TAP.

  tests/headers/rooms.py OUT      OUT: where make built the objects (.output/gcc)

Includes and libraries are read from the sources; who calls whom, from the symbols of the objects.
"""
import collections
import os
import re
import subprocess
import sys

TABLE = "tests/headers/rooms.table"
TREES = ("agent", "tools")
# Programs of their own: benchmarks include nothing of ours, and nothing of ours includes them.
APART = ("tools/bench/",)


def expand(words):
    """probes/{elf,text} to both."""
    out = []
    for word in words.split():
        m = re.fullmatch(r"(.*)\{(.*)\}", word)
        out += [m[1] + w for w in m[2].split(",")] if m else [word]
    return out


def read_table(path):
    rooms, libraries, folders, errors = {}, {}, {}, []
    with open(path) as f:
        for n, line in enumerate(f, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            name, _, rest = line.partition(":")
            where = f"{path}:{n}"
            if name.startswith("library "):
                libraries[name.split()[1]] = set(expand(rest))
                continue
            if name.startswith("programs "):
                folders[name.split()[1]] = expand(rest)
                continue
            unknown = [w for w in expand(rest) if w not in rooms]
            if unknown:
                errors.append(f"{where}: {name} names {', '.join(unknown)}, which stand not above it")
            rooms[name] = set(expand(rest))
    return rooms, libraries, folders, errors


def room_of(path):
    """agent/probes/elf/usdt.c: probes/elf; tools/lib/text.c: tools/lib."""
    folder = os.path.dirname(path)
    return folder[len("agent/"):] if folder.startswith("agent/") else folder


def sources():
    for tree in TREES:
        for folder, _, names in os.walk(tree):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith((".c", ".h")) and not path.startswith(APART):
                    yield path


def is_bpf(path):
    return path.endswith((".bpf.c", ".bpf.h"))


def check_includes(rooms, libraries):
    """Each file's includes: rooms by the table, headers with their room, libraries where allowed."""
    bad = []
    for path in sources():
        room = room_of(path)
        if room not in rooms:
            bad.append(f"{path}: its folder is no room of {TABLE}")
            continue
        with open(path, errors="replace") as f:
            lines = list(enumerate(f, 1))
        for n, line in lines:
            m = re.match(r'#\s*include\s+(["<])([^">]+)[">]', line)
            if not m:
                continue
            where, name = f"{path}:{n}", m[2]
            if m[1] == "<":
                prefix = max((p for p in libraries if name.startswith(p)), key=len, default=None)
                if prefix and room not in libraries[prefix] and not is_bpf(path):
                    bad.append(f"{where}: <{name}> is not for {room}, only for: "
                               + " ".join(sorted(libraries[prefix])))
                continue
            if name.endswith(".skel.h"):
                continue
            other = os.path.dirname(name)
            if is_bpf(path):
                continue
            if not other:
                if not os.path.exists(os.path.join("include", name)):
                    bad.append(f'{where}: "{name}" is written without its room')
            elif other != room and other not in rooms[room]:
                bad.append(f'{where}: {room} may not include "{name}" (its rooms: '
                           + (" ".join(sorted(rooms[room])) or "none") + ")")
    return bad


def without_comments(text):
    """Nor macros and texts."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def check_programs(folders):
    """BPF programs include their own folder's headers, and those of the folders in the table."""
    bad = []
    for tree in ("include", "bpf", "xdp", "sockops", "agent"):
        for folder, _, names in os.walk(tree):
            for path in (os.path.join(folder, name) for name in sorted(names)):
                if folder != "include" and not is_bpf(path):
                    continue
                if folder not in folders:
                    bad.append(f"{path}: its folder is none of programs in {TABLE}")
                    continue
                with open(path, errors="replace") as f:
                    found = re.findall(r'^\s*#\s*include\s+"([^"]+)"', f.read(), flags=re.M)
                allowed = [folder] + folders[folder]
                bad += [f'{path}: "{name}" is in none of: {" ".join(allowed)}' for name in found
                        if "/" in name or not any(os.path.exists(os.path.join(d, name)) for d in allowed)]
    return bad


def check_include():
    """include/ is shared by all: structs, constants and assertions, no functions."""
    bad = []
    for name in sorted(os.listdir("include")):
        if name == "README.md":
            continue
        with open(os.path.join("include", name), errors="replace") as f:
            text = without_comments(f.read())
        if name.endswith(".bpf.h") or not name.endswith(".h") or re.search(r"\)\s*\{", text):
            bad.append(f"include/{name}: include/ holds no functions; bpf/ has what programs share")
    return bad


def read_objects(out):
    """Of each source: the symbols that it defines for others, and those that it asks others for."""
    defined, wanted, home = {}, {}, {}
    for path in sources():
        obj = os.path.join(out, path[:-2] + ".o")
        if not path.endswith(".c") or is_bpf(path):
            continue
        if not os.path.exists(obj):
            sys.exit(f"rooms.py: there is no {obj}; build it with make")
        home[obj] = path
        defined[path], wanted[path] = set(), set()
    # once for all: nm takes longer to start than to read a hundred objects
    text = subprocess.run(["nm", "-A", *home], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        obj, _, rest = line.partition(":")
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            wanted[home[obj]].add(symbol)
        elif kind in "TDBRCVW" and not symbol.startswith("__"):
            defined[home[obj]].add(symbol)
    return defined, wanted


def call_graph(defined, wanted):
    home = {s: path for path, symbols in defined.items() for s in symbols}
    return home, {path: {home[s] for s in symbols if s in home and home[s] != path}
                  for path, symbols in wanted.items()}


def circles(graph):
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    sys.setrecursionlimit(10000)

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in graph.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while not part or part[-1] != v:
                part.append(stack.pop())
                on.discard(part[-1])
            if len(part) > 1:
                found.append(part)

    for v in sorted(graph):
        if v not in index:
            visit(v)
    return found


def check_calls(rooms, graph):
    """What the linker ties: no call to a room that the table does not allow."""
    bad = []
    for path, others in sorted(graph.items()):
        room = room_of(path)
        for other in sorted(others):
            to = room_of(other)
            if to != room and to not in rooms.get(room, ()):
                bad.append(f"{path} calls {other}, which {room} may not know")
    return bad


def check_circles(graph):
    bad = []
    for part in circles(graph):
        parts = sorted({room_of(p) for p in part})
        if len(parts) > 1:
            bad.append(f"a circle between {' and '.join(parts)}: {' '.join(sorted(part))}")
    return bad


def prototypes(path):
    """Names of the functions that a header declares (and does not define)."""
    with open(path, errors="replace") as f:
        text = without_comments(f.read())
    depth, start, names = 0, 0, []
    for i, c in enumerate(text):
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                start = i + 1
        elif c == ";" and depth == 0:
            piece = text[start:i]
            start = i + 1
            if re.search(r"\btypedef\b", piece):
                continue
            m = re.search(r"\b([A-Za-z_]\w*)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", piece))
            if m and not piece.strip().startswith("_Static_assert"):
                names.append(m[1])
    return names


def check_prototypes(home):
    """A header's functions are defined in its own room."""
    bad = []
    for path in sources():
        if not path.endswith(".h") or is_bpf(path):
            continue
        for name in prototypes(path):
            if name not in home:
                bad.append(f"{path}: {name}() is declared, but no function")
            elif room_of(home[name]) != room_of(path):
                bad.append(f"{path}: {name}() is declared here, but defined in {home[name]}")
    return bad


def check_exports(defined, wanted):
    """What a file exports, another one uses, or a test."""
    words = set()
    for folder, _, names in os.walk("tests"):
        for name in names:
            if name.endswith((".c", ".h")):
                with open(os.path.join(folder, name), errors="replace") as f:
                    words.update(re.findall(r"\w+", f.read()))
    used = set().union(*wanted.values())
    return [f"{path}: {s} is used nowhere else: make it static, or take it out"
            for path, symbols in sorted(defined.items()) for s in sorted(symbols)
            if s not in used and s not in words and s != "main"]


def main():
    rooms, libraries, folders, errors = read_table(TABLE)
    defined, wanted = read_objects(sys.argv[1])
    home, graph = call_graph(defined, wanted)
    tests = [
        ("the table of rooms has no circle", errors),
        ("every include is one that the table allows", check_includes(rooms, libraries)),
        ("BPF programs include no other programs' headers", check_programs(folders)),
        ("include/ holds no code", check_include()),
        ("every call is one that the table allows", check_calls(rooms, graph)),
        ("no circle ties files of two rooms", check_circles(graph)),
        ("every prototype has its function, in its room", check_prototypes(home)),
        ("every export is used outside of its file", check_exports(defined, wanted)),
    ]
    for n, (name, bad) in enumerate(tests, 1):
        print(("not ok" if bad else "ok"), n, "-", name)
        for line in bad:
            print("#", line)
    print(f"1..{len(tests)}")
    sys.exit(any(bad for _, bad in tests))


if __name__ == "__main__":
    main()
