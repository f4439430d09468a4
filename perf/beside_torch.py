#!/usr/bin/env python3
"""The families beside PyTorch in one run: time of each, ratio. Usage: beside_torch.py TL OUT.json

Both are timed by replaying a graph of many launches over inputs that exceed the L2 cache."""

import json
import subprocess
import sys

import torch

TL, OUT = sys.argv[1], sys.argv[2]
ROWS = [
    ("gemm", dict(M=4096, N=4096, K=4096)),
    ("softmax", dict(M=16384, N=4096)),
    ("vector_add", dict(N=1 << 24)),
]


def ours(family, dims):
    args = [TL, "bench", family, "--backend", "cuda", "--json"]
    args += [a for k, v in dims.items() for a in ("--dim", f"{k}={v}")]
    out = json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)
    return out["median_us"]


def torch_call(family, d, t=torch.bfloat16):
    def rand(*shape, dtype=t):
        return (torch.rand(*shape, device="cuda", dtype=torch.float32) * 2 - 1).to(dtype)

    if family == "gemm":
        sets = [(rand(d["M"], d["K"]), rand(d["N"], d["K"])) for _ in range(2)]
        return lambda i: torch.matmul(sets[i % 2][0], sets[i % 2][1].T)
    if family == "softmax":
        x = rand(d["M"], d["N"])
        return lambda i: torch.softmax(x, -1)
    x, y = rand(d["N"], dtype=torch.float32), rand(d["N"], dtype=torch.float32)
    return lambda i: x + y


def theirs(family, dims, launches=20, rounds=5):
    call = torch_call(family, dims)
    for i in range(3):
        call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            call(i)
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / launches)
    return sorted(times)[rounds // 2]


rows = []
for family, dims in ROWS:
    row = {"family": family, **dims, "tilejit_us": ours(family, dims), "torch_us": theirs(family, dims)}
    row["ratio"] = row["torch_us"] / row["tilejit_us"]
    rows.append(row)
    print(f"{family:12} {str(dims):44} tilejit {row['tilejit_us']:10.1f} us  torch {row['torch_us']:10.1f} us"
          f"  {row['ratio']:.3f}x")
json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, open(OUT, "w"), indent=1)
