// Tiles: allocation, views, and the operations on whole tiles.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/binder.h"
#include "ir/visit.h"

namespace tl {

namespace {

constexpr size_t kMaxTiles = 4096;
constexpr int64_t kMaxDepth = 64;  // channels

struct ReduceName {
  std::string_view name;
  ReduceOp op;
};
constexpr ReduceName kReduceOps[] = {
    {"sum", ReduceOp::kSum},       {"max", ReduceOp::kMax},   {"min", ReduceOp::kMin},
    {"absmax", ReduceOp::kAbsMax}, {"prod", ReduceOp::kProd}, {"any", ReduceOp::kAny},
    {"all", ReduceOp::kAll},
};

std::optional<ReduceOp> ParseReduceOp(std::string_view name) {
  for (const ReduceName& r : kReduceOps) {
    if (r.name == name) return r.op;
  }
  return std::nullopt;
}

std::vector<int64_t> Without(std::vector<int64_t> extents, int dim) {
  extents.erase(extents.begin() + dim);
  if (extents.empty()) extents.push_back(1);
  return extents;
}

// True for what may have another value later: variables and elements of tensors and tiles.
bool Changes(const Module& module, const ExprRef& e) {
  const VarRef* ref = As<VarRef>(e);
  return As<Load>(e) || (ref && module.var(ref->var).role == VarRole::kMutable);
}

}  // namespace

Status Binder::BindAlloc(const syntax::Stmt& s, Block& out) {
  Buffer b;
  b.name = s.names[0].text;
  b.span = s.names[0].span;
  b.scope = s.op == "alloc_shared"  ? Scope::kShared
            : s.op == "alloc_local" ? Scope::kLocal
            : s.op == "alloc_chan"  ? Scope::kChannel
                                    : Scope::kFragment;
  b.accumulator = s.op == "alloc_acc";
  TL_ASSIGN_OR_RETURN(b.dtype, BindDType(s.type_args[0], s.span));
  if (s.op == "alloc_reducer") {
    b.role = BufferRole::kReducer;
    std::optional<ReduceOp> op =
        s.type_args.size() > 1 ? ParseReduceOp(s.type_args[1]) : std::nullopt;
    if (!op || (*op != ReduceOp::kSum && *op != ReduceOp::kMax && *op != ReduceOp::kMin)) {
      return SemanticError(s.span,
                           "a reducer names its operation: alloc_reducer<f32, sum>, max or min");
    }
    if (b.dtype == DType::kBool) return SemanticError(s.span, "a reducer holds numbers, not bool");
    b.reduce_op = *op;
  }
  if (s.targets.empty()) return SemanticError(s.span, "a tile needs at least one extent");
  for (const syntax::ExprRef& e : s.targets) {
    TL_ASSIGN_OR_RETURN(int64_t extent, BindConstInt(e, absl::StrCat("an extent of '", b.name, "'"),
                                                     1, kMaxExtent));
    b.extents.push_back(extent);
    if (b.num_elements() > kMaxElements) {
      return LimitError(
          s.span, absl::StrCat("tile '", b.name, "' has more than ", kMaxElements, " elements"));
    }
  }
  if (const syntax::Attr* depth = FindAttr(s, "depth")) {
    TL_ASSIGN_OR_RETURN(b.depth, BindConstInt(depth->value, "depth", 1, kMaxDepth));
  }
  if (const syntax::Attr* boxes = FindAttr(s, "boxes")) {
    TL_ASSIGN_OR_RETURN(b.boxes, BindConstInt(boxes->value, "boxes", 1, kMaxExtent));
  }
  if (in_group_ && b.scope == Scope::kChannel) {
    return SemanticError(s.span, "a channel connects groups: allocate it outside 'on'");
  }
  for (const syntax::Name& name : s.names) {
    if (module_.buffers.size() >= kMaxTiles) {
      return LimitError(
          s.span, absl::StrCat("the program has more than ", kMaxTiles, " tiles and tensors"));
    }
    b.name = name.text;
    b.span = name.span;
    const BufferId id = module_.AddBuffer(b);
    TL_RETURN_IF_ERROR(Define(name, {.kind = Binding::Kind::kBuffer,
                                     .span = name.span,
                                     .buffer = id,
                                     .extents_as_written = s.targets}));
    Emit(out, Alloc{id}, s);
  }
  return absl::OkStatus();
}

Status Binder::BindView(const syntax::Stmt& s, Block& out) {
  const syntax::ExprRef& source = s.operands[0];
  TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(source));
  const BufferId id = symbol->kind == Binding::Kind::kView ? symbol->view.buffer : symbol->buffer;
  if (buffer(id).scope == Scope::kGlobal || buffer(id).scope == Scope::kChannel) {
    return SemanticError(source->span, absl::StrCat("a view names a window of a tile, and '",
                                                    source->text, "' is none"));
  }
  std::vector<int64_t> extents;
  for (const syntax::ExprRef& e : s.targets) {
    TL_ASSIGN_OR_RETURN(int64_t extent, BindConstInt(e, "an extent of a view", 1, kMaxExtent));
    extents.push_back(extent);
  }
  max_depth_ = 0;
  TL_ASSIGN_OR_RETURN(Region view, BindWindow(source, extents, s.targets));
  Binding named{.kind = Binding::Kind::kView, .span = s.names[0].span, .size = 0};
  for (ExprRef& offset : view.offset) {
    // The window stays where it was when it was named.
    if (AnyNode(offset, [&](const ExprRef& e) { return Changes(module_, e); })) {
      const VarId var = module_.AddVar(absl::StrCat(s.names[0].text, "_offset"), ScalarType::kInt,
                                       VarRole::kLet, offset->span);
      Emit(out, Let{var, offset}, s);
      offset = MakeVar(var, ScalarType::kInt, offset->span);
    }
    VisitExpr(offset, [&](const ExprRef&) { ++named.size; });
  }
  named.view = std::move(view);
  named.height = max_depth_ + 1;
  named.extents_as_written = s.targets;
  return Define(s.names[0], std::move(named));
}

