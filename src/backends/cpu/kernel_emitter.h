// Writes one launch of a module at level Thread as an IR function.
//
// Several files: emit_expr.cc (expressions), emit_memory.cc (elements and their conversions),
// emit_stmt.cc (statements), kernel_emitter.cc (arguments, aliasing, the function as a whole).
#ifndef TILEJIT_BACKENDS_CPU_KERNEL_EMITTER_H_
#define TILEJIT_BACKENDS_CPU_KERNEL_EMITTER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/cpu/helpers.h"
#include "backends/cpu/ir_text.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::cpu {

// "i1", "i64", "float", "double": the type of a value during computation.
std::string_view TypeOf(ScalarType type);
// Type of an element in memory.
std::string_view StorageType(DType type, const CpuFacts& facts);

class KernelEmitter {
 public:
  KernelEmitter(const Module& module, int launch, const CpuFacts& facts, ModuleText* text);

  // Defines @tl_kernel_<launch> and @tl_kernel_<launch>_range in the module's text.
  Status Emit();

 private:
  using Text = std::string;

  // How a buffer is reached.
  struct Place {
    Text base;            // pointer to element 0; empty: not used by this launch
    Text metadata;        // alias scopes, ready to append to an access
    bool local = false;   // private to each iteration: never part of a parallel loop's accesses
    bool global = false;  // caller's memory: no alignment is assumed
  };

  // -- kernel_emitter.cc
  void LoadArguments();
  void PlaceBuffers();
  void MarkAliases(const std::vector<BufferId>& used);
  Place PlaceOf(BufferId id);
  Text LoadArgument(int index, std::string_view type, std::string_view metadata = "");
  void DefineRange(std::string_view name);
  void Fail(std::string_view message);

  // -- emit_expr.cc
  Text Emit(const ExprRef& e);
  Text EmitBinary(const Binary& b);
  Text EmitLazy(const ExprRef& cond, const ExprRef& yes, const ExprRef& no, std::string_view type,
                absl::FunctionRef<Text(const ExprRef&)> emit);
  Text Variable(VarId id);
  Text Slot(VarId id);
  Text EmitCall(const Call& call, ScalarType type);

  // -- emit_memory.cc
  Text Address(BufferId id, const std::vector<ExprRef>& index);
  // Alignment and metadata of an access, with leading comma.
  Text AccessTail(BufferId id) const;
  Text LoadRaw(BufferId id, const Text& address);
  void StoreRaw(BufferId id, const Text& address, const Text& raw);
  Text Widen(DType type, const Text& raw);
  Text Narrow(DType type, ScalarType from, const Text& value);
  Text NarrowFloat(DType type, ScalarType from, const Text& value);
  Text EmitCast(const Cast& cast);
  // The value as it is stored, without widening what is only copied.
  Text EmitRaw(const ExprRef& e, DType type);
  bool FitsFloat(const ExprRef& e) const;

  // -- emit_stmt.cc
  void Emit(const Block& block);
  void Emit(const StmtRef& s);
  void EmitStmt(const Let& s);
  void EmitStmt(const Assign& s);
  void EmitStmt(const Alloc&) {}
  void EmitStmt(const Store& s);
  void EmitStmt(const AtomicElement& s);
  void EmitStmt(const For& s);
  void EmitStmt(const If& s);
  void EmitStmt(const ThreadFor& s);
  void EmitStmt(const Barrier& s);
  void EmitStmt(const OnFirstThread& s);
  void EmitStmt(const ChannelAcquire& s);
  void EmitStmt(const ChannelRelease& s);
  template <typename T>
  void EmitStmt(const T&) {
    Fail("a statement of level Tile reached the emitter");
  }
  void EmitLoop(const Text& begin, const Text& end, const Text& step, std::string_view metadata,
                absl::FunctionRef<void(const Text&)> body);
  void EmitGuarded(const Text& cond, absl::FunctionRef<void()> body);
  Text Combine(StoreOp op, ScalarType type, const Text& old, const Text& value);
  Text EmitAccumulation(VarId var, const Binary& sum);
  void EmitCompareAndSwap(const AtomicElement& s, const Text& address);
  Text Callback(int index);
  int ChannelNumber(BufferId id) const;
  void GiveUpIf(const Text& cond);

  const Module& module_;
  const int index_;
  const Launch& launch_;
  const CpuFacts facts_;
  ModuleText& text_;
  FunctionText f_;
  Status status_;

  std::vector<Text> vars_;     // by VarId: value, or slot of a mutable variable
  std::vector<Place> places_;  // by BufferId
  Text access_group_;          // of the parallel loop that is being written
  bool gives_up_ = false;
};

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_KERNEL_EMITTER_H_
