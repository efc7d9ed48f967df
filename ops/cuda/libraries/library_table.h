// load_table: a table of a library's functions, filled from the first of some names that opens.
//
//   struct Api { std::function<int(int)> twice; };
//   auto api = load_table<Api>(names, "no doubling", [](auto find, Api& api) {
//     find("twice", api.twice);
//   });
//
// Errors: kNotFound: `without`, then the loader's error; kUnsupported, naming the functions that
// the library lacks.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "ops/cuda/libraries/library.h"

namespace eddy {

template <typename Api, typename Fill>
Result<std::shared_ptr<const Api>> load_table(std::span<const char* const> names,
                                              const std::string& without, Fill fill) {
  // The table goes before the library that its entries point into.
  struct Loaded {
    DynamicLibrary library;
    Api api;
  };
  Result<DynamicLibrary> library = DynamicLibrary::open(names);
  if (!library.is_ok()) {
    return std::move(library.take_status().prepend_message(without));
  }
  auto loaded = std::make_shared<Loaded>(Loaded{std::move(*library), {}});
  std::string missing;
  fill(
      [&](const char* symbol, auto& entry) {
        if (loaded->library.find(symbol, entry)) return;
        missing += (missing.empty() ? "" : ", ") + std::string(symbol);
      },
      loaded->api);
  if (!missing.empty()) {
    return unsupported(without + ": " + loaded->library.name() + " lacks " + missing);
  }
  const Api* const api = &loaded->api;
  return std::shared_ptr<const Api>(std::move(loaded), api);
}

// The process's table: loaded by the first call that can, and never destroyed.
template <typename Api, typename Load>
Result<std::shared_ptr<const Api>> load_once(const Load& load) {
  static std::mutex mutex;
  static auto& kept = *new std::shared_ptr<const Api>();
  std::lock_guard lock(mutex);
  if (kept == nullptr) {
    EDDY_ASSIGN_OR_RETURN(kept, load());
  }
  return kept;
}

}  // namespace eddy
