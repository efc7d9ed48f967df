// RankSimulator: ranks execute their skeletons in an order that a seeded adversary chooses, with
// the rules of MPI: a start is local; starts match in the order in which they were made; an
// operation completes once all of its ranks have started it. Slow, and shares nothing with the
// proof.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "graph/base/random.h"
#include "graph/proof/rank_skeleton.h"

namespace eddy {

class RankSimulator {
 public:
  RankSimulator(const std::vector<RankSkeleton>& skeletons, uint64_t seed)
      : skeletons_(skeletons), random_(seed), trips_seed_(seed % 7) {}

  // What went wrong; empty: all ranks came to their ends.
  std::string run() {
    for (uint32_t r = 0; r < skeletons_.size(); ++r)
      roots_.push_back(make_frame(r, 0, "", nullptr));
    while (wrong_.empty()) {
      moves_.clear();
      for (size_t f = 0; f < frames_.size(); ++f) collect(frames_[f].get());
      for (auto& loop : loops_) collect_loop(loop.get());
      if (moves_.empty()) break;
      const Move move = moves_[random_.below(moves_.size())];
      move.frame != nullptr ? fire(move.frame, move.vertex) : advance(move.loop);
    }
    for (const Frame* root : roots_) {
      if (wrong_.empty() && !is_done(*root)) wrong_ = "deadlock";
    }
    return wrong_;
  }

 private:
  using Op = RankSkeleton::Op;
  struct Frame {
    uint32_t rank, region;
    std::string context;
    Frame* previous;
    std::vector<bool> fired;
    std::vector<size_t> index;  // of a post on its lane
  };
  struct Loop {  // or case
    Frame* frame;
    uint32_t vertex, control;
    uint32_t turn = 0;
    Frame *before = nullptr, *after = nullptr;  // of a case: its branch is `after`
    std::vector<Frame*> all = {};
    bool agreeing = false, stopping = false, left = false;
    size_t agree_index = 0;
  };
  struct Move {
    Frame* frame;
    uint32_t vertex;
    Loop* loop;
  };
  using LaneKey = std::tuple<RankSkeleton::Channel, uint32_t, uint32_t>;

  Frame* make_frame(uint32_t rank, uint32_t region, std::string context, Frame* previous) {
    const size_t n = skeletons_[rank].regions[region].vertices.size();
    frames_.push_back(std::make_unique<Frame>(
        Frame{rank, region, context, previous, std::vector<bool>(n), std::vector<size_t>(n)}));
    return frames_.back().get();
  }
  const RankSkeleton::Region& region(const Frame& frame) const {
    return skeletons_[frame.rank].regions[frame.region];
  }
  bool is_done(const Frame& frame) const {
    for (bool fired : frame.fired) {
      if (!fired) return false;
    }
    return true;
  }
  bool is_ended(const Frame& frame) const {
    for (uint32_t v : region(frame).end) {
      if (!frame.fired[v]) return false;
    }
    return true;
  }
  LaneKey key(const Frame& frame, const RankSkeleton::Post& post) const {
    return {skeletons_[frame.rank].channels[post.channel], post.from, post.to};
  }
  static std::vector<uint32_t> ranks(const LaneKey& key) {
    if (std::get<1>(key) == RankSkeleton::kNone) return std::get<0>(key).group;
    return {std::get<1>(key), std::get<2>(key)};
  }
  static std::string text(const RankSkeleton::Signature& s) {
    return s.kind + s.type + s.shape + s.reduction + std::to_string(s.root) + "|" + s.tag;
  }

  size_t post(uint32_t rank, const LaneKey& key, const std::string& what) {
    std::vector<std::string>& own = queues_[{key, rank}];
    own.push_back(what);
    for (uint32_t other : ranks(key)) {
      const auto& theirs = queues_[{key, other}];
      if (theirs.size() >= own.size() && theirs[own.size() - 1] != what) wrong_ = "mismatch";
    }
    return own.size() - 1;
  }
  bool all_posted(const LaneKey& key, size_t index) {
    for (uint32_t rank : ranks(key)) {
      if (queues_[{key, rank}].size() <= index) return false;
    }
    return true;
  }
  Loop* loop_of(const Frame* frame, uint32_t vertex) {
    for (auto& loop : loops_) {
      if (loop->frame == frame && loop->vertex == vertex) return loop.get();
    }
    return nullptr;
  }

