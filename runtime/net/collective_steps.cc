#include "runtime/net/collective_steps.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/fingerprint.h"
#include "ops/reference/eddy/collective.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using Kind = Transfer::Kind;

// Above this, ranks sum by slices: gathering all operands takes fewer transfers, but moves more
// bytes, or where there are two ranks, has each of them add up all.
size_t most_gathered_bytes(size_t num_ranks) { return num_ranks > 2 ? 8 << 10 : 512 << 10; }

void move_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::byte* at(void* data, size_t offset) { return static_cast<std::byte*>(data) + offset; }

// Parts of `bytes` each, for each outer index one behind the other, as one block for each part.
void pack(const TensorView& from, size_t outer, size_t num_parts, size_t bytes,
          std::span<const uint32_t> to_place, void* to) {
  EDDY_DCHECK(to_place.size() == num_parts) << to_place.size() << " places for " << num_parts;
  for (size_t i = 0; i < num_parts; ++i) {
    for (size_t o = 0; o < outer; ++o) {
      move_bytes(at(to, (to_place[i] * outer + o) * bytes),
                 at(from.data, (o * num_parts + i) * bytes), bytes);
    }
  }
}

bool is_ascending(const CollectivePlaces& places) {
  return std::ranges::is_sorted(places.by_position);
}

// Equal on all ranks where they put in the same: what moves, how, and of which shape.
Fingerprint digest(const Collective& collective, const TensorView& input) {
  Fingerprint digest;
  digest.add(static_cast<uint64_t>(collective.kind));
  digest.add(static_cast<uint64_t>(collective.reduction));
  digest.add(static_cast<uint64_t>(collective.root));
  digest.add(static_cast<uint64_t>(input.element));
  digest.add(static_cast<uint64_t>(input.rank));
  if (collective.kind == CollectiveKind::kExchange) return digest;  // each rank has its own shape
  for (const int64_t dim : input.shape()) digest.add(static_cast<uint64_t>(dim));
  return digest;
}

std::string describe(const TensorView& view) {
  return std::string(element_type_name(view.element)) + to_string(Dims(view.shape()));
}

}  // namespace

Status CollectiveSteps::plan(const Collective& collective, const CollectivePlaces& places,
                             const TensorView& input, const TensorView& output, const World& world,
                             Allocator& memory, bool checks) {
  EDDY_CHECK(steps_.empty() && places.size() > 1) << "a call over " << places.size() << " ranks";
  EDDY_DCHECK(places.own < places.size() && places.root < places.size())
      << "places " << places.own << " and " << places.root << " of " << places.size();
  collective_ = collective;
  places_ = &places;
  input_ = input;
  output_ = output;
  memory_ = &memory;
  if (checks) add_check();
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      all_reduce(world);
      break;
    case CollectiveKind::kAllGather:
      all_gather();
      break;
    case CollectiveKind::kReduceScatter:
      reduce_scatter();
      break;
    case CollectiveKind::kBroadcast:
      broadcast();
      break;
    case CollectiveKind::kAllToAll:
      all_to_all();
      break;
    case CollectiveKind::kExchange:
      exchange();
      break;
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      message();
      break;
    case CollectiveKind::kBarrier:
      barrier();
      break;
    case CollectiveKind::kRank:
      return internal_error("Rank communicates with nobody");
  }
  return error_;
}

Status CollectiveSteps::advance() {
  EDDY_CHECK(!is_done()) << "a call goes on behind its end";
  Step& step = steps_[at_++];
  return step.after ? step.after() : Status::ok();
}

void* CollectiveSteps::scratch(size_t bytes) {
  Result<BufferRef> buffer = memory_->allocate(std::max(bytes, size_t{1}));
  if (!buffer.is_ok()) {
    if (error_.is_ok()) error_ = buffer.take_status();
    return nullptr;
  }
  buffers_.push_back(std::move(*buffer));
  return buffers_.back().data();
}

void CollectiveSteps::add(Transfer transfer, std::function<Status()> after) {
  transfer.communicator = places_->communicator;
  steps_.push_back({transfer, std::move(after)});
}

