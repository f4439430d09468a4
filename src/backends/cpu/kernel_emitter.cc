#include "backends/cpu/kernel_emitter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ir/visit.h"

namespace tl::cpu {
namespace {

// Buffers beyond this number get no alias metadata: the lists grow with its square.
constexpr size_t kMaxScopes = 64;

// Byte range of a tile in the arena.
struct Range {
  int64_t begin, end;
};

Range RangeOf(const Buffer& buffer) {
  const int64_t bytes =
      buffer.num_elements() * buffer.depth * static_cast<int64_t>(SizeOf(buffer.dtype));
  return {buffer.arena_offset, buffer.arena_offset + bytes};
}

// May the two share memory? Operands do not overlap each other (a rule of the ABI: an output is
// disjoint from every other operand), workspaces are laid out one after the other, and tiles share
// the arena as their offsets say.
bool MayOverlap(const Buffer& a, const Buffer& b) {
  if (a.arena_offset < 0 || b.arena_offset < 0) return false;
  const Range x = RangeOf(a), y = RangeOf(b);
  return x.begin < y.end && y.begin < x.end;
}

// Buffers that the launch reads or writes, ascending.
std::vector<BufferId> UsedBuffers(const Module& module, const Block& body) {
  std::vector<bool> used(module.buffers.size());
  VisitAllExprs(body, [&](const ExprRef& e) {
    VisitExpr(e, [&](const ExprRef& node) {
      if (const Load* load = As<Load>(node)) used[load->buffer] = true;
    });
  });
  VisitStmts(body, [&](const StmtRef& s) {
    if (const Store* store = As<Store>(s)) used[store->buffer] = true;
    if (const AtomicElement* atomic = As<AtomicElement>(s)) used[atomic->buffer] = true;
  });
  std::vector<BufferId> list;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) list.push_back(static_cast<BufferId>(i));
  }
  return list;
}

}  // namespace

KernelEmitter::KernelEmitter(const Module& module, int launch, const CpuFacts& facts,
                             ModuleText* text)
    : module_(module),
      index_(launch),
      launch_(module.launches[launch]),
      facts_(facts),
      text_(*text),
      f_(text),
      // Two more for Combine().
      vars_(module.vars.size() + 2),
      places_(module.buffers.size()) {}

void KernelEmitter::Fail(std::string_view message) {
  if (status_.ok()) status_ = absl::InternalError(absl::StrCat("CPU code generator: ", message));
}

KernelEmitter::Text KernelEmitter::LoadArgument(int index, std::string_view type,
                                                std::string_view metadata) {
  const Text field = f_.Value(absl::StrCat("getelementptr inbounds ptr, ptr %params, i64 ", index));
  const Text address =
      f_.Value(absl::StrCat("load ptr, ptr ", field, ", align 8, !invariant.load !{}"));
  return f_.Value(absl::StrCat("load ", type, ", ptr ", address, ", align ",
                               type == "float" ? 4 : 8, ", !invariant.load !{}", metadata));
}

// Dims, strides and scalars; pointers are loaded where PlaceBuffers needs them.
void KernelEmitter::LoadArguments() {
  int next = static_cast<int>(module_.operands.size() + module_.workspaces.size());
  for (VarId dim : module_.dims) {
    vars_[dim] = LoadArgument(next++, "i64", ", !range !{i64 0, i64 9223372036854775807}");
  }
  for (VarId stride : module_.strides) vars_[stride] = LoadArgument(next++, "i64");
  for (VarId scalar : module_.scalars) {
    const Var& var = module_.var(scalar);
    const bool is_float = IsFloat(var.type);
    const Text value = LoadArgument(next++, is_float ? TypeOf(var.type) : "i64");
    const ScalarType given = is_float ? var.type : ScalarType::kInt;
    vars_[scalar] = Widen(var.dtype, Narrow(var.dtype, given, value));
  }
  if (launch_.block != kNoId) vars_[launch_.block] = "%block";
  // One thread per group.
  if (launch_.thread != kNoId) vars_[launch_.thread] = "%group";
  if (launch_.group != kNoId) vars_[launch_.group] = "%group";
  if (launch_.group_thread != kNoId) vars_[launch_.group_thread] = "0";
}

