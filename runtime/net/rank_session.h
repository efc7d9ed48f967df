// RankSession: a session as one of several, one on each rank of a world: what it agrees on with the
// others before it runs, its channels, and its runs.
//
//   auto ranks = RankSession::create(options);        // the first that is done for a session
//   … kernels are bound by ranks->bind(init) …
//   EDDY_RETURN_IF_ERROR(ranks->agree(facts, …));     // waits for all ranks; or refuse(why)
//   const uint64_t ticket = ranks->take_ticket();     // of each run that is submitted
//   ranks->begin(ticket, …, begun); … ranks->end(*run, …, ended);
//
// The k-th session that a rank creates in a world is the k-th of all other ranks, and the k-th
// ticket of a session stands for one run of all ranks: each is begun or abandoned.
//
// A run has a slot, its number modulo their count; each channel has a communicator in each slot. A
// run waits until the one before in its slot is done.
//
// Errors: agree(): what compare_facts() finds; "rank 1: …" where another rank's session is refused.
// After a lost world: device_lost, of everything. Threads: any; agree() by one, before the first
// run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "runtime/device/device.h"
#include "runtime/net/rank_facts.h"
#include "runtime/net/rank_options.h"
#include "runtime/net/rank_run.h"
#include "runtime/net/run_ledger.h"
#include "runtime/net/world.h"

namespace eddy {

class RankSession final : public World::SessionEnd {
 public:
  // Of a world that there is.
  static std::unique_ptr<RankSession> create(const RankOptions& options);
  // No run is under way.
  ~RankSession();

  World& world() const { return *world_; }
  const RankOptions& options() const { return options_; }

  // Where operations have their scratch memory, and whether threads of this rank have other work to
  // take up; before the first run.
  void set_host(Allocator& memory, std::function<bool()> has_other_work) {
    memory_or_null_ = &memory;
    has_other_work_ = std::move(has_other_work);
  }
  Allocator& memory() const {
    EDDY_DCHECK(memory_or_null_ != nullptr) << "a run before set_host()";
    return *memory_or_null_;
  }
  bool has_other_work() const { return has_other_work_(); }
  // Number of a channel on this rank. Before agree().
  uint32_t add_channel(RankSkeleton::Channel channel);

  // No session here: the other ranks get none, either.
  void refuse(const Status& why);
  // Waits until all ranks have said what they have. `check` is asked again and again.
  Status agree(const RankFacts& own, const std::function<Status()>& check);

  uint64_t take_ticket();
  void abandon(uint64_t ticket, const Status& why);
  // `begun` is called once all ranks have begun the run, or with why they will not: then it is
  // gone. `run` is set before, and valid until `begun` with a failure, or until end() has called
  // back. What `own` refers to stays as long.
  void begin(uint64_t ticket, RankRun::Own own, RankRun*& run, RankRun::Then begun);
  // Its strands have ended. `ended` gets the status of all ranks.
  void end(RankRun& run, Status own, RankRun::Then ended);

  // For its runs, within a Turn.
  uint64_t number() const { return number_; }
  uint32_t communicator(uint32_t channel, uint64_t run) const;
  uint32_t global_channel(uint32_t channel) const {
    EDDY_DCHECK(channel < channels_.size()) << "channel " << channel << " of " << channels_.size();
    return channels_[channel].global;
  }
  // This rank's number of it; none: this rank is not in it.
  std::optional<uint32_t> own_channel(uint32_t global) const;
  const std::vector<uint32_t>& group(uint32_t channel) const {
    EDDY_DCHECK(channel < channels_.size()) << "channel " << channel << " of " << channels_.size();
    return channels_[channel].key.group;
  }
  bool has_first_gone() const { return first_has_gone_; }
  // It is done, and goes once this Turn is over.
  void leave(World::Turn& turn, RankRun& run);

 private:
  struct Channel {
    RankSkeleton::Channel key;
    uint32_t global = 0;
    std::vector<uint32_t> communicators = {};  // by slot
  };

  explicit RankSession(const RankOptions& options);
  void on_message(World::Turn& turn, uint32_t from, RankMessage message) override;
  void on_lost(World::Turn& turn, const Status& why) override;
  void say_hello(World::Turn& turn, const Status& status, std::string facts);
  Status hear_all(const std::function<Status()>& check);
  Status open_channels(World::Turn& turn, const std::vector<RankSkeleton::Channel>& all);
  bool is_slot_free(uint64_t run) const;
  void account(World::Turn& turn, uint32_t from, RankMessage message);
  void end_all(World::Turn& turn, const Status& why);

  const RankOptions options_;
  const std::shared_ptr<World> world_;
  uint64_t number_ = 0;
  Allocator* memory_or_null_ = nullptr;
  std::function<bool()> has_other_work_;
  std::vector<Channel> channels_;
  // In a Turn.
  bool has_said_hello_ = false;
  bool first_has_gone_ = false;                     // rank 0, so that no run begins any more
  std::vector<std::optional<RankMessage>> hellos_;  // by rank
  uint64_t next_ticket_ = 0;
  std::map<uint64_t, std::unique_ptr<RankRun>> runs_;  // by number
  std::set<uint64_t> tickets_;                         // taken, and neither begun nor abandoned
  std::map<uint64_t, Status> refused_;                 // runs that have yet to begin here
  RunLedger ledger_;                                   // rank 0's
};

}  // namespace eddy