// The views of all places' parts, one behind the other, in the order of the group. The own part
// stands where it was put in.
std::vector<TensorView> CollectiveSteps::views(const Parts& parts,
                                               std::span<const int64_t> dims) const {
  std::vector<TensorView> result;
  TensorView view{parts.all, dims.data(), static_cast<int32_t>(dims.size()), input_.element};
  const size_t bytes = view.size_bytes();
  for (const uint32_t place : places_->by_position) {
    const bool is_own = place == places_->by_position[places_->own];
    view.data = is_own ? const_cast<void*>(parts.own) : at(parts.all, place * bytes);
    result.push_back(view);
  }
  return result;
}

// Parts of all places, each of these sizes, combined in the order of the group.
Status CollectiveSteps::combine(const Parts& parts, std::vector<int64_t> dims,
                                const TensorView& to) {
  Collective sum = collective_;
  sum.kind = CollectiveKind::kAllReduce;
  return run_collective(sum, {.inputs = views(parts, dims)}, to);
}

// What all put in, by place.
void CollectiveSteps::gather(void* all, size_t bytes, std::function<Status()> after) {
  add({.kind = Kind::kAllGather,
       .send = input_.data,
       .receive = all,
       .bytes = bytes,
       .skips_own = true},
      std::move(after));
}

// A part of `sent` to each place.
void CollectiveSteps::swap(const void* sent, void* all, size_t bytes,
                           std::function<Status()> after) {
  add({.kind = Kind::kAllToAll, .send = sent, .receive = all, .bytes = bytes, .skips_own = true},
      std::move(after));
}

const void* CollectiveSteps::own_part(const void* parts, size_t bytes) const {
  return static_cast<const std::byte*>(parts) + places_->by_position[places_->own] * bytes;
}

size_t CollectiveSteps::outer_count(int axis) const {
  size_t count = 1;
  for (int i = 0; i < axis; ++i) count *= static_cast<size_t>(input_.dims[i]);
  return count;
}

int CollectiveSteps::find_axis(bool is_cut) {
  const Result<int> axis = normalize_axis(collective_.axis, input_.rank);
  const size_t n = places_->size();
  if (!axis.is_ok()) {
    error_ = axis.status();
  } else if (is_cut && input_.dims[*axis] % static_cast<int64_t>(n) != 0) {
    error_ = invalid_argument("axis " + std::to_string(*axis) + " of size " +
                              std::to_string(input_.dims[*axis]) +
                              " can't be cut into equal parts for " + std::to_string(n) + " ranks");
  } else {
    return *axis;
  }
  return -1;
}

// Of each rank: the digest of all that must be alike, and what it puts in, in words.
void CollectiveSteps::add_check() {
  constexpr size_t kWords = 64;
  std::string text = digest(collective_, input_).text();
  const size_t digest_bytes = text.size();
  text += describe(input_);
  text.resize(digest_bytes + kWords);
  const size_t bytes = text.size(), n = places_->size();
  void* const own = scratch(bytes);
  void* const all = scratch(n * bytes);
  if (all == nullptr || own == nullptr) return;
  move_bytes(own, text.data(), bytes);
  add({.kind = Kind::kAllGather, .send = own, .receive = all, .bytes = bytes}, [=, this] {
    std::vector<int64_t> ranks(collective_.group.begin(), collective_.group.end());
    std::ranges::sort(ranks);  // by place; of all ranks: none
    const auto said = [&](size_t place) {
      const auto* const words =
          reinterpret_cast<const char*>(at(all, place * bytes)) + digest_bytes;
      return "rank " + std::to_string(ranks.empty() ? static_cast<int64_t>(place) : ranks[place]) +
             " " + std::string(words, strnlen(words, kWords));
    };
    for (size_t i = 1; i < n; ++i) {
      if (std::memcmp(at(all, i * bytes), all, digest_bytes) == 0) continue;
      return invalid_argument("ranks put in unlike values: " + said(0) + ", " + said(i) +
                              "; type, shape, reduction and root must be the same on all of them");
    }
    return Status::ok();
  });
}

