
// ---- What generated HIP source needs besides. ----
#define TL_KERNEL(threads) extern "C"
#define TL_ARENA static_assert(true)
TL_FN int tl_block() { return tl_api->block; }
TL_FN int tl_grid() { return tl_api->blocks; }
TL_FN int tl_thread() { return tl_api->thread; }
TL_FN void tl_barrier(int line = __builtin_LINE()) { tl_api->barrier(tl_api->self, -1, line); }
TL_FN float tl_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TL_FN double tl_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
TL_FN float tl_ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
TL_FN double tl_ldexp(double x, int n) { return __builtin_ldexp(x, n); }
TL_FN float tl_rough_sqrt(float x) { return __builtin_sqrtf(x); }
TL_FN double tl_rough_sqrt(double x) { return __builtin_sqrt(x); }
