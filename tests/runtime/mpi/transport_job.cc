// One rank of a job that runs every collective over a world on MPI: each kind, type, reduction and
// order, odd and empty sizes, along each axis, over all ranks and in a turned order of them,
// against the reference over what all ranks put in, bit for bit; then messages of any length
// between all. Argument "pieces": in pieces of a few bytes. Ends with 0, or 1 and a line that says
// what was wrong.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "graph/base/random.h"
#include "graph/ir/half.h"
#include "ops/reference/eddy/collective.h"
#include "runtime/cpu/host_allocator.h"
#include "runtime/mpi/mpi_transport.h"
#include "runtime/net/collective_steps.h"
#include "runtime/net/world.h"

namespace eddy {
namespace {

uint32_t own_rank = 0;
uint32_t num_ranks = 1;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "rank %u: %s\n", own_rank, what.c_str());
  std::_Exit(1);
}

void require(const Status& status, const std::string& what) {
  if (!status.is_ok()) fail(what + ": " + status.to_string());
}

// Steps of one call, driven by the world.
class Driver final : public World::TransferOwner {
 public:
  explicit Driver(CollectiveSteps& steps) : steps_(steps) {}
  void run(World& world) {
    {
      World::Turn turn(world);
      next(turn);
    }
    while (!is_over_) world.poll();
    require(status_, "a call");
  }

 private:
  void next(World::Turn& turn) {
    is_over_ = steps_.is_done();
    if (!is_over_) turn.start(steps_.transfer(), *this);
  }
  void on_done(World::Turn& turn, uint64_t, const Status& status) override {
    status_ = status;
    if (status_.is_ok()) status_ = steps_.advance();
    is_over_ = !status_.is_ok();
    if (!is_over_) next(turn);
  }

  CollectiveSteps& steps_;
  Status status_;
  bool is_over_ = false;
};

// A dense value and its bytes.
struct Value {
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
  ElementType element = ElementType::kUndefined;

  Value(ElementType type, std::vector<int64_t> shape) : dims(std::move(shape)), element(type) {
    bytes.resize(static_cast<size_t>(count()) * element_size_bytes(type), std::byte{0x5A});
  }
  int64_t count() const {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
  TensorView view() {
    return {bytes.data(), dims.data(), static_cast<int32_t>(dims.size()), element};
  }
};

template <typename T>
void set(Value& value, int64_t i, T number) {
  std::memcpy(value.bytes.data() + static_cast<size_t>(i) * sizeof(T), &number, sizeof(T));
}

// Random numbers of the type, the same on all ranks: what rank `from` puts in.
Value made(ElementType element, const std::vector<int64_t>& dims, uint64_t seed, uint32_t from) {
  Value value(element, dims);
  Random random(seed * 64 + from);
  for (int64_t i = 0; i < value.count(); ++i) {
    const uint64_t bits = random.below(UINT64_MAX);
    const double real = (static_cast<double>(bits % 20001) - 10000.0) / 37.0;
    switch (element) {
      case ElementType::kFloat:
        set(value, i, static_cast<float>(real));
        break;
      case ElementType::kDouble:
        set(value, i, real);
        break;
      case ElementType::kFloat16:
        set(value, i, Float16(static_cast<float>(real / 64)));
        break;
      case ElementType::kBfloat16:
        set(value, i, Bfloat16(static_cast<float>(real)));
        break;
      case ElementType::kBool:
        set(value, i, bits % 3 != 0);
        break;
      default:
        std::memcpy(value.bytes.data() + static_cast<size_t>(i) * element_size_bytes(element),
                    &bits, element_size_bytes(element));
    }
  }
  return value;
}

Collective collective_of(CollectiveKind kind, int64_t axis = 0) {
  Collective collective;
  collective.kind = kind;
  collective.axis = axis;
  return collective;
}

struct Case {
  Collective collective;
  ElementType element;
  std::vector<int64_t> dims;
};

std::vector<int64_t> output_dims(const Case& c, size_t n) {
  std::vector<int64_t> dims = c.dims;
  const auto axis = static_cast<size_t>(c.collective.axis);
  const auto count = static_cast<int64_t>(n);
  if (c.collective.kind == CollectiveKind::kAllGather) dims[axis] *= count;
  if (c.collective.kind == CollectiveKind::kReduceScatter) dims[axis] /= count;
  return dims;
}

// Position i of the group has i + 1 rows, and wants those from i on: pieces of many others.
void set_boxes(Collective& collective, size_t n, int64_t columns) {
  int64_t rows = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto own = static_cast<int64_t>(i) + 1;
    collective.from.push_back({{rows, 0}, {own, columns}});
    rows += own;
  }
  for (size_t i = 0; i < n; ++i) {
    const auto first = static_cast<int64_t>(i);
    collective.to.push_back(
        {{first, 0}, {rows - 2 * first, std::min<int64_t>(columns, first + 1)}});
  }
}

