// Failures as the user reads them.
#ifndef TILEJIT_BINDINGS_CLI_ERROR_TEXT_H_
#define TILEJIT_BINDINGS_CLI_ERROR_TEXT_H_

#include <string>
#include <string_view>

#include "library.h"

namespace cli {

// "error: CODE: message", then, where the failure has a position in the program, "file:line:col"
// and the line with the place marked, then the compiler's log.
std::string ErrorText(const Failure& failure, std::string_view file, std::string_view source);

}  // namespace cli

#endif  // TILEJIT_BINDINGS_CLI_ERROR_TEXT_H_
