// RankSkeleton: the communication that one rank of several will issue, and what orders it.
//
// A skeleton is a tree of regions. A region's vertices stand in a topological order: what a vertex
// waits for (`after`) has a smaller index. Regions, loops and cases without communication inside
// are left out. Vertices without `after` wait for the region's begin; the region ends behind the
// vertices of `end`.
//
//   post     an operation starts: local, waits for no other rank
//   done     it completes: waits for the post of the same operation on all of its ranks
//   enter, leave     a loop or case that holds communication: `leave` is behind all of it
//   point    joins orders
//
// A channel is a group of ranks and a number. Collectives of a channel match by their order on it;
// a Send matches the Recv of the same channel, source and target by their order there.
//
// Plain data; takes anything. What is spoilt is unsafe (rank_proof.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace eddy {

struct RankSkeleton {
  static constexpr uint32_t kNone = UINT32_MAX;

  enum class Op : uint8_t { kPoint, kPost, kDone, kEnter, kLeave };
  enum class Decision : uint8_t { kVarying, kUniform, kAgreeAll, kAgreeAny, kAgreeRoot };
  enum class ControlKind : uint8_t { kLoop, kCase };

  struct Channel {
    std::vector<uint32_t> group;  // ranks, ascending
    uint32_t number = 0;
    auto operator<=>(const Channel&) const = default;
  };

  // What must be equal on all ranks of an operation. Texts, so that types and symbols of any graph
  // can be compared; the proof reads no meaning into them.
  struct Signature {
    std::string kind = {};       // of Send and Recv alike: one text
    std::string type = {};       // "float"
    std::string shape = {};      // "[batch, 4]"
    std::string reduction = {};  // "sum"
    uint32_t root = kNone;
    std::string tag = {};  // which of several alike: the node's path, or what the user says
    bool operator==(const Signature&) const = default;
  };

  struct Post {
    uint32_t channel = 0;
    uint32_t from = kNone;  // of Send and Recv: the ranks; the one of them that this is not sends
    uint32_t to = kNone;    // or receives. Of collectives: none
    Signature signature = {};
    std::string path = {};  // for messages
    bool operator==(const Post&) const = default;
  };

  struct Control {
    ControlKind kind = ControlKind::kLoop;
    Decision decision = Decision::kVarying;
    uint32_t root = kNone;               // of kAgreeRoot
    uint32_t agree_channel = kNone;      // of kAgree…: where the ranks agree, in each turn
    bool is_pipelined = false;           // a loop: its `after` advances before all of it is done
    std::vector<uint32_t> regions = {};  // before, after; or one for each branch
    std::string path = {};
    bool operator==(const Control&) const = default;
  };

  struct Vertex {
    Op op = Op::kPoint;
    // post: of posts; done: its post's vertex; enter: of controls; leave: its entry's vertex
    uint32_t operand = 0;
    std::vector<uint32_t> after = {};
    // In the regions of a pipelined loop: vertices of its `after` in the iteration before.
    std::vector<uint32_t> previous = {};
    bool operator==(const Vertex&) const = default;
  };

  struct Region {
    std::vector<Vertex> vertices = {};
    std::vector<uint32_t> end = {};
    bool operator==(const Region&) const = default;
  };

  std::vector<Channel> channels;
  std::vector<Post> posts;
  std::vector<Control> controls;
  std::vector<Region> regions;  // 0 is the root; a control's stand behind the one that it is in
  bool operator==(const RankSkeleton&) const = default;
};

}  // namespace eddy