// What the order of MPI may change is compared as near; all else bit for bit.
bool agrees(const Value& got, const Value& expected, bool is_exact) {
  if (got.bytes == expected.bytes) return true;
  if (is_exact) return false;
  for (int64_t i = 0; i < got.count(); ++i) {
    const auto at = [&](const Value& v) {
      if (v.element == ElementType::kFloat) {
        return static_cast<double>(reinterpret_cast<const float*>(v.bytes.data())[i]);
      }
      return reinterpret_cast<const double*>(v.bytes.data())[i];
    };
    const double a = at(got);
    const double b = at(expected);
    if (std::abs(a - b) > 1e-4 * (1 + std::abs(b))) return false;
  }
  return true;
}

class Job {
 public:
  explicit Job(World& world) : world_(world) {
    std::vector<uint32_t> all(num_ranks);
    std::iota(all.begin(), all.end(), 0);
    World::Turn turn(world_);
    auto opened = turn.open(all);
    require(opened.status(), "open");
    communicator_ = *opened;
  }
  ~Job() {
    World::Turn turn(world_);
    turn.close(communicator_);
  }

  void try_case(const Case& c) {
    const uint64_t seed = ++num_cases_;
    CollectivePlaces places;
    places.communicator = communicator_;
    for (uint32_t r = 0; r < num_ranks; ++r) places.by_position.push_back(r);
    // Each second in a turned order.
    if (seed % 2 == 0) {
      std::rotate(places.by_position.begin(), places.by_position.begin() + 1,
                  places.by_position.end());
    }
    const auto own = std::ranges::find(places.by_position, own_rank);
    places.own = static_cast<uint32_t>(own - places.by_position.begin());
    const auto root_position = static_cast<size_t>(seed % num_ranks);
    places.root = places.by_position[root_position];
    Collective collective = c.collective;
    collective.num_ranks = num_ranks;
    collective.root = places.root;
    collective.group.assign(places.by_position.begin(), places.by_position.end());

    const bool has_boxes = c.collective.kind == CollectiveKind::kExchange;
    std::vector<int64_t> dims = output_dims(c, num_ranks);
    if (has_boxes) set_boxes(collective, num_ranks, c.dims[0]);
    if (has_boxes) {
      dims = collective.to[places.own].sizes;
      auto pieces = exchange_pieces(collective.from, collective.to);
      require(pieces.status(), "exchange_pieces");
      places.pieces = std::make_shared<const std::vector<ExchangePiece>>(std::move(*pieces));
    }
    std::vector<Value> inputs;
    for (const uint32_t rank : places.by_position) {
      const auto& own_dims = has_boxes ? collective.from[inputs.size()].sizes : c.dims;
      inputs.push_back(made(c.element, own_dims, seed, rank));
    }
    std::vector<TensorView> views;
    for (Value& input : inputs) views.push_back(input.view());
    Value expected(c.element, dims);
    require(run_collective(collective, {views, places.own, root_position}, expected.view()),
            "the reference");

    Value got(c.element, dims);
    CollectiveSteps steps;
    const bool checks = seed % 3 == 0;
    require(steps.plan(collective, places, views[places.own], got.view(), world_, memory_, checks),
            "plan");
    Driver(steps).run(world_);
    const bool is_float = c.element == ElementType::kFloat || c.element == ElementType::kDouble;
    if (!agrees(got, expected, collective.in_rank_order || !is_float)) {
      fail("case " + std::to_string(seed) + ": kind " +
           std::to_string(static_cast<int>(collective.kind)) + ", " +
           std::string(element_type_name(c.element)) + to_string(Dims(c.dims)) + ", reduction " +
           std::to_string(static_cast<int>(collective.reduction)) +
           (collective.in_rank_order ? "" : ", any order"));
    }
  }

  void try_barrier() {
    Value flag(ElementType::kBool, {});
    CollectivePlaces places;
    places.communicator = communicator_;
    for (uint32_t r = 0; r < num_ranks; ++r) places.by_position.push_back(r);
    places.own = own_rank;
    CollectiveSteps steps;
    require(steps.plan(collective_of(CollectiveKind::kBarrier), places, {}, flag.view(), world_,
                       memory_, false),
            "plan");
    Driver(steps).run(world_);
    if (flag.bytes[0] != std::byte{1}) fail("a barrier's flag");
  }

  uint64_t num_cases() const { return num_cases_; }

 private:
  World& world_;
  HostAllocator memory_{0};
  uint32_t communicator_ = 0;
  uint64_t num_cases_ = 0;
};

