# SPDX-License-Identifier: GPL-2.0-or-later
# redis_script.py SEED REQUESTS ANSWERS: commands for redis that change and read binary values, as bytes
# of its protocol, and the answers that are right, which begin with an empty database.
import random
import sys


def bulk(value):
    return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(bulk(w) for w in words)


def step(store, counters):
    """One command and its answer."""
    key = b"key%d" % random.randrange(50)
    what = random.randrange(6)
    if what == 0:
        store[key] = random.randbytes(random.choice((3, 60, 1500, 20000, 300000)))
        return command(b"SET", key, store[key]), b"+OK\r\n"
    if what == 1 and len(store.get(key, b"")) < 400000:
        store[key] = store.get(key, b"") + random.randbytes(100)
        return command(b"APPEND", key, store[key][-100:]), b":%d\r\n" % len(store[key])
    if what == 2:
        return command(b"STRLEN", key), b":%d\r\n" % len(store.get(key, b""))
    if what == 3:
        counters[key] = counters.get(key, 0) + 1
        return command(b"INCR", b"n" + key), b":%d\r\n" % counters[key]
    if what == 4:
        keys = [b"key%d" % random.randrange(50) for _ in range(5)]
        return (command(b"MGET", *keys),
                b"*5\r\n" + b"".join(bulk(store.get(k)) for k in keys))
    return command(b"GET", key), bulk(store.get(key))


def main():
    random.seed(int(sys.argv[1]))
    store, counters = {}, {}
    with open(sys.argv[2], "wb") as requests, open(sys.argv[3], "wb") as answers:
        requests.write(command(b"FLUSHALL"))
        answers.write(b"+OK\r\n")
        for _ in range(400):
            request, answer = step(store, counters)
            requests.write(request)
            answers.write(answer)


main()
