// RankMessage: what ranks tell each other beside their transfers, and its bytes.
//
//   kWhere, kHere   asked of a rank that says nothing, and its answer
//   kHello   what a rank's session is (rank_facts.h), to every rank
//   kGone    its session ends: nothing of it comes any more
//
// and of each run, to rank 0 and from there to all (run_ledger.h):
//
//   to rank 0   kBegin kEnd kStop kCount kSettled        from there   kBegun kStopped kCut kDone
//
// Bytes are the same on every processor. read_message() takes any bytes: what is spoilt is an
// error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "graph/base/status.h"
#include "runtime/net/transport.h"

namespace eddy {

// A transfer as all ranks see it: what must be posted by a rank that has stopped, so that the
// others' transfers complete.
struct TransferShape {
  Transfer::Kind kind = Transfer::Kind::kBarrier;  // of messages: kSend
  uint64_t bytes = 0;
  uint32_t root = 0;
  ElementType element = ElementType::kUint8;
  RankReduction reduction = RankReduction::kSum;
  bool operator==(const TransferShape&) const = default;
};

// Which sequence of transfers: of a channel's collectives, or of its messages from one rank to
// another. Channels are numbered alike on all ranks (RankFacts).
struct LaneName {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t channel = 0;
  uint32_t from = kNone;  // ranks of the world; of collectives: none
  uint32_t to = kNone;
  auto operator<=>(const LaneName&) const = default;
};

// How far a rank has come in a lane: the transfers that it has started in this run, and the last of
// them, as many as others may lack; equal ones in a row are one entry.
struct LaneCount {
  struct Entry {
    TransferShape shape = {};
    uint64_t times = 0;
    bool operator==(const Entry&) const = default;
  };
  LaneName lane = {};
  uint64_t count = 0;
  std::vector<Entry> last = {};
  bool operator==(const LaneCount&) const = default;
};

struct RankMessage {
  enum class Kind : uint8_t {
    kWhere,
    kHere,
    kHello,
    kGone,
    kBegin,
    kEnd,
    kStop,
    kCount,
    kSettled,
    kBegun,
    kStopped,
    kCut,
    kDone
  };
  Kind kind = Kind::kHello;
  // kWhere, kHere: none.
  uint64_t session = 0;
  uint64_t run = 0;
  Status status = {};
  // Of kSettled: the rank has failed by itself, and not because it was stopped by another.
  bool is_own = false;
  std::vector<LaneCount> lanes = {};
  std::string text = {};  // kHello: facts; kBegin: the run's inputs
};

std::vector<std::byte> write_message(const RankMessage& message);
Result<RankMessage> read_message(std::span<const std::byte> bytes);

}  // namespace eddy
