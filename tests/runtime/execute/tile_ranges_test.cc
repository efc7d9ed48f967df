// Each tile is taken once, whichever threads join and in whichever order; a thread finds its tiles
// side by side, and the same ones in the next call and in each stage, until others have left some
// over; no tile is taken before all of the stage before it.
#include "runtime/execute/tile_ranges.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace eddy {
namespace {

std::vector<uint32_t> take_all(TileRanges& tiles, uint32_t thread, size_t most = SIZE_MAX) {
  std::vector<uint32_t> taken;
  TileRanges::Place place = tiles.join(thread);
  while (taken.size() < most) {
    const uint32_t tile = tiles.take(place);
    if (tile == tiles.num_tiles()) break;
    taken.push_back(tile);
  }
  return taken;
}

TEST(TileRanges, OneThreadTakesItsOwnRangeFirstAndThenAllOthers) {
  TileRanges tiles(8, 8, 2);
  EXPECT_EQ(take_all(tiles, 1), (std::vector<uint32_t>{4, 5, 6, 7, 0, 1, 2, 3}));
}

TEST(TileRanges, OneRangeKeepsTheOrder) {
  TileRanges tiles(5, 5, 1);
  EXPECT_EQ(take_all(tiles, 3), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(TileRanges, AThreadHasTheSameTilesInEachCall) {
  for (int call = 0; call < 3; ++call) {
    TileRanges tiles(12, 12, 3);
    EXPECT_EQ(take_all(tiles, 2, 4), (std::vector<uint32_t>{8, 9, 10, 11}));
    TileRanges::Place first = tiles.join(call == 1 ? 0 : 3);  // the same place of three
    EXPECT_EQ(tiles.take(first), 0u);
    // Its own place is taken, so that it has the next one.
    EXPECT_EQ(take_all(tiles, 5, 4), (std::vector<uint32_t>{4, 5, 6, 7}));
  }
}

TEST(TileRanges, LeftIsWhatNobodyHasTaken) {
  TileRanges tiles(7, 7, 4);
  TileRanges::Place place = tiles.join(3);
  for (uint32_t left = 7; left > 0; --left) {
    EXPECT_EQ(tiles.num_left(), left);
    EXPECT_LT(tiles.take(place), 7u);
  }
  EXPECT_EQ(tiles.num_left(), 0u);
  EXPECT_EQ(tiles.take(place), 7u);
  EXPECT_EQ(tiles.take(place), 7u);
}

TEST(TileRanges, AThreadGoesToAndFroInItsPartOfEachStage) {
  TileRanges tiles(24, 8, 2);
  TileRanges::Place one = tiles.join(0), other = tiles.join(1);
  std::vector<uint32_t> of_one, of_other;
  for (int i = 0; i < 12; ++i) {
    of_one.push_back(tiles.take(one));
    of_other.push_back(tiles.take(other));
  }
  EXPECT_EQ(of_one, (std::vector<uint32_t>{0, 1, 2, 3, 11, 10, 9, 8, 16, 17, 18, 19}));
  EXPECT_EQ(of_other, (std::vector<uint32_t>{4, 5, 6, 7, 15, 14, 13, 12, 20, 21, 22, 23}));
  EXPECT_EQ(tiles.take(one), 24u);
}

TEST(TileRanges, AThreadReturnsToItsPartInTheStageAfterItHasHelped) {
  TileRanges tiles(12, 4, 2);
  TileRanges::Place one = tiles.join(0), late = tiles.join(1);
  for (const uint32_t tile : {0, 1, 2, 3, 5, 4}) EXPECT_EQ(tiles.take(one), tile);
  for (const uint32_t tile : {7, 6, 10, 11}) EXPECT_EQ(tiles.take(late), tile);
  for (const uint32_t tile : {8, 9, 12, 12}) EXPECT_EQ(tiles.take(one), tile);
}

TEST(TileRanges, FewTilesAndManyThreads) {
  for (uint32_t num_tiles : {1u, 2u, 15u, 17u, 40u}) {
    for (uint32_t at_once : {1u, 3u, 16u, 40u}) {
      for (uint32_t wanted : {1u, 2u, 16u, 256u}) {
        TileRanges tiles(num_tiles, at_once, wanted);
        std::vector<int> times(num_tiles, 0);
        uint32_t num_taken = 0;
        for (uint32_t thread = 0; thread < 300; ++thread) {
          for (uint32_t tile : take_all(tiles, thread, 1)) {
            EXPECT_GE(num_taken++, tile / at_once * at_once) << "before its stage";
            ++times[tile];
          }
        }
        EXPECT_EQ(times, std::vector<int>(num_tiles, 1))
            << num_tiles << " tiles, " << at_once << " at once, " << wanted;
      }
    }
  }
}

TEST(TileRanges, ThreadsTakeEachTileOnce) {
  constexpr uint32_t kTiles = 2'000;
  constexpr int kThreads = 4, kCalls = 50;
  for (int call = 0; call < kCalls; ++call) {
    const uint32_t at_once = call % 2 == 0 ? kTiles : static_cast<uint32_t>(call);
    TileRanges tiles(kTiles, at_once, kThreads);
    std::vector<std::vector<uint32_t>> taken(kThreads);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { taken[i] = take_all(tiles, i * 7); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<int> times(kTiles, 0);
    for (const std::vector<uint32_t>& of_one : taken) {
      for (uint32_t tile : of_one) ++times[tile];
    }
    ASSERT_EQ(times, std::vector<int>(kTiles, 1)) << "call " << call << ", " << at_once;
  }
}

}  // namespace
}  // namespace eddy