KernelEmitter::Place KernelEmitter::PlaceOf(BufferId id) {
  const Buffer& buffer = module_.buffer(id);
  Place place;
  if (buffer.scope == Scope::kGlobal) {
    place.global = true;
    const auto& operands = module_.operands;
    const auto& workspaces = module_.workspaces;
    const auto operand = std::find(operands.begin(), operands.end(), id);
    const auto workspace = std::find(workspaces.begin(), workspaces.end(), id);
    if (operand != operands.end()) {
      place.base = LoadArgument(static_cast<int>(operand - operands.begin()), "ptr");
    } else if (workspace != workspaces.end()) {
      place.base =
          LoadArgument(static_cast<int>(operands.size() + (workspace - workspaces.begin())), "ptr");
    } else {
      Fail(absl::StrCat("tensor ", id, " is no argument"));
    }
  } else if (buffer.arena_offset >= 0) {
    place.base =
        f_.Value(absl::StrCat("getelementptr inbounds i8, ptr %arena, i64 ", buffer.arena_offset));
  } else {
    place.local = true;
    place.base = f_.Slot(absl::StrCat("[", std::max<int64_t>(1, buffer.num_elements()), " x ",
                                      StorageType(buffer.dtype, facts_), "]"),
                         16);
  }
  return place;
}

void KernelEmitter::PlaceBuffers() {
  const std::vector<BufferId> used = UsedBuffers(module_, launch_.body);
  for (BufferId id : used) places_[id] = PlaceOf(id);
  MarkAliases(used);
}

// One scope per buffer: an access belongs to its buffer's scope and is disjoint from the scopes of
// all buffers that cannot overlap it.
void KernelEmitter::MarkAliases(const std::vector<BufferId>& used) {
  const size_t count = std::min(used.size(), kMaxScopes);
  if (count < 2) return;
  const Text domain = text_.SelfMetadata("");
  std::vector<Text> scopes;
  for (size_t i = 0; i < count; ++i) scopes.push_back(text_.SelfMetadata(domain));
  for (size_t i = 0; i < count; ++i) {
    std::vector<Text> others;
    for (size_t j = 0; j < count; ++j) {
      if (j == i || MayOverlap(module_.buffer(used[i]), module_.buffer(used[j]))) continue;
      others.push_back(scopes[j]);
    }
    Text& metadata = places_[used[i]].metadata;
    metadata = absl::StrCat(", !alias.scope ", text_.Metadata(absl::StrCat("!{", scopes[i], "}")));
    if (others.empty()) continue;
    absl::StrAppend(&metadata, ", !noalias ",
                    text_.Metadata(absl::StrCat("!{", absl::StrJoin(others, ", "), "}")));
  }
}

// The exported entry: a run of blocks. The kernel is inlined into it, so that loading arguments is
// paid once per run.
void KernelEmitter::DefineRange(std::string_view name) {
  constexpr char kRange[] = R"(
define i32 @NAME_range(ptr %params, i64 %begin, i64 %end, ptr %arena, i64 %group, ptr %runtime) nounwind {
entry:
  br label %head
head:
  %block = phi i64 [ %begin, %entry ], [ %next, %latch ]
  %more = icmp slt i64 %block, %end
  br i1 %more, label %body, label %done
body:
  %result = call i32 @NAME(ptr %params, i64 %block, ptr %arena, i64 %group, ptr %runtime)
  %failed = icmp ne i32 %result, 0
  br i1 %failed, label %stop, label %latch
latch:
  %next = add nsw i64 %block, 1
  br label %head
stop:
  ret i32 %result
done:
  ret i32 0
}

)";
  text_.Define(absl::StrReplaceAll(kRange, {{"NAME", name}}));
}

Status KernelEmitter::Emit() {
  LoadArguments();
  PlaceBuffers();
  Emit(launch_.body);
  f_.Line("ret i32 0");
  if (gives_up_) {
    f_.Begin("give_up");
    f_.Line("ret i32 1");
  }
  TL_RETURN_IF_ERROR(status_);
  const Text name = absl::StrCat("tl_kernel_", index_);
  // With several groups other threads write the arena, so it is not this call's alone.
  const char* alone = launch_.groups == 1 ? "noalias " : "";
  text_.Define(absl::StrCat(
      "define internal i32 @", name,
      "(ptr noalias readonly %params, i64 range(i64 0, 9223372036854775807) "
      "%block, ptr ",
      alone, "align 64 %arena, i64 %group, ptr readonly %runtime) nounwind {\n", f_.Body(), "}\n"));
  DefineRange(name);
  return absl::OkStatus();
}

}  // namespace tl::cpu
