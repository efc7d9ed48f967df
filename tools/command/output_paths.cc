#include "tools/command/output_paths.h"

#include <fmt/format.h>

#include <filesystem>

namespace eddy {
namespace {

namespace fs = std::filesystem;

// Both may be missing, and one may be spelled in another way.
bool are_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  const fs::path whole_a = fs::weakly_canonical(fs::absolute(a, ignored), ignored);
  return !whole_a.empty() && whole_a == fs::weakly_canonical(fs::absolute(b, ignored), ignored);
}

Status check_folder(const OutputPath& output) {
  std::error_code ignored;
  const fs::path folder = fs::path(output.path).parent_path();
  if (folder.empty() || fs::is_directory(folder, ignored)) return Status::ok();
  return invalid_argument(
      fmt::format("{} {}: there is no folder {}", output.option, output.path, folder.string()));
}

}  // namespace

Status check_output_paths(const std::vector<OutputPath>& outputs,
                          const std::vector<std::string>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPath& output = outputs[i];
    if (output.path.empty()) continue;
    EDDY_RETURN_IF_ERROR(check_folder(output));
    for (const std::string& input : inputs) {
      if (input.empty() || !are_same(output.path, input)) continue;
      return invalid_argument(fmt::format(
          "{} {} is a file that this command reads; write to another", output.option, output.path));
    }
    for (size_t j = 0; j < i; ++j) {
      if (outputs[j].path.empty() || !are_same(output.path, outputs[j].path)) continue;
      return invalid_argument(fmt::format("{} and {} name the same file, {}; give each its own",
                                          outputs[j].option, output.option, output.path));
    }
  }
  return Status::ok();
}

std::string check_file_name(const std::string& text) {
  if (!text.empty() && text != "-") return {};
  return fmt::format("give the name of a file to write, not '{}'", text);
}

}  // namespace eddy