void CollectiveSteps::all_reduce(const World& world) {
  const size_t bytes = input_.size_bytes(), n = places_->size();
  const bool has_own = collective_.reduction != RankReduction::kAverage &&
                       world.can_reduce(input_.element, collective_.reduction, n);
  if (!collective_.in_rank_order && has_own) {
    return add({.kind = Kind::kReduce,
                .send = input_.data,
                .receive = output_.data,
                .bytes = bytes,
                .element = input_.element,
                .reduction = collective_.reduction});
  }
  if (bytes > most_gathered_bytes(n)) return reduce_slices();
  void* const all = scratch(bytes * n);
  if (all == nullptr) return;
  gather(all, bytes, [=, this] {
    return combine({all, input_.data}, {input_.dims, input_.dims + input_.rank}, output_);
  });
}

void CollectiveSteps::reduce_slices() {
  const size_t n = places_->size(), unit = element_size_bytes(input_.element);
  const auto count = static_cast<size_t>(input_.count());
  const size_t slice = (count + n - 1) / n, bytes = slice * unit;
  const bool is_even = slice * n == count;
  void* const parts = scratch(n * bytes);
  void* const sum = scratch(bytes);
  void* const padded = is_even ? nullptr : scratch(n * bytes);
  if (!error_.is_ok()) return;
  if (!is_even) {
    move_bytes(padded, input_.data, count * unit);
    std::memset(at(padded, count * unit), 0, n * bytes - count * unit);
  }
  const void* const sent = is_even ? input_.data : padded;
  swap(sent, parts, bytes, [=, this] {
    const std::vector<int64_t> dims = {static_cast<int64_t>(slice)};
    return combine({parts, own_part(sent, bytes)}, dims, {sum, dims.data(), 1, input_.element});
  });
  add({.kind = Kind::kAllGather,
       .send = sum,
       .receive = is_even ? output_.data : padded,
       .bytes = bytes},
      [=, this] {
        if (!is_even) move_bytes(output_.data, padded, count * unit);
        return Status::ok();
      });
}

void CollectiveSteps::all_gather() {
  const int axis = find_axis(/*is_cut=*/false);
  if (axis < 0) return;
  const size_t bytes = input_.size_bytes();
  if (outer_count(axis) == 1 && is_ascending(*places_)) {
    return add(
        {.kind = Kind::kAllGather, .send = input_.data, .receive = output_.data, .bytes = bytes});
  }
  void* const all = scratch(bytes * places_->size());
  if (all == nullptr) return;
  gather(all, bytes, [=, this] {
    const std::vector<TensorView> parts = views({all, input_.data}, input_.shape());
    return run_collective(collective_, {.inputs = parts, .place = places_->own}, output_);
  });
}

void CollectiveSteps::reduce_scatter() {
  const size_t n = places_->size();
  const int axis = find_axis(/*is_cut=*/true);
  if (axis < 0) return;
  const size_t bytes = output_.size_bytes(), outer = outer_count(axis);
  EDDY_DCHECK(bytes == 0 || bytes % outer == 0) << bytes << " bytes for " << outer << " rows";
  void* const all = scratch(n * bytes);
  void* const packed = scratch(n * bytes);
  if (!error_.is_ok()) return;
  if (bytes > 0) pack(input_, outer, n, bytes / outer, places_->by_position, packed);
  swap(packed, all, bytes, [=, this] {
    const Parts parts{all, own_part(packed, bytes)};
    return combine(parts, {output_.dims, output_.dims + output_.rank}, output_);
  });
}

void CollectiveSteps::all_to_all() {
  const size_t n = places_->size();
  const int axis = find_axis(/*is_cut=*/true);
  if (axis < 0) return;
  const size_t bytes = input_.size_bytes() / n, outer = outer_count(axis);
  EDDY_DCHECK(bytes == 0 || bytes % outer == 0) << bytes << " bytes for " << outer << " rows";
  if (outer == 1 && is_ascending(*places_)) {
    return add(
        {.kind = Kind::kAllToAll, .send = input_.data, .receive = output_.data, .bytes = bytes});
  }
  void* const all = scratch(n * bytes);
  void* const packed = scratch(n * bytes);
  if (!error_.is_ok()) return;
  if (bytes > 0) pack(input_, outer, n, bytes / outer, places_->by_position, packed);
  std::vector<int64_t> part(input_.dims, input_.dims + input_.rank);
  part[static_cast<size_t>(axis)] /= static_cast<int64_t>(n);
  swap(packed, all, bytes, [=, this, part = std::move(part)] {
    Collective side_by_side = collective_;
    side_by_side.kind = CollectiveKind::kAllGather;
    const Parts parts{all, own_part(packed, bytes)};
    return run_collective(side_by_side, {.inputs = views(parts, part)}, output_);
  });
}

