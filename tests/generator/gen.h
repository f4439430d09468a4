// The generator's state and its parts; an implementation detail of generator.h.
//
// exprs.cc makes expressions, operands.cc declares tensors and makes windows of them, tile_ops.cc
// makes the operations on tiles, elements.cc `parallel` and what stands in it, control.cc loops,
// conditions, lag and groups, program.cc launches and the whole.
#ifndef TILEJIT_TESTS_GENERATOR_GEN_H_
#define TILEJIT_TESTS_GENERATOR_GEN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "tests/generator/generator.h"
#include "tests/generator/random.h"

namespace tl::generator {

// An expression and what is known of its value.
struct Term {
  std::string text;
  ScalarType type = ScalarType::kInt;
  double lo = 0, hi = 0;  // the value lies between; bools: 0, 1
  bool exact = true;      // no rounding stands behind it: may be an index, a condition, a bound
};

// An int with a known range that windows and indices are made of: an axis, a loop index …
struct Index {
  std::string name;
  int64_t lo = 0, hi = 0;
  // `name * tile` steps through [0, dim): a natural offset for tile dims of that extent. 0: none.
  int64_t tile = 0;
  std::string tile_text, dim_text;
  int64_t dim = 0;
  bool block = false;  // differs between blocks, groups: every output must have it
};

enum class TileKind : uint8_t { kShared, kFragment, kAcc };

struct Tile {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> extents;
  std::vector<std::string> extent_texts;
  TileKind kind = TileKind::kFragment;
  int root = 0;           // tiles and views of one buffer share it
  double lo = 0, hi = 0;  // every element lies between, at all times
  double room = 0;        // how much may still be added to it
  double trips = 1;       // product of the trips of the loops around its alloc
  bool writable = true;
  bool exact = true;
  int group_level = 0;  // 1: made inside `on g`

  int rank() const { return static_cast<int>(extents.size()); }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
  }
};

// A shape's extent, with its value.
struct Extent {
  std::string text;
  int64_t value = 0;
};

struct TensorDecl {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<Extent> shape;
  double lo = 0, hi = 0;
  bool exact = true;
};

inline constexpr double kMaxInt = 1e15;  // ints are kept below, so that doubles say their ranges

class Gen {
 public:
  Gen(uint64_t seed, Kind kind) : r_(seed), kind_(kind) { program_.seed = seed; }
  Program Run();

 private:
  // ---- exprs.cc
  Term Literal(ScalarType type);
  Term Leaf(ScalarType type);
  Term Expr(ScalarType type, int depth);
  Term IntExpr(int depth);
  Term FloatExpr(ScalarType type, int depth);
  Term MathCall(ScalarType type, int depth);
  Term BoolExpr(int depth);
  Term Arithmetic(const char* op, const Term& a, const Term& b);
  Term IfThenElse(ScalarType type, int depth);
  // `t` forced into [lo, hi].
  Term Fit(Term t, double lo, double hi);
  // An exact int expression between 0 and extent-1.
  Term IndexTerm(int64_t extent);
  // An exact int expression of uniform values, hardly bounded.
  Term UniformInt(int depth);
  Term UniformCondition();
  Term Element(const Tile& tile);
  const Tile* ReadableTile(ScalarType type);
  Term ReadTensor(ScalarType type);

  // ---- operands.cc
  DType AnyDType();
  DType NumberDType();
  DType FloatDType();
  std::vector<int64_t> SomeExtents(int rank);
  std::string ExtentText(int64_t e);
  // Declares an input of which a tile of these extents is a window; returns "X[…]".
  std::string InputWindow(DType dtype, const std::vector<int64_t>& extents, TensorDecl* decl);
  // A window that no other block touches, of a new output; `inout` ones hold values between lo and
  // hi.
  std::string OutputWindow(DType dtype, const std::vector<int64_t>& extents, std::string_view role,
                           TensorDecl* decl);
  // Any window of a tensor.
  std::string WindowOf(const TensorDecl& tensor, const std::vector<int64_t>& extents);
  std::string SomeOffset(int64_t extent, Extent* dim);
  void Declare(std::string_view role, TensorDecl& tensor, bool overlay);
  std::string LayoutText(const TensorDecl& tensor, bool may_overlap);
  void InitClause(TensorDecl& tensor);
  const TensorDecl* IndexTensor(int64_t below, int64_t count);

