"""Programs in TileLang's style against NumPy in float64, on the CPU where it is, else on the interpreter."""

import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np

import tilejit
import tilejit.language as T

CONTEXT = tilejit.Context(cache_mode="memory")
TARGET = "cpu" if any(d.backend == "cpu" for d in CONTEXT.devices()) else "reference"


def compiled(prim_func, out_idx=-1):
    return tilejit.compile(prim_func, out_idx, TARGET, CONTEXT)


def jit(function=None, **options):
    return tilejit.jit(function, target=TARGET, context=CONTEXT, **options)


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def product(M, N, K, bm, bn, bk, dtype="float32", accum="float32", ta=False, tb=False, stages=2, act=None, policy=T.GemmWarpPolicy.Square):
    @T.prim_func
    def gemm(A: T.Tensor((K, M) if ta else (M, K), dtype), B: T.Tensor((N, K) if tb else (K, N), dtype),
             bias: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            if ta:
                a_s = T.alloc_shared((bk, bm), dtype)
            else:
                a_s = T.alloc_shared((bm, bk), dtype)
            b_s = T.alloc_shared((bn, bk) if tb else (bk, bn), dtype, scope="shared.dyn")
            c = T.alloc_fragment((bm, bn), accum)
            T.annotate_layout({a_s: T.layout.make_swizzled_layout(a_s)})
            T.use_swizzle(8)
            T.fill(c, 0)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if ta:
                    T.copy(A[k * bk, by * bm], a_s)
                else:
                    T.copy(A[by * bm : (by + 1) * bm, k * bk : (k + 1) * bk], a_s)
                if tb:
                    T.copy(B[bx * bn, k * bk], b_s, coalesced_width=4)
                else:
                    T.copy(B[k * bk, bx * bn], b_s, eviction_policy="evict_last")
                T.gemm(a_s, b_s, c, transpose_A=ta, transpose_B=tb, policy=policy)
            for i, j in T.Parallel(bm, bn):
                c[i, j] = c[i, j] + bias[bx * bn + j]
                if act == "relu":
                    c[i, j] = T.max(c[i, j], 0)
                elif act == "silu":
                    c[i, j] *= T.sigmoid(c[i, j])
                elif act == "clamp":
                    c[i, j] = T.clamp(c[i, j], -1, 1.5) if act else 0
            T.copy(c, C[by * bm, bx * bn], eviction_policy="evict_first" if act else "evict_normal")

    return gemm


ACTIVATIONS = {
    None: lambda x: x, "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
    "clamp": lambda x: np.clip(x, -1, 1.5),
}


class ProductTest(unittest.TestCase):
    def check(self, M, N, K, *tiles, dtype="float32", ta=False, tb=False, act=None, **options):
        a, b, bias = normal(*(K, M) if ta else (M, K), dtype=dtype), normal(*(N, K) if tb else (K, N), dtype=dtype, seed=1), normal(N, dtype=dtype)
        kernel = compiled(product(M, N, K, *tiles, dtype=dtype, ta=ta, tb=tb, act=act, **options))
        wide_a, wide_b = (a.T if ta else a).astype(np.float64), (b.T if tb else b).astype(np.float64)
        expected = ACTIVATIONS[act](wide_a @ wide_b + bias)
        magnitude = np.abs(wide_a) @ np.abs(wide_b) + np.abs(bias)
        bound = magnitude * (K + 4) * 2.0 ** -24 + np.abs(expected) * 2.0 ** (-10 if dtype == "float16" else -22)
        error = np.abs(kernel(a, b, bias).astype(np.float64) - expected)
        self.assertTrue((error <= bound).all(), (M, N, K, error.max()))

    def test_sizes(self):
        for size in [(1, 1, 1), (64, 64, 64), (100, 37, 65), (33, 129, 7), (5, 200, 96)]:
            with self.subTest(size):
                self.check(*size, 32, 64, 16)

    def test_transposes_and_types(self):
        for ta, tb, dtype in [(False, True, "float16"), (True, False, "float32"), (True, True, "float16")]:
            with self.subTest(ta=ta, tb=tb, dtype=dtype):
                self.check(70, 45, 33, 32, 32, 32, ta=ta, tb=tb, dtype=dtype)

    def test_activations_stages_and_policies(self):
        for act, stages, policy in [("relu", 0, T.GemmWarpPolicy.FullRow), ("silu", 1, T.GemmWarpPolicy.FullCol), ("clamp", 3, "square")]:
            with self.subTest(act):
                self.check(50, 50, 50, 32, 32, 16, act=act, stages=stages, policy=policy)

    def test_hints_are_passed_on(self):
        source = product(64, 64, 64, 32, 32, 16, stages=3, policy=T.GemmWarpPolicy.FullRow, act="relu").source
        for words in ["threads=128 order=row(8)", "stages=3", "policy=full_row", "-> b_s evict=last", "bx * 32:] evict=first"]:
            self.assertIn(words, source)
        self.assertNotIn("evict=first", product(64, 64, 64, 32, 32, 16).source)

    def test_dynamic_dims(self):
        m = T.dynamic("m")
        kernel = compiled(product(m, 40, 24, 32, 32, 16))
        self.assertEqual(kernel.program.dims, ["m"])
        for rows in (1, 31, 100):
            a, b = normal(rows, 24), normal(24, 40)
            np.testing.assert_allclose(kernel(a, b, np.zeros(40, np.float32)), a @ b, rtol=1e-4, atol=1e-4)


def softmax(M, N, bn, dtype="float32"):
    """Any N, by the online normalizer."""
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=128) as bx:
            x = T.alloc_fragment((bn,), "float")
            top = T.alloc_fragment((1,), "float")
            old = T.alloc_fragment((1,), "float")
            total = T.alloc_fragment((1,), "float")
            part = T.alloc_fragment((1,), "float")
            T.fill(top, -T.infinity("float32"))
            T.clear(total)
            for k in range(T.ceildiv(N, bn)):
                T.copy(X[bx, k * bn : (k + 1) * bn], x)
                for j in T.Parallel(bn):
                    x[j] = T.if_then_else(k * bn + j < N, x[j], -T.infinity("float"))
                T.copy(top, old)
                T.reduce_max(x, top, dim=0, clear=False)
                for j in T.Parallel(bn):
                    x[j] = T.exp(x[j] - top[0])
                T.reduce_sum(x, part, dim=-1)
                total[0] = total[0] * T.exp(old[0] - top[0]) + part[0]
            for k in T.serial(0, T.ceildiv(N, bn)):
                T.copy(X[bx, k * bn], x)
                for j in T.Parallel(bn):
                    x[j] = T.exp(x[j] - top[0]) / total[0]
                T.copy(x, Y[bx, k * bn])

    return main


