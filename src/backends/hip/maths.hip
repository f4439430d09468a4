// ---- Mathematical functions, of f32 but for roots. They use tl_fma, tl_ldexp, tl_rough_sqrt, tl_bits
// and tl_float only, so that what runs on a GPU can be tried on a host. Largest errors, in units in
// the last place: exp, exp2, log, log2, tanh, erf, rsqrt 2, sqrt 1/2 (correctly rounded), sin, cos,
// pow 1; of f64 sqrt 1/2, rsqrt 2. ----
// Polynomials are minimax fits of the relative error over the range named beside them.

//@ tl_clamp
// A NaN passes.
TL_FN float tl_clamp(float x, float lo, float hi) { return x < lo ? lo : x > hi ? hi : x; }

//@ exp2f
TL_FN float tl_exp2f(float arg) {
  const float x = tl_clamp(arg, -160.0f, 160.0f);
  const float n = __builtin_rintf(x), r = x - n;
  // (2^r - 1) / r on [-1/2, 1/2], 2e-9.
  float p = 1.535336196e-04f;
  p = tl_fma(p, r, 1.339887385e-03f);
  p = tl_fma(p, r, 9.618436918e-03f);
  p = tl_fma(p, r, 5.550332367e-02f);
  p = tl_fma(p, r, 2.402264774e-01f);
  p = tl_fma(p, r, 6.931471825e-01f);
  p = tl_fma(p, r, 1.0f);
  return x == x ? tl_ldexp(p, (int)n) : x;
}
#define exp2f(x) tl_exp2f(x)

//@ expf tanhf erff
TL_FN float tl_expf(float arg) {
  const float x = tl_clamp(arg, -110.0f, 110.0f);
  const float n = __builtin_rintf(x * 1.44269504f);
  // ln 2 in two parts; the first has 15 trailing zeros, so its product with n is exact.
  const float r = tl_fma(n, 2.12194440e-4f, tl_fma(n, -0.693359375f, x));
  // (e^r - 1 - r) / r^2 on [-ln2/2, ln2/2], 3e-9.
  float p = 1.381446724e-03f;
  p = tl_fma(p, r, 8.368780836e-03f);
  p = tl_fma(p, r, 4.166839272e-02f);
  p = tl_fma(p, r, 1.666651964e-01f);
  p = tl_fma(p, r, 4.999999404e-01f);
  const float y = tl_fma(r * r, p, r) + 1.0f;
  return x == x ? tl_ldexp(y, (int)n) : x;
}
#define expf(x) tl_expf(x)

//@ logf log2f
// x = 2^exponent * (1 + f) with 1 + f in [sqrt 1/2, sqrt 2); tail = ln(1 + f) - f.
struct tl_logarithm { float exponent, f, tail; };
TL_FN tl_logarithm tl_split_log(float arg) {
  const bool tiny = arg < 1.17549435e-38f;
  const unsigned bits = tl_bits(tiny ? arg * 8388608.0f : arg);
  // Relative to sqrt 1/2: the exponent field then counts from there.
  const int e = (int)(bits - 1060439283u) >> 23;
  const float f = tl_float(bits - ((unsigned)e << 23)) - 1.0f;
  // (ln(1+f) - f + f^2/2) / f^3, 8e-10.
  float p = 6.746642292e-02f;
  p = tl_fma(p, f, -1.167565212e-01f);
  p = tl_fma(p, f, 1.188816205e-01f);
  p = tl_fma(p, f, -1.240558848e-01f);
  p = tl_fma(p, f, 1.421955228e-01f);
  p = tl_fma(p, f, -1.666799635e-01f);
  p = tl_fma(p, f, 2.000211924e-01f);
  p = tl_fma(p, f, -2.500000894e-01f);
  p = tl_fma(p, f, 3.333331347e-01f);
  const float f2 = f * f;
  return {(float)e - (tiny ? 23.0f : 0.0f), f, tl_fma(f2 * f, p, f2 * -0.5f)};
}
// Of what is no positive finite number; `result` elsewhere.
TL_FN float tl_log_edges(float x, float result) {
  if (x != x) return x;
  const float inf = tl_float(0x7f800000u);
  return x < 0.0f ? tl_float(0x7fc00000u) : x == 0.0f ? -inf : x == inf ? inf : result;
}
//@ logf
TL_FN float tl_logf(float x) {
  const tl_logarithm l = tl_split_log(x);
  const float low = tl_fma(l.exponent, -2.12194440e-4f, l.tail);
  return tl_log_edges(x, tl_fma(l.exponent, 0.693359375f, low + l.f));
}
#define logf(x) tl_logf(x)
//@ log2f
TL_FN float tl_log2f(float x) {
  const tl_logarithm l = tl_split_log(x);
  // log2 e - 1, so that f itself is added without a rounding of its own.
  const float less = 0.44269504f;
  const float small = tl_fma(l.tail, less, l.f * less) + l.tail + l.f;
  return tl_log_edges(x, l.exponent + small);
}
#define log2f(x) tl_log2f(x)

