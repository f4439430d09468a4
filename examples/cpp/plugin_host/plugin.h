// What the host calls in the plugin.
#ifndef TILEJIT_EXAMPLES_CPP_PLUGIN_HOST_PLUGIN_H_
#define TILEJIT_EXAMPLES_CPP_PLUGIN_HOST_PLUGIN_H_

// Does some work with the library at that path, or of that name; 0 if it went well.
extern "C" int plugin_run(const char* library);

#endif  // TILEJIT_EXAMPLES_CPP_PLUGIN_HOST_PLUGIN_H_