def rms_norm(M, C, bm, bc, dtype="float32", silu=False, eps=1e-5):
    @T.prim_func
    def main(X: T.Tensor((M, C), dtype), gamma: T.Tensor((C,), dtype), Y: T.Tensor((M, C), dtype)):
        with T.Kernel(T.ceildiv(M, bm), threads=128) as b:
            chunk = T.alloc_shared((bm, bc), dtype)
            x = T.alloc_fragment((bm, bc), "float")
            ss = T.alloc_fragment((bm,), "float")
            steps = T.ceildiv(C, bc)
            T.clear(ss)
            for k in T.Pipelined(steps, num_stages=2):
                T.copy(X[b * bm, k * bc], chunk)
                for i, j in T.Parallel(bm, bc):
                    x[i, j] = T.cast(chunk[i, j], "float32") * chunk[i, j]
                T.reduce_sum(x, ss, dim=1, clear=False)
            for i in T.Parallel(bm):
                ss[i] = T.rsqrt(ss[i] / C + eps)
            for k in range(steps):
                T.copy(X[b * bm, (steps - 1 - k) * bc], chunk)
                for i, j in T.Parallel(bm, bc):
                    y = chunk[i, j] * gamma[(steps - 1 - k) * bc + j] * ss[i]
                    x[i, j] = y * T.sigmoid(y) if silu else y
                T.copy(x, Y[b * bm, (steps - 1 - k) * bc])

    return main


