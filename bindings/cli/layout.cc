// tl layout: pictures of fragment and shared layouts.
#define TL_EXPERIMENTAL
#include <memory>
#include <string>

#include "command.h"

namespace cli {
namespace {

struct Options {
  std::string name, output;
};

int Run(const Options& options) {
  const char* data = nullptr;
  size_t size = 0;
  const tl_status status = tl_layout_svg(options.name.c_str(), &data, &size);
  if (status == TL_INVALID_ARGUMENT) throw UsageError(LastFailure().message);
  Check(status);
  WriteText(std::string(data, size), options.output);
  return kOk;
}

}  // namespace

void AddLayout(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "layout", "Draw who owns which element of a tile, or the banks of a shared buffer, as SVG");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("NAME", options->name,
                   "mma_a, mma_b, mma_c, ldmatrix_a, ldmatrix_b, wgmma_a, each with an optional "
                   ":DTYPE; wgmma_c:COLS; mfma_c:ROWS; rdna_c; tiled_c:ROWSxCOLS:WARPSxWARPS; "
                   "tiled_a:ROWSxDEPTH:WARPSxWARPS; blocked:ROWSxCOLS:DTYPE:WARPS:GROUPS; "
                   "shared:ROWSxCOLS:DTYPE, and plain: for the same without swizzle")
      ->required();
  command->add_option("-o,--output", options->output, "write there, not to standard output");
  SetExamples(*command,
              "  tl layout mma_c -o mma_c.svg\n"
              "  tl layout blocked:128x64:bf16:8 -o blocked.svg\n"
              "  tl layout shared:64x32:bf16 -o shared.svg");
  command->callback([&session, options] { session.run = [options] { return Run(*options); }; });
}

}  // namespace cli
