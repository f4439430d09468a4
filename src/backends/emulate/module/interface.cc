#include "backends/emulate/interface.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/emulate/emulate.h"

struct tl_emulate_program {
  std::unique_ptr<tl::EmulatedProgram> program;
};

namespace {

char* ErrorText(const tl::Status& status) {
  const std::string& log = tl::DetailOf(status).log;
  const std::string text = absl::StrCat(status.message(), log.empty() ? "" : "\n", log);
  return strdup(text.c_str());
}

}  // namespace

#define TL_EXPORT __attribute__((visibility("default")))

TL_EXPORT tl_emulate_program* tl_emulate_build(const char* language, const char* source,
                                               size_t bytes, const tl_emulate_entry* entries,
                                               int num_entries, const char* compiler,
                                               char** error) {
  tl::Generated generated;
  generated.language = language;
  generated.source.assign(source, bytes);
  for (int i = 0; i < num_entries; ++i) {
    generated.entries.push_back({.symbol = entries[i].symbol,
                                 .threads = entries[i].threads,
                                 .groups = entries[i].groups,
                                 .shared_bytes = entries[i].shared_bytes,
                                 .producers = entries[i].producers,
                                 .persistent = entries[i].persistent != 0,
                                 .boxes = {},
                                 .cluster = entries[i].cluster});
  }
  auto program = tl::EmulatedProgram::Build(generated, compiler);
  if (program.ok()) return new tl_emulate_program{*std::move(program)};
  *error = ErrorText(program.status());
  return nullptr;
}

TL_EXPORT int tl_emulate_run(tl_emulate_program* program, int entry, int64_t blocks, void** params,
                             const tl_emulate_operand* operands, int num_operands,
                             const tl_emulate_options* options, char** error) {
  std::vector<tl::EmulatedOperand> list;
  for (int i = 0; i < num_operands; ++i) {
    list.push_back({operands[i].name, operands[i].data, operands[i].bytes});
  }
  const tl::EmulateOptions how = {.seed = options->seed,
                                  .arrival = static_cast<tl::Arrival>(options->arrival),
                                  .warp_size = options->warp_size};
  const tl::Status status = program->program->Run(entry, blocks, params, how, list);
  if (status.ok()) return 0;
  *error = ErrorText(status);
  return 1;
}

TL_EXPORT void tl_emulate_free(tl_emulate_program* program) { delete program; }
TL_EXPORT void tl_emulate_free_text(char* text) { free(text); }
