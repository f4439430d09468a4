"""The words of T that the translator knows, and what to write instead of those that it does not."""

from .types import Word

# Statements, loops and allocations.
WORDS = {
    name: Word(name)
    for name in ["Kernel", "alloc_shared", "alloc_fragment", "copy", "clear", "fill", "gemm", "Parallel", "Pipelined", "serial",
                 "unroll", "reduce_max", "reduce_min", "reduce_sum", "reduce_absmax", "use_swizzle", "annotate_layout",
                 "const", "empty"]
}
make_swizzled_layout = Word("layout.make_swizzled_layout")

# TileLang's word -> what would work. A word that is in no table is named as unknown.
INSTEAD = {
    "alloc_local": "keep it in a tile: T.alloc_fragment",
    "alloc_var": "keep it in a tile of one element: T.alloc_fragment((1,), dtype)",
    "alloc_barrier": "leave it out: the compiler places waits",
    "alloc_tmem": "T.alloc_fragment",
    "atomic_add": "a tile program has atomic_add (docs/tile-ir.md)",
    "atomic_max": "a tile program has atomic_max (docs/tile-ir.md)",
    "atomic_min": "a tile program has atomic_min (docs/tile-ir.md)",
    "cumsum": "a tile program has cumsum (docs/tile-ir.md)",
    "Persistent": "a plain T.Kernel grid; a tile program has persistent (docs/tile-ir.md)",
    "vectorized": "T.Parallel: the compiler vectorizes",
    "grid": "T.Parallel for independent iterations, nested T.serial loops for ordered ones",
    "print": "tl check compares a kernel with the interpreter",
    "macro": "write the statements out",
    "reduce_abssum": "T.abs into a tile, then T.reduce_sum",
    "reduce_any": "T.reduce_max of 0 and 1",
    "reduce_all": "T.reduce_min of 0 and 1",
    "warp_reduce_sum": "T.reduce_sum",
    "sync_threads": "leave it out: the compiler places barriers",
    "sync_warp": "leave it out: the compiler places barriers",
    "get_thread_binding": "T.Parallel: the compiler maps threads",
    "thread_binding": "T.Parallel: the compiler maps threads",
    "ptx": "the compiler chooses instructions",
    "import_source": "write it as tile operations",
    "call_extern": "write it as tile operations",
    "ws": "leave it out: the compiler specializes warps",
    "gemm_sp": "T.gemm of the dense operand",
    "round": "T.floor(x + 0.5)",
    "reshape": "copy element by element in T.Parallel",
    "view": "copy element by element in T.Parallel",
    "max_value": "T.infinity, or the number",
    "min_value": "-T.infinity, or the number",
    "tma_copy": "T.copy", "async_copy": "T.copy in T.Pipelined", "c2d_im2col": "T.copy",
}
