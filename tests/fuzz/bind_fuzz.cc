// Any program that parses: binding either says what is wrong or gives a module that keeps the rules
// of its level, prints, reads back as itself and, if it is small, lowers for two kinds of targets.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "ir/bind.h"
#include "ir/syntax.h"
#include "ir/unparse.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/pipeline.h"

namespace {

[[noreturn]] void Finding(const char* what, const tl::Status& status, std::string_view text) {
  std::fprintf(stderr, "%s: %s\n%.*s\n", what, std::string(status.message()).c_str(),
               static_cast<int>(text.size()), text.data());
  __builtin_trap();
}

// The first parameters get values, so that what depends on them is bound.
tl::BindOptions OptionsFor(const tl::syntax::Program& program) {
  tl::BindOptions options;
  for (const tl::syntax::Param& param : program.params) {
    if (param.default_value) continue;
    const bool choice = param.type == "enum" && !param.choices.empty();
    options.values.emplace_back(param.name.text, param.type == "dtype"  ? "f32"
                                                 : param.type == "bool" ? "on"
                                                 : choice               ? param.choices[0].text
                                                                        : "8");
  }
  if (program.dims.size() > 1) options.values.emplace_back(program.dims[0].text, "40");
  return options;
}

bool Documented(const tl::Status& status) {
  const tl::Reason reason = tl::DetailOf(status).reason;
  return !status.message().empty() && !absl::IsInternal(status) &&
         (reason == tl::Reason::kSemantics || reason == tl::Reason::kLimit ||
          reason == tl::Reason::kUnsupported || reason == tl::Reason::kSyntax);
}

// Work that lowering would write out.
bool IsSmall(const tl::Module& module) {
  int64_t elements = 0;
  for (const tl::Buffer& b : module.buffers) elements += b.num_elements();
  int statements = 0;
  for (const tl::Launch& launch : module.launches)
    tl::VisitStmts(launch.body, [&](const tl::StmtRef&) { ++statements; });
  return elements < 1 << 20 && statements < 400;
}

tl::Target FakeTarget(bool simt) {
  tl::Target target;
  target.name = target.identity = simt ? "fake_simt" : "fake_cpu";
  target.backend = simt ? "cuda" : "cpu";
  target.simt = simt;
  target.warp_size = simt ? 32 : 1;
  target.default_threads = simt ? 128 : 1;
  target.max_threads_per_block = simt ? 1024 : 16;
  target.max_shared_bytes = simt ? 100 << 10 : 0;
  target.channels = !simt;
  return target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto program = tl::syntax::Parse(text);
  if (!program.ok()) return 0;
  const tl::StatusOr<tl::Module> module = tl::Bind(*program, OptionsFor(*program));
  if (!module.ok()) {
    if (!Documented(module.status())) Finding("bind", module.status(), text);
    return 0;
  }
  if (const tl::Status s = tl::Verify(*module, tl::Level::kTile); !s.ok())
    Finding("verify", s, text);
  const std::string canonical = tl::CanonicalText(*module);
  if (canonical.size() > size_t{1} << 22) return 0;
  for (const std::string& printed : {tl::ToText(*module), canonical}) {
    const auto again = tl::syntax::Parse(printed, tl::syntax::kPrintedLimits);
    if (!again.ok()) Finding("printed text does not parse", again.status(), printed);
    const tl::StatusOr<tl::Module> bound = tl::Bind(*again, {});
    if (!bound.ok()) Finding("printed text does not bind", bound.status(), printed);
    const std::string stable = tl::CanonicalText(*bound);
    if (stable != canonical) Finding("another program", absl::OkStatus(), canonical + stable);
  }
  if (!IsSmall(*module)) return 0;
  for (bool simt : {false, true}) {
    const tl::StatusOr<tl::Module> lowered = tl::Lower(*module, FakeTarget(simt));
    if (!lowered.ok() && !Documented(lowered.status())) Finding("lower", lowered.status(), text);
  }
  return 0;
}
