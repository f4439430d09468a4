#include <gtest/gtest.h>

#include <set>

#include "ir/address.h"
#include "ir/bind.h"
#include "ir/host_eval.h"
#include "ir/syntax.h"

namespace tl {
namespace {

Module BindOrDie(const std::string& text) {
  StatusOr<syntax::Program> program = syntax::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  StatusOr<Module> module = Bind(*program, {});
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

int64_t Eval(const Module& m, const ExprRef& e, std::vector<int64_t> dims,
             std::vector<int64_t> strides) {
  const StatusOr<int64_t> v = EvalHost(m, e, {dims, strides, {}});
  EXPECT_TRUE(v.ok()) << v.status();
  return v.ok() ? *v : -1;
}

int64_t Offset(const Module& m, const std::vector<int64_t>& index, std::vector<int64_t> dims,
               std::vector<int64_t> strides = {}) {
  std::vector<ExprRef> exprs;
  for (int64_t i : index) exprs.push_back(MakeInt(i));
  return Eval(m, TensorOffset(m, m.operands[0], exprs), dims, strides);
}

std::string Text(const std::string& type) {
  return "tl 1.0\nkernel k(B: dim, M: dim, N: dim) { out X: " + type +
         " launch m in 1 { x = alloc_shared<f32>[1] } }";
}

TEST(TensorOffset, Contiguous) {
  const Module m = BindOrDie(Text("tensor<f32>[B, M, N]"));
  EXPECT_EQ(Offset(m, {1, 2, 3}, {2, 5, 7}), 1 * 35 + 2 * 7 + 3);
  EXPECT_EQ(Eval(m, StorageSize(m, m.operands[0]), {2, 5, 7}, {}), 70);
  EXPECT_EQ(Eval(m, StorageSize(m, m.operands[0]), {2, 0, 7}, {}), 0);
}

TEST(TensorOffset, DynamicStrides) {
  const Module m = BindOrDie(Text("tensor<f32>[B, M, N] strides[?, ?, 1]"));
  EXPECT_EQ(Offset(m, {1, 2, 3}, {2, 5, 7}, {100, 10}), 123);
  EXPECT_EQ(Eval(m, StorageSize(m, m.operands[0]), {2, 5, 7}, {100, 10}), 100 + 40 + 6 + 1);
  EXPECT_EQ(Eval(m, StorageSize(m, m.operands[0]), {2, 0, 7}, {100, 10}), 0);
}

TEST(TensorOffset, AboveTwoToThe31) {
  const Module m = BindOrDie(Text("tensor<f32>[B, M, N]"));
  EXPECT_EQ(Offset(m, {1, 99999, 99999}, {2, 100000, 100000}), 19999999999);
}

// Every element has a place of its own, inside the storage, and a tile's elements lie together.
TEST(TensorOffset, Prepacked) {
  const Module m = BindOrDie(Text("tensor<f32>[B, M, N] prepacked[4, 8]"));
  const std::vector<int64_t> dims{2, 10, 19};
  const int64_t size = Eval(m, StorageSize(m, m.operands[0]), dims, {});
  EXPECT_EQ(size, 2 * 12 * 24);
  std::set<int64_t> seen;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 10; ++i) {
      for (int64_t j = 0; j < 19; ++j) {
        const int64_t at = Offset(m, {b, i, j}, dims);
        EXPECT_LT(at, size);
        EXPECT_TRUE(seen.insert(at).second);
        EXPECT_EQ(at / 32, b * 9 + i / 4 * 3 + j / 8);
        EXPECT_EQ(at % 32, i % 4 * 8 + j % 8);
      }
    }
  }
}

}  // namespace
}  // namespace tl
