// ONNX Runtime as a rival of the benchmarks: its library opened at run time, if there is one.
//
// Nothing of it is needed to build: its C interface is a table of functions that only grows, so
// the few that are used here are called by their index (interface version 17).
//
// Errors: kNotFound with what is missing and where to get it; kRunFailed with the library's words.
// Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/host_value.h"

namespace eddy {

class OrtLibrary {
 public:
  // An empty path looks into the cache folder, then asks the system.
  static Result<std::unique_ptr<OrtLibrary>> open(const std::string& path);
  ~OrtLibrary();

  const std::string& version() const { return version_; }

 private:
  friend class OrtModel;
  OrtLibrary() = default;
  // The function at an index of the table.
  template <typename Function>
  Function at(size_t index) const {
    return reinterpret_cast<Function>(table_[index]);
  }
  Status check(void* status) const;

  void* handle_ = nullptr;
  void* const* table_ = nullptr;
  void* env_ = nullptr;
  std::string version_;
};

class OrtModel {
 public:
  // `library` and the inputs' memory must outlive the model.
  static Result<std::unique_ptr<OrtModel>> load(
      const OrtLibrary& library, const std::string& path, int num_threads,
      const std::vector<std::pair<std::string, const HostValue*>>& inputs,
      const std::vector<std::string>& outputs);
  ~OrtModel();

  // Its outputs are those of the last run.
  Status run();
  Result<std::vector<HostValue>> outputs() const;

 private:
  explicit OrtModel(const OrtLibrary& library) : library_(library) {}
  Status create_session(const std::string& path, int num_threads);
  Status add_input(const std::string& name, const HostValue& value);
  void release_outputs();

  const OrtLibrary& library_;
  void* session_ = nullptr;
  void* memory_info_ = nullptr;
  std::vector<std::string> input_names_;
  std::vector<std::string> output_names_;
  std::vector<const char*> input_name_pointers_;
  std::vector<const char*> output_name_pointers_;
  std::vector<void*> input_values_;
  std::vector<void*> output_values_;
};

}  // namespace eddy
