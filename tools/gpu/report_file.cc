#include "tools/gpu/report_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace eddy {
namespace {

std::string beside(const std::string& path) { return path + ".part"; }

}  // namespace

std::string ReportFile::why_not(const std::string& path) {
  if (path.empty()) return "";
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return "--json: " + path + " is a folder";
  const bool is_writable = std::ofstream(beside(path)).good();
  std::remove(beside(path).c_str());
  return is_writable ? "" : "--json: cannot write " + path;
}

Status ReportFile::write(nlohmann::json report, bool is_complete) const {
  if (path_.empty()) return Status::ok();
  report["complete"] = is_complete;
  const std::string text = report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::ofstream file(beside(path_));
  const bool is_written = static_cast<bool>(file << text << "\n" << std::flush);
  file.close();
  std::error_code error;
  if (is_written) std::filesystem::rename(beside(path_), path_, error);
  if (is_written && !error) return Status::ok();
  std::remove(beside(path_).c_str());
  return run_failed("cannot write " + path_);
}

}  // namespace eddy
