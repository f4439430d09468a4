#include "service/plan_programs.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "service/request.h"

namespace tl {
namespace {

StatusOr<std::string> ReadProgram(const std::string& file, const std::string& directory) {
  if (file.front() != '/' && directory.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan names the file '", file, "', and nothing says in which directory it lies"));
  }
  const std::string path = file.front() == '/' ? file : absl::StrCat(directory, "/", file);
  std::ifstream in(path, std::ios::binary);
  std::string text;
  // Of a directory, or anything endless, no more than the limit is read.
  for (char c; text.size() <= kMaxPlanBytes && in.get(c);) text += c;
  if (text.empty()) return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  TL_RETURN_IF_ERROR(CheckSourceSize(text));
  return text;
}

}  // namespace

std::string_view NameOf(const PlanEntry& entry) {
  if (!entry.family.empty()) return entry.family;
  return entry.file.empty() ? std::string_view("source") : std::string_view(entry.file);
}

StatusOr<std::string> TextOf(const PlanEntry& entry, const std::string& directory) {
  return entry.file.empty() ? entry.source : ReadProgram(entry.file, directory);
}

}  // namespace tl
