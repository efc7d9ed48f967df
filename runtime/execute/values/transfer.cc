#include "runtime/execute/values/transfer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

void Transfers::add(Slot& to, Slot& from, bool is_temporary, bool is_fixed,
                    const ValueType& from_type) {
  EDDY_CHECK(!is_finished_) << "a transfer is added behind the last";
  if (&to == &from) return;
  auto& list = !is_temporary ? shares_ : (is_fixed ? fixed_ : swaps_);
  list.push_back({&to, &from});
  if (&list == &swaps_ && from_type.is_static_tensor()) {
    known_.push_back({&from, from_type.tensor});
  }
}

void Transfers::add_unchanging(Slot& to, Slot& from) {
  EDDY_CHECK(!is_finished_) << "a transfer is added behind the last";
  if (&to != &from) unchanging_.push_back({&to, &from});
}

void Transfers::add_copy(Slot& to, const Slot& from, size_t size_bytes, const void* to_place,
                         std::vector<const void*> places) {
  EDDY_CHECK(!is_finished_) << "a transfer is added behind the last";
  copies_.push_back({&to, &from, size_bytes, to_place, std::move(places), {}});
}

void Transfers::copy() {
  EDDY_DCHECK(is_finished_) << "bytes are copied before it is known which are written over";
  for (Copy& copy : copies_) {
    if (!copy.aside.empty()) std::memcpy(copy.aside.data(), copy.from->view.data, copy.size_bytes);
  }
  for (const Copy& copy : copies_) {
    const void* const from = copy.aside.empty() ? copy.from->view.data : copy.aside.data();
    std::memcpy(copy.to->view.data, from, copy.size_bytes);
  }
}

void Transfers::finish() {
  EDDY_CHECK(!is_finished_) << "transfers are finished twice";
  is_finished_ = true;
  for (Copy& copy : copies_) {
    const bool is_overwritten = std::ranges::any_of(copies_, [&](const Copy& other) {
      const auto begin = reinterpret_cast<uintptr_t>(other.to_place);
      return std::ranges::any_of(copy.places, [&](const void* place) {
        const auto at = reinterpret_cast<uintptr_t>(place);
        return at < begin + other.size_bytes && begin < at + copy.size_bytes;
      });
    });
    if (is_overwritten) copy.aside.resize(copy.size_bytes);
  }
  std::vector<const Slot*> read;
  for (const auto* list : {&fixed_, &swaps_, &shares_}) {
    for (const Move& move : *list) read.push_back(move.from);
  }
  std::ranges::sort(read);
  const auto is_repeated = [&](const Slot* from) {
    const auto [first, last] = std::equal_range(read.begin(), read.end(), from);
    return last - first > 1;
  };
  std::vector<Move> repeated;
  for (auto* list : {&fixed_, &swaps_}) {
    std::ranges::copy_if(*list, std::back_inserter(repeated), is_repeated, &Move::from);
    std::erase_if(*list, [&](const Move& move) { return is_repeated(move.from); });
  }
  std::erase_if(known_, [&](const Known& known) { return is_repeated(known.slot); });
  shares_.insert(shares_.end(), repeated.begin(), repeated.end());
  for (size_t i = 0; i < shares_.size(); ++i) temporaries_.emplace_back();
}

Status Transfers::read_shares(Allocator& allocator) {
  EDDY_CHECK(is_finished_) << "transfers run before they are finished";
  for (size_t i = 0; i < shares_.size(); ++i) {
    Status status = temporaries_[i].share(*shares_[i].from, allocator);
    if (status.is_ok()) continue;
    for (Slot& temporary : temporaries_) temporary.set_none();
    return status;
  }
  return Status::ok();
}

void Transfers::write_shares() {
  for (size_t i = 0; i < shares_.size(); ++i) {
    shares_[i].to->swap(temporaries_[i]);
    temporaries_[i].set_none();
  }
}

}  // namespace eddy
