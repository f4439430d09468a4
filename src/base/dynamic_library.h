// Functions of libraries that are opened at run time.
#ifndef TILEJIT_BASE_DYNAMIC_LIBRARY_H_
#define TILEJIT_BASE_DYNAMIC_LIBRARY_H_

#include <dlfcn.h>

#include <string>

namespace tl {

// False, and null: the library has none of that name.
template <typename F>
bool Resolve(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  return function != nullptr;
}

// Why opening a library, or resolving a function, failed last on this thread.
inline std::string LoaderError() {
  const char* text = dlerror();
  return text != nullptr ? text : "unknown loader error";
}

}  // namespace tl

#endif  // TILEJIT_BASE_DYNAMIC_LIBRARY_H_
