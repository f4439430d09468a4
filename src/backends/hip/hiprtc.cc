#include "backends/hip/hiprtc.h"

#include <dlfcn.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/dynamic_library.h"

namespace tl {
namespace {

// The functions used, as the vendor's library declares them (an opaque program, 0 for success).
struct Api {
  using Program = void*;
  int (*CreateProgram)(Program* program, const char* source, const char* name, int num_headers,
                       const char* const* headers, const char* const* names) = nullptr;
  int (*CompileProgram)(Program program, int num_options, const char* const* options) = nullptr;
  int (*GetCodeSize)(Program program, size_t* bytes) = nullptr;
  int (*GetCode)(Program program, char* to) = nullptr;
  int (*GetProgramLogSize)(Program program, size_t* bytes) = nullptr;
  int (*GetProgramLog)(Program program, char* to) = nullptr;
  const char* (*GetErrorString)(int result) = nullptr;
};

Status Missing() {
  return MakeError(absl::StatusCode::kNotFound, LoaderError(),
                   {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
}

StatusOr<Api> Open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  Api api;
  const bool all = library != nullptr &&
                   Resolve(library, "hiprtcCreateProgram", api.CreateProgram) &&
                   Resolve(library, "hiprtcCompileProgram", api.CompileProgram) &&
                   Resolve(library, "hiprtcGetCodeSize", api.GetCodeSize) &&
                   Resolve(library, "hiprtcGetCode", api.GetCode) &&
                   Resolve(library, "hiprtcGetProgramLogSize", api.GetProgramLogSize) &&
                   Resolve(library, "hiprtcGetProgramLog", api.GetProgramLog) &&
                   Resolve(library, "hiprtcGetErrorString", api.GetErrorString);
  if (!all) return Missing();
  return api;
}

// One of the program's outputs; empty on failure.
std::string Output(Api::Program program, int (*size)(Api::Program, size_t*),
                   int (*get)(Api::Program, char*)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return "";
  std::string result(bytes, '\0');
  return get(program, result.data()) == 0 ? result : "";
}

// The compiler works on a copy in a directory with a random name, which says nothing to anybody.
std::string WithoutPaths(std::string_view log) {
  constexpr std::string_view kCopy = "CompileSource";
  std::string out;
  for (size_t at; (at = log.find(kCopy)) != std::string_view::npos;) {
    const size_t before = log.find_last_of(" \n'\"", at);
    out += log.substr(0, before == std::string_view::npos ? 0 : before + 1);
    out += "kernel.hip";
    log.remove_prefix(at + kCopy.size());
  }
  out += log;
  while (!out.empty() && (out.back() == '\0' || out.back() == '\n')) out.pop_back();
  return out;
}

}  // namespace

// Nothing is closed or destroyed: the process has no other work.
StatusOr<CompiledJob> CompileByHiprtc(const CompileJob& job) {
  TL_ASSIGN_OR_RETURN(const Api api, Open(job.library));
  Api::Program program = nullptr;
  int result = api.CreateProgram(&program, job.source.c_str(), "kernel.hip", 0, nullptr, nullptr);
  CompiledJob compiled;
  if (result == 0) {
    std::vector<const char*> options;
    for (const std::string& o : job.options) options.push_back(o.c_str());
    result = api.CompileProgram(program, static_cast<int>(options.size()), options.data());
    compiled.log = WithoutPaths(Output(program, api.GetProgramLogSize, api.GetProgramLog));
  }
  if (result != 0) {
    const char* text = api.GetErrorString(result);
    return MakeError(absl::StatusCode::kInternal, text != nullptr ? text : "unknown error",
                     {.domain = Domain::kHip, .native_code = result, .log = compiled.log});
  }
  compiled.binary = Output(program, api.GetCodeSize, api.GetCode);
  if (absl::StartsWith(compiled.binary,
                       "\x7f"
                       "ELF"))
    return compiled;
  return MakeError(absl::StatusCode::kInternal, "it reports success and returns no code object",
                   {.domain = Domain::kHip, .log = compiled.log});
}

}  // namespace tl
