#include "runtime/execute/transfer.h"

#include <algorithm>

#include "graph/base/check.h"

namespace eddy {

void Transfers::add(Slot& to, Slot& from, bool is_temporary, bool is_fixed,
                    const ValueType& from_type) {
  EDDY_CHECK(!is_finished_) << "a transfer is added behind the last";
  if (&to == &from) return;
  auto& list = !is_temporary ? shares_ : (is_fixed ? fixed_ : swaps_);
  list.push_back({&to, &from});
  if (&list == &swaps_ && from_type.is_tensor() && from_type.tensor.is_static()) {
    known_.push_back({&from, from_type.tensor});
  }
}

void Transfers::add_unchanging(Slot& to, Slot& from) {
  EDDY_CHECK(!is_finished_) << "a transfer is added behind the last";
  if (&to != &from) unchanging_.push_back({&to, &from});
}

void Transfers::finish() {
  EDDY_CHECK(!is_finished_) << "transfers are finished twice";
  is_finished_ = true;
  const auto times_read = [&](const Slot* slot) {
    size_t count = 0;
    for (const auto* list : {&fixed_, &swaps_, &shares_}) {
      count += static_cast<size_t>(std::count_if(
          list->begin(), list->end(), [&](const Move& move) { return move.from == slot; }));
    }
    return count;
  };
  std::vector<Move> repeated;
  for (auto* list : {&fixed_, &swaps_}) {
    for (const Move& move : *list) {
      if (times_read(move.from) > 1) repeated.push_back(move);
    }
  }
  const auto is_repeated = [&](const Move& move) {
    return std::any_of(repeated.begin(), repeated.end(),
                       [&](const Move& other) { return other.from == move.from; });
  };
  std::erase_if(fixed_, is_repeated);
  std::erase_if(swaps_, is_repeated);
  std::erase_if(known_, [&](const Known& known) {
    return std::none_of(swaps_.begin(), swaps_.end(),
                        [&](const Move& move) { return move.from == known.slot; });
  });
  shares_.insert(shares_.end(), repeated.begin(), repeated.end());
  for (size_t i = 0; i < shares_.size(); ++i) temporaries_.emplace_back();
}

Status Transfers::read_shares(Allocator& allocator) {
  EDDY_CHECK(is_finished_) << "transfers run before they are finished";
  for (size_t i = 0; i < shares_.size(); ++i) {
    EDDY_RETURN_IF_ERROR(temporaries_[i].share(*shares_[i].from, allocator));
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
