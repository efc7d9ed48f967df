// CollectiveSteps: one call of an operator that communicates, as transfers that follow each other,
// and the arithmetic between them.
//
//   AllReduce up to 8 KiB, of two ranks 512 KiB: gather all operands, combine them in the order of
//                                                the group
//   above                   : send each place its slice, combine that, gather the slices
//   order any               : the transport's own reduction, where it has one
//   along an axis           : parts are packed before, and put side by side behind
//   Exchange                : pieces go round the ring, as far as somebody has one for another
//
// Arithmetic is run_collective's (ops/reference/eddy/collective.h), so results do not depend on the
// transport. A call may begin with a check: digests of what all put in are gathered and compared,
// so that shapes or types that differ are an error on all ranks and nothing moves.
//
// Ownership: views must stay until the last step is over; scratch memory is the steps' own.
// Errors: of plan(): resource_exhausted; what the shapes say. Threads: one at a time.
// Cost: bytes moved, for n ranks and operands of B bytes: gather (n-1) B, slices 2 (n-1)/n B.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/tensor_view.h"
#include "ops/schema/eddy/collective.h"
#include "runtime/device/device.h"
#include "runtime/net/world.h"

namespace eddy {

// Where a rank stands among those of a collective.
struct CollectivePlaces {
  uint32_t communicator = 0;
  // By position in the collective's group: the place in the communicator's, which ascends.
  std::vector<uint32_t> by_position;
  uint32_t own = 0;   // position
  uint32_t root = 0;  // place; of messages: the other side's
  // Of Exchange: its pieces.
  std::shared_ptr<const std::vector<ExchangePiece>> pieces = {};
  size_t size() const { return by_position.size(); }
};

class CollectiveSteps {
 public:
  struct Step {
    Transfer transfer;
    std::function<Status()> after;  // once it is done; may be empty
  };

  // `input`: omitted where the operator has none. `output`: of Send and Barrier a flag.
  // `checks`: begins with a check.
  Status plan(const Collective& collective, const CollectivePlaces& places, const TensorView& input,
              const TensorView& output, const World& world, Allocator& memory, bool checks);

  bool is_done() const { return at_ == steps_.size(); }
  const Transfer& transfer() const {
    EDDY_DCHECK(!is_done()) << "a call has no step behind its last";
    return steps_[at_].transfer;
  }
  // The transfer is done: what follows it, and the next step.
  Status advance();

 private:
  void* scratch(size_t bytes);  // null: there is none, and error_ says so
  void add(Transfer transfer, std::function<Status()> after = {});
  int find_axis(bool is_cut);  // -1: error_ says why
  void add_check();
  void all_reduce(const World& world);
  void reduce_slices();
  void all_gather();
  void reduce_scatter();
  void all_to_all();
  void exchange();
  void broadcast();
  void message();
  void barrier();
  // One behind the other by place, but for the own one.
  struct Parts {
    void* all = nullptr;
    const void* own = nullptr;
  };
  void gather(void* all, size_t bytes, std::function<Status()> after);
  void swap(const void* sent, void* all, size_t bytes, std::function<Status()> after);
  Status combine(const Parts& parts, std::vector<int64_t> dims, const TensorView& to);
  std::vector<TensorView> views(const Parts& parts, std::span<const int64_t> dims) const;
  const void* own_part(const void* parts, size_t bytes) const;
  size_t outer_count(int axis) const;

  Collective collective_;
  const CollectivePlaces* places_ = nullptr;
  TensorView input_, output_;
  Allocator* memory_ = nullptr;
  std::vector<BufferRef> buffers_;
  std::vector<Step> steps_;
  size_t at_ = 0;
  Status error_;
};

}  // namespace eddy
