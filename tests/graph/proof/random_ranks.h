// Random joint programs that are right by construction: all ranks take a part of one sequence of
// operations, loops and cases, in its order.
#pragma once

#include <vector>

#include "graph/base/random.h"
#include "graph/proof/rank_skeleton.h"

namespace eddy {

class RandomRanks {
 public:
  RandomRanks(uint32_t num_ranks, uint64_t seed) : skeletons_(num_ranks), random_(seed) {
    for (uint32_t n = 0; n < 3; ++n) {
      for (uint32_t set = 1; set < (1u << num_ranks); ++set) {
        RankSkeleton::Channel channel{{}, n};
        for (uint32_t r = 0; r < num_ranks; ++r) {
          if (set >> r & 1) channel.group.push_back(r);
        }
        if (channel.group.size() > 1) channels_.push_back(channel);
      }
    }
  }

  std::vector<RankSkeleton> make(int num_items, int depth) {
    for (uint32_t r = 0; r < skeletons_.size(); ++r) skeletons_[r].regions.resize(1);
    std::vector<uint32_t> roots(skeletons_.size(), 0);
    fill(make_items(num_items, depth), roots);
    return skeletons_;
  }

 private:
  using Op = RankSkeleton::Op;
  struct Item {
    RankSkeleton::Channel channel;  // of an operation, or where a loop agrees
    uint32_t from = RankSkeleton::kNone, to = RankSkeleton::kNone;
    int id = 0;
    bool is_control = false;
    RankSkeleton::Control control;
    std::vector<std::vector<Item>> regions;
    bool has(uint32_t rank) const {
      for (const auto& items : regions) {
        for (const Item& item : items) {
          if (item.has(rank)) return true;
        }
      }
      if (is_control && control.decision == RankSkeleton::Decision::kUniform) return false;
      if (from != RankSkeleton::kNone) return rank == from || rank == to;
      for (uint32_t r : channel.group) {
        if (r == rank) return true;
      }
      return false;
    }
  };

  std::vector<Item> make_items(int count, int depth) {
    std::vector<Item> items(static_cast<size_t>(count));
    for (Item& item : items) {
      item.id = next_id_++;
      item.channel = channels_[random_.below(channels_.size())];
      if (depth > 0 && random_.below(4) == 0) {
        make_control(&item, depth);
      } else if (random_.below(3) == 0) {
        const size_t n = item.channel.group.size();
        const size_t from = random_.below(n);
        item.from = item.channel.group[from];
        item.to = item.channel.group[(from + 1 + random_.below(n - 1)) % n];
      }
    }
    return items;
  }

  void make_control(Item* item, int depth) {
    using Decision = RankSkeleton::Decision;
    item->is_control = true;
    RankSkeleton::Control& control = item->control;
    const bool is_loop = random_.below(2) == 0;
    control.kind = is_loop ? RankSkeleton::ControlKind::kLoop : RankSkeleton::ControlKind::kCase;
    control.is_pipelined = is_loop && random_.below(2) == 0;
    control.path = "control_" + std::to_string(item->id);
    // Agreed over all ranks, so that whoever meets inside agrees.
    control.decision = static_cast<Decision>(1 + random_.below(4));
    if (control.decision != Decision::kUniform) {
      item->channel.group.clear();
      for (uint32_t r = 0; r < skeletons_.size(); ++r) item->channel.group.push_back(r);
    }
    // A channel of its own, or one that may be used inside, too.
    if (item->id % 2 == 0) item->channel.number = 100 + static_cast<uint32_t>(item->id);
    if (control.decision == Decision::kAgreeRoot) control.root = 1;
    const size_t count = is_loop ? 2 : 1 + random_.below(3);
    for (size_t i = 0; i < count; ++i) {
      item->regions.push_back(make_items(static_cast<int>(random_.below(4)), depth - 1));
    }
  }

