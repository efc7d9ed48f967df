// One command of a plan, as the host issues it.
//
//   launch  node `id` on `stream`
//   record  event `id` on `stream`: the event happens when the stream has come this far
//   wait    `stream` goes no further before event `id` has happened
//
// Promised by devices, and all that a proof may rest on: the order within a stream, and a record
// before the waits that name it (in issue order). Launches of one node on several streams stand
// next to each other and are one joint launch: it starts when all of these streams have reached
// it, and all go on when it has ended.
#pragma once

#include <cstdint>

namespace eddy {

struct Command {
  enum class Kind : uint32_t { kLaunch, kRecord, kWait };
  Kind kind;
  uint32_t stream;
  uint32_t id;  // a node for launch, an event for record and wait
  bool operator==(const Command&) const = default;
};

}  // namespace eddy