// Round after round, each rank sends to the one so many places behind it. Rounds in which nobody
// has a piece for the other are left out; in the others, all send as much as the one that sends
// most.
void CollectiveSteps::exchange() {
  const std::vector<Box>&from = collective_.from, &to = collective_.to;
  const size_t n = places_->size(), unit = element_size_bytes(input_.element), own = places_->own;
  EDDY_CHECK(from.size() == n && to.size() == n && places_->pieces != nullptr)
      << from.size() << " and " << to.size() << " boxes of " << n << " ranks";
  if (!std::ranges::equal(input_.shape(), from[own].sizes)) {
    error_ = invalid_argument("the input is " + describe(input_) + ", but the rank's box is " +
                              to_string(from[own]) + " (attribute 'from')");
    return;
  }
  const std::vector<ExchangePiece>& pieces = *places_->pieces;
  const auto distance = [&](const ExchangePiece& piece) {
    return (places_->by_position[piece.target] + n - places_->by_position[piece.source]) % n;
  };
  std::vector<std::vector<size_t>> sent(n, std::vector<size_t>(n, 0));  // by distance and source
  for (const ExchangePiece& piece : pieces) {
    sent[distance(piece)][piece.source] += static_cast<size_t>(count_of(piece.box)) * unit;
    if (piece.source != own || piece.target != own) continue;
    copy_box(input_.data, from[own], output_.data, to[own], piece.box, unit);
  }
  for (size_t k = 1; k < n; ++k) {
    const size_t bytes = *std::ranges::max_element(sent[k]);
    if (bytes == 0) continue;
    void* const out = scratch(bytes);
    void* const in = scratch(bytes);
    if (!error_.is_ok()) return;
    size_t at_byte = 0;
    for (const ExchangePiece& piece : pieces) {
      if (piece.source != own || distance(piece) != k) continue;
      copy_box(input_.data, from[own], at(out, at_byte), piece.box, piece.box, unit);
      at_byte += static_cast<size_t>(count_of(piece.box)) * unit;
    }
    EDDY_CHECK(at_byte <= bytes) << at_byte << " bytes are sent of at most " << bytes;
    std::memset(at(out, at_byte), 0, bytes - at_byte);
    const uint32_t source_place = (places_->by_position[own] + n - k) % n;
    add({.kind = Kind::kShift,
         .send = out,
         .receive = in,
         .bytes = bytes,
         .root = static_cast<uint32_t>(k)},
        [=, this] {
          size_t from_byte = 0;
          for (const ExchangePiece& piece : *places_->pieces) {
            const bool is_here =
                piece.target == own && places_->by_position[piece.source] == source_place;
            if (!is_here) continue;
            copy_box(at(in, from_byte), piece.box, output_.data, collective_.to[own], piece.box,
                     unit);
            from_byte += static_cast<size_t>(count_of(piece.box)) * unit;
          }
          return Status::ok();
        });
  }
}

void CollectiveSteps::broadcast() {
  const bool is_root = places_->by_position[places_->own] == places_->root;
  if (is_root) move_bytes(output_.data, input_.data, input_.size_bytes());
  add({.kind = Kind::kBroadcast,
       .receive = output_.data,
       .bytes = output_.size_bytes(),
       .root = places_->root});
}

void CollectiveSteps::message() {
  if (collective_.kind == CollectiveKind::kRecv) {
    return add({.kind = Kind::kRecv,
                .receive = output_.data,
                .bytes = output_.size_bytes(),
                .root = places_->root});
  }
  add({.kind = Kind::kSend,
       .send = input_.data,
       .bytes = input_.size_bytes(),
       .root = places_->root},
      [this] {
        *output_.mutable_as<bool>() = true;
        return Status::ok();
      });
}

void CollectiveSteps::barrier() {
  add({.kind = Kind::kBarrier}, [this] {
    *output_.mutable_as<bool>() = true;
    return Status::ok();
  });
}

}  // namespace eddy