  // ---- tile_ops.cc
  Tile& NewTile(DType dtype, std::vector<int64_t> extents, TileKind kind, double lo, double hi);
  Tile& NewTile(DType dtype, std::vector<int64_t> extents);
  void SetRange(Tile& tile);
  template <typename Fn>
  Tile* PickTileIf(Fn test);
  bool CanWrite(const Tile& t) const;
  bool CanRead(const Tile& t) const;
  bool OpLoad();
  bool OpStore();
  bool OpUpdate();
  bool OpFill();
  bool OpCopyTile();
  bool OpGemm();
  bool OpGemmLoop();
  std::string Orientation();  // an attribute of a gemm, or nothing
  // Of a gemm of such operands; in `percent` of cases one that permits to round more.
  std::string Precision(DType operand, int percent);
  std::string Eviction();  // of a copy between a tensor and a tile
  bool OpReduce();
  bool OpReducer();
  bool OpArgMax();
  bool OpCumSum();
  bool OpView();
  bool OpAtomic();
  bool OpGather();
  void Store(const Tile& tile);
  bool Accumulates(Tile& dst, double amount);

  // ---- elements.cc
  bool OpParallel();
  void ParallelBody(const std::vector<int>& targets,
                    const std::vector<std::vector<std::string>>& at,
                    const std::vector<int64_t>& extents, bool first_defines, size_t num_old);
  void ElementStore(const Tile& tile, const std::vector<std::string>& at, bool must_set);
  void ElementStatement(const std::vector<int>& targets,
                        const std::vector<std::vector<std::string>>& at, int depth);
  void LocalArray();
  void GlobalElement(const std::vector<int64_t>& extents);
  void AtomicElement();

  // ---- control.cc
  struct Scope {
    size_t tiles, indices, floats, ints, bools;
  };
  Scope Enter() const;
  void Leave(const Scope& scope);
  void Body(int statements, int depth);
  bool Statement(int depth);
  bool OpLoop(int depth);
  bool OpLag(int depth);
  bool OpIf(int depth);
  bool OpCompileTimeIf(int depth);
  bool OpLet();
  bool OpVar();
  bool OpUniformLocal();
  bool OpOnGroups(int depth);
  bool OpChannels();
  std::string LoopHead(Index* index, bool pipelined, double* trips);

  // ---- program.cc
  void MakeDims();
  void MakeParams();
  void MakeScalars();
  void MakeLaunch(bool with_axes);
  void MakeSplitLaunches();
  void MakeWorkspaceLaunches();
  std::string LaunchAttrs(bool groups);
  void Finish();

  // ---- text
  void Line(std::string_view text) {
    body_.append(static_cast<size_t>(2 * indent_), ' ').append(text).append("\n");
  }
  void Open(std::string_view text) {
    Line(text);
    ++indent_;
  }
  void Close() {
    --indent_;
    Line("}");
  }
  std::string Name(const char* stem) { return stem + ("_" + std::to_string(next_name_++)); }
  void Charge(double work) { work_ += work * trips_ * blocks_; }

  struct Dim {
    std::string name;
    int64_t value;
    bool fixed;
  };
  struct Scalar {
    Term term;
    bool is_var = false;
    double lo = 0, hi = 0;  // is_var: what may be assigned
    DType dtype = DType::kF32;
  };

  bool warpgroups() const { return kind_ == Kind::kWarpgroups; }
  // Multiply-adds of a product, over all blocks and iterations.
  double MostWork() const { return warpgroups() ? 4e6 : 150000; }

  Random r_;
  const Kind kind_;
  Program program_;
  std::string decls_, body_, params_;
  int indent_ = 1;
  int next_name_ = 0;
  int next_root_ = 1;

  std::vector<Dim> dims_;
  std::vector<std::pair<std::string, int64_t>> int_params_;
  std::vector<std::pair<std::string, DType>> dtype_params_;
  std::vector<TensorDecl> inputs_;        // readable anywhere
  std::vector<TensorDecl> index_inputs_;  // values are page numbers

  // What is in scope.
  std::vector<Tile> tiles_;
  std::vector<Index> indices_;
  std::vector<Scalar> floats_, ints_, bools_;
  std::vector<Index> element_indices_;  // of the `parallel` around
  std::vector<int> hidden_roots_;       // tiles that may be read at one place only
  std::vector<std::pair<const Tile*, std::string>> own_elements_;
  std::vector<std::pair<Term, int64_t>> local_arrays_;  // "a" and its length
  std::vector<int64_t> edges_;                          // extents that this launch likes

  bool in_parallel_ = false;
  int in_group_ = 0;  // number of groups of the `on` around
  int groups_ = 1;
  bool channels_ = false;
  double trips_ = 1;  // product of the loops around
  double blocks_ = 1;
  double work_ = 0;
  int64_t tile_bytes_ = 0;
  int index_depth_ = 0;  // expressions of indices around
  bool lag_body_ = false;
};

double LowestOf(DType t);
double HighestOf(DType t);
std::string Number(double v, ScalarType type);

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_GEN_H_
