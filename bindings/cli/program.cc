#include "program.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

namespace cli {
namespace {

// Of a dim that is not given: small where there are many, whose product counts.
int64_t DefaultDim(size_t dims) { return dims > 3 ? 16 : 128; }

NamedValues Split(const std::vector<std::string>& texts, const char* option) {
  NamedValues values;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      throw UsageError(std::string(option) + " takes NAME=VALUE, not '" + text + "'");
    const std::string name = text.substr(0, equals);
    for (const auto& [other, value] : values) {
      if (other == name) throw UsageError(std::string(option) + " " + name + " is given twice");
    }
    values.emplace_back(name, text.substr(equals + 1));
  }
  return values;
}

std::string ReadAll(std::istream& in) {
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

std::string FamilyList() {
  std::string list;
  for (uint32_t i = 0; const char* name = tl_family_name(i); ++i) list += std::string(" ") + name;
  return list;
}

int64_t ParseDim(const std::string& name, const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || *end != '\0' || value < 0)
    throw UsageError("--dim " + name + "=" + text + ": a dim is a number from 0 up");
  return value;
}

std::string DynamicDims(const tl_kernel* kernel) {
  std::string list;
  for (uint32_t i = 0; const char* name = tl_kernel_dim_name(kernel, i); ++i)
    list += std::string(list.empty() ? "" : ", ") + name;
  return list.empty() ? "it has no dynamic dims" : "its dynamic dims are " + list;
}

std::vector<std::string> BackendsPresent(tl_context* context) {
  std::vector<std::string> backends;
  for (int32_t i = 0; i < DeviceCount(context); ++i)
    backends.push_back(DeviceInfo(context, i).backend);
  backends.erase(std::unique(backends.begin(), backends.end()), backends.end());
  return backends;
}

// "sm_90" also runs on a device whose target is "sm_90a".
bool Fits(const tl_device_info& device, const Program& program) {
  if (!program.backend.empty() && program.backend != device.backend) return false;
  return std::string_view(device.target).substr(0, program.target.size()) == program.target;
}

// A directory opens, and reading it throws.
bool IsFile(const std::string& path) {
  return std::ifstream(path, std::ios::binary) && !std::filesystem::is_directory(path);
}

}  // namespace

std::string CheckTargetName(const std::string& name) {
  return name.empty() ? "a target such as sm_90a or cpu is expected, and the text is empty" : "";
}

void AddProgramOptions(CLI::App& app, Program& program) {
  app.add_option("PROGRAM", program.name,
                 "file with a tile program ('-': standard input), or name of a builtin family")
      ->required();
  app.add_option("-p,--param", program.param_texts,
                 "compile-time value of a dim, parameter or tune parameter (repeatable); a dim "
                 "without one stays dynamic")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--target", program.target,
                 "compile for this target (sm_90a, cpu, reference) or GPU (H100), present or not")
      ->check(CheckTargetName);
  app.add_option("--shared-budget", program.shared_budget,
                 "bytes of shared memory per block to stay within; 0: what the target has")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--pack", program.packs,
                 "read this pack (tl cache export) below the cache (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_flag("--sealed", program.sealed,
               "compile nothing: what is neither in the cache nor in a pack is an error that says "
               "how to warm it");
}

void AddRunOptions(CLI::App& app, Program& program) {
  app.add_option("--backend", program.backend, "run on the first device of this backend")
      ->check(CLI::IsMember({"reference", "cpu", "emulate", "cuda", "hip"}))
      // Emulated devices exist only where they are asked for.
      ->each([](const std::string& name) {
        if (name == "emulate") setenv("TL_EMULATE", "1", 0);
      });
  app.add_option("--dim", program.dim_texts, "value of a dynamic dim for this launch (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void AddTargetsOption(CLI::App& app, std::vector<std::string>& targets, const std::string& help) {
  app.add_option("--target", targets, help)
      ->delimiter(',')
      ->type_name("NAME,...")
      ->allow_extra_args(false);
}

std::string ReadText(const std::string& path) {
  if (path == "-") return ReadAll(std::cin);
  std::ifstream in(path, std::ios::binary);
  return IsFile(path) ? ReadAll(in) : "";
}

void ReadPlan(const std::string& path, Program& program) {
  program.name = path;
  program.file = path == "-" ? "<stdin>" : path;
  program.source = ReadText(path);
  if (program.source.empty())
    throw UsageError(IsFile(path) ? "the plan '" + path + "' is empty"
                                  : "cannot read the plan '" + path + "'");
}

std::string DirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path();
  return directory.empty() ? "." : directory;
}

