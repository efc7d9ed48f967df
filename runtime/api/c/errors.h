// ErrorObject: a failure as the caller gets it; and enter(), through which every call comes in.
//
// Internal to runtime/api/c. A call's body returns a Refusal; whatever it throws becomes one, so
// nothing else leaves the interface.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/api/c/handles.h"
#include "runtime/api/c/locations.h"
#include "runtime/api/c/refusal.h"

namespace eddy::c {

struct ErrorObject : Object {
  static constexpr Kind kKind = Kind::kError;
  eddy_code code = EDDY_OK;
  std::string line;
  std::string reason;
  std::vector<PathPart> parts;
  std::optional<Location> location;
};

// Makes the error object, where one is wanted and there is memory; the refusal's code. `at`: where
// the caller says that the call stands, for refusals without a path of their own.
eddy_code report(const Refusal& refusal, const Locations* locations_or_null, const Location* at,
                 eddy_error* error) noexcept;
// What is being thrown, as a refusal.
Refusal caught() noexcept;

template <typename Body>
eddy_code enter(eddy_error* error, Body body) noexcept {
  try {
    const Refusal refusal = body();
    if (refusal.is_ok()) [[likely]]
      return EDDY_OK;
    return report(refusal, nullptr, nullptr, error);
  } catch (...) {
    return report(caught(), nullptr, nullptr, error);
  }
}

// With one object, which may be used alone; its locations say where an error comes from.
template <typename T, Use use = Use::kShared, typename Body>
eddy_code enter_with(void* handle, eddy_error* error, Body body) noexcept {
  const Locations* locations = nullptr;
  try {
    Refusal why;
    const Pin<T, use> object(handle, why);
    if (!object) [[unlikely]]
      return report(why, nullptr, nullptr, error);
    const Refusal refusal = body(object);
    if (refusal.is_ok()) [[likely]]
      return EDDY_OK;
    if constexpr (requires { object->locations_or_null(); }) {
      locations = object->locations_or_null();
    }
    return report(refusal, locations, nullptr, error);
  } catch (...) {
    return report(caught(), nullptr, nullptr, error);
  }
}

}  // namespace eddy::c
