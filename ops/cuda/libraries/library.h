// DynamicLibrary: a shared library opened when a program first needs it, behind a table of
// functions that tests replace: the general half of the wrapper of every CUDA library.
//
// Entries are std::functions, so that a fake without globals can have state of its own. A library
// that was opened stays in the process to its end: NVIDIA's keep memory and threads of their own
// (NVRTC 71 KiB), which would be lost with every close and made anew with every open.
// Errors: the status of open() has what was looked for and what the loader answered. Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "graph/base/status.h"

namespace eddy {

class DynamicLibrary {
 public:
  // The first of these names that opens: "libcublasLt.so.13", then ".12".
  static Result<DynamicLibrary> open(std::span<const char* const> names);

  // False when the library has no such function.
  template <typename R, typename... Args>
  bool find(const char* symbol, std::function<R(Args...)>& entry) const {
    void* const address = find_address(symbol);
    if (address == nullptr) return false;
    entry = reinterpret_cast<R (*)(Args...)>(address);
    return true;
  }
  const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(void* library) const;
  };
  void* find_address(const char* symbol) const;

  std::unique_ptr<void, Close> handle_;
  std::string name_;
};

}  // namespace eddy