  void collect(Frame* frame) {
    const auto& vertices = region(*frame).vertices;
    for (uint32_t v = 0; v < vertices.size(); ++v) {
      if (frame->fired[v]) continue;
      bool ready = true;
      for (uint32_t before : vertices[v].after) ready = ready && frame->fired[before];
      for (uint32_t before : vertices[v].previous) {
        ready = ready && (frame->previous == nullptr || frame->previous->fired[before]);
      }
      const uint32_t operand = vertices[v].operand;
      if (ready && vertices[v].op == Op::kDone) {
        const auto& p = skeletons_[frame->rank].posts[vertices[operand].operand];
        ready = frame->fired[operand] && all_posted(key(*frame, p), frame->index[operand]);
      }
      if (ready && vertices[v].op == Op::kLeave) {
        const Loop* loop = loop_of(frame, operand);
        ready = loop != nullptr && loop->left;
      }
      if (ready) moves_.push_back({frame, v, nullptr});
    }
  }

  void fire(Frame* frame, uint32_t v) {
    frame->fired[v] = true;
    const RankSkeleton& skeleton = skeletons_[frame->rank];
    const RankSkeleton::Vertex& vertex = region(*frame).vertices[v];
    if (vertex.op == Op::kPost) {
      const auto& p = skeleton.posts[vertex.operand];
      frame->index[v] = post(frame->rank, key(*frame, p), text(p.signature));
    }
    if (vertex.op != Op::kEnter) return;
    loops_.push_back(std::make_unique<Loop>(Loop{frame, v, vertex.operand}));
    Loop& loop = *loops_.back();
    const auto& control = skeleton.controls[loop.control];
    if (control.kind == RankSkeleton::ControlKind::kLoop) start_turn(&loop);
  }

  const RankSkeleton::Control& control(const Loop& loop) const {
    return skeletons_[loop.frame->rank].controls[loop.control];
  }
  bool is_loop(const Loop& loop) const {
    return control(loop).kind == RankSkeleton::ControlKind::kLoop;
  }
  void start_turn(Loop* loop) {
    loop->before =
        make_frame(loop->frame->rank, control(*loop).regions[0], context(*loop), loop->after);
    loop->all.push_back(loop->before);
  }
  std::string context(const Loop& loop) const {
    return loop.frame->context + "/" + control(loop).path + std::to_string(loop.turn);
  }

  // Whether the loop's (or case's) next decision or iteration is due.
  void collect_loop(Loop* loop) {
    bool ready = !loop->left;
    if (loop->agreeing) {
      ready = all_posted(agree_key(*loop), loop->agree_index);
    } else if (loop->stopping) {
      for (const Frame* frame : loop->all) ready = ready && is_done(*frame);
    } else if (loop->before != nullptr) {
      ready = ready && is_done(*loop->before);
    } else if (loop->after != nullptr) {
      ready = ready && is_ended(*loop->after);
    }
    if (ready) moves_.push_back({nullptr, 0, loop});
  }

  void advance(Loop* loop) {
    if (loop->stopping) {
      loop->left = true;
    } else if (loop->before == nullptr && loop->after != nullptr) {
      ++loop->turn;
      start_turn(loop);
    } else if (!loop->agreeing && control(*loop).agree_channel != RankSkeleton::kNone) {
      loop->agreeing = true;
      loop->agree_index = post(loop->frame->rank, agree_key(*loop), "agree " + control(*loop).path);
    } else {
      loop->agreeing = false;
      decide(loop);
    }
  }

  void decide(Loop* loop) {
    uint64_t hash = trips_seed_;
    for (char c : context(*loop)) hash = hash * 31 + static_cast<unsigned char>(c);
    if (control(*loop).decision == RankSkeleton::Decision::kVarying) hash += loop->frame->rank;
    const uint64_t draw = Random(hash).next();
    loop->before = nullptr;
    if (is_loop(*loop) && (loop->turn == 3 || draw % 3 == 0)) {
      loop->stopping = true;
      return;
    }
    const auto& regions = control(*loop).regions;
    loop->after =
        make_frame(loop->frame->rank, is_loop(*loop) ? regions[1] : regions[draw % regions.size()],
                   context(*loop), loop->after);
    loop->all.push_back(loop->after);
    loop->stopping = !is_loop(*loop);
  }
  LaneKey agree_key(const Loop& loop) const {
    return {skeletons_[loop.frame->rank].channels[control(loop).agree_channel], RankSkeleton::kNone,
            RankSkeleton::kNone};
  }

  const std::vector<RankSkeleton>& skeletons_;
  Random random_;
  const uint64_t trips_seed_;
  std::vector<Frame*> roots_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<Move> moves_;
  std::map<std::pair<LaneKey, uint32_t>, std::vector<std::string>> queues_;
  std::string wrong_;
};

}  // namespace eddy