  uint32_t channel_of(uint32_t rank, const RankSkeleton::Channel& channel) {
    auto& channels = skeletons_[rank].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c] == channel) return c;
    }
    channels.push_back(channel);
    return static_cast<uint32_t>(channels.size() - 1);
  }

  void fill(const std::vector<Item>& items, const std::vector<uint32_t>& regions) {
    for (const Item& item : items) {
      std::vector<std::vector<uint32_t>> inner(item.regions.size(), regions);
      for (uint32_t r = 0; r < skeletons_.size(); ++r) {
        if (regions[r] != RankSkeleton::kNone && item.has(r)) place(item, r, regions[r], &inner);
        if (regions[r] == RankSkeleton::kNone || !item.has(r)) {
          for (auto& ids : inner) ids[r] = RankSkeleton::kNone;
        }
      }
      for (size_t i = 0; i < inner.size(); ++i) fill(item.regions[i], inner[i]);
      if (item.is_control) carry(item, inner);
    }
    for (uint32_t r = 0; r < skeletons_.size(); ++r) {
      if (regions[r] == RankSkeleton::kNone) continue;
      auto& region = skeletons_[r].regions[regions[r]];
      for (uint32_t v = 0; v < region.vertices.size(); ++v) region.end.push_back(v);
    }
  }

  // A channel's operations follow each other; besides, each waits for some that came before.
  void place(const Item& item, uint32_t rank, uint32_t region,
             std::vector<std::vector<uint32_t>>* inner) {
    RankSkeleton& skeleton = skeletons_[rank];
    const uint32_t first = static_cast<uint32_t>(skeleton.regions[region].vertices.size());
    RankSkeleton::Vertex start, end;
    start.after = tied(rank, region, item);
    for (uint32_t v = 0; v < first; ++v) {
      if (random_.below(6) == 0) start.after.push_back(v);
      if (random_.below(12) == 0) end.after.push_back(v);
    }
    end.operand = first;
    if (item.is_control) {
      start.op = Op::kEnter;
      end.op = Op::kLeave;
      start.operand = static_cast<uint32_t>(skeleton.controls.size());
      RankSkeleton::Control control = item.control;
      if (control.decision != RankSkeleton::Decision::kUniform) {
        control.agree_channel = channel_of(rank, item.channel);
      }
      for (auto& ids : *inner) {
        ids[rank] = static_cast<uint32_t>(skeleton.regions.size());
        control.regions.push_back(ids[rank]);
        skeleton.regions.emplace_back();
      }
      skeleton.controls.push_back(control);
    } else {
      start.op = Op::kPost;
      end.op = Op::kDone;
      start.operand = static_cast<uint32_t>(skeleton.posts.size());
      RankSkeleton::Post post;
      post.channel = channel_of(rank, item.channel);
      post.from = item.from;
      post.to = item.to;
      post.signature.kind = item.from == RankSkeleton::kNone ? "AllReduce" : "Send to Recv";
      post.signature.type = "float";
      post.path = "op_" + std::to_string(item.id);
      post.signature.tag = post.path;
      skeleton.posts.push_back(post);
    }
    auto& vertices = skeleton.regions[region].vertices;
    vertices.push_back(start);
    vertices.push_back(end);
  }

  // The last vertices so far that share a channel with the item, one for each channel.
  std::vector<uint32_t> tied(uint32_t rank, uint32_t region, const Item& item) {
    std::vector<uint32_t> after;
    const auto& vertices = skeletons_[rank].regions[region].vertices;
    for (uint32_t v = 0; v + 1 < vertices.size(); v += 2) {
      const bool is_post = vertices[v].op == Op::kPost;
      const bool is_plain = is_post && !item.is_control;
      if (is_plain) {
        const auto& post = skeletons_[rank].posts[vertices[v].operand];
        if (skeletons_[rank].channels[post.channel] != item.channel) continue;
      }
      after.push_back(is_post ? v : v + 1);
    }
    return after;
  }

  // In a pipelined loop the advance may wait for less; what starts then is behind all that started.
  void carry(const Item& item, const std::vector<std::vector<uint32_t>>& inner) {
    if (!item.control.is_pipelined) return;
    for (uint32_t r = 0; r < skeletons_.size(); ++r) {
      if (inner[0][r] == RankSkeleton::kNone) continue;
      auto& before = skeletons_[r].regions[inner[0][r]];
      auto& after = skeletons_[r].regions[inner[1][r]];
      std::vector<uint32_t> starts;
      for (uint32_t v = 0; v < after.vertices.size(); ++v) {
        const Op op = after.vertices[v].op;
        if (op == Op::kPost || op == Op::kLeave) starts.push_back(v);
      }
      for (auto* region : {&before, &after}) {
        for (auto& vertex : region->vertices) {
          if (vertex.op == Op::kPost || vertex.op == Op::kEnter) vertex.previous = starts;
        }
      }
      // Where the ranks agree on a channel that is used inside, all of it is over by then.
      const bool agrees = item.control.decision != RankSkeleton::Decision::kUniform;
      if (agrees && item.channel.number < 100) continue;
      std::vector<uint32_t> end;
      for (uint32_t v : after.end) {
        if (random_.below(3) == 0) end.push_back(v);
      }
      after.end = end;
    }
  }

  std::vector<RankSkeleton> skeletons_;
  std::vector<RankSkeleton::Channel> channels_;
  Random random_;
  int next_id_ = 0;
};

}  // namespace eddy
