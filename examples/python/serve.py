#!/usr/bin/env python3
"""What a server does, in Python: open a context, compile ahead of time, seal, launch from several threads, read the
counters. Runs on the CPU, or on the interpreter where the CPU module is not installed.

    PYTHONPATH=bindings/python examples/python/serve.py [PACK]
"""

import sys
import threading

import numpy as np

import tilejit

PLAN = """
plan = 1
[[kernel]]
family = "softmax"
params = { t = "f32" }
"""


def open_context(pack):
    def log(level, message):
        if level != "info":
            print(f"tilejit: {message}", file=sys.stderr)

    if pack:  # which is then all there is
        return tilejit.Context(packs=[pack], cache_mode="memory", log=log)
    return tilejit.Context(log=log)


def answer(softmax, rows):
    x = np.random.default_rng(rows).standard_normal((rows, 100), np.float32)
    y = np.empty_like(x)
    softmax(x, y)  # on a GPU: DLPack tensors, and stream= of this thread
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)


def serve(softmax):
    failures = []

    def work():
        try:
            for rows in range(1, 9):
                answer(softmax, rows)
        except (tilejit.Error, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def main(pack=None):
    context = open_context(pack)
    # A server on a GPU takes devices()[0].
    device = next(d for d in context.devices() if d.uses_host_memory)
    if not pack:
        context.warm(PLAN, targets=[device.target])
    context.seal()

    before = context.stats()["compiles"]
    softmax = context.compile(family="softmax", params={"t": "f32"}, device=device)
    failures = serve(softmax)
    stats = context.stats()
    print(f"{device.name}: {failures or 'all right'}; hits {stats['hits']}, compiles {stats['compiles']}, "
          f"after sealing {stats['compiles'] - before}")
    return 1 if failures or stats["compiles"] != before else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:2]))
    except tilejit.Error as error:
        # In a sealed context the log is a plan of what is missing.
        sys.exit(f"{error}\n{error.log}")
