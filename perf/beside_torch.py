#!/usr/bin/env python3
"""The families beside PyTorch in one run: time of each, ratio.

Usage: beside_torch.py [--trials] [--family NAME]... TL OUT.json

--trials: choices that are no default, each behind the default. --family: only rows of these.

Each side runs alone for 0.3 s, rows for 0.15 s, in turns, three times; the medians are compared. Inputs
are rotated where they fit the L2 cache; PyTorch's launches are replayed from a graph. "copy" is the time
in which torch's copy_ moves the same bytes."""

import argparse
import json
import subprocess

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--trials", action="store_true")
parser.add_argument("--family", action="append")
parser.add_argument("tl")
parser.add_argument("out")
OPTIONS = parser.parse_args()
TL = OPTIONS.tl
SECONDS, ROW_SECONDS, TURNS = 0.3, 0.15, 3
SQUARE = dict(M=4096, N=4096, K=4096)
SKINNY = dict(M=16, N=8192, K=8192)
SHORT = dict(M=8192, N=8192, K=1024)
CAUSAL = dict(B=4, H=16, Hkv=16, Sq=4096, Sk=4096)
LONG = dict(B=1, H=16, Hkv=16, Sq=16384, Sk=16384)
# Softmax of M rows of N columns, RMS norm with SiLU of M rows of C.
SOFTMAX = [(16384, 4096), (65536, 1024), (4096, 32768)]
NORMS = [(16384, 4096), (604800, 160), (604800, 256), (302400, 320), (302400, 512), (302400, 640), (302400, 1024)]
# family, dims, are they known when the kernel is compiled, choices
ROWS = [
    ("gemm", SQUARE, True, {}),
    ("gemm", SQUARE, False, {}),
    ("gemm", dict(M=8192, N=8192, K=8192), True, {}),
    ("gemm", SQUARE, True, dict(t="f16")),
    ("gemm", dict(M=8192, N=8192, K=8192), True, dict(t="f16")),
    ("gemm", dict(M=4097, N=4095, K=4103), True, {}),
    ("gemm", dict(M=4097, N=4095, K=4103), False, {}),
    ("gemm", SKINNY, True, {}),
    ("gemm", dict(M=16, N=28672, K=4096), True, {}),
    ("gemm", dict(M=64, N=8192, K=8192), True, {}),
    ("gemm", SHORT, True, {}),
    # 8-bit floats whose sums keep 13 bits behind the point.
    *[("gemm", dict(M=n, N=n, K=n), True, dict(t="e4m3", tc="bf16", fast="on")) for n in (4096, 8192)],
    ("gemm", SKINNY, True, dict(t="e4m3", tc="bf16", fast="on")),
    # Without the instructions and copies of sm_90a: the form of sm_80.
    ("gemm", SQUARE, True, dict(target="sm_90", bm=128, bn=256, bk=64, stages=3, bytes=147456)),
    *[("softmax", dict(M=m, N=n), fixed, {}) for m, n in SOFTMAX for fixed in (True, False)],
    ("softmax", dict(M=16384, N=32768), True, dict(t="f32")),
    *[("rms_norm", dict(M=m, C=c), True, dict(silu="on")) for m, c in NORMS],
    ("rms_norm", dict(M=16384, C=4096), False, dict(silu="on")),
    ("attention", CAUSAL, False, dict(causal="on")),
    ("attention", LONG, False, {}),
    ("attention", dict(B=16, H=16, Hkv=16, Sq=1024, Sk=1024), False, dict(causal="on")),
    ("attention", dict(B=2, H=32, Hkv=32, Sq=8192, Sk=8192), False, dict(D=64)),
    ("attention", dict(B=2, H=8, Hkv=8, Sq=8192, Sk=8192), False, dict(D=256)),
    ("vector_add", dict(N=1 << 24), False, {}),
]


def narrow(bm, deep, stages, bn=64):
    """Tiles of few rows."""
    return dict(bm=bm, bn=bn, bk=64, stay="off", swap="on" if bm < 64 else "off", deep=deep, stages=stages)


