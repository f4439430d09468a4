// Oracles of attention, attention_decode and mla_decode, and of the programs they stand for: one
// query after the other by the plain formula.
#ifndef TILEJIT_TESTS_ORACLE_ATTENTION_H_
#define TILEJIT_TESTS_ORACLE_ATTENTION_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

// What the tensors do not say. The scalar is the scale of the scores.
struct Attention {
  tl_dtype t = TL_BF16;
  bool causal = false;
  bool lse = false;     // the last tensor is L
  bool base_2 = false;  // weights are powers of 2, not of e
  bool paged = false;   // attention_decode
  int64_t page = 64;    // attention_decode and mla_decode: tokens of a page
};

// Tensors: Q [B,Sq,H,D], K [B,Sk,Hkv,D], V [B,Sk,Hkv,Dv], O [B,Sq,H,Dv], L [B,H,Sq].
int CheckAttention(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                   const int64_t* dims, const tl_scalar* scalars);

// Tensors: Q [B,H,D], K [pages,page,Hkv,D] or [B,Lmax,Hkv,D], V alike of Dv, table [B,·] of paged
// ones, len [B], O [B,H,Dv], L [B,H].
int CheckAttentionDecode(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                         const int64_t* dims, const tl_scalar* scalars);

// Tensors: Q [B,H,D], KV [pages,page,D], table [B,·], len [B], O [B,H,Dv], L [B,H]: the first Dv
// elements of a key are its value.
int CheckMlaDecode(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                   const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_ATTENTION_H_
