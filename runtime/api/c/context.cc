#include "runtime/api/c/context.h"

#include <cstdint>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/options.h"
#include "runtime/api/c/user_code.h"

namespace eddy::c {
namespace {

// The caller's functions, until the last block has gone.
class CallersMemory : public HostMemory {
 public:
  explicit CallersMemory(const eddy_allocator& given) : given_(given) {}
  ~CallersMemory() override {
    if (given_.destroy != nullptr) call_and_forget([this] { given_.destroy(given_.user); });
  }
  CallersMemory(const CallersMemory&) = delete;
  CallersMemory& operator=(const CallersMemory&) = delete;

  // A block that is not aligned goes back at once.
  void* allocate(size_t size_bytes) override {
    void* block = nullptr;
    call_and_forget([&] { block = given_.allocate(given_.user, size_bytes, kSizeClassAlignment); });
    if (reinterpret_cast<uintptr_t>(block) % kSizeClassAlignment == 0) return block;
    release(block, size_bytes);
    return nullptr;
  }
  void release(void* block, size_t size_bytes) override {
    call_and_forget([&] { given_.release(given_.user, block, size_bytes); });
  }

 private:
  const eddy_allocator given_;
};

}  // namespace

eddy_code context_create(const eddy_option* options, size_t num_options, eddy_context* context,
                         eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(context, "place for the context"));
    int num_threads = 0;
    EDDY_C_TRY(read_context_options(options, num_options, num_threads));
    *context = make_handle<eddy_context>(std::make_shared<ContextObject>(num_threads));
    return {};
  });
}

eddy_code context_set_log(eddy_context context, eddy_log log, void* user, eddy_error* error) {
  return enter_with<ContextObject>(context, error, [&](const auto& c) -> Refusal {
    c->set_log(log, user);
    return {};
  });
}

eddy_code context_set_allocator(eddy_context context, const eddy_allocator* allocator,
                                eddy_error* error) {
  return enter_with<ContextObject>(context, error, [&](const auto& c) -> Refusal {
    if (allocator == nullptr) {
      c->set_memory(nullptr);
      return {};
    }
    eddy_allocator read;
    EDDY_C_TRY(read_struct(allocator, EDDY_C_UPTO(eddy_allocator, destroy), "the allocator", read));
    EDDY_C_TRY(need(reinterpret_cast<void*>(read.allocate), "allocate of the allocator"));
    EDDY_C_TRY(need(reinterpret_cast<void*>(read.release), "release of the allocator"));
    c->set_memory(std::make_shared<CallersMemory>(read));
    return {};
  });
}

eddy_code library_create(eddy_context context, eddy_library* library, eddy_error* error) {
  return enter_with<ContextObject>(context, error, [&](const auto& c) -> Refusal {
    EDDY_C_TRY(need(library, "place for the library"));
    *library = make_handle<eddy_library>(std::make_shared<LibraryObject>(c.share()));
    return {};
  });
}

}  // namespace eddy::c
