// Small programs at level Thread, compiled and run on this machine's processor.
#ifndef TILEJIT_TESTS_UNIT_CPU_TESTING_H_
#define TILEJIT_TESTS_UNIT_CPU_TESTING_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/search_paths.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::testing {

inline SearchPaths BuildPaths() {
  SearchPaths paths;
  paths.library_dir = TL_BINARY_DIR "/lib";
  return paths;
}

// One backend for all tests of a program: the compiler module is loaded once.
inline Backend& Cpu() {
  static Backend& backend = *MakeCpuBackend(BuildPaths(), 4).release();
  return backend;
}

struct Compiled {
  Generated generated;
  Built built;
};

inline StatusOr<Compiled> Compile(const Module& module, std::string_view target_name = "cpu") {
  TL_ASSIGN_OR_RETURN(const Target target, Cpu().FindTarget(target_name));
  Compiled c;
  TL_ASSIGN_OR_RETURN(c.generated, Cpu().Generate(module, target, {}));
  TL_ASSIGN_OR_RETURN(c.built, Cpu().Build(c.generated, target));
  return c;
}

inline StatusOr<std::unique_ptr<LoadedKernel>> CompileAndLoad(
    const Module& module, std::string_view target_name = "cpu") {
  TL_ASSIGN_OR_RETURN(const Compiled c, Compile(module, target_name));
  return Cpu().Load(c.built.binary, c.generated.entries, module, 0);
}

// Launches entry 0 with pointers and int arguments in the order that LaunchParams documents.
inline Status Launch(LoadedKernel& kernel, int64_t blocks, std::vector<void*> pointers,
                     std::vector<int64_t> ints = {}, int entry = 0) {
  std::vector<void*> params;
  for (void*& p : pointers) params.push_back(&p);
  for (int64_t& v : ints) params.push_back(&v);
  return kernel.Launch(entry, blocks, {params.data(), static_cast<int>(params.size()), nullptr});
}

// Builds modules at level Thread by hand.
class ThreadProgram {
 public:
  ThreadProgram() { module_.level = Level::kThread; }

  BufferId Tensor(DType type, BufferRole role, int64_t extent) {
    Buffer b;
    b.name = "t" + std::to_string(module_.buffers.size());
    b.scope = Scope::kGlobal;
    b.role = role;
    b.dtype = type;
    b.shape = {MakeInt(extent)};
    b.strides = {MakeInt(1)};
    const BufferId id = module_.AddBuffer(std::move(b));
    module_.operands.push_back(id);
    return id;
  }
  BufferId Tile(DType type, int64_t extent, int64_t arena_offset) {
    Buffer b;
    b.name = "x" + std::to_string(module_.buffers.size());
    b.scope = arena_offset < 0 ? Scope::kLocal : Scope::kShared;
    b.dtype = type;
    b.extents = {extent};
    b.arena_offset = arena_offset;
    return module_.AddBuffer(std::move(b));
  }
  VarId Var(ScalarType type, VarRole role, DType dtype = DType::kI64) {
    const VarId id = module_.AddVar("v" + std::to_string(module_.vars.size()), type, role);
    module_.vars[id].dtype = dtype;
    return id;
  }
  ExprRef Read(VarId v) const { return MakeVar(v, module_.var(v).type); }
  ExprRef Load(BufferId b, ExprRef index) const {
    return MakeLoad(b, module_.buffer(b).dtype, {std::move(index)});
  }
  static StmtRef Store(BufferId b, ExprRef index, ExprRef value, StoreOp op = StoreOp::kSet) {
    return MakeStmt(tl::Store{b, {std::move(index)}, op, std::move(value)});
  }
  // A parallel loop over 0..extent-1.
  StmtRef Threads(ExprRef extent, const std::function<Block(ExprRef)>& body) {
    const VarId i = Var(ScalarType::kInt, VarRole::kLoop);
    return MakeStmt(ThreadFor{Team::kBlock, i, std::move(extent), body(Read(i))});
  }
  StmtRef Serial(ExprRef extent, const std::function<Block(ExprRef)>& body, bool down = false) {
    const VarId i = Var(ScalarType::kInt, VarRole::kLoop);
    For loop{LoopKind::kSerial, i, MakeInt(0), std::move(extent), down};
    loop.body = body(Read(i));
    return MakeStmt(std::move(loop));
  }
  tl::Launch NewLaunch() {
    tl::Launch launch;
    launch.block = Var(ScalarType::kInt, VarRole::kThread);
    launch.group = Var(ScalarType::kInt, VarRole::kThread);
    return launch;
  }

  Module& module() { return module_; }

 private:
  Module module_;
};

// out_k[i] = outputs[k](in_0[i], in_1[i], ...) for i below `count`, in one block.
struct Elementwise {
  using Body = std::function<ExprRef(const std::vector<ExprRef>&)>;

  std::vector<DType> inputs;
  std::vector<std::pair<DType, Body>> outputs;
  int64_t count = 0;

  Module Build() const {
    ThreadProgram p;
    std::vector<BufferId> in, out;
    for (DType t : inputs) in.push_back(p.Tensor(t, BufferRole::kIn, count));
    for (const auto& [t, body] : outputs) out.push_back(p.Tensor(t, BufferRole::kOut, count));
    tl::Launch launch = p.NewLaunch();
    for (size_t k = 0; k < outputs.size(); ++k) {
      launch.body.push_back(p.Threads(MakeInt(count), [&](const ExprRef& i) -> Block {
        std::vector<ExprRef> loads;
        for (BufferId b : in) loads.push_back(p.Load(b, i));
        return {ThreadProgram::Store(out[k], i, outputs[k].second(loads))};
      }));
    }
    p.module().launches.push_back(std::move(launch));
    return p.module();
  }

  // The outputs' bytes.
  StatusOr<std::vector<std::vector<char>>> Run(std::vector<void*> in,
                                               std::string_view target = "cpu") const {
    TL_ASSIGN_OR_RETURN(auto kernel, CompileAndLoad(Build(), target));
    std::vector<std::vector<char>> result;
    for (const auto& [t, body] : outputs) result.emplace_back(count * SizeOf(t), '\x55');
    for (std::vector<char>& bytes : result) in.push_back(bytes.data());
    TL_RETURN_IF_ERROR(Launch(*kernel, 1, in));
    return result;
  }
};

template <typename T>
const T* As(const std::vector<char>& bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_UNIT_CPU_TESTING_H_
