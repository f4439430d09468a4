// Other programs, run to their end, and the files that they are given.
#ifndef TILEJIT_BASE_PROGRAM_H_
#define TILEJIT_BASE_PROGRAM_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

// A directory that disappears with the object.
class TemporaryDirectory {
 public:
  // Its name begins with `prefix`.
  explicit TemporaryDirectory(std::string_view prefix);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  bool ok() const { return !path_.empty(); }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// "" where there is none.
std::string ReadFile(const std::filesystem::path& path);
bool WriteFile(const std::filesystem::path& path, std::string_view content);

// The exit status of a program (looked for in PATH unless its name has a slash), or -1; what it
// prints goes to `log`.
int RunProgram(const std::vector<std::string>& args, const std::filesystem::path& log);

}  // namespace tl

#endif  // TILEJIT_BASE_PROGRAM_H_