void Resolve(Program& program) {
  program.params = Split(program.param_texts, "-p");
  program.dims = Split(program.dim_texts, "--dim");
  program.file = program.name;
  if (program.name == "-") {
    program.file = "<stdin>";
    program.source = ReadText("-");
    return;
  }
  if (const char* family = tl_family_source(program.name.c_str())) {
    program.is_family = true;
    program.file += ".tl";
    program.source = family;
    return;
  }
  program.source = ReadText(program.name);
  if (program.source.empty()) {
    if (IsFile(program.name)) throw UsageError("'" + program.name + "' is empty");
    throw UsageError("'" + program.name +
                     "' is neither a readable file nor a family; families:" + FamilyList());
  }
}

// Throws if no backend knows the target, whoever is present. The text is no program: the library
// looks for the target first, and compiles nothing.
void CheckTarget(tl_context* context, const std::string& target) {
  tl_compile_options options = Sized<tl_compile_options>();
  options.source = "tl";
  options.target = target.c_str();
  tl_kernel* kernel = nullptr;
  const tl_status status = tl_compile(context, &options, &kernel);
  const Kernel owned(kernel);
  if (status == TL_NOT_FOUND) throw LastFailure();
}

Context MakeContext(const Program& program) {
  Context context = MakeContext(program.packs);
  if (program.sealed) Check(tl_seal(context.get()));
  return context;
}

int32_t ChooseDevice(tl_context* context, const Program& program) {
  for (int32_t i = 0; i < DeviceCount(context); ++i) {
    if (Fits(DeviceInfo(context, i), program)) return i;
  }
  if (!program.target.empty()) CheckTarget(context, program.target);
  std::string wanted;
  if (!program.backend.empty()) wanted += " of backend '" + program.backend + "'";
  if (!program.target.empty()) wanted += " with target '" + program.target + "'";
  std::string present;
  for (const std::string& backend : BackendsPresent(context)) present += " " + backend;
  throw Failure{TL_UNAVAILABLE,
                TL_REASON_NO_DEVICE,
                0,
                0,
                0,
                0,
                "there is no device" + wanted + " here; devices:" + present,
                ""};
}

CompileOptions::CompileOptions(tl_context* context, const Program& program, int32_t device) {
  if (program.is_family) {
    options.family = program.name.c_str();
  } else {
    options.source = program.source.data();
    options.source_size = program.source.size();
  }
  for (const auto& [name, value] : program.params) params.push_back({name.c_str(), value.c_str()});
  options.params = params.data();
  options.num_params = params.size();
  options.device = device;
  // With a backend named, the target may be one that several have: the chosen device says which.
  const bool devices_own =
      !program.backend.empty() && program.target == DeviceInfo(context, device).target;
  if (!program.target.empty() && !devices_own) options.target = program.target.c_str();
  options.shared_budget = program.shared_budget;
}

Kernel Compile(tl_context* context, const Program& program, int32_t device) {
  const CompileOptions options(context, program, device);
  tl_kernel* kernel = nullptr;
  Check(tl_compile(context, &options.options, &kernel));
  return Kernel(kernel);
}

std::vector<int64_t> LaunchDims(const tl_kernel* kernel, const Program& program) {
  size_t count = 0;
  while (tl_kernel_dim_name(kernel, static_cast<uint32_t>(count))) ++count;
  std::vector<int64_t> dims;
  std::string defaults;
  size_t used = 0;
  for (uint32_t i = 0; const char* name = tl_kernel_dim_name(kernel, i); ++i) {
    dims.push_back(DefaultDim(count));
    const auto given = std::find_if(program.dims.begin(), program.dims.end(),
                                    [&](const auto& dim) { return dim.first == name; });
    if (given == program.dims.end()) {
      defaults += std::string(" ") + name + "=" + std::to_string(dims.back());
      continue;
    }
    dims.back() = ParseDim(name, given->second);
    ++used;
  }
  for (const auto& [name, value] : program.dims) {
    if (used == program.dims.size()) break;
    bool known = false;
    for (uint32_t i = 0; const char* dim = tl_kernel_dim_name(kernel, i); ++i)
      known = known || name == dim;
    if (!known) throw UsageError("there is no dim " + name + " to give: " + DynamicDims(kernel));
  }
  if (!defaults.empty())
    std::fprintf(stderr, "note: no --dim for%s: default taken\n", defaults.c_str());
  return dims;
}

std::string DimsText(const tl_kernel* kernel, const std::vector<int64_t>& dims,
                     const Program& program) {
  std::ostringstream text;
  for (const auto& [name, value] : program.params) text << " " << name << "=" << value;
  for (uint32_t i = 0; i < dims.size(); ++i)
    text << " " << tl_kernel_dim_name(kernel, i) << "=" << dims[i];
  return text.str();
}

}  // namespace cli