//@ tanhf
TL_FN float tl_tanhf(float x) {
  const float a = __builtin_fabsf(x), z = x * x;
  // (tanh x / x - 1) / x^2 on |x| < 0.65, 7e-9.
  float p = -5.515164230e-03f;
  p = tl_fma(p, z, 2.046941966e-02f);
  p = tl_fma(p, z, -5.368802324e-02f);
  p = tl_fma(p, z, 1.333083063e-01f);
  p = tl_fma(p, z, -3.333325982e-01f);
  const float small = tl_fma(p * z, x, x);
  const float large = 1.0f - 2.0f / (tl_expf(a + a) + 1.0f);
  return a < 0.625f ? small : __builtin_copysignf(large, x);
}
#define tanhf(x) tl_tanhf(x)

//@ erff
TL_FN float tl_erff(float x) {
  const float a = __builtin_fabsf(x), z = x * x;
  // erf x / x - 1 on |x| < 0.93, 2e-8.
  float p = -5.953742075e-04f;
  p = tl_fma(p, z, 4.985940643e-03f);
  p = tl_fma(p, z, -2.676171996e-02f);
  p = tl_fma(p, z, 1.128168255e-01f);
  p = tl_fma(p, z, -3.761247993e-01f);
  p = tl_fma(p, z, 1.283791512e-01f);
  const float small = tl_fma(p, x, x);
  // -ln(erfc a) / a - 1 on [0.92, 4], 8e-10 of erf. Beyond 4 erf rounds to 1.
  const float t = tl_clamp(a, 0.0f, 4.0f);
  float q = 1.123125639e-05f;
  q = tl_fma(q, t, -3.228033893e-04f);
  q = tl_fma(q, t, 3.642457305e-03f);
  q = tl_fma(q, t, -2.376206033e-02f);
  q = tl_fma(q, t, 1.062368751e-01f);
  q = tl_fma(q, t, 6.351513267e-01f);
  q = tl_fma(q, t, 1.286484897e-01f);
  const float large = 1.0f - tl_expf(-tl_fma(q, t, t));
  return a < 0.921875f ? small : __builtin_copysignf(large, x);
}
#define erff(x) tl_erff(x)

//@ sqrtf rsqrtf
// The hardware's root is one unit off at most: of it and its neighbours, the one whose square is
// nearest. What is small is scaled up, so that remainders are exact.
TL_FN float tl_sqrtf(float x) {
  const bool small = x < 0x1p-96f;
  const float y = small ? x * 0x1p32f : x;
  float root = tl_rough_sqrt(y);
  const float below = tl_float(tl_bits(root) - 1u), above = tl_float(tl_bits(root) + 1u);
  const float less = tl_fma(-below, root, y), more = tl_fma(-above, root, y);
  root = less <= 0.0f ? below : more > 0.0f ? above : root;
  root = small ? root * 0x1p-16f : root;
  // 0, infinity, NaN and what is negative are as the hardware has them.
  return x > 0.0f && x < tl_float(0x7f800000u) ? root : tl_rough_sqrt(x);
}
//@ sqrtf
#define sqrtf(x) tl_sqrtf(x)
//@ rsqrtf
#define rsqrtf(x) (1.0f / tl_sqrtf(x))

