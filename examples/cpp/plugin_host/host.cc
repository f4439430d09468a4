// A host of plugins, one of which uses the library: the host knows nothing of it, and unloads and
// loads the plugin again. The library itself stays mapped once it was loaded, because threads of
// its may run.
//
//   example_plugin_host [PATH OF example_plugin.so [PATH OF libtilejit.so.1]]
#include <dlfcn.h>

#include <cstdio>

#include "plugin.h"

namespace {

int RunPlugin(const char* plugin, const char* library) {
  void* handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto run = reinterpret_cast<decltype(&plugin_run)>(dlsym(handle, "plugin_run"));
  const int status = run ? run(library) : 1;
  if (!run) std::fprintf(stderr, "%s\n", dlerror());
  dlclose(handle);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const char* plugin = argc > 1 ? argv[1] : "./example_plugin.so";
  const char* library = argc > 2 ? argv[2] : "libtilejit.so.1";
  for (int round = 1; round <= 2; ++round) {
    std::printf("plugin loaded, time %d\n", round);
    if (const int status = RunPlugin(plugin, library)) return status;
  }
  return 0;
}
