#include "ops/cuda/libraries/library.h"

#include <dlfcn.h>

namespace eddy {

void DynamicLibrary::Close::operator()(void* library) const { dlclose(library); }

void* DynamicLibrary::find_address(const char* symbol) const {
  return dlsym(handle_.get(), symbol);
}

Result<DynamicLibrary> DynamicLibrary::open(std::span<const char* const> names) {
  std::string reasons;
  for (const char* name : names) {
    DynamicLibrary opened;
    opened.handle_.reset(dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    if (opened.handle_ != nullptr) {
      opened.name_ = name;
      return opened;
    }
    const char* reason = dlerror();
    reasons += (reasons.empty() ? "" : "; ") + std::string(reason != nullptr ? reason : name);
  }
  return not_found(reasons);
}

}  // namespace eddy
