// Transport: what moves bytes between the ranks of a world: MPI (runtime/mpi), or one process that
// plays all ranks (virtual_world.h).
//
//   EDDY_ASSIGN_OR_RETURN(const uint32_t all, transport.open(group, 0));
//   transport.start({.kind = kAllGather, .communicator = all, .send = x, .receive = y, …});
//   while (…) transport.poll(progress);   // progress.done names the transfer's token, once
//
// It knows no tensors, sessions or runs. Sums in rank order, axes, types that it cannot reduce, and
// which rank starts what when, are the World's (world.h), so every transport gives the same bits.
//
// Matching is MPI's: transfers of a communicator match by the order in which each rank starts them,
// messages kSend and kRecv by their two ranks and that order. Starting is local: it waits for no
// other rank, and several may be under way on one communicator. A transfer that was started cannot
// be taken back. Nothing is checked: the World starts only what was proved to match.
//
// Ownership: `send` and `receive` are the transfer's from start() until poll() has named its token;
// until then it may read the one and write to the other at any moment. They never overlap. Messages
// are copied by send_message().
// Progress: only in poll(), which is quick and never blocks or waits. open() and the constructor of
// a transport are all that may block.
// Errors: a failure of any call, or of a transfer, means that the world is lost, as kDeviceLost.
// Nothing is called afterwards but abort() and the destructor, and buffers of transfers under way
// may go: what moves only in poll() moves no more. Threads: any, one at a time; the World holds a
// lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/types.h"
#include "ops/schema/eddy/collective.h"

namespace eddy {

// Places are of ranks in the communicator's group, which ascends.
struct Transfer {
  enum class Kind : uint8_t {
    kAllGather,  // `receive` becomes `bytes` of each place, in their order
    kAllToAll,   // part i of `send` goes to place i; `receive` becomes a part of each; `bytes` a
                 // part
    kBroadcast,  // `receive` of place `root` becomes that of all; `send` is null
    kReduce,     // `receive` becomes `send` of all, combined element by element in any order
    kSend,       // `send` to place `root`
    kRecv,       // `receive` from place `root`; `bytes` is what is sent, exactly
    kShift,      // `send` to the place `root` behind, round the ring, `receive` from as far before
    kBarrier     // done when all have started it
  };
  Kind kind = Kind::kBarrier;
  uint32_t communicator = 0;
  const void* send = nullptr;
  void* receive = nullptr;
  uint64_t bytes = 0;  // any number, also 0 and above 2^31
  uint32_t root = 0;
  // Of kAllGather and kAllToAll: the own part of `receive` need not be written.
  bool skips_own = false;
  ElementType element = ElementType::kUint8;      // of kReduce, aligned in both buffers
  RankReduction reduction = RankReduction::kSum;  // of kReduce; never kAverage
  uint64_t token = 0;                             // the World's name for it, used once
};

class Transport {
 public:
  struct Message {
    uint32_t from = 0;
    std::vector<std::byte> bytes;
  };
  // poll() appends.
  struct Progress {
    struct Done {
      uint64_t token = 0;
      Status status = {};
    };
    std::vector<Done> done;
    std::vector<Message> messages;
  };

  virtual ~Transport() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t num_ranks() const = 0;
  // "Open MPI 4.1.4"; equal on all ranks, or their world is refused.
  virtual std::string describe() const = 0;
  // Whether kReduce takes it, and for that many ranks rather than that they gather and combine by
  // themselves. Equal on all ranks.
  virtual bool can_reduce(ElementType element, RankReduction reduction,
                          size_t num_places) const = 0;

  // A communicator of its own over `group` (ascending, with this rank). Each rank of the group
  // calls it with the same `number` (below 2^15) as the same one of its opens of this group; may
  // wait for them. Ids are this rank's own.
  virtual Result<uint32_t> open(std::span<const uint32_t> group, uint32_t number) = 0;
  // This rank uses it no more, and nothing is under way on it. Waits for no other rank.
  virtual void close(uint32_t communicator) = 0;

  virtual Status start(const Transfer& transfer) = 0;
  // A few bytes, or many, to any rank, itself included. Of two ranks, messages arrive in the order
  // of sending; relative to transfers in any.
  virtual Status send_message(uint32_t to, std::span<const std::byte> bytes) = 0;
  // Moves everything on by a little. True: something was appended.
  virtual bool poll(Progress& progress) = 0;

  // Ends the processes of all ranks, this one included, where they are processes. For commands; the
  // library never calls it.
  virtual void abort(int exit_code) = 0;
};

}  // namespace eddy