constexpr ElementType kTypes[] = {
    ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
    ElementType::kInt8,  ElementType::kInt16,  ElementType::kInt32,   ElementType::kInt64,
    ElementType::kUint8, ElementType::kUint16, ElementType::kUint32,  ElementType::kUint64};

void try_reductions(Job& job, bool in_rank_order) {
  using Reduction = RankReduction;
  const auto n = static_cast<int64_t>(num_ranks);
  const auto all = [&](ElementType element, Reduction reduction) {
    const auto make = [&](CollectiveKind kind, int64_t axis) {
      Collective collective = collective_of(kind, axis);
      collective.reduction = reduction;
      collective.in_rank_order = in_rank_order;
      return collective;
    };
    for (const int64_t count : {0, 1, 5, 97, 4099}) {
      job.try_case({make(CollectiveKind::kAllReduce, 0), element, {count}});
    }
    job.try_case({make(CollectiveKind::kReduceScatter, 0), element, {7 * n, 3}});
    job.try_case({make(CollectiveKind::kReduceScatter, 1), element, {3, 5 * n, 2}});
  };
  for (const ElementType element : kTypes) {
    for (const auto reduction :
         {Reduction::kSum, Reduction::kProd, Reduction::kMin, Reduction::kMax}) {
      all(element, reduction);
    }
  }
  all(ElementType::kBool, Reduction::kAnd);
  all(ElementType::kBool, Reduction::kOr);
  all(ElementType::kDouble, Reduction::kAverage);
  all(ElementType::kFloat16, Reduction::kAverage);
}

void try_movement(Job& job) {
  const auto n = static_cast<int64_t>(num_ranks);
  for (const ElementType element : {ElementType::kInt8, ElementType::kFloat16, ElementType::kBool,
                                    ElementType::kFloat, ElementType::kDouble}) {
    for (const int64_t count : {0, 1, 3, 1001, 20011}) {
      job.try_case({collective_of(CollectiveKind::kAllGather), element, {count}});
      job.try_case({collective_of(CollectiveKind::kBroadcast), element, {count}});
      job.try_case({collective_of(CollectiveKind::kAllToAll), element, {count * n}});
      job.try_case({collective_of(CollectiveKind::kExchange), element, {count}});
    }
    job.try_case({collective_of(CollectiveKind::kAllGather, 1), element, {3, 5, 2}});
    job.try_case({collective_of(CollectiveKind::kAllToAll, 1), element, {3, 2 * n, 2}});
  }
}

// Everybody to everybody, itself included, in order for each two.
void try_messages(Transport& transport) {
  // Behind a long one, a short one is whole first.
  constexpr size_t kLengths[] = {0, 1, 2040, 2041, 100'003, 7, 3'000'000, 0, 3};
  const auto fill = [](uint32_t from, size_t length) {
    std::vector<std::byte> bytes(length);
    for (size_t i = 0; i < length; ++i)
      bytes[i] = static_cast<std::byte>(from * 31 + i * 7 + i / 256);
    return bytes;
  };
  for (const size_t length : kLengths) {
    for (uint32_t to = 0; to < num_ranks; ++to) {
      require(transport.send_message(to, fill(own_rank, length)), "send_message");
    }
  }
  std::vector<size_t> num_received(num_ranks, 0);
  for (size_t missing = std::size(kLengths) * num_ranks; missing > 0;) {
    Transport::Progress progress;
    transport.poll(progress);
    for (const Transport::Message& message : progress.messages) {
      const size_t which = num_received[message.from]++;
      if (which >= std::size(kLengths) || message.bytes != fill(message.from, kLengths[which])) {
        fail("message " + std::to_string(which) + " of rank " + std::to_string(message.from));
      }
      --missing;
    }
  }
}

int run(bool in_pieces) {
  // In pieces by MPI's collectives, else by messages.
  auto transport = open_mpi_transport(
      {.max_piece_bytes = in_pieces ? 1000 : 0, .swapped_places = in_pieces ? 0u : 16u});
  require(transport.status(), "open_mpi_transport");
  own_rank = (*transport)->rank();
  num_ranks = (*transport)->num_ranks();
  try_messages(**transport);
  if ((*transport)->describe().find("MPI") == std::string::npos) fail((*transport)->describe());
  const std::shared_ptr<World> world = World::open(std::move(*transport));
  {
    Job job(*world);
    try_movement(job);
    try_reductions(job, true);
    try_reductions(job, false);
    job.try_barrier();
    if (own_rank == 0) std::printf("%llu cases agree\n", (unsigned long long)job.num_cases());
  }
  return 0;
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  return eddy::run(argc > 1 && std::string_view(argv[1]) == "pieces");
}