Status Binder::CheckWritable(const Region& region, std::string_view op) const {
  const Buffer& b = buffer(region.buffer);
  if (b.role == BufferRole::kIn) {
    return SemanticError(region.span,
                         absl::StrCat("'", b.name, "' is an input and cannot be written by ", op,
                                      "; declare it inout"));
  }
  if (b.accumulator && op != "gemm" && op != "fill" && op != "clear" && op != "copy") {
    return SemanticError(
        region.span,
        absl::StrCat("'", b.name,
                     "' is an alloc_acc tile: only gemm, clear, fill and copy touch it"));
  }
  const bool accumulates = op == "fill" || op == "clear" || absl::StartsWith(op, "reduce_");
  if (b.role == BufferRole::kReducer && !finished_.contains(region.buffer) && !accumulates) {
    return SemanticError(region.span,
                         absl::StrCat("before 'finish ", b.name, "' the reducer '", b.name,
                                      "' is filled and reduced into, not written by ", op));
  }
  return absl::OkStatus();
}

Status Binder::CheckReadable(const Region& region, std::string_view op) const {
  const Buffer& b = buffer(region.buffer);
  if (b.role == BufferRole::kReducer && !finished_.contains(region.buffer)) {
    return SemanticError(region.span, absl::StrCat("reducer '", b.name, "' is read by ", op,
                                                   " before 'finish ", b.name, "'"));
  }
  if (b.accumulator && op != "gemm" && op != "copy") {
    return SemanticError(
        region.span,
        absl::StrCat("'", b.name,
                     "' is an alloc_acc tile: only gemm, clear, fill and copy touch it"));
  }
  return absl::OkStatus();
}

Status Binder::BindEviction(const syntax::Stmt& s, Copy& copy) {
  const syntax::Attr* evict = FindAttr(s, "evict");
  if (!evict) return absl::OkStatus();
  TL_ASSIGN_OR_RETURN(std::string name,
                      BindChoice(evict->value, "evict", {"normal", "first", "last"}));
  copy.evict = name == "first"  ? Eviction::kFirst
               : name == "last" ? Eviction::kLast
                                : Eviction::kNormal;
  const auto is_tensor = [&](const Region& r) { return buffer(r.buffer).scope == Scope::kGlobal; };
  if (is_tensor(copy.src) || is_tensor(copy.dst)) return absl::OkStatus();
  return SemanticError(
      evict->span,
      absl::StrCat("evict is about a tensor's elements in the L2 cache, and neither '",
                   syntax::Print(s.operands[0]), "' nor '", syntax::Print(s.targets[0]),
                   "' is a tensor; it goes with the copy from or to one"));
}

