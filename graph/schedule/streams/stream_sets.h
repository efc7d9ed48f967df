// StreamSets: for every visited node, the streams that a descendant of it may recycle.
//
// A stream is recyclable for a node when the stream's last node (its tail) is an ancestor. Each
// visited node owns a set: the union of its parents' sets, plus the streams that end at it. When
// a stream gets a new tail, it leaves the sets of all nodes visited so far, because none of them
// can descend from the new tail. That is one store here: a word of a set carries the time it was
// made, and a bit older than its stream's last change no longer counts.
//
// Sets are Patricia tries over words of 64 streams and share what they have in common: a union that
// adds nothing returns its argument. Stale bits are dropped in place, in every set that shares
// them, whenever they are met.
//
// Contract: a Set is valid as long as the StreamSets that made it.
// Cost: single O(1); unite O(words in which the arguments differ); contains O(log streams);
// find_first O(log streams + stale bits dropped + bits that the predicate refuses).
// Source for the shape: Okasaki, Gill, "Fast Mergeable Integer Maps", 1998.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace eddy {

class StreamSets {
 public:
  using Set = uint32_t;
  static constexpr Set kEmpty = UINT32_MAX;
  static constexpr uint32_t kNoStream = UINT32_MAX;

  // `stream` has a new tail and leaves all existing sets. Streams are numbered from 0 upwards.
  void tail_changed(uint32_t stream) {
    if (stream >= changed_at_.size()) {
      changed_at_.resize((stream / 64 + size_t{1}) * 64);
      word_changed_at_.resize(stream / 64 + size_t{1});
    }
    changed_at_[stream] = word_changed_at_[stream / 64] = ++now_;
  }

  Set single(uint32_t stream) { return new_leaf(stream / 64, uint64_t{1} << (stream % 64)); }
  Set unite(Set a, Set b);

  bool contains(Set set, uint32_t stream);

  // The lowest stream of the set that accept(stream) takes, or kNoStream.
  template <typename Accept>
  uint32_t find_first(Set set, Accept accept) {
    set = resolve(set);
    if (set == kEmpty) return kNoStream;
    if (is_leaf(set)) return find_in_leaf(leaf(set), accept);
    shorten(set);
    const uint32_t found = find_first(fork(set).low, accept);
    return found != kNoStream ? found : find_first(fork(set).high, accept);
  }

 private:
  struct Leaf {
    uint32_t key;  // streams 64 * key and the 63 after it
    uint32_t made_at;
    uint64_t streams;
  };
  // Keys below agree above `bit`; those in `high` have it set. Either side may become kEmpty.
  struct Fork {
    uint32_t prefix;
    uint32_t bit;
    Set low;
    Set high;
  };

  // A Set is an index with its kind in the lowest bit.
  static bool is_leaf(Set set) { return set & 1; }
  Leaf& leaf(Set set) { return leaves_[set / 2]; }
  Fork& fork(Set set) { return forks_[set / 2]; }
  static bool covers(const Fork& fork, uint32_t key) {
    return (key & ~(2 * fork.bit - 1)) == fork.prefix;
  }

  template <typename Accept>
  uint32_t find_in_leaf(Leaf& leaf, Accept accept) {
    drop_stale(leaf);
    for (uint64_t rest = leaf.streams; rest != 0; rest &= rest - 1) {
      const uint32_t stream = leaf.key * 64 + static_cast<uint32_t>(std::countr_zero(rest));
      if (accept(stream)) return stream;
    }
    return kNoStream;
  }

  Set new_leaf(uint32_t key, uint64_t streams);
  Set new_fork(const Fork& fork);
  Set join(uint32_t key_a, Set a, uint32_t key_b, Set b);
  Set unite_leaves(Set a, Set b);
  Set unite_into_fork(Set into, Set other, uint32_t other_key);
  Set unite_forks(Set a, Set b);
  Set resolve(Set set);
  // Points a fork at what its sides resolve to.
  void shorten(Set fork_set) {
    Fork& f = fork(fork_set);
    f.low = resolve(f.low);
    f.high = resolve(f.high);
  }
  void drop_stale(Leaf& leaf);

  std::vector<Leaf> leaves_;
  std::vector<Fork> forks_;
  std::vector<uint32_t> changed_at_;       // by stream
  std::vector<uint32_t> word_changed_at_;  // the latest of 64 streams
  uint32_t now_ = 0;
};

}  // namespace eddy
