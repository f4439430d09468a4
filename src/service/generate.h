// From a bound program to a backend's source text: runs the passes that the target needs.
#ifndef TILEJIT_SERVICE_GENERATE_H_
#define TILEJIT_SERVICE_GENERATE_H_

#include <string_view>

#include "backends/backend.h"

namespace tl {

// The module that the backend's Generate takes: level Thread for compiled targets, the program
// itself for the interpreter.
StatusOr<Module> LowerFor(const Module& module, const Target& target, int64_t shared_budget);

StatusOr<Generated> GenerateFor(Backend& backend, const Module& module, const Target& target,
                                int64_t shared_budget);

// Hash of the sources of the front end and the passes. Part of every semantic key: an edited pass
// never meets an old binary.
std::string_view PassesHash();

}  // namespace tl

#endif  // TILEJIT_SERVICE_GENERATE_H_
