// Claim: random programs of 2 to 6 ranks give what ranks in step give, and end alike where they are
// stopped; and the campaign notices defects that are planted between ranks and their world.
#include "tools/check/rank_campaign.h"

#include <cstdio>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace eddy::check {
namespace {

TEST(RankCampaignTest, RandomProgramsGiveWhatRanksInStepGive) {
  RankCampaign campaign({});
  constexpr uint64_t kSeeds = 60;
  for (uint64_t seed = 0; seed < kSeeds && campaign.meet(seed); ++seed) {
  }
  const RankCampaignReport& report = campaign.report();
  for (const RankMismatch& mismatch : report.mismatches) {
    ADD_FAILURE() << "seed " << mismatch.seed << ": " << mismatch.what;
  }
  std::printf("seeds 0 to 59: %llu collectives, %llu stops, %llu pairs, %llu runs stopped\n",
              static_cast<unsigned long long>(report.num_collectives),
              static_cast<unsigned long long>(report.num_stops),
              static_cast<unsigned long long>(report.num_pairs),
              static_cast<unsigned long long>(report.num_stopped));
  EXPECT_EQ(report.num_programs, kSeeds);
  EXPECT_GT(report.num_collectives, 1000u);
  EXPECT_GT(report.num_stops, 200u);
  EXPECT_GT(report.num_pairs, 50u);
  EXPECT_GT(report.num_stopped, 100u);
}

// What comes in on one rank is spoilt: a bit of its 20th receive buffer.
class SpoilingTransport final : public Transport {
 public:
  explicit SpoilingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  uint32_t rank() const override { return inner_->rank(); }
  uint32_t num_ranks() const override { return inner_->num_ranks(); }
  std::string describe() const override { return inner_->describe(); }
  bool can_reduce(ElementType element, RankReduction reduction, size_t num_places) const override {
    return inner_->can_reduce(element, reduction, num_places);
  }
  Result<uint32_t> open(std::span<const uint32_t> group, uint32_t number) override {
    return inner_->open(group, number);
  }
  void close(uint32_t communicator) override { inner_->close(communicator); }
  Status start(const Transfer& transfer) override {
    if (transfer.kind == Transfer::Kind::kAllGather && transfer.bytes > 0) {
      if (++num_started_ == 20) spoilt_ = transfer;
    }
    return inner_->start(transfer);
  }
  Status send_message(uint32_t to, std::span<const std::byte> bytes) override {
    return inner_->send_message(to, bytes);
  }
  bool poll(Progress& progress) override {
    const size_t before = progress.done.size();
    const bool has_news = inner_->poll(progress);
    for (size_t i = before; i < progress.done.size(); ++i) {
      if (spoilt_.token == 0 || progress.done[i].token != spoilt_.token) continue;
      static_cast<uint8_t*>(spoilt_.receive)[0] ^= 1;
    }
    return has_news;
  }
  void abort(int exit_code) override { inner_->abort(exit_code); }

 private:
  const std::unique_ptr<Transport> inner_;
  int num_started_ = 0;
  Transfer spoilt_;
};

TEST(RankCampaignTest, NoticesABitThatIsSpoiltOnOneRank) {
  RankCampaignOptions options;
  options.max_mismatches = 1;
  options.plant = [](std::unique_ptr<Transport> inner,
                     uint32_t rank) -> std::unique_ptr<Transport> {
    if (rank != 1) return inner;
    return std::make_unique<SpoilingTransport>(std::move(inner));
  };
  RankCampaign campaign(std::move(options));
  uint64_t seed = 0;
  while (seed < 40 && campaign.meet(seed)) ++seed;
  EXPECT_FALSE(campaign.report().mismatches.empty());
}

}  // namespace
}  // namespace eddy::check
