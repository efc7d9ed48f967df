#include "tests/ops/cuda/fakes/fake_cub.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "ops/cuda/reduce/long_line_inl.h"

namespace eddy::testing {
namespace {

using namespace cuda;

constexpr int kInvalidValue = 1;
constexpr size_t kScratchBytes = 999;

}  // namespace

FakeCub::FakeCub(uint64_t seed, Enqueue enqueue) : enqueue_(std::move(enqueue)), seed_(seed) {
  api_ = std::make_shared<const CubApi>(CubApi{.sum = entry(&FakeCub::sum_work),
                                               .extreme = entry(&FakeCub::extreme_work),
                                               .cum_sum = entry(&FakeCub::cum_sum_work),
                                               .top_k = entry(&FakeCub::top_k_work),
                                               .error_text =
                                                   [](int status) {
                                                     return status == kFailure
                                                                ? "a failure that was asked for"
                                                                : "invalid argument";
                                                   },
                                               .version = [] { return 300001; }});
}

int FakeCub::violation(const std::string& what) {
  violations_.push_back(what);
  return kInvalidValue;
}

template <typename Call>
CubApi::Entry<Call> FakeCub::entry(Work (FakeCub::*work_of)(const Call&)) {
  return [this, work_of](const Call& call, void* scratch, size_t* scratch_bytes, void* stream) {
    if (++num_calls_ == fails_at_) return kFailure;
    const LongLine& line = call.line;
    if (line.length == 0 || line.in == nullptr || line.out == nullptr) {
      return violation("a line without elements");
    }
    if (scratch == nullptr) {
      *scratch_bytes = kScratchBytes + line.length;
      return 0;
    }
    if (*scratch_bytes < kScratchBytes + line.length) return violation("too little scratch memory");
    Work work = (this->*work_of)(call);
    if (!work) return kInvalidValue;
    ++num_runs_;
    Work all = [work = std::move(work), scratch, bytes = *scratch_bytes] {
      std::memset(scratch, 0xa5, bytes);
      work();
    };
    if (enqueue_) {
      enqueue_(stream, {line.in, line.out, scratch}, std::move(all));
    } else {
      all();
    }
    return 0;
  };
}

// Runs of elements, joined in an order that the length gives.
template <typename Value, typename Items, typename Join>
Value FakeCub::reduce(uint64_t length, const Items& items, const Join& join) const {
  Random random(seed_ + length);
  std::vector<Value> parts;
  for (uint64_t j = 0; j < length;) {
    const uint64_t end = std::min(length, j + 1 + random.below(700));
    Value part = join.start();
    for (; j < end; ++j) part = join(part, items(j));
    parts.push_back(part);
  }
  Value all = join.start();
  while (!parts.empty()) {
    std::swap(parts[random.below(parts.size())], parts.back());
    all = join(all, parts.back());
    parts.pop_back();
  }
  return all;
}

FakeCub::Work FakeCub::sum_work(const SumCall& call) {
  Work work;
  visit_line_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    const bool is_plain = call.sum == LineSum::kSum || call.sum == LineSum::kProd;
    if (!std::is_same_v<sum_t<T>, double> && !is_plain) {
      violation("of integers, a sum that only floats have");
      return;
    }
    work = [this, call] {
      const SumJoin<T> join{call.sum == LineSum::kProd};
      SumStore<T>{call}(0, reduce<sum_t<T>>(call.line.length, SumTerms<T>{call}, join));
    };
  });
  return work;
}

FakeCub::Work FakeCub::extreme_work(const ExtremeCall& call) {
  Work work;
  visit_line_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    work = [this, call] {
      const ExtremeJoin join{call.takes_last != 0};
      ExtremeStore<T>{call}(0, reduce<Extreme>(call.line.length, ExtremeItems<T>{call}, join));
    };
  });
  return work;
}

FakeCub::Work FakeCub::cum_sum_work(const CumSumCall& call) {
  Work work;
  const bool is_integer = visit_integer_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    work = [call] {
      uint64_t sum = 0;
      for (uint64_t j = 0; j < call.line.length; ++j) {
        sum += CumSumTerms<T>{call}(j);
        CumSumStore<T>{call}(j, sum);
      }
    };
  });
  if (!is_integer) violation("running sums of floats");
  return work;
}

FakeCub::Work FakeCub::top_k_work(const TopKCall& call) {
  Work work;
  if (call.line.length > kMostSorted || call.k == 0 || call.k > call.line.length) {
    violation("more than a sort takes or gives");
    return work;
  }
  visit_line_type(call.line.type, [&](auto element) {
    using T = decltype(element);
    work = [call] {
      const SortKeys<T> keys{call};
      const auto digits = [&](uint32_t place) {  // those that are sorted by
        return static_cast<uint64_t>(keys(place)) << (64 - kSortBits<T>);
      };
      std::vector<uint32_t> places(call.line.length);
      std::iota(places.begin(), places.end(), 0u);
      std::stable_sort(places.begin(), places.end(),
                       [&](uint32_t a, uint32_t b) { return digits(a) < digits(b); });
      for (uint64_t rank = 0; rank < call.k; ++rank) TopStore<T>{call}(rank, places[rank]);
    };
  });
  return work;
}

}  // namespace eddy::testing