# Dims, what is tried with them besides the default.
# Groups with tiles of their own.
OWNERS = [dict(own="on", bm=m, bn=n, stages=4) for m, n in [(128, 128), (64, 256)]]
TRIAL_ROWS = {
    "gemm": [
        # C not by boxes; B for each block alone.
        (SQUARE, {}, [dict(boxes="off"), dict(cm=1), dict(boxes="off", cm=1), *OWNERS]),
        (SHORT, {}, [dict(boxes="off", cm=1), *OWNERS]),
        (dict(M=8192, N=8192, K=256), {}, OWNERS),
        # Few rows.
        (SKINNY, {}, [narrow(16, 2, 8), dict(bm=128, bn=256)]),
        (dict(M=16, N=28672, K=4096), {}, [narrow(16, 2, 8), narrow(16, 2, 5, 128), dict(bm=128, bn=256)]),
        (dict(M=32, N=8192, K=8192), {}, [narrow(32, 4, 4), narrow(64, 1, 8), dict(bm=128, bn=256)]),
        (dict(M=64, N=8192, K=8192), {}, [narrow(64, 1, 5), narrow(32, 2, 8), dict(bm=128, bn=256)]),
    ],
    "attention": [
        (CAUSAL, dict(causal="on"), [dict(turns="on"), dict(partition="on"), dict(turns="on", partition="on")]),
        (LONG, {}, [dict(turns="on")]),
        (dict(B=2, H=32, Hkv=32, Sq=8192, Sk=8192), dict(D=64), [dict(turns="on")]),
        # Whole steps alone: no mask in the loop.
        (LONG, {}, [dict(fixed=True)]),
    ],
}
# Latent attention of Dv + Dr = 512 + 64 has no peer in PyTorch: rates alone. Lengths are all Lmax.
LATENT = [
    dict(B=64, H=128, Lmax=8192),
    dict(B=128, H=128, Lmax=8192),
    dict(B=64, H=128, Lmax=1024),
    dict(B=128, H=128, Lmax=1024),
    dict(B=64, H=16, Lmax=8192),
]


def ours(family, dims, fixed, choices, rounds):
    args = [TL, "bench", family, "--backend", "cuda", "--json", "--rounds", str(rounds)]
    args += [a for k, v in dims.items() for a in ("-p" if fixed else "--dim", f"{k}={v}")]
    for k, v in choices.items():
        args += ["--target", v] if k == "target" else ["-p", f"{k}={v}"]
    out = json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)
    return out["median_us"]


def rand(*shape, dtype=torch.bfloat16):
    return (torch.rand(*shape, device="cuda", dtype=torch.float32) * 2 - 1).to(dtype)


def dtype_of(choices):
    types = {"f16": torch.float16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn}
    return types.get(choices.get("t"), torch.bfloat16)


def seconds_of(family):
    return ROW_SECONDS if family in ("softmax", "rms_norm") else SECONDS


def torch_call(family, d, choices):
    if family == "gemm":
        dtype = dtype_of(choices)
        sets = [(rand(d["M"], d["K"], dtype=dtype), rand(d["N"], d["K"], dtype=dtype)) for _ in range(2)]
        if dtype == torch.float8_e4m3fn:
            scale = torch.ones((), device="cuda")
            fast = dict(out_dtype=torch.bfloat16, use_fast_accum="fast" in choices)
            return lambda i: torch._scaled_mm(sets[i % 2][0], sets[i % 2][1].T, scale, scale, **fast)
        return lambda i: torch.matmul(sets[i % 2][0], sets[i % 2][1].T)
    if family == "softmax":
        x = rand(d["M"], d["N"], dtype=dtype_of(choices))
        return lambda i: torch.softmax(x, -1)
    if family == "rms_norm":
        x, w = rand(d["M"], d["C"]), rand(d["C"])
        f = torch.nn.functional
        return lambda i: f.silu(f.rms_norm(x, (d["C"],), w, 1e-5))
    if family == "attention":
        q, k, v = (rand(d["B"], d["Sq"], d["H"], choices.get("D", 128)).transpose(1, 2) for _ in range(3))

        def attention(i):
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal="causal" in choices)

        return attention
    x, y = rand(d["N"], dtype=torch.float32), rand(d["N"], dtype=torch.float32)
    return lambda i: x + y