Status Binder::BindCopy(const syntax::Stmt& s, Block& out) {
  const syntax::ExprRef& from = s.operands[0];
  const syntax::ExprRef& to = s.targets[0];
  Copy copy;
  TL_ASSIGN_OR_RETURN(copy.transpose, Flag(s, "transpose"));
  TL_ASSIGN_OR_RETURN(std::optional<Region> src, BindWholeTile(from));
  TL_ASSIGN_OR_RETURN(std::optional<Region> dst, BindWholeTile(to));
  if (!src && !dst) {
    return SemanticError(
        s.span, "one side of copy must be a whole tile or a view, which gives the extents");
  }
  auto turned = [&](std::vector<int64_t> extents) {
    if (copy.transpose) std::reverse(extents.begin(), extents.end());
    return extents;
  };
  auto turned_text = [&](std::vector<syntax::ExprRef> extents) {
    if (copy.transpose) std::reverse(extents.begin(), extents.end());
    return extents;
  };
  if (copy.transpose && (src ? src : dst)->rank() != 2) {
    return SemanticError(s.span, "a transposing copy takes tiles of rank 2");
  }
  if (!src) {
    TL_ASSIGN_OR_RETURN(src,
                        BindWindow(from, turned(dst->extents), turned_text(WrittenExtents(to))));
  }
  if (!dst) {
    TL_ASSIGN_OR_RETURN(dst,
                        BindWindow(to, turned(src->extents), turned_text(WrittenExtents(from))));
  }
  copy.src = *std::move(src);
  copy.dst = *std::move(dst);
  if (copy.dst.extents != turned(copy.src.extents)) {
    return SemanticError(
        s.span,
        absl::StrCat("'", syntax::Print(from), "' has extents ", ExtentsText(copy.src.extents),
                     " and '", syntax::Print(to), "' has ", ExtentsText(copy.dst.extents)));
  }
  if (const syntax::Attr* rows = FindAttr(s, "rows")) {
    TL_ASSIGN_OR_RETURN(copy.rows, BindInt(rows->value, "rows"));
  }
  TL_RETURN_IF_ERROR(BindEviction(s, copy));
  TL_RETURN_IF_ERROR(CheckReadable(copy.src, "copy"));
  TL_RETURN_IF_ERROR(CheckWritable(copy.dst, "copy"));
  const bool from_bool = buffer(copy.src.buffer).dtype == DType::kBool;
  if (from_bool != (buffer(copy.dst.buffer).dtype == DType::kBool)) {
    return SemanticError(
        s.span,
        "copy does not convert between bool and numbers; write it in 'parallel' with if or !=");
  }
  Emit(out, std::move(copy), s);
  return absl::OkStatus();
}

Status Binder::BindFill(const syntax::Stmt& s, Block& out) {
  const size_t tiles = s.op == "clear" ? s.operands.size() : s.operands.size() - 1;
  if (tiles == 0)
    return SemanticError(s.span, absl::StrCat("'", s.op, "' names at least one tile"));
  for (size_t i = 0; i < tiles; ++i) {
    TL_ASSIGN_OR_RETURN(Region dst, BindTile(s.operands[i]));
    TL_RETURN_IF_ERROR(CheckWritable(dst, s.op));
    const ScalarType type = ComputeType(buffer(dst.buffer).dtype);
    ExprRef value = type == ScalarType::kBool  ? MakeBool(false)
                    : type == ScalarType::kInt ? MakeInt(0)
                                               : MakeFloat(0, type);
    if (s.op == "fill") {
      TL_ASSIGN_OR_RETURN(value, BindExprAs(s.operands.back(), type));
    }
    Emit(out, Fill{std::move(dst), std::move(value)}, s);
  }
  return absl::OkStatus();
}