//@ sqrt rsqrt
// Two steps of Newton's method, each with an exact remainder.
TL_FN double tl_sqrt(double x) {
  const bool small = x < 0x1p-767;
  const double y = small ? x * 0x1p256 : x;
  double root = tl_rough_sqrt(y);
  const double half = 0.5 / root;
  root = tl_fma(tl_fma(-root, root, y), half, root);
  root = tl_fma(tl_fma(-root, root, y), half, root);
  root = small ? root * 0x1p-128 : root;
  return x > 0.0 && x < (double)tl_float(0x7f800000u) ? root : tl_rough_sqrt(x);
}
//@ sqrt
#define sqrt(x) tl_sqrt(x)
//@ rsqrt
#define rsqrt(x) (1.0 / tl_sqrt(x))

//@ sinf cosf
// x = (4 * i + quarter) * pi/2 + angle with |angle| <= pi/4.
struct tl_turned { double angle; int quarter; };
// Large x: of the bits of 2/pi those that count modulo 4 quarters, times x's 24.
TL_FN tl_turned tl_turn_large(float x) {
  static const unsigned two_by_pi[8] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                        0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
  const unsigned bits = tl_bits(x) & 0x7fffffffu;
  const unsigned long long m = (bits & 0x7fffffu) | 0x800000u;
  const int first = (int)(bits >> 23) - 152;  // bit of 2/pi whose product counts two quarters
  const int word = first >> 5, shift = first & 31;
  unsigned w[3];
  for (int i = 0; i < 3; ++i) {
    const unsigned long long two = (unsigned long long)two_by_pi[word + i] << 32 |
                                   two_by_pi[word + i + 1];
    w[i] = (unsigned)(two << shift >> 32);
  }
  const unsigned long long low = m * w[2], middle = m * w[1] + (low >> 32);
  const unsigned long long top = (m * w[0] << 32) + middle;  // of the product's last 96 bits
  const int quarter = (int)((top + (1ull << 61)) >> 62);
  const long long rest = (long long)(top - ((unsigned long long)quarter << 62));
  const double angle = (double)rest * (1.5707963267948966 * 0x1p-62);
  return x < 0.0f ? tl_turned{-angle, -quarter & 3} : tl_turned{angle, quarter & 3};
}
TL_FN tl_turned tl_turn(float x) {
  if (__builtin_fabsf(x) >= 0x1p28f) return tl_turn_large(x);
  const double n = __builtin_rint((double)x * 0.6366197723675814);
  const double r = tl_fma(-n, 6.123233995736766e-17, tl_fma(-n, 1.5707963267948966, (double)x));
  return {r, (int)n & 3};
}
// Sine of a quarter number `quarter` and an angle in it: Taylor's series, to 1e-11.
TL_FN float tl_sine_of(tl_turned t) {
  const double z = t.angle * t.angle;
  double s = -2.5052108385441720e-08, c = 2.0876756987868099e-09;
  s = tl_fma(s, z, 2.7557319223985893e-06);
  s = tl_fma(s, z, -1.9841269841269841e-04);
  s = tl_fma(s, z, 8.3333333333333333e-03);
  s = tl_fma(s, z, -1.6666666666666666e-01);
  s = tl_fma(s * z, t.angle, t.angle);
  c = tl_fma(c, z, -2.7557319223985888e-07);
  c = tl_fma(c, z, 2.4801587301587302e-05);
  c = tl_fma(c, z, -1.3888888888888889e-03);
  c = tl_fma(c, z, 4.1666666666666664e-02);
  c = tl_fma(c, z, -0.5);
  c = tl_fma(c, z, 1.0);
  const double y = (t.quarter & 1) != 0 ? c : s;
  return (float)((t.quarter & 2) != 0 ? -y : y);
}
// A NaN of what has no sine.
TL_FN float tl_finite_or_nan(float x, float y) { return x - x == 0.0f ? y : x - x; }
//@ sinf
TL_FN float tl_sinf(float x) {
  const float y = tl_finite_or_nan(x, tl_sine_of(tl_turn(tl_finite_or_nan(x, x))));
  return x == 0.0f ? x : y;  // -0 stays
}
#define sinf(x) tl_sinf(x)
//@ cosf
TL_FN float tl_cosf(float x) {
  tl_turned t = tl_turn(tl_finite_or_nan(x, x));
  ++t.quarter;
  return tl_finite_or_nan(x, tl_sine_of(t));
}
#define cosf(x) tl_cosf(x)

