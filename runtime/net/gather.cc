#include "runtime/net/gather.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/net/run_ledger.h"

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = RankMessage::Kind;

// Looking for news costs a processor, which a rank that still works may need.
constexpr std::chrono::microseconds kSpin{200};
constexpr std::chrono::microseconds kNap{50};

class Gathering final : public World::SessionEnd {
 public:
  explicit Gathering(World& world) : world_(world), said_(world.num_ranks()) {
    World::Turn turn(world_);
    number_ = turn.add_session(*this);
  }
  ~Gathering() {
    World::Turn turn(world_);
    turn.remove_session(number_);
  }

  // What all ranks have said; on rank 0, by rank.
  Result<std::vector<std::string>> gather(const Status& own, std::string bytes) {
    const bool is_first = world_.rank() == 0;
    say(0, own, is_first ? std::string() : std::move(bytes));
    if (!is_first) {
      EDDY_RETURN_IF_ERROR(await_reply());
      return std::vector<std::string>();
    }
    EDDY_RETURN_IF_ERROR(await_all());
    EDDY_RETURN_IF_ERROR(reply({}));
    std::vector<std::string> parts;
    for (auto& said : said_) parts.push_back(std::move(said->text));
    parts[0] = std::move(bytes);
    return parts;
  }

  // What rank 0 has.
  Result<std::string> spread(const Status& own, std::string bytes) {
    say(0, own, {});
    if (world_.rank() > 0) {
      EDDY_RETURN_IF_ERROR(await_reply());
      return std::move(reply_->text);
    }
    EDDY_RETURN_IF_ERROR(await_all());
    EDDY_RETURN_IF_ERROR(reply(bytes));
    return bytes;
  }

 private:
  void say(uint32_t to, const Status& status, std::string text) {
    World::Turn turn(world_);
    RankMessage message{.kind = Kind::kHello, .session = number_, .status = status};
    message.text = std::move(text);
    turn.send(to, message);
  }

  Status await_all() {
    return wait([this] {
      return std::ranges::all_of(said_, [](const auto& each) { return each.has_value(); });
    });
  }
  Status await_reply() {
    EDDY_RETURN_IF_ERROR(wait([this] { return reply_.has_value(); }));
    return reply_->status;
  }
  // Rank 0's: the status of all ranks, and with it `text` where all is well.
  Status reply(const std::string& text) {
    Status verdict;
    for (uint32_t r = 0; r < said_.size() && verdict.is_ok(); ++r) {
      verdict = of_rank(r, said_[r]->status);
    }
    for (uint32_t r = 1; r < said_.size(); ++r) say(r, verdict, verdict.is_ok() ? text : "");
    return verdict;
  }

  template <typename HasCome>
  Status wait(const HasCome& has_come) {
    Clock::time_point idle_since = Clock::now();
    for (;;) {
      {
        World::Turn turn(world_);
        EDDY_RETURN_IF_ERROR(turn.health());
        if (has_come()) return Status::ok();
      }
      if (world_.poll()) {
        idle_since = Clock::now();
      } else if (Clock::now() - idle_since > kSpin) {
        std::this_thread::sleep_for(kNap);
      }
    }
  }

  void on_message(World::Turn& /*turn*/, uint32_t from, RankMessage message) override {
    if (message.kind != Kind::kHello) return;
    // To rank 0 all ranks speak, itself included; to others rank 0 alone.
    if (world_.rank() == 0) {
      said_[from] = std::move(message);
    } else if (from == 0) {
      reply_ = std::move(message);
    }
  }
  void on_lost(World::Turn& /*turn*/, const Status& /*why*/) override {}  // health() says it

  World& world_;
  uint64_t number_ = 0;
  // In a Turn.
  std::vector<std::optional<RankMessage>> said_;  // by rank
  std::optional<RankMessage> reply_;
};

}  // namespace

Result<std::vector<std::string>> gather_at_first(World& world, const Status& own,
                                                 std::string bytes) {
  return Gathering(world).gather(own, std::move(bytes));
}

Result<std::string> spread_from_first(World& world, const Status& own, std::string bytes) {
  return Gathering(world).spread(own, std::move(bytes));
}

}  // namespace eddy