Status Binder::CheckGemmTypes(const Gemm& gemm, Span span) const {
  const DType a = buffer(gemm.a.buffer).dtype;
  const DType b = buffer(gemm.b.buffer).dtype;
  const DType c = buffer(gemm.c.buffer).dtype;
  auto is_fp8 = [](DType t) { return t == DType::kE4M3 || t == DType::kE5M2; };
  auto is_byte = [](DType t) { return t == DType::kI8 || t == DType::kU8; };
  const bool pair = a == b || (is_fp8(a) && is_fp8(b)) || (is_byte(a) && is_byte(b));
  if (!pair) {
    return SemanticError(span,
                         absl::StrCat("gemm operands are ", Name(a), " and ", Name(b),
                                      "; they must have one dtype (fp8 kinds and i8/u8 may mix)"));
  }
  bool ok = false;
  std::string_view want;
  if (is_byte(a)) {
    ok = c == DType::kI32;
    want = "i32";
  } else if (a == DType::kF64) {
    ok = c == DType::kF64;
    want = "f64";
  } else if (a == DType::kF16) {
    ok = c == DType::kF32 || c == DType::kF16;
    want = "f32 or f16";
  } else if (IsFloat(a)) {
    ok = c == DType::kF32;
    want = "f32";
  } else {
    return SemanticError(span, absl::StrCat("gemm takes floats, i8 and u8, found ", Name(a)));
  }
  if (!ok) {
    return SemanticError(
        span, absl::StrCat("gemm of ", Name(a), " operands accumulates in ", want, ", but '",
                           buffer(gemm.c.buffer).name, "' is ", Name(c)));
  }
  if (gemm.precision == GemmPrecision::kTF32 && a != DType::kF32) {
    return SemanticError(span, absl::StrCat("precision=tf32 is for f32 operands, found ", Name(a)));
  }
  if (gemm.precision == GemmPrecision::kFastAccum && (!IsFloat(a) || SizeOf(a) != 1)) {
    return SemanticError(span,
                         absl::StrCat("precision=fast_accum is for 8-bit floats, found ", Name(a)));
  }
  return absl::OkStatus();
}

Status Binder::BindGemm(const syntax::Stmt& s, Block& out) {
  Gemm gemm;
  TL_ASSIGN_OR_RETURN(gemm.a, BindTile(s.operands[0]));
  TL_ASSIGN_OR_RETURN(gemm.b, BindTile(s.operands[1]));
  TL_ASSIGN_OR_RETURN(gemm.c, BindTile(s.targets[0]));
  TL_ASSIGN_OR_RETURN(gemm.transpose_a, Flag(s, "transpose_a"));
  TL_ASSIGN_OR_RETURN(gemm.transpose_b, Flag(s, "transpose_b"));
  TL_ASSIGN_OR_RETURN(gemm.clear, Flag(s, "clear"));
  if (const syntax::Attr* policy = FindAttr(s, "policy")) {
    TL_ASSIGN_OR_RETURN(std::string name,
                        BindChoice(policy->value, "policy", {"square", "full_row", "full_col"}));
    gemm.policy = name == "square"     ? GemmPolicy::kSquare
                  : name == "full_row" ? GemmPolicy::kFullRow
                                       : GemmPolicy::kFullCol;
  }
  if (const syntax::Attr* precision = FindAttr(s, "precision")) {
    TL_ASSIGN_OR_RETURN(std::string name,
                        BindChoice(precision->value, "precision", {"exact", "tf32", "fast_accum"}));
    gemm.precision = name == "tf32"         ? GemmPrecision::kTF32
                     : name == "fast_accum" ? GemmPrecision::kFastAccum
                                            : GemmPrecision::kExact;
  }
  if (const syntax::Attr* orientation = FindAttr(s, "orientation")) {
    TL_ASSIGN_OR_RETURN(std::string name, BindChoice(orientation->value, "orientation",
                                                     {"auto", "straight", "swapped"}));
    gemm.orientation = name == "straight"  ? GemmOrientation::kStraight
                       : name == "swapped" ? GemmOrientation::kSwapped
                                           : GemmOrientation::kAuto;
  }
  if (gemm.a.rank() != 2 || gemm.b.rank() != 2 || gemm.c.rank() != 2) {
    return SemanticError(s.span,
                         "gemm takes tiles of rank 2; name a window of a larger one with view");
  }
  const int ta = gemm.transpose_a, tb = gemm.transpose_b;
  const int64_t m = gemm.a.extents[ta], ka = gemm.a.extents[1 - ta];
  const int64_t kb = gemm.b.extents[tb], n = gemm.b.extents[1 - tb];
  if (ka != kb || gemm.c.extents != std::vector<int64_t>{m, n}) {
    return SemanticError(
        s.span,
        absl::StrCat("gemm multiplies ", m, "x", ka, " by ", kb, "x", n, " into ",
                     gemm.c.extents[0], "x", gemm.c.extents[1],
                     ka != kb ? "; the inner extents differ (transpose_a or transpose_b missing?)"
                              : "; the result has other extents"));
  }
  TL_RETURN_IF_ERROR(CheckReadable(gemm.a, "gemm"));
  TL_RETURN_IF_ERROR(CheckReadable(gemm.b, "gemm"));
  TL_RETURN_IF_ERROR(CheckWritable(gemm.c, "gemm"));
  if (gemm.c.buffer == gemm.a.buffer || gemm.c.buffer == gemm.b.buffer) {
    return SemanticError(s.span, "gemm's result may not be one of its operands");
  }
  TL_RETURN_IF_ERROR(CheckGemmTypes(gemm, s.span));
  Emit(out, std::move(gemm), s);
  return absl::OkStatus();
}

