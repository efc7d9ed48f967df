// ONNX Runtime as a rival of the benchmarks: its library opened at run time, if there is one.
//
// Nothing of it is needed to build: its C interface is a table of functions that only grows, so
// the few that are used here are called by their index (interface version 17).
//
// Errors: kNotFound with what is missing and where to get it; kRunFailed with the library's words.
// Threads: a session runs on any number of them at a time, a model on one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/host_value.h"

namespace eddy {

class OrtLibrary {
 public:
  // An empty path selects the cache folder, then the system's library.
  static Result<std::unique_ptr<OrtLibrary>> open(const std::string& path);
  ~OrtLibrary();

  const std::string& version() const { return version_; }

 private:
  friend class OrtSession;
  friend class OrtValue;
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

// A tensor of the library; an output of one run may be an input of the next without a copy.
class OrtValue {
 public:
  OrtValue() = default;
  OrtValue(const OrtLibrary& library, void* value) : library_(&library), value_(value) {}
  ~OrtValue() { reset(); }
  OrtValue(OrtValue&& other) noexcept { *this = std::move(other); }
  OrtValue& operator=(OrtValue&& other) noexcept;

  void* get() const { return value_; }
  // Its elements: the view borrows `dims` and the value. No strings.
  Result<TensorView> view(Dims& dims) const;

 private:
  void reset();

  const OrtLibrary* library_ = nullptr;
  void* value_ = nullptr;
};

class OrtSession {
 public:
  // `library` must outlive the session.
  static Result<std::unique_ptr<OrtSession>> load(const OrtLibrary& library,
                                                  const std::string& path, int num_threads);
  ~OrtSession();

  const OrtLibrary& library() const { return library_; }
  // Borrows the view's bytes.
  Result<OrtValue> tensor(const TensorView& view) const;
  // `outputs[i]` gets output `output_names[i]`; its previous value is released.
  Status run(std::span<const char* const> input_names, std::span<const OrtValue* const> inputs,
             std::span<const char* const> output_names, std::span<OrtValue> outputs) const;

 private:
  explicit OrtSession(const OrtLibrary& library) : library_(library) {}
  Status create(const std::string& path, int num_threads);

  const OrtLibrary& library_;
  void* session_ = nullptr;
  void* memory_info_ = nullptr;
};

// A feed of a session, which it may share with others.
class OrtModel {
 public:
  // `library` and the inputs' memory must outlive the model.
  static Result<std::unique_ptr<OrtModel>> load(
      const OrtLibrary& library, const std::string& path, int num_threads,
      const std::vector<std::pair<std::string, const HostValue*>>& inputs,
      const std::vector<std::string>& outputs);
  // Another one of the same session, with the same feed.
  std::unique_ptr<OrtModel> share() const;

  // Its outputs are those of the last run.
  Status run();
  Result<std::vector<HostValue>> outputs() const;

 private:
  struct Feed;
  explicit OrtModel(std::shared_ptr<const Feed> feed);

  const std::shared_ptr<const Feed> feed_;
  std::vector<OrtValue> outputs_;
};

}  // namespace eddy
