#include "backends/cpu/compiler_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/maths.h"
#include "base/build_id.h"
#include "base/dynamic_library.h"

#ifndef TL_LLVM_VERSION
#define TL_LLVM_VERSION "19"
#endif

namespace tl::cpu {
namespace {

constexpr char kFile[] = "libtilejit_cpu.so";

// Directory of the library or program that this function is part of.
std::string OwnDirectory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&OwnDirectory), &info) == 0 || info.dli_fname == nullptr) {
    return "";
  }
  const std::string_view path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : std::string(path.substr(0, slash));
}

std::vector<std::string> Candidates(const SearchPaths& paths) {
  std::vector<std::string> list;
  if (!paths.library_dir.empty()) list.push_back(absl::StrCat(paths.library_dir, "/", kFile));
  if (const std::string own = OwnDirectory(); !own.empty()) {
    list.push_back(absl::StrCat(own, "/", kFile));
    // A program that links the library statically.
    list.push_back(absl::StrCat(own, "/../lib/", kFile));
  }
  return list;
}

Status MissingModule(std::string_view message) {
  return MakeError(absl::StatusCode::kNotFound, message,
                   {.domain = Domain::kOs, .reason = Reason::kMissingLibrary});
}

void* ResolveLibrary(void*, const char* name) { return LibraryFunction(name); }

}  // namespace

CompilerModule::CompilerModule(const SearchPaths& paths) : candidates_(Candidates(paths)) {}

StatusOr<std::string> CompilerModule::Find() const {
  for (const std::string& path : candidates_) {
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return MissingModule(absl::StrCat("compiling for the CPU needs ", kFile,
                                    ", which was not found; tried ",
                                    absl::StrJoin(candidates_, ", ")));
}

StatusOr<std::string> CompilerModule::Identity() {
  TL_ASSIGN_OR_RETURN(const std::string path, Find());
  TL_ASSIGN_OR_RETURN(const std::string id, ReadBuildId(path));
  return absl::StrCat("LLVM ", TL_LLVM_VERSION, " ", id);
}

Status CompilerModule::Open() {
  absl::MutexLock lock(&mutex_);
  if (!tried_) opened_ = OpenLocked();
  tried_ = true;
  return opened_;
}

Status CompilerModule::OpenLocked() {
  TL_ASSIGN_OR_RETURN(const std::string path, Find());
  // Never closed: LLVM registers destructors that must not be unmapped before they run.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return MissingModule(absl::StrCat("cannot load ", dlerror()));
  Functions& f = functions_;
  const bool bound =
      Resolve(library, "tl_cpu_version", f.version) &&
      Resolve(library, "tl_cpu_compiler", f.compiler) &&
      Resolve(library, "tl_cpu_compile", f.compile) && Resolve(library, "tl_cpu_load", f.load) &&
      Resolve(library, "tl_cpu_symbol", f.symbol) && Resolve(library, "tl_cpu_unload", f.unload) &&
      Resolve(library, "tl_cpu_free", f.free);
  if (!bound || f.version() != TL_CPU_INTERFACE_VERSION) {
    return MissingModule(absl::StrCat(path, " belongs to another version of this library"));
  }
  return absl::OkStatus();
}

std::string CompilerModule::Take(tl_cpu_bytes* bytes) const {
  std::string text(bytes->data ? bytes->data : "", bytes->size);
  functions_.free(bytes);
  return text;
}

StatusOr<Compiled> CompilerModule::Compile(std::string_view ir, const std::string& cpu,
                                           const std::string& features, CompileOutput output) {
  TL_RETURN_IF_ERROR(Open());
  const tl_cpu_compile_options options = {
      .struct_size = sizeof(tl_cpu_compile_options),
      .opt_level = 3,
      .want_object = output == CompileOutput::kObject,
      .want_assembly = output == CompileOutput::kAssembly,
      .want_optimized = output == CompileOutput::kOptimizedIr,
  };
  tl_cpu_bytes object = {}, assembly = {}, log = {};
  const int32_t failed = functions_.compile(ir.data(), ir.size(), cpu.c_str(), features.c_str(),
                                            &options, &object, &assembly, &log);
  Compiled compiled;
  compiled.object = Take(&object);
  compiled.assembly = Take(&assembly);
  compiled.log = Take(&log);
  if (!failed) return compiled;
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("LLVM refuses the generated code: ", compiled.log),
                   {.domain = Domain::kLlvm, .native_code = failed, .log = compiled.log});
}

StatusOr<std::unique_ptr<CompilerModule::Image>> CompilerModule::Load(std::string_view object) {
  TL_RETURN_IF_ERROR(Open());
  tl_cpu_image* image = nullptr;
  tl_cpu_bytes log = {};
  const int32_t failed =
      functions_.load(object.data(), object.size(), ResolveLibrary, nullptr, &image, &log);
  const std::string message = Take(&log);
  if (!failed) return std::make_unique<Image>(this, image);
  return MakeError(
      absl::StatusCode::kInternal, absl::StrCat("LLVM cannot load the object: ", message),
      {.domain = Domain::kLlvm, .native_code = failed, .reason = Reason::kBinaryRejected});
}

CompilerModule::Image::~Image() { module_->functions_.unload(image_); }

void* CompilerModule::Image::Symbol(const char* name) const {
  return module_->functions_.symbol(image_, name);
}

}  // namespace tl::cpu