StatusOr<int> Binder::BindReducedDim(const syntax::Stmt& s, const Region& src) {
  const syntax::Attr* attr = FindAttr(s, "dim");
  if (!attr) {
    if (src.rank() == 1) return 0;
    return SemanticError(
        s.span, absl::StrCat("'", s.op, "' of a tile of rank ", src.rank(), " needs dim=…"));
  }
  TL_ASSIGN_OR_RETURN(int64_t dim, BindConstInt(attr->value, "dim", -src.rank(), src.rank() - 1));
  return static_cast<int>(dim < 0 ? dim + src.rank() : dim);
}

Status Binder::BindReduce(const syntax::Stmt& s, Block& out) {
  const ReduceOp op = *ParseReduceOp(s.op.substr(std::string_view("reduce_").size()));
  Reduce reduce{.op = op, .src = {}, .dst = {}, .dim = 0};
  TL_ASSIGN_OR_RETURN(reduce.src, BindTile(s.operands[0]));
  TL_ASSIGN_OR_RETURN(reduce.dst, BindTile(s.targets[0]));
  TL_ASSIGN_OR_RETURN(reduce.dim, BindReducedDim(s, reduce.src));
  TL_ASSIGN_OR_RETURN(reduce.clear, Flag(s, "clear"));
  const std::vector<int64_t> want = Without(reduce.src.extents, reduce.dim);
  if (reduce.dst.extents != want) {
    return SemanticError(
        s.span,
        absl::StrCat("reducing dim ", reduce.dim, " of ", ExtentsText(reduce.src.extents),
                     " gives ", ExtentsText(want), ", but '", buffer(reduce.dst.buffer).name,
                     "' has ", ExtentsText(reduce.dst.extents)));
  }
  TL_RETURN_IF_ERROR(CheckReadable(reduce.src, s.op));
  TL_RETURN_IF_ERROR(CheckWritable(reduce.dst, s.op));
  const Buffer& dst = buffer(reduce.dst.buffer);
  const DType from = buffer(reduce.src.buffer).dtype;
  const bool logic = op == ReduceOp::kAny || op == ReduceOp::kAll;
  if ((from == DType::kBool) != logic || (dst.dtype == DType::kBool) != logic) {
    return SemanticError(s.span, logic ? "reduce_any and reduce_all take bool tiles"
                                       : absl::StrCat("'", s.op, "' takes tiles of numbers"));
  }
  if (IsFloat(from) != IsFloat(dst.dtype)) {
    return SemanticError(s.span, absl::StrCat("'", s.op, "' does not convert ", Name(from), " to ",
                                              Name(dst.dtype)));
  }
  if (dst.role == BufferRole::kReducer && dst.reduce_op != op) {
    return SemanticError(
        s.span, absl::StrCat("'", dst.name, "' is a reducer of another operation than ", s.op));
  }
  if (dst.role == BufferRole::kReducer && reduce.clear) {
    return SemanticError(s.span,
                         "a reducer accumulates; use 'clear' as a statement before the loop");
  }
  Emit(out, std::move(reduce), s);
  return absl::OkStatus();
}

Status Binder::BindArgMax(const syntax::Stmt& s, Block& out) {
  ArgMax argmax;
  TL_ASSIGN_OR_RETURN(argmax.src, BindTile(s.operands[0]));
  TL_ASSIGN_OR_RETURN(argmax.dst, BindTile(s.targets[0]));
  TL_ASSIGN_OR_RETURN(argmax.dim, BindReducedDim(s, argmax.src));
  const std::vector<int64_t> want = Without(argmax.src.extents, argmax.dim);
  if (argmax.dst.extents != want) {
    return SemanticError(
        s.span,
        absl::StrCat("argmax over dim ", argmax.dim, " of ", ExtentsText(argmax.src.extents),
                     " gives ", ExtentsText(want), ", but '", buffer(argmax.dst.buffer).name,
                     "' has ", ExtentsText(argmax.dst.extents)));
  }
  TL_RETURN_IF_ERROR(CheckReadable(argmax.src, s.op));
  TL_RETURN_IF_ERROR(CheckWritable(argmax.dst, s.op));
  if (buffer(argmax.src.buffer).dtype == DType::kBool)
    return SemanticError(s.span, "argmax takes a tile of numbers");
  if (ComputeType(buffer(argmax.dst.buffer).dtype) != ScalarType::kInt) {
    return SemanticError(s.span, "argmax gives indices: its result is an integer tile such as i32");
  }
  Emit(out, std::move(argmax), s);
  return absl::OkStatus();
}

