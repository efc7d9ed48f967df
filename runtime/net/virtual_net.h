// VirtualNet: one process that plays all ranks, and does to them whatever MPI may, by a seed: for
// tests and campaigns.
//
//   const auto net = VirtualNet::create({.num_ranks = 3, .seed = 7});
//   World::open(net->transport(0)), … of each rank
//
//   - transfers complete in any order, at different times on different ranks, as soon as MPI may
//     report them: a broadcast's root before anybody else has come, say
//   - a send buffer is read as late as allowed: when the receiver's transfer completes, or its own
//   - a receive buffer is spoilt when the transfer starts
//   - operands of kReduce are combined in an order of each rank's own
//   - messages come late, in order from each rank, in any order between ranks and transfers
//
// Kept as violations, one line each: transfers that meet and do not match, a send buffer that has
// changed while it was the transport's, a receive buffer that was written to, a communicator that
// is closed while something is under way. The run goes on, as MPI would, with spoilt values.
//
// Errors: after lose(), every call fails. Threads: any number of ranks on any threads; with all of
// them on one thread, a seed takes the same way again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/random.h"
#include "runtime/net/transport.h"

namespace eddy {

class VirtualNet : public std::enable_shared_from_this<VirtualNet> {
 public:
  struct Options {
    uint32_t num_ranks = 2;
    uint64_t seed = 1;
    // Of each 8 polls so many find nothing, whatever there is.
    uint32_t idle_of_8 = 2;
  };

  static std::shared_ptr<VirtualNet> create(const Options& options);
  // Of a rank, once. Keeps the net.
  std::unique_ptr<Transport> transport(uint32_t rank);

  std::vector<std::string> violations() const;
  size_t num_under_way() const;
  uint64_t num_transfers() const;  // started
  // The rank's next call fails, and all that follow.
  void lose(uint32_t rank);
  // Its polls find nothing any more, as if its process were stopped.
  void freeze(uint32_t rank);

 private:
  class RankTransport;
  // One rank's part of a meeting.
  struct Part {
    Transfer transfer;
    uint32_t rank = 0;
    bool has_started = false;
    bool is_complete = false;
    uint64_t sent_digest = 0;
    uint8_t spoil = 0;
    std::vector<std::byte> kept;  // what it sent, once it is complete
  };
  // Transfers of all places that belong together.
  struct Meeting {
    uint32_t communicator = 0;
    std::vector<Part> parts;
    uint32_t num_complete = 0;
  };
  // A sequence of meetings, of a communicator's collectives or of its messages one way.
  struct Lane {
    uint64_t first = 0;  // index of the first that is kept
    std::deque<Meeting> meetings;
    std::vector<uint64_t> num_started;  // by place
  };
  struct Communicator {
    std::vector<uint32_t> group;
    std::map<std::pair<uint32_t, uint32_t>, Lane> lanes;  // by places; of collectives: none
    std::vector<uint32_t> num_under_way;                  // by place
  };
  struct UnderWay {
    uint32_t communicator = 0;
    std::pair<uint32_t, uint32_t> lane;
    uint64_t index = 0;
    uint32_t place = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit VirtualNet(const Options& options);
  Status start(uint32_t rank, const Transfer& transfer);
  uint32_t open(std::span<const uint32_t> group, uint32_t number);
  void close(uint32_t rank, uint32_t communicator);
  bool poll(uint32_t rank, Transport::Progress& progress);

  Meeting& meeting(const UnderWay& at);
  void check_match(const Meeting& meeting, const Part& added);
  bool may_complete(const UnderWay& at);
  void complete(const UnderWay& at);
  void give(Meeting& meeting, uint32_t place);
  void combine(Meeting& meeting, uint32_t place);
  static const std::byte* sent(const Meeting& meeting, uint32_t place);
  void violate(std::string what);

  const Options options_;
  mutable std::mutex mutex_;
  // Under the mutex.
  Random random_;
  std::vector<Communicator> communicators_;
  std::map<std::pair<std::vector<uint32_t>, uint32_t>, uint32_t> by_key_;
  std::vector<std::vector<UnderWay>> under_way_;                           // by rank
  std::vector<std::vector<std::deque<std::vector<std::byte>>>> messages_;  // by rank, and from
  std::vector<bool> is_lost_, is_frozen_;
  uint64_t num_transfers_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace eddy
