#include "graph/schedule/streams/stream_sets.h"

#include <utility>

#include "graph/base/check.h"

namespace eddy {

StreamSets::Set StreamSets::new_leaf(uint32_t key, uint64_t streams) {
  EDDY_CHECK(leaves_.size() < UINT32_MAX / 2) << "too many sets of streams";
  leaves_.push_back({key, now_, streams});
  return static_cast<Set>(leaves_.size() - 1) * 2 + 1;
}

StreamSets::Set StreamSets::new_fork(const Fork& fork) {
  EDDY_CHECK(forks_.size() < UINT32_MAX / 2 - 1) << "too many sets of streams";
  forks_.push_back(fork);
  return static_cast<Set>(forks_.size() - 1) * 2;
}

void StreamSets::drop_stale(Leaf& leaf) {
  EDDY_DCHECK(leaf.key < word_changed_at_.size()) << "a set of streams without tails";
  if (word_changed_at_[leaf.key] > leaf.made_at) {
    // All 64 at once: bits come and go at random, and each would be a guess.
    const uint32_t* const changed_at = changed_at_.data() + size_t{leaf.key} * 64;
    uint64_t is_stale = 0;
    for (uint32_t bit = 0; bit < 64; ++bit) {
      is_stale |= uint64_t{changed_at[bit] > leaf.made_at} << bit;
    }
    leaf.streams &= ~is_stale;
  }
  leaf.made_at = now_;
}

bool StreamSets::contains(Set set, uint32_t stream) {
  const uint32_t key = stream / 64;
  set = resolve(set);
  while (set != kEmpty && !is_leaf(set)) {
    if (!covers(fork(set), key)) return false;
    set = resolve((key & fork(set).bit) ? fork(set).high : fork(set).low);
  }
  if (set == kEmpty || leaf(set).key != key) return false;
  return changed_at_[stream] <= leaf(set).made_at && (leaf(set).streams >> (stream % 64) & 1) != 0;
}

// Skips forks that lost a side, and leaves that lost all streams.
StreamSets::Set StreamSets::resolve(Set set) {
  while (set != kEmpty) {
    if (is_leaf(set)) return leaf(set).streams != 0 ? set : kEmpty;
    Fork& f = fork(set);
    if (f.low != kEmpty && is_leaf(f.low) && leaf(f.low).streams == 0) f.low = kEmpty;
    if (f.high != kEmpty && is_leaf(f.high) && leaf(f.high).streams == 0) f.high = kEmpty;
    if (f.low != kEmpty && f.high != kEmpty) return set;
    set = f.low != kEmpty ? f.low : f.high;
  }
  return kEmpty;
}

// Two sets whose keys differ above every bit within either.
StreamSets::Set StreamSets::join(uint32_t key_a, Set a, uint32_t key_b, Set b) {
  EDDY_DCHECK(key_a != key_b) << "sets of one word are joined by a fork";
  const uint32_t bit = std::bit_floor(key_a ^ key_b);
  const uint32_t prefix = key_a & ~(2 * bit - 1);
  return (key_a & bit) ? new_fork({prefix, bit, b, a}) : new_fork({prefix, bit, a, b});
}

StreamSets::Set StreamSets::unite_leaves(Set a, Set b) {
  drop_stale(leaf(a));
  drop_stale(leaf(b));
  const uint64_t both = leaf(a).streams | leaf(b).streams;
  if (both == leaf(a).streams) return a;
  if (both == leaf(b).streams) return b;
  return new_leaf(leaf(a).key, both);
}

// `other` lies within one side of the fork `into`.
StreamSets::Set StreamSets::unite_into_fork(Set into, Set other, uint32_t other_key) {
  shorten(into);
  Fork f = fork(into);
  Set& side = (other_key & f.bit) ? f.high : f.low;
  const Set united = unite(side, other);
  if (united == side) return into;
  side = united;
  return new_fork(f);
}

StreamSets::Set StreamSets::unite_forks(Set a, Set b) {
  shorten(a);
  shorten(b);
  const Fork fa = fork(a);
  const Fork fb = fork(b);
  if (fa.bit == fb.bit && fa.prefix == fb.prefix) {
    const Set low = unite(fa.low, fb.low);
    const Set high = unite(fa.high, fb.high);
    if (low == fa.low && high == fa.high) return a;
    if (low == fb.low && high == fb.high) return b;
    return new_fork({fa.prefix, fa.bit, low, high});
  }
  if (fa.bit > fb.bit && covers(fa, fb.prefix)) return unite_into_fork(a, b, fb.prefix);
  if (fb.bit > fa.bit && covers(fb, fa.prefix)) return unite_into_fork(b, a, fa.prefix);
  return join(fa.prefix, a, fb.prefix, b);
}

StreamSets::Set StreamSets::unite(Set a, Set b) {
  a = resolve(a);
  b = resolve(b);
  if (a == b || b == kEmpty) return a;
  if (a == kEmpty) return b;
  if (is_leaf(a) && is_leaf(b)) {
    if (leaf(a).key == leaf(b).key) return unite_leaves(a, b);
    return join(leaf(a).key, a, leaf(b).key, b);
  }
  if (is_leaf(b)) std::swap(a, b);
  if (!is_leaf(a)) return unite_forks(a, b);
  const uint32_t key = leaf(a).key;
  return covers(fork(b), key) ? unite_into_fork(b, a, key) : join(key, a, fork(b).prefix, b);
}

}  // namespace eddy
