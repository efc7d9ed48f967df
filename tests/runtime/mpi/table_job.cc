// One rank of a job that tries every call of the table with odd sizes, in one piece and in pieces
// of a few bytes, over all ranks and over a part of them. Ends with 0, or 1 and a line that says
// what was wrong. Argument "fail": rank 1 ends the job with 7; "leave": it ends alone, with 3.
#include <unistd.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/mpi/mpi_library.h"

namespace eddy {
namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 103, 4097};

int32_t own_rank = 0;
int32_t num_ranks = 1;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "rank %d: %s\n", own_rank, what.c_str());
  std::_Exit(1);
}

void require(bool is_right, const std::string& what) {
  if (!is_right) fail(what);
}

// What rank `from` puts at byte i for rank `to`.
unsigned char byte_of(int from, int to, int64_t i) {
  return static_cast<unsigned char>(from * 57 + to * 11 + i * 7 + i / 256);
}

class Channel {
 public:
  Channel(const MpiTable& mpi, std::vector<int32_t> ranks, int64_t piece)
      : mpi_(mpi), ranks_(std::move(ranks)), requests_(mpi.make_requests(piece)) {
    check(mpi_.make_communicator(ranks_.data(), size(), 5, &communicator_), "make_communicator");
    for (int i = 0; i < size(); ++i)
      place_ = ranks_[static_cast<size_t>(i)] == own_rank ? i : place_;
  }
  ~Channel() {
    mpi_.free_communicator(communicator_);
    mpi_.free_requests(requests_);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  int place() const { return place_; }
  MpiRequests* requests() { return requests_; }
  MpiCommunicator* communicator() { return communicator_; }

  void check(int32_t error, const char* what) const {
    const Status status = mpi_status(mpi_, error, what);
    if (!status.is_ok()) fail(status.to_string());
  }
  // Until `count` operations have completed, each named once.
  std::vector<MpiCompletion> finish(size_t count) {
    std::vector<MpiCompletion> all;
    while (all.size() < count) {
      const MpiCompletion* done = nullptr;
      int32_t num = 0;
      check(mpi_.test_some(requests_, &done, &num), "test_some");
      for (int32_t i = 0; i < num; ++i) {
        check(done[i].error, "an operation");
        for (const MpiCompletion& other : all) require(other.tag != done[i].tag, "named twice");
        all.push_back(done[i]);
      }
    }
    return all;
  }

 private:
  const MpiTable& mpi_;
  std::vector<int32_t> ranks_;
  MpiRequests* requests_;
  MpiCommunicator* communicator_ = nullptr;
  int place_ = 0;
};

using Bytes = std::vector<unsigned char>;

Bytes own_bytes(int from, int to, int64_t count) {
  Bytes bytes(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) bytes[static_cast<size_t>(i)] = byte_of(from, to, i);
  return bytes;
}

// Parts of `count` bytes, part i made by part(i).
template <typename Part>
Bytes joined(int parts, const Part& part) {
  Bytes all;
  for (int i = 0; i < parts; ++i) {
    const Bytes one = part(i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void try_movement(const MpiTable& mpi, Channel& channel, int64_t count) {
  const int n = channel.size();
  const int me = channel.place();
  const std::string size = " of " + std::to_string(count) + " bytes";
  // All under way at once, on one communicator.
  const Bytes mine = own_bytes(me, 0, count);
  const Bytes to_each = joined(n, [&](int to) { return own_bytes(me, to, count); });
  Bytes gathered(static_cast<size_t>(n * count), 0xEE);
  Bytes exchanged(static_cast<size_t>(n * count), 0xEE);
  std::vector<Bytes> roots;
  channel.check(mpi.all_gather(channel.requests(), channel.communicator(), 1, mine.data(),
                               gathered.data(), count),
                "all_gather");
  channel.check(mpi.all_to_all(channel.requests(), channel.communicator(), 2, to_each.data(),
                               exchanged.data(), count),
                "all_to_all");
  for (int root = 0; root < n; ++root) {
    roots.push_back(root == me ? mine : Bytes(static_cast<size_t>(count), 0xEE));
  }
  for (int root = 0; root < n; ++root) {
    channel.check(
        mpi.broadcast(channel.requests(), channel.communicator(), 10 + static_cast<uint64_t>(root),
                      roots[static_cast<size_t>(root)].data(), count, root),
        "broadcast");
  }
  channel.check(mpi.barrier(channel.requests(), channel.communicator(), 3), "barrier");
  Bytes received(static_cast<size_t>(count), 0xEE);
  channel.check(mpi.receive(channel.requests(), channel.communicator(), 4, received.data(), count,
                            (me + n - 1) % n),
                "receive");
  channel.check(
      mpi.send(channel.requests(), channel.communicator(), 5, mine.data(), count, (me + 1) % n),
      "send");
  // Messages of collectives match no other sends.
  Bytes swapped(static_cast<size_t>(n * count), 0xEE), shifted(static_cast<size_t>(count), 0xEE);
  if (n > 1) {
    channel.check(mpi.swap_all(channel.requests(), channel.communicator(), 6, to_each.data(), count,
                               swapped.data(), count),
                  "swap_all");
  }
  const int distance = n - 1;
  channel.check(mpi.shift(channel.requests(), channel.communicator(), 7, mine.data(),
                          shifted.data(), count, distance),
                "shift");
  channel.finish((n > 1 ? 7 : 6) + static_cast<size_t>(n));
  require(gathered == joined(n, [&](int from) { return own_bytes(from, 0, count); }),
          "all_gather" + size);
  require(exchanged == joined(n, [&](int from) { return own_bytes(from, me, count); }),
          "all_to_all" + size);
  require(swapped == joined(n,
                            [&](int from) {
                              return from == me ? Bytes(static_cast<size_t>(count), 0xEE)
                                                : own_bytes(from, me, count);
                            }),
          "swap_all" + size);
  require(shifted == own_bytes((me + n - distance) % n, 0, count), "shift" + size);
  for (int root = 0; root < n; ++root) {
    require(roots[static_cast<size_t>(root)] == own_bytes(root, 0, count), "broadcast" + size);
  }
  require(received == own_bytes((me + n - 1) % n, 0, count), "send and receive" + size);
}

template <typename T>
T combine(MpiReduction reduction, T a, T b) {
  switch (reduction) {
    case MpiReduction::kSum:
      return static_cast<T>(a + b);
    case MpiReduction::kProd:
      return static_cast<T>(a * b);
    case MpiReduction::kMin:
      return std::min(a, b);
    case MpiReduction::kMax:
      return std::max(a, b);
    case MpiReduction::kAnd:
      return static_cast<T>(a != T(0) && b != T(0));
    case MpiReduction::kOr:
      return static_cast<T>(a != T(0) || b != T(0));
  }
  return a;
}

// An all_reduce under way, of small whole numbers, so that floats are exact in any order.
template <typename T>
class Reduction {
 public:
  Reduction(const MpiTable& mpi, Channel& channel, uint64_t tag, int64_t count, MpiType type,
            MpiReduction reduction)
      : channel_(channel),
        count_(count),
        reduction_(reduction),
        in_(new T[static_cast<size_t>(count) + 1]()),
        out_(new T[static_cast<size_t>(count) + 1]()) {
    for (int64_t i = 0; i < count; ++i) in_[static_cast<size_t>(i)] = value(channel.place(), i);
    channel.check(mpi.all_reduce(channel.requests(), channel.communicator(), tag, in_.get(),
                                 out_.get(), count, type, reduction),
                  "all_reduce");
  }

  bool is_right() const {
    for (int64_t i = 0; i < count_; ++i) {
      T expected = value(0, i);
      for (int p = 1; p < channel_.size(); ++p) {
        expected = combine(reduction_, expected, value(p, i));
      }
      if (out_[static_cast<size_t>(i)] != expected) return false;
    }
    return true;
  }

 private:
  static T value(int place, int64_t i) {
    return static_cast<T>(std::is_same_v<T, bool> ? (place + i) % 3 != 0 : (place * 3 + i * 5) % 7);
  }

  Channel& channel_;
  int64_t count_;
  MpiReduction reduction_;
  std::unique_ptr<T[]> in_;
  std::unique_ptr<T[]> out_;
};

// All of them under way at once.
void try_reductions(const MpiTable& mpi, Channel& channel, int64_t count) {
  std::vector<std::function<bool()>> checks;
  const auto start = [&]<typename T>(T, MpiType type, MpiReduction reduction) {
    auto started =
        std::make_shared<Reduction<T>>(mpi, channel, checks.size(), count, type, reduction);
    checks.emplace_back([started] { return started->is_right(); });
  };
  for (const auto reduction :
       {MpiReduction::kSum, MpiReduction::kProd, MpiReduction::kMin, MpiReduction::kMax}) {
    start(int32_t{}, MpiType::kInt32, reduction);
    start(int64_t{}, MpiType::kInt64, reduction);
    start(uint32_t{}, MpiType::kUint32, reduction);
    start(uint64_t{}, MpiType::kUint64, reduction);
    start(float{}, MpiType::kFloat, reduction);
    start(double{}, MpiType::kDouble, reduction);
  }
  for (const auto reduction : {MpiReduction::kAnd, MpiReduction::kOr}) {
    start(bool{}, MpiType::kBool, reduction);
  }
  channel.finish(checks.size());
  for (size_t i = 0; i < checks.size(); ++i) {
    require(checks[i](), "all_reduce of " + std::to_string(count) + ", the " + std::to_string(i) +
                             "-th of types and reductions");
  }
}

// Everybody sends to all, itself included; receives from any until it has one of each.
void try_messages(const MpiTable& mpi, Channel& channel) {
  const int n = channel.size();
  const auto own = static_cast<unsigned char>(channel.place());
  for (int to = 0; to < n; ++to) {
    channel.check(mpi.send(channel.requests(), channel.communicator(), static_cast<uint64_t>(to),
                           &own, 1, to),
                  "send");
  }
  std::vector<bool> has(static_cast<size_t>(n), false);
  unsigned char received[4] = {};
  for (int num_sent = 0, num_received = 0; num_received < n;) {
    channel.check(mpi.receive_any(channel.requests(), channel.communicator(), 1000, received, 4),
                  "receive_any");
    for (bool is_here = false; !is_here;) {
      for (const MpiCompletion& done : channel.finish(1)) {
        if (done.tag != 1000) {
          ++num_sent;
          continue;
        }
        is_here = true;
        ++num_received;
        require(done.bytes == 1 && received[0] == done.source, "a message's size and source");
        require(!has[received[0]], "a message came twice");
        has[received[0]] = true;
      }
    }
    if (num_received == n && num_sent < n) channel.finish(static_cast<size_t>(n - num_sent));
  }
  channel.check(mpi.receive_any(channel.requests(), channel.communicator(), 77, received, 4),
                "receive_any");
  channel.check(mpi.cancel_receives(channel.requests()), "cancel_receives");
  const std::vector<MpiCompletion> last = channel.finish(1);
  require(last[0].tag == 77 && last[0].source == -1 && last[0].bytes == 0, "a cancelled receive");
}

// On two communicators, ranks may start in any order.
void try_opposite_orders(const MpiTable& mpi, const std::vector<int32_t>& all) {
  Channel a(mpi, all, 0);
  Channel b(mpi, all, 0);
  const auto x = static_cast<int32_t>(own_rank + 1);
  for (int round = 0; round < 50; ++round) {
    int32_t sum = 0;
    int32_t most = 0;
    const auto start_a = [&] {
      a.check(mpi.all_reduce(a.requests(), a.communicator(), 1, &x, &sum, 1, MpiType::kInt32,
                             MpiReduction::kSum),
              "all_reduce");
    };
    if (own_rank % 2 == 0) start_a();
    b.check(mpi.all_reduce(b.requests(), b.communicator(), 1, &x, &most, 1, MpiType::kInt32,
                           MpiReduction::kMax),
            "all_reduce");
    if (own_rank % 2 != 0) start_a();
    a.finish(1);
    b.finish(1);
    require(sum == num_ranks * (num_ranks + 1) / 2 && most == num_ranks, "two communicators");
  }
}

int run(std::string_view what) {
  auto loaded = load_mpi();
  if (!loaded.is_ok()) fail(loaded.status().to_string());
  const MpiTable& mpi = **loaded;
  int32_t was_open = -1;
  const int32_t error = mpi.open(&was_open);
  if (error != 0) fail(mpi_status(mpi, error, "open").to_string());
  require(was_open == 0, "open before it was opened");
  mpi.world(&own_rank, &num_ranks);
  const auto launched = find_launched_rank();
  require(launched && launched->rank == static_cast<uint32_t>(own_rank) &&
              launched->num_ranks == static_cast<uint32_t>(num_ranks) &&
              launched->num_local == static_cast<uint32_t>(num_ranks),
          "the launcher's environment");
  if (what == "fail" && own_rank == 1) mpi.abort(7);
  if (what == "leave" && own_rank == 1) _exit(3);
  std::vector<int32_t> all(static_cast<size_t>(num_ranks));
  std::iota(all.begin(), all.end(), 0);
  for (const int64_t piece : {int64_t{0}, int64_t{5}}) {
    Channel channel(mpi, all, piece);
    for (const int64_t count : kSizes) {
      if (piece > 0 && count > 1000) continue;
      try_movement(mpi, channel, count);
      try_reductions(mpi, channel, count);
    }
    try_messages(mpi, channel);
  }
  if (own_rank != 0) {  // all but the first, in turned order
    Channel part(mpi, {all.rbegin(), all.rend() - 1}, 0);
    for (const int64_t count : kSizes) try_movement(mpi, part, count);
  }
  try_opposite_orders(mpi, all);
  require(mpi.close() == 0, "close");
  require(mpi.open(&was_open) == kMpiWasClosed, "opened twice");
  if (own_rank == 0) std::puts("all calls agree");
  return 0;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) { return eddy::run(argc > 1 ? argv[1] : ""); }