//@ powf
// x^y of x > 0 by 2^(y * log2 x) in f64.
TL_FN float tl_positive_power(float x, float y) {
  const bool tiny = x < 1.17549435e-38f;
  const unsigned bits = tl_bits(tiny ? x * 8388608.0f : x);
  const int e = (int)(bits - 1060439283u) >> 23;
  const double m = (double)tl_float(bits - ((unsigned)e << 23));
  // ln m = 2 atanh s = 2 (s + s^3/3 + ...), |s| <= 0.172.
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 17.0;
  p = tl_fma(p, z, 1.0 / 15.0);
  p = tl_fma(p, z, 1.0 / 13.0);
  p = tl_fma(p, z, 1.0 / 11.0);
  p = tl_fma(p, z, 1.0 / 9.0);
  p = tl_fma(p, z, 1.0 / 7.0);
  p = tl_fma(p, z, 1.0 / 5.0);
  p = tl_fma(p, z, 1.0 / 3.0);
  p = tl_fma(p * z, s, s);
  const double log = tl_fma(p, 2.8853900817779268, (double)(e - (tiny ? 23 : 0)));
  double v = (double)y * log;
  v = v < -200.0 ? -200.0 : v > 200.0 ? 200.0 : v;
  const double n = __builtin_rint(v), r = (v - n) * 0.6931471805599453;
  double q = 2.7557319223985893e-07;  // e^r, Taylor's series to 1e-13
  q = tl_fma(q, r, 2.7557319223985893e-06);
  q = tl_fma(q, r, 2.4801587301587302e-05);
  q = tl_fma(q, r, 1.9841269841269841e-04);
  q = tl_fma(q, r, 1.3888888888888889e-03);
  q = tl_fma(q, r, 8.3333333333333333e-03);
  q = tl_fma(q, r, 4.1666666666666664e-02);
  q = tl_fma(q, r, 1.6666666666666666e-01);
  q = tl_fma(q, r, 0.5);
  q = tl_fma(q, r, 1.0);
  q = tl_fma(q, r, 1.0);
  return (float)tl_ldexp(q, (int)n);
}
// As C has it.
TL_FN float tl_powf(float x, float y) {
  const float inf = tl_float(0x7f800000u), a = __builtin_fabsf(x);
  if (y == 0.0f || x == 1.0f) return 1.0f;
  if (x != x || y != y) return x + y;
  const bool whole = __builtin_rintf(y) == y, half = __builtin_rintf(y * 0.5f) == y * 0.5f;
  const bool odd = whole && !half;
  float r;
  if (__builtin_fabsf(y) == inf) {
    r = a == 1.0f ? 1.0f : (a > 1.0f) == (y > 0.0f) ? inf : 0.0f;
    return r;
  }
  if (a == 0.0f || a == inf) {
    r = (a == inf) == (y > 0.0f) ? inf : 0.0f;
  } else {
    if (x < 0.0f && !whole) return tl_float(0x7fc00000u);
    r = tl_positive_power(a, y);
  }
  return odd && tl_bits(x) >> 31 != 0 ? -r : r;
}
#define powf(x, y) tl_powf(x, y)

