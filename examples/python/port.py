#!/usr/bin/env python3
"""TileLang programs with nothing changed but the imports: a product with ReLU, softmax, RMSNorm+SiLU in the factory style,
and a product, softmax, RMSNorm+SiLU in the newer one. Each is run and compared with NumPy in float64: on the GPU through PyTorch where there
is one, else on the CPU.

    PYTHONPATH=bindings/python examples/python/port.py [--backend cpu|cuda|reference] [--emit DIRECTORY]

--emit writes the tile programs that they become.
"""

import argparse
import pathlib
import sys

import numpy as np

import tilejit as tilelang
import tilejit.language as T


@tilelang.jit
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):

    @T.prim_func
    def matmul_relu_kernel(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.use_swizzle(panel_size=4, order="col")
            T.clear(C_local)

            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)

            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)

            T.copy(C_local, C[by * block_M, bx * block_N])

    return matmul_relu_kernel


@tilelang.jit(out_idx=[-1])
def softmax(M, N, block_M, dtype="float16"):

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float")
            row_max = T.alloc_fragment((block_M,), "float")
            row_sum = T.alloc_fragment((block_M,), "float")

            T.copy(X[bx * block_M : (bx + 1) * block_M, :], x)
            T.reduce_max(x, row_max, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp(x[i, j] - row_max[i])
            T.reduce_sum(x, row_sum, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] / row_sum[i]
            T.copy(x, Y[bx * block_M : (bx + 1) * block_M, :])

    return main


@tilelang.jit(out_idx=[-1])
def rms_norm_silu(M, C, BLOCK_M, dtype="float16", accum_dtype="float"):
    BLOCK_C = next(c for c in (128, 64, 32) if C % c == 0)

    @T.prim_func
    def main(
        X: T.Tensor((M, C), dtype),
        gamma: T.Tensor((C,), dtype),
        Y: T.Tensor((M, C), dtype),
    ):
        with T.Kernel(T.ceildiv(M, BLOCK_M), threads=128) as bm:
            X_chunk = T.alloc_shared((BLOCK_M, BLOCK_C), dtype)
            x = T.alloc_fragment((BLOCK_M, BLOCK_C), accum_dtype)
            ss = T.alloc_fragment((BLOCK_M,), accum_dtype)
            rinv = T.alloc_fragment((BLOCK_M,), accum_dtype)

            T.clear(ss)
            for k in T.serial(C // BLOCK_C):
                T.copy(X[bm * BLOCK_M, k * BLOCK_C], X_chunk)
                for i, j in T.Parallel(BLOCK_M, BLOCK_C):
                    x[i, j] = T.cast(X_chunk[i, j], accum_dtype) * X_chunk[i, j]
                T.reduce_sum(x, ss, dim=1, clear=False)
            for i in T.Parallel(BLOCK_M):
                rinv[i] = T.rsqrt(ss[i] / C + 1e-5)

            for k in T.serial(C // BLOCK_C):
                T.copy(X[bm * BLOCK_M, k * BLOCK_C], X_chunk)
                for i, j in T.Parallel(BLOCK_M, BLOCK_C):
                    x[i, j] = X_chunk[i, j] * gamma[k * BLOCK_C + j] * rinv[i]
                for i, j in T.Parallel(BLOCK_M, BLOCK_C):
                    x[i, j] = x[i, j] * T.sigmoid(x[i, j])
                T.copy(x, Y[bm * BLOCK_M, k * BLOCK_C])

    return main


@tilelang.jit
def gemm(A, B, block_M: int = 64, block_N: int = 64, block_K: int = 32, dtype=T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor[[N, K], dtype]
    C = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_N, block_K), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[bx * block_N, k * block_K], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


@tilelang.jit
def softmax_rows(X, block_M: int = 4, dtype=T.float16):
    M, N = T.const("M, N")
    X: T.Tensor((M, N), dtype)
    Y = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x = T.alloc_fragment((block_M, N), T.float32)
        row_max = T.alloc_fragment((block_M,), T.float32)
        row_sum = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bx * block_M, 0], x)
        T.reduce_max(x, row_max, dim=1)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = T.exp(x[i, j] - row_max[i])
        T.reduce_sum(x, row_sum, dim=1)
        for i, j in T.Parallel(block_M, N):
            x[i, j] = x[i, j] / row_sum[i]
        T.copy(x, Y[bx * block_M, 0])

    return Y


@tilelang.jit
def rms_norm_rows(X, gamma, block_M: int = 8, dtype=T.float16):
    M, C = T.const("M, C")
    X: T.Tensor((M, C), dtype)
    gamma: T.Tensor((C,), dtype)
    Y = T.empty((M, C), dtype)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bm:
        x = T.alloc_fragment((block_M, C), T.float32)
        squares = T.alloc_fragment((block_M, C), T.float32)
        ss = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bm * block_M, 0], x)
        for i, j in T.Parallel(block_M, C):
            squares[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(squares, ss, dim=1)
        for i, j in T.Parallel(block_M, C):
            x[i, j] = x[i, j] * T.rsqrt(ss[i] / C + 1e-5) * gamma[j]
            x[i, j] = x[i, j] * T.sigmoid(x[i, j])
        T.copy(x, Y[bm * block_M, 0])

    return Y


# ---- The driver

class Arrays:
    """Random f16 arrays where the kernels run, and back."""

    def __init__(self, on_gpu):
        self.random = np.random.default_rng(1)
        self.torch = __import__("torch") if on_gpu else None

    def normal(self, *shape):
        array = self.random.standard_normal(shape).astype(np.float16)
        return self.torch.from_numpy(array).cuda() if self.torch else array

    def f64(self, array):
        return (array.cpu().numpy() if self.torch else array).astype(np.float64)


def reference_softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reference_rms_norm_silu(x, gamma):
    y = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * gamma
    return y / (1 + np.exp(-y))


def run_matmul(arrays):
    M, N, K = 200, 136, 96
    a, b, c = arrays.normal(M, K), arrays.normal(K, N), arrays.normal(M, N)
    kernel = matmul(M, N, K, block_M=128, block_N=128, block_K=32)
    kernel(a, b, c)
    return kernel, c, np.maximum(arrays.f64(a) @ arrays.f64(b), 0)


def run_softmax(arrays):
    x = arrays.normal(77, 250)
    kernel = softmax(77, 250, block_M=4)
    return kernel, kernel(x), reference_softmax(arrays.f64(x))


def run_rms_norm_silu(arrays):
    x, gamma = arrays.normal(45, 160), arrays.normal(160)
    kernel = rms_norm_silu(45, 160, BLOCK_M=8)
    return kernel, kernel(x, gamma), reference_rms_norm_silu(arrays.f64(x), arrays.f64(gamma))


def run_gemm(arrays):
    a, b = arrays.normal(100, 72), arrays.normal(130, 72)
    return gemm.compile(M=100, N=130, K=72), gemm(a, b), arrays.f64(a) @ arrays.f64(b).T


def run_softmax_rows(arrays):
    x = arrays.normal(77, 250)
    return softmax_rows.compile(M=77, N=250), softmax_rows(x), reference_softmax(arrays.f64(x))


def run_rms_norm_rows(arrays):
    x, gamma = arrays.normal(45, 160), arrays.normal(160)
    expected = reference_rms_norm_silu(arrays.f64(x), arrays.f64(gamma))
    return rms_norm_rows.compile(M=45, C=160), rms_norm_rows(x, gamma), expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["cpu", "cuda", "reference"], help="default: the best device")
    parser.add_argument("--emit", metavar="DIRECTORY", type=pathlib.Path)
    arguments = parser.parse_args()
    context = tilelang.default_context()
    device = context.find_device(arguments.backend)
    for factory in (matmul, softmax, rms_norm_silu, gemm, softmax_rows, rms_norm_rows):
        factory.target = device.backend
    arrays = Arrays(not device.uses_host_memory)
    print(f"device: {device.name}")

    failed = 0
    for run in (run_matmul, run_softmax, run_rms_norm_silu, run_gemm, run_softmax_rows, run_rms_norm_rows):
        kernel, result, expected = run(arrays)
        # f16 has 11 bits; sums are of f32.
        error = np.abs(arrays.f64(result) - expected) / (np.abs(expected) + 1e-2)
        worst = float(error.max())  # NaN stays NaN
        passed = worst <= 2 ** -9
        failed += not passed
        print(f"{run.__name__[4:]:14} worst relative error {worst:.1e}  {'pass' if passed else 'FAIL'}")
        if arguments.emit:
            (arguments.emit / f"{run.__name__[4:]}.tl").write_text(kernel.source)
    print(f"cache: {context.stats()['hits']} hits, {context.stats()['compiles']} compiles")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
