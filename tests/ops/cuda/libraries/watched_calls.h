// watch_calls counts the calls of a library's table by name, and makes one of them fail.
//
//   WatchedCalls calls;
//   auto api = watch_calls(*fake.api(), calls);  // calls outlives it
//   calls.fail_at = 3; calls.answer = 5000;      // the fourth from here answers so, undone
//
// Calls that give something back always succeed: they are not counted.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cuda/libraries/cudnn.h"

namespace eddy::testing {

struct WatchedCalls {
  std::vector<std::string> names;  // by symbol, in order
  size_t fail_at = SIZE_MAX;
  int answer = 0;

  size_t count(std::string_view name) const {
    return static_cast<size_t>(std::count(names.begin(), names.end(), name));
  }
};

template <typename... Args>
std::function<int(Args...)> watched(std::function<int(Args...)> call, const char* symbol,
                                    WatchedCalls& calls) {
  if (std::string_view(symbol).find("Destroy") != std::string_view::npos) return call;
  return [call = std::move(call), symbol, &calls](Args... args) {
    calls.names.push_back(symbol);
    return calls.names.size() - 1 == calls.fail_at ? calls.answer : call(args...);
  };
}
template <typename Other>  // that gives no status
Other watched(Other call, const char*, WatchedCalls&) {
  return call;
}

inline std::shared_ptr<const CudnnApi> watch_calls(const CudnnApi& api, WatchedCalls& calls) {
  auto made = std::make_shared<CudnnApi>();
#define EDDY_WATCH_CALL(entry, symbol, ...) made->entry = watched(api.entry, symbol, calls);
  EDDY_CUDNN_CALLS(EDDY_WATCH_CALL)
#undef EDDY_WATCH_CALL
  return made;
}

}  // namespace eddy::testing
