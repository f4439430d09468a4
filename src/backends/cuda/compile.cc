#include "backends/cuda/compile.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "backends/cuda/ptxas_info.h"
#include "backends/cuda/targets.h"

namespace tl {
namespace {

constexpr int kInvalidOption = 5;  // nvrtcResult

using GetSize = int (*)(NvrtcApi::Program, size_t*);
using GetText = int (*)(NvrtcApi::Program, char*);

class ProgramHandle {
 public:
  explicit ProgramHandle(const NvrtcApi& api) : api_(api) {}
  ~ProgramHandle() {
    if (program_ != nullptr) api_.DestroyProgram(&program_);
  }
  ProgramHandle(const ProgramHandle&) = delete;
  ProgramHandle& operator=(const ProgramHandle&) = delete;

  int Create(const std::string& source) {
    return api_.CreateProgram(&program_, source.c_str(), "tilejit.cu", 0, nullptr, nullptr);
  }
  int Compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& o : options) pointers.push_back(o.c_str());
    return api_.CompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  }
  // One of the program's outputs; empty on failure.
  std::string Output(GetSize size, GetText text) const {
    size_t bytes = 0;
    if (size(program_, &bytes) != 0) return "";
    std::string result(bytes, '\0');
    if (bytes > 0 && text(program_, result.data()) != 0) return "";
    return result;
  }

 private:
  const NvrtcApi& api_;
  NvrtcApi::Program program_ = nullptr;
};

Status CheckArch(const Nvrtc& nvrtc, const Target& target) {
  const std::vector<int>& archs = nvrtc.archs();
  const int number = ArchNumber(target);
  if (archs.empty() || std::find(archs.begin(), archs.end(), number) != archs.end()) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kUnimplemented,
                   absl::StrCat("NVRTC ", nvrtc.major(), ".", nvrtc.minor(), " (", nvrtc.path(),
                                ") cannot compile for ", target.name, "; it compiles for sm_",
                                absl::StrJoin(archs, ", sm_")),
                   {.domain = Domain::kNvrtc, .reason = Reason::kUnsupported});
}

// The machine's code, or code for the machine's virtual form.
std::string ArchOption(const Target& target, CompileForm form) {
  std::string_view suffix = target.name;
  absl::ConsumePrefix(&suffix, "sm_");
  return absl::StrCat("--gpu-architecture=", form == CompileForm::kCubin ? "sm_" : "compute_",
                      suffix);
}

// Registers and spills come with the log; a hit in the compiler's own cache would leave the log
// empty.
std::vector<std::string> WishedOptions(const Nvrtc& nvrtc, CompileForm form) {
  if (form == CompileForm::kPtx) return {};
  std::vector<std::string> options = {"--ptxas-options=-v"};
  if (nvrtc.major() >= 13) options.push_back("--no-cache");
  return options;
}

Status NotEnoughRegisters(const RegisterShortage& shortage, const Target& target, int result,
                          std::string log) {
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat(
          "compiling for ", target.name, ": a thread has ", shortage.available,
          " registers, of which one instruction alone takes ", shortage.needed,
          ". Give a thread fewer elements of a product (fewer columns of c, more warps), or "
          "more registers (fewer threads in a block, a smaller 'blocks')"),
      {.domain = Domain::kNvrtc,
       .native_code = result,
       .reason = Reason::kLimit,
       .log = std::move(log)});
}

void TrimEnd(std::string& text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
}

}  // namespace

StatusOr<CompiledText> CompileCuda(const Nvrtc& nvrtc, const std::string& source,
                                   const Target& target, CompileForm form) {
  TL_RETURN_IF_ERROR(CheckArch(nvrtc, target));
  const NvrtcApi& api = nvrtc.api();
  ProgramHandle program(api);
  if (const int result = program.Create(source)) return nvrtc.Error(result, "nvrtcCreateProgram");
  std::vector<std::string> options = {ArchOption(target, form), "--std=c++17"};
  std::vector<std::string> wished = options;
  for (std::string& o : WishedOptions(nvrtc, form)) wished.push_back(std::move(o));
  int result = program.Compile(wished);
  // Older compilers know less options, and these only add to the log.
  if (result == kInvalidOption) result = program.Compile(options);
  CompiledText compiled;
  compiled.log = program.Output(api.GetProgramLogSize, api.GetProgramLog);
  TrimEnd(compiled.log);
  if (result != 0) {
    if (const auto shortage = FindRegisterShortage(compiled.log)) {
      return NotEnoughRegisters(*shortage, target, result, std::move(compiled.log));
    }
    return nvrtc.Error(result, absl::StrCat("compiling for ", target.name),
                       std::move(compiled.log));
  }
  compiled.output = form == CompileForm::kCubin ? program.Output(api.GetCUBINSize, api.GetCUBIN)
                                                : program.Output(api.GetPTXSize, api.GetPTX);
  if (form == CompileForm::kPtx) TrimEnd(compiled.output);
  if (compiled.output.empty()) {
    return MakeError(absl::StatusCode::kInternal, "NVRTC compiled the program but returned nothing",
                     {.domain = Domain::kNvrtc, .log = std::move(compiled.log)});
  }
  return compiled;
}

}  // namespace tl