class RowsTest(unittest.TestCase):
    def test_softmax(self):
        for shape in [(1, 1), (3, 64), (17, 100), (5, 257)]:
            for dtype in ("float32", "float16"):
                with self.subTest(shape=shape, dtype=dtype):
                    x = normal(*shape, dtype=dtype) * 4
                    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True).astype(np.float64))
                    y = compiled(softmax(*shape, 64, dtype))(x)
                    np.testing.assert_allclose(y, wide / wide.sum(1, keepdims=True), rtol=1e-5 if dtype == "float32" else 1e-3, atol=1e-7)

    def test_rms_norm(self):
        for shape in [(1, 32), (45, 160), (7, 100), (16, 1)]:
            for silu in (False, True):
                with self.subTest(shape=shape, silu=silu):
                    x, gamma = normal(*shape), normal(shape[1], seed=2)
                    wide = x.astype(np.float64)
                    wide = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-5) * gamma
                    expected = wide / (1 + np.exp(-wide)) if silu else wide
                    y = compiled(rms_norm(*shape, 8, 32, silu=silu))(x, gamma)
                    np.testing.assert_allclose(y, expected, rtol=2e-5, atol=1e-6)

    def test_elements_of_tensors_outside_read_as_zero_and_are_not_written(self):
        @T.prim_func
        def shift(X: T.Tensor((10,), "int32"), Y: T.Tensor((10,), "int32")):
            with T.Kernel(3) as b:
                for i in T.Parallel(4):
                    Y[b * 4 + i] = X[b * 4 + i - 2] + 1

        np.testing.assert_array_equal(compiled(shift)(np.arange(10, dtype=np.int32)), [1, 1, 1, 2, 3, 4, 5, 6, 7, 8])

    def test_integer_arithmetic_is_pythons(self):
        @T.prim_func
        def divide(X: T.Tensor((64,), "int32"), Q: T.Tensor((64,), "int32"), R: T.Tensor((64,), "int32")):
            with T.Kernel(1) as b:
                for i in T.Parallel(64):
                    Q[i] = X[i] // -3
                    R[i] = X[i] % 5 - -X[i]

        x = np.arange(-32, 32, dtype=np.int32)
        q, r = compiled(divide, [1, 2])(x)
        np.testing.assert_array_equal(q, x // -3)
        np.testing.assert_array_equal(r, x % 5 + x)

    def test_loops_begin_where_they_say_and_numbers_are_as_written(self):
        @T.prim_func
        def loops(X: T.Tensor((16,), "float32"), Y: T.Tensor((4, 16), "float32")):
            with T.Kernel(4) as b:
                x = T.alloc_fragment((16,), "float32")
                T.copy(X[0], x)
                for k in range(1, 3):
                    for i in T.Parallel(16):
                        x[i] += k * 1e-05
                for k in T.serial(b + 1, 2 * b + 2):
                    for i in T.Parallel(16):
                        x[i] = x[i] * 2 - (1 - k) * (3 - -1e+20 * 1e-20) - (k - (2 - b))
                for k in T.unroll(2):
                    for i in T.Parallel(16):
                        x[i] = -(x[i] - (i - (k + 1)) // 2) ** 2.0 if k > 0 else -x[i] + k
                T.copy(x, Y[b, 0])

        x = normal(16)
        i = np.arange(16)
        for b, y in enumerate(compiled(loops)(x)):
            e = x.astype(np.float64)
            for k in range(1, 3):
                e = e + k * 1e-05
            for k in range(b + 1, 2 * b + 2):
                e = e * 2 - (1 - k) * (3 - -1e+20 * 1e-20) - (k - (2 - b))
            for k in range(2):
                e = -(e - (i - (k + 1)) // 2) ** 2.0 if k > 0 else -e + k
            np.testing.assert_allclose(y, e, rtol=1e-4, atol=1e-4)

    def test_conditions_and_scalars(self):
        @T.prim_func
        def choose(X: T.Tensor((100,), "float32"), low: T.float32, n: T.int32, Y: T.Tensor((100,), "float32")):
            with T.Kernel(4) as b:
                x = T.alloc_fragment((32,), "float32")
                T.copy(X[b * 32], x)
                if b == 1 or not b != 3:
                    T.fill(x, low)
                else:
                    for i in T.Parallel(32):
                        if 0 <= x[i] < 1 and i < n:
                            x[i] += 10
                        elif x[i] < low:
                            x[i] = low
                T.copy(x, Y[b * 32])

        x = normal(100)
        block, i = np.arange(100) // 32, np.arange(100) % 32
        expected = np.where((x >= 0) & (x < 1) & (i < 20), x + 10, np.maximum(x, np.float32(-0.5)))
        expected[(block == 1) | (block == 3)] = -0.5
        np.testing.assert_allclose(compiled(choose)(x, -0.5, 20), expected, rtol=1e-6)

    def test_functions(self):
        @T.prim_func
        def functions(X: T.Tensor((64,), "float32"), Y: T.Tensor((22, 64), "float32")):
            with T.Kernel(1) as b:
                for i in T.Parallel(64):
                    x = X[i]
                    Y[0, i] = T.exp(x)
                    Y[1, i] = T.exp2(x)
                    Y[2, i] = T.log(T.abs(x))
                    Y[3, i] = T.log2(T.abs(x))
                    Y[4, i] = T.sqrt(T.abs(x))
                    Y[5, i] = T.rsqrt(T.abs(x))
                    Y[6, i] = T.tanh(x)
                    Y[7, i] = T.erf(x)
                    Y[8, i] = T.sigmoid(x)
                    Y[9, i] = T.sin(x)
                    Y[10, i] = T.cos(x)
                    Y[11, i] = T.floor(x)
                    Y[12, i] = T.ceil(x)
                    Y[13, i] = T.max(x, 0.5)
                    Y[14, i] = T.min(x, T.exp2(0.5))
                    Y[15, i] = T.pow(T.abs(x), 1.5)
                    Y[16, i] = T.clamp(x, -1, 1)
                    Y[17, i] = T.if_then_else(x > 0, x, 2 * x)
                    Y[18, i] = T.cast(T.cast(x, "float16"), "float32")
                    Y[19, i] = x.astype("int32")
                    Y[20, i] = T.float32(i) / 7
                    Y[21, i] = T.Cast("float32", i // 3)

        from math import erf
        x = normal(64)
        w, i = x.astype(np.float64), np.arange(64)
        a = np.abs(w)
        expected = [np.exp(w), np.exp2(w), np.log(a), np.log2(a), np.sqrt(a), 1 / np.sqrt(a), np.tanh(w), np.vectorize(erf)(w),
                    1 / (1 + np.exp(-w)), np.sin(w), np.cos(w), np.floor(w), np.ceil(w), np.maximum(w, 0.5), np.minimum(w, 2 ** 0.5),
                    a ** 1.5, np.clip(w, -1, 1), np.where(w > 0, w, 2 * w), x.astype(np.float16), np.trunc(w), i / 7, i // 3]
        y = compiled(functions)(x)
        for row, wanted in enumerate(expected):
            with self.subTest(row):
                np.testing.assert_allclose(y[row], wanted, rtol=1e-5, atol=1e-6)


def attention(B, S, H, D, causal, bm=32, bn=16, dtype="float16"):
    """Forward, with the words that attention kernels in TileLang use."""
    scale = (1.0 / D) ** 0.5 * 1.44269504
    shape = [B, S, H, D]

    @T.prim_func
    def main(Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), O: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(S, bm), H, B, threads=64) as (bx, by, bz):
            q_s = T.alloc_shared([bm, D], dtype)
            k_s = T.alloc_shared([bn, D], dtype)
            v_s = T.alloc_shared([bn, D], dtype)
            s = T.alloc_fragment([bm, bn], "float")
            p = T.alloc_fragment([bm, bn], dtype)
            o = T.alloc_fragment([bm, D], "float")
            top = T.alloc_fragment([bm], "float")
            old = T.alloc_fragment([bm], "float")
            part = T.alloc_fragment([bm], "float")
            total = T.alloc_fragment([bm], "float")
            T.copy(Q[bz, bx * bm : (bx + 1) * bm, by, :], q_s)
            T.clear(o)
            T.clear(total)
            T.fill(top, -T.infinity("float"))
            steps = T.min(T.ceildiv(S, bn), T.ceildiv((bx + 1) * bm, bn)) if causal else T.ceildiv(S, bn)
            for k in T.Pipelined(steps, num_stages=1):
                T.copy(K[bz, k * bn : (k + 1) * bn, by, :], k_s)
                T.copy(V[bz, k * bn : (k + 1) * bn, by, :], v_s)
                for i, j in T.Parallel(bm, bn):
                    seen = k * bn + j < S and (not causal or bx * bm + i >= k * bn + j)
                    s[i, j] = T.if_then_else(seen, 0, -T.infinity(s.dtype))
                T.gemm(q_s, k_s, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, old)
                T.reduce_max(s, top, dim=1, clear=False)
                for i in T.Parallel(bm):
                    old[i] = T.exp2((old[i] - top[i]) * scale)
                for i, j in T.Parallel(bm, bn):
                    s[i, j] = T.exp2((s[i, j] - top[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(bm):
                    total[i] = total[i] * old[i] + part[i]
                for i, j in T.Parallel(bm, D):
                    o[i, j] *= old[i]
                T.copy(s, p)
                T.gemm(p, v_s, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(bm, D):
                o[i, j] /= total[i]
            T.copy(o, O[bz, bx * bm : (bx + 1) * bm, by, :])

    return main


class AttentionTest(unittest.TestCase):
    def test_forward(self):
        for S, causal in [(50, False), (77, True)]:
            with self.subTest(S=S, causal=causal):
                q, k, v = (normal(2, S, 3, 32, dtype=np.float16, seed=seed) for seed in range(3))
                scores = np.einsum("bihd,bjhd->bhij", q.astype(np.float64), k.astype(np.float64)) / 32 ** 0.5
                if causal:
                    scores = np.where(np.tril(np.ones((S, S))) > 0, scores, -np.inf)
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                weights /= weights.sum(-1, keepdims=True)
                expected = np.einsum("bhij,bjhd->bihd", weights, v.astype(np.float64))
                # The weights are rounded to f16, and so is the result.
                np.testing.assert_allclose(compiled(attention(2, S, 3, 32, causal))(q, k, v), expected, rtol=2e-3, atol=2e-3)


@jit
def newer(A, B, block_M: int = 32, block_N: int = 32, block_K: int = 16, dtype=T.float32):
    """The function itself is the kernel."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor[[K, N], dtype]
    C = T.empty((M, N), dtype)
    half = block_K // 2
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        a_s = T.alloc_shared((block_M, half), dtype)
        b_s = T.alloc_shared((half, block_N), dtype)
        c = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, half), num_stages=2):
            T.copy(A[by * block_M, k * half], a_s)
            T.copy(B[k * half, bx * block_N], b_s)
            T.gemm(a_s, b_s, c)
        T.copy(c, C[by * block_M, bx * block_N])
    return C


@jit
def stats(X, scale, rows: int = 4):
    N = T.const("N")
    m = T.dynamic("m")
    X: T.Tensor((m, N), T.float32)
    scale: T.float32
    top = T.empty((m,), "float32")
    low = T.empty((m,), "float32")
    with T.Kernel(T.ceildiv(m, rows)) as b:
        x = T.alloc_fragment((rows, N), "float32")
        t = T.alloc_fragment((rows,), "float32")
        T.copy(X[b * rows, 0], x)
        T.reduce_absmax(x, t, dim=1)
        for i in T.Parallel(rows):
            t[i] = t[i] * scale
        T.copy(t, top[b * rows])
        T.reduce_min(x, t, dim=1)
        T.copy(t, low[b * rows])
    return top, low


class NewerStyleTest(unittest.TestCase):
    def test_called_with_tensors(self):
        a, b = normal(50, 33), normal(33, 70)
        np.testing.assert_allclose(newer(a, b), a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(newer(a[:9], b, block_M=16), (a.astype(np.float64) @ b)[:9], rtol=1e-4, atol=1e-5)

    def test_compiled_by_name(self):
        kernel = newer.compile(M=20, N=30, K=40, block_M=16)
        self.assertIn("A: tensor<f32>[20, 40]", kernel.source)
        self.assertIn("alloc_shared<f32>[16, 8]", kernel.source)
        self.assertIs(kernel, newer.compile(M=20, N=30, K=40, block_M=16))
        a, b, c = normal(20, 40), normal(40, 30), np.empty((20, 30), np.float32)
        kernel(a, b, c)
        np.testing.assert_array_equal(kernel(a, b), c)
        self.assertIn("define", kernel.get_kernel_source()) if TARGET == "cpu" else None

    def test_several_results_dynamic_dims_and_scalars(self):
        for m in (1, 10):
            x = normal(m, 24)
            top, low = stats(x, 2)
            np.testing.assert_allclose(top, 2 * np.abs(x).max(1), rtol=1e-6)
            np.testing.assert_array_equal(low, x.min(1))
        self.assertEqual(len(stats._kernels), 1)

    def test_mistakes(self):
        a, b = normal(4, 5), normal(5, 6)
        rows = [
            ("B makes K = 4, an earlier tensor 5", lambda: newer(a, b[:4])),
            ("A has 1 dims", lambda: newer(a[0], b)),
            ("N, K must be given", lambda: newer.compile(M=1)),
            ("newer has no P; it has M, N, K, block_M", lambda: newer.compile(M=1, N=1, K=1, P=2)),
            ("missing a required argument: 'B'", lambda: newer(a)),
            ("takes 2 arguments, or 3 with the results; 1 are given", lambda: newer.compile(M=4, N=6, K=5)(a)),
            ("out_idx is for functions that return", lambda: jit(newer._eager.function, out_idx=0)),
            ("compile takes a T.prim_func", lambda: tilejit.compile(42)),
            ("is compiled first", lambda: softmax(1, 1, 1)(a)),
            ("T.copy has a meaning only in the body", lambda: T.copy(a, b)),
            ("out_idx=7: main has 2 operands", lambda: compiled(softmax(1, 1, 32), 7)),
        ]
        for message, call in rows:
            with self.subTest(message), self.assertRaises((TypeError, tilejit.Error)) as caught:
                call()
            self.assertIn(message, str(caught.exception))


class FactoryTest(unittest.TestCase):
    def test_the_same_arguments_give_the_same_kernel(self):
        factory = jit(softmax, out_idx=[1])
        self.assertIs(factory(4, 64, 64), factory(4, 64, bn=64))
        self.assertIsNot(factory(4, 64, 64), factory(4, 64, 32))
        norm = jit(rms_norm, out_idx=[-1])
        self.assertIsNot(norm(4, 64, 4, 32, eps=1), norm(4, 64, 4, 32, eps=1.0))
        x = normal(4, 64)
        y = np.empty_like(x)
        self.assertIsNone(factory(4, 64, 64)(x, y))
        np.testing.assert_array_equal(factory(4, 64, 64)(x), y)

    def test_results_are_of_the_arguments_library(self):
        class Tensor:
            """What of PyTorch's tensors is used."""

            device = "somewhere"

            def __init__(self, array):
                self.array, self.shape = array, array.shape

            def __dlpack__(self, stream=None):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        Tensor.__module__ = "torch"
        made = []

        def empty(shape, dtype, device):
            made.append((shape, dtype, device))
            return Tensor(np.empty(shape, dtype))

        x = normal(5, 64)
        with mock.patch.dict("sys.modules", torch=SimpleNamespace(empty=empty, float32=np.float32)):
            y = compiled(softmax(5, 64, 64))(Tensor(x))
        self.assertEqual(made, [([5, 64], np.float32, "somewhere")])
        np.testing.assert_array_equal(y.array, compiled(softmax(5, 64, 64))(x))

    def test_half_precision_results_that_numpy_has_no_type_for(self):
        kernel = compiled(softmax(2, 32, 32, "bfloat16"))
        bits = (np.ones((2, 32), np.float32).view(np.uint32) >> 16).astype(np.uint16)
        y = kernel(tilejit.Tensor(bits, "bf16"))
        self.assertEqual(y.dtype, "bf16")
        np.testing.assert_array_equal((y.data.astype(np.uint32) << 16).view(np.float32), np.full((2, 32), 1 / 32, np.float32))


if __name__ == "__main__":
    unittest.main()
