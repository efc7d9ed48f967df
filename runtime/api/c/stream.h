// StreamObject: an order in which runs of a session go.
//
// Internal to runtime/api/c. Ownership: keeps its session; a run that was submitted to it keeps it
// until it has ended. Threads: issued to by one at a time (Use::kAlone).
#pragma once

#include <memory>

#include "runtime/api/c/errors.h"
#include "runtime/api/c/session.h"
#include "runtime/device/device.h"

namespace eddy::c {

struct StreamObject : Object {
  static constexpr Kind kKind = Kind::kStream;

  StreamObject(std::shared_ptr<SessionObject> of, std::unique_ptr<Stream> made)
      : session(std::move(of)), stream(std::move(made)) {}

  const std::shared_ptr<SessionObject> session;
  const std::unique_ptr<Stream> stream;  // goes first
};

}  // namespace eddy::c