Status Binder::BindCumSum(const syntax::Stmt& s, Block& out) {
  CumSum cumsum;
  TL_ASSIGN_OR_RETURN(cumsum.src, BindTile(s.operands[0]));
  TL_ASSIGN_OR_RETURN(cumsum.dst, BindTile(s.targets[0]));
  TL_ASSIGN_OR_RETURN(cumsum.dim, BindReducedDim(s, cumsum.src));
  TL_ASSIGN_OR_RETURN(cumsum.reverse, Flag(s, "reverse"));
  if (cumsum.src.extents != cumsum.dst.extents) {
    return SemanticError(
        s.span, absl::StrCat("cumsum keeps the extents: ", ExtentsText(cumsum.src.extents), " and ",
                             ExtentsText(cumsum.dst.extents)));
  }
  TL_RETURN_IF_ERROR(CheckReadable(cumsum.src, s.op));
  TL_RETURN_IF_ERROR(CheckWritable(cumsum.dst, s.op));
  const DType from = buffer(cumsum.src.buffer).dtype, to = buffer(cumsum.dst.buffer).dtype;
  if (from == DType::kBool || to == DType::kBool || IsFloat(from) != IsFloat(to)) {
    return SemanticError(s.span,
                         absl::StrCat("cumsum does not convert ", Name(from), " to ", Name(to)));
  }
  Emit(out, std::move(cumsum), s);
  return absl::OkStatus();
}

Status Binder::BindFinish(const syntax::Stmt& s, Block& out) {
  for (const syntax::ExprRef& e : s.operands) {
    TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(e));
    if (symbol->kind != Binding::Kind::kBuffer ||
        buffer(symbol->buffer).role != BufferRole::kReducer) {
      return SemanticError(e->span, absl::StrCat("'", e->text, "' is no reducer"));
    }
    finished_.insert(symbol->buffer);
    Emit(out, Finish{symbol->buffer}, s);
  }
  return absl::OkStatus();
}

Status Binder::BindAtomic(const syntax::Stmt& s, AtomicOp op, Block& out) {
  const syntax::ExprRef& target = s.targets[0];
  TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(target));
  if (symbol->kind != Binding::Kind::kBuffer || buffer(symbol->buffer).scope != Scope::kGlobal) {
    return SemanticError(target->span, "atomics work on tensors in global memory");
  }
  const Buffer& b = buffer(symbol->buffer);
  if (b.role == BufferRole::kIn) {
    return SemanticError(target->span,
                         absl::StrCat("'", b.name, "' is an input; declare it inout"));
  }
  const bool ok = b.dtype == DType::kI32 || b.dtype == DType::kU32 || b.dtype == DType::kI64 ||
                  b.dtype == DType::kF32 || b.dtype == DType::kF64 || b.dtype == DType::kF16 ||
                  b.dtype == DType::kBF16;
  if (!ok)
    return SemanticError(
        target->span,
        absl::StrCat("atomics work on i32 u32 i64 f16 bf16 f32 f64, not on ", Name(b.dtype)));
  if (in_parallel_) {
    TL_ASSIGN_OR_RETURN(Element element, BindElement(target));
    TL_ASSIGN_OR_RETURN(ExprRef value, BindExprAs(s.operands[0], ComputeType(b.dtype)));
    Emit(out, AtomicElement{op, element.buffer, std::move(element.index), std::move(value)}, s);
    return absl::OkStatus();
  }
  Atomic atomic{.op = op, .src = {}, .dst = {}};
  TL_ASSIGN_OR_RETURN(atomic.src, BindTile(s.operands[0]));
  TL_ASSIGN_OR_RETURN(atomic.dst,
                      BindWindow(target, atomic.src.extents, WrittenExtents(s.operands[0])));
  TL_RETURN_IF_ERROR(CheckReadable(atomic.src, s.op));
  const DType from = buffer(atomic.src.buffer).dtype;
  if (IsFloat(from) != IsFloat(b.dtype) || from == DType::kBool) {
    return SemanticError(
        s.span, absl::StrCat("'", s.op, "' does not convert ", Name(from), " to ", Name(b.dtype)));
  }
  Emit(out, std::move(atomic), s);
  return absl::OkStatus();
}

}  // namespace tl