def copy_call(family, d, choices):
    if family not in ("softmax", "rms_norm"):
        return None
    x = rand(*d.values(), dtype=dtype_of(choices))
    y = torch.empty_like(x)
    return lambda i: y.copy_(x)


def graph_of(call, launches=20):
    for i in range(3):
        call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            call(i)
    return graph, launches


def theirs(graph, launches, seconds):
    times, total = [], 0.0
    while total < seconds * 1e6:
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / launches)
        total += times[-1] * launches
    return sorted(times)[len(times) // 2]


def median(values):
    return sorted(values)[len(values) // 2]


def row_of(family, dims, fixed, choices):
    graph = graph_of(torch_call(family, dims, choices))
    ours(family, dims, fixed, choices, 1)  # compiles
    seconds = seconds_of(family)
    rounds = max(3, int(seconds / 0.02))  # a round takes 20 ms
    pairs = [(ours(family, dims, fixed, choices, rounds), theirs(*graph, seconds)) for _ in range(TURNS)]
    row = {"family": family, **dims, "dims": "fixed" if fixed else "dynamic", **choices}
    row["tilejit_us"], row["torch_us"] = median([p[0] for p in pairs]), median([p[1] for p in pairs])
    row["ratio"] = row["torch_us"] / row["tilejit_us"]
    if copy := copy_call(family, dims, choices):
        row["copy_us"] = theirs(*graph_of(copy), seconds)
        row["of_copy_rate"] = row["copy_us"] / row["tilejit_us"]
    return row


def latent_row(d):
    emit = [TL, "compile", "mla_decode", "--emit", "ir"]
    text = subprocess.run(emit, check=True, capture_output=True, text=True).stdout
    full = text.replace("init len = uniform(0, Lmax)", "init len = constant(Lmax)")
    assert full != text
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    dims = dict(**d, pages=d["B"] * d["Lmax"] // 64, P=processors // -(-d["H"] // 64))
    args = [TL, "bench", "-", "--backend", "cuda", "--json", "--rounds", "9"]
    args += [a for k, v in dims.items() for a in ("--dim", f"{k}={v}")]
    out = subprocess.run(args, check=True, capture_output=True, text=True, input=full).stdout
    us, tokens = json.loads(out)["median_us"], d["B"] * d["Lmax"]
    row = {"family": "mla_decode", **dims, "tilejit_us": us}
    row["tflops"] = 2 * d["H"] * (576 + 512) * tokens / us * 1e-6
    row["tb_per_s"] = 2 * 576 * tokens / us * 1e-6
    return row


def trial_rows():
    for family, trials in TRIAL_ROWS.items():
        for dims, choices, others in trials:
            for other in ({}, *others):
                other = dict(other)
                fixed = other.pop("fixed", family == "gemm")
                yield family, dims, fixed, {**choices, **other}


def wanted(family):
    return not OPTIONS.family or family in OPTIONS.family


rows = []


def add(row, line):
    """Written at once: what comes later may not come."""
    rows.append(row)
    print(f"{row['family']:10} {line}", flush=True)
    with open(OPTIONS.out, "w") as out:
        json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, out, indent=1)


for args in trial_rows() if OPTIONS.trials else ROWS:
    if not wanted(args[0]):
        continue
    try:
        row = row_of(*args)
    except subprocess.CalledProcessError as error:
        print(args, error.stderr)
        continue
    rate = f"  {row['of_copy_rate']:.3f} of the copy rate" if "of_copy_rate" in row else ""
    add(row, f"{row['dims']:8} {str(args[1]):38} {str(args[3]):60} tilejit {row['tilejit_us']:8.1f} us"
        f"  torch {row['torch_us']:8.1f} us  {row['ratio']:.3f}x{rate}")
for dims in LATENT if wanted("mla_decode") and not OPTIONS.trials else []:
    row = latent_row(dims)
    add(row, f"{dims!s:38} tilejit {row['tilejit_us']:8.1f} us  {row['tflops']:.0f} TFLOP/s"
        f"  {row['tb_per_s']:.2f} TB/s of keys")
