// random_loop_copy: seeded launches of eddy_loop_copy, of any of their parts, in given memory.
#pragma once

#include <cstring>
#include <vector>

#include "graph/base/random.h"
#include "ops/cuda/images/loop_control.h"

namespace eddy::testing {

inline constexpr size_t kCopyArenaBytes = size_t{1} << 14;

// Each type has slots of its own; what is written may be read before and behind. Arrays likewise.
class RandomLoopCopy {
 public:
  using Type = cuda::ScalarType;

  // `arena`: kCopyArenaBytes, aligned to 64; the same calls give the same launch in another one.
  static cuda::LoopCopyParams make(Random& random, unsigned char* arena) {
    RandomLoopCopy made(random, arena);
    return made.params_;
  }

 private:
  static constexpr int kSlots = 5, kTypes = 5;

  RandomLoopCopy(Random& random, unsigned char* arena) : random_(random), arena_(arena) {
    const auto num_scalars = static_cast<int32_t>(random.below(9));
    for (int32_t k = 0; k < num_scalars; ++k) params_.scalars[k] = step(0);
    params_.num_scalars = num_scalars;
    const auto num_maps = static_cast<int32_t>(random.below(2) * random.below(5));
    const uint64_t count = 2 + random.below(60);
    for (int32_t k = 0; k < num_maps; ++k) params_.maps[k] = map(count);
    params_.num_maps = num_maps;
    add_pieces();
    add_rows();
    if (random.below(4) != 0) add_step();
    if (has_rows_) params_.flags = cuda::LoopStepParams::kBehindAll;
    if (random.below(3) == 0) params_.told = word<uint32_t>(2);
    is_guarded_ = random.below(3) == 0;
    if (!is_guarded_) return;
    params_.flags |= cuda::LoopStepParams::kGuarded;
    params_.go_on = word<uint32_t>(3);
    // Of several blocks none may write the guard, of one block none before all others have read it.
    if (has_large_) params_.flags |= cuda::LoopStepParams::kBehindAll;
    params_.step.flags |= params_.step.flags != 0 ? uint32_t{cuda::LoopStepParams::kGuarded} : 0;
    params_.step.go_on = params_.step.flags != 0 && num_maps == 0 ? word<uint32_t>(3) : nullptr;
    if (params_.step.go_on == nullptr) params_.step.flags = 0;
  }

  // Words of the loop's, slots, arrays.
  template <typename T>
  T* word(size_t i) const {
    return reinterpret_cast<T*>(arena_ + 8 * i);
  }
  unsigned char* slot(Type type) const {
    return arena_ + 128 + 8 * (static_cast<size_t>(type) * kSlots + random_.below(kSlots));
  }
  unsigned char* array(Type type) const {
    return arena_ + 2048 + 512 * (static_cast<size_t>(type) * kSlots + random_.below(kSlots));
  }
  Type any_type() const { return static_cast<Type>(random_.below(kTypes)); }
  unsigned char* place(Type type, bool is_array) const {
    return is_array ? array(type) : slot(type);
  }

  cuda::ScalarStepParams step(bool is_array) const {
    using Op = cuda::ScalarOp;
    const Op of_numbers[] = {Op::kAdd, Op::kMul, Op::kMax, Op::kNeg, Op::kRelu};
    const Op to_bools[] = {Op::kLess, Op::kGreaterOrEqual, Op::kEqual};
    const Op of_bools[] = {Op::kAnd, Op::kXor, Op::kNot, Op::kEqual};
    const Op of_reals[] = {Op::kTanh, Op::kExp, Op::kDiv};
    cuda::ScalarStepParams made{};
    made.type = any_type();
    made.to = made.type;
    const bool is_bool = made.type == Type::k_b8;
    const bool is_real = made.type == Type::k_f32 || made.type == Type::k_f64;
    Type out = made.type;
    switch (random_.below(5)) {
      case 0:
        made.op = Op::kWhere;
        break;
      case 1:
        made.op = Op::kCast;
        // A real that an integer does not hold becomes what the machine likes.
        made.to = out = is_real ? Type::k_f64 : any_type();
        break;
      case 2:
        made.op = is_bool ? of_bools[random_.below(4)] : to_bools[random_.below(3)];
        out = Type::k_b8;
        break;
      default:
        made.op = is_bool                            ? of_bools[random_.below(4)]
                  : is_real && random_.below(2) == 0 ? of_reals[random_.below(3)]
                                                     : of_numbers[random_.below(5)];
    }
    if (!is_array && !is_bool && !is_real && random_.below(6) == 0) {
      made.op = Op::kSet;
      made.to = out = made.type;
      made.in[0] = reinterpret_cast<const void*>(uintptr_t{1 + random_.below(1000)});
    } else {
      const bool is_where = made.op == Op::kWhere;
      const int arity = is_where ? 3 : arity_of(made.op);
      for (int i = 0; i < arity; ++i) {
        made.in[i] = place(is_where && i == 0 ? Type::k_b8 : made.type, is_array);
      }
    }
    made.out = place(out, is_array);
    return made;
  }
  static int arity_of(cuda::ScalarOp op) {
    using Op = cuda::ScalarOp;
    const bool is_one = op == Op::kNeg || op == Op::kRelu || op == Op::kNot || op == Op::kTanh ||
                        op == Op::kExp || op == Op::kCast;
    return is_one ? 1 : 2;
  }

  static uint8_t bytes(Type type) {
    constexpr uint8_t kBytes[] = {4, 8, 4, 8, 1};
    return kBytes[static_cast<size_t>(type)];
  }
  cuda::MapParams map(uint64_t count) const {
    cuda::MapParams made{};
    made.step = step(true);
    made.count = count;
    const bool is_where = made.step.op == cuda::ScalarOp::kWhere;
    for (int i = 0; i < 3; ++i) {
      const Type type = is_where && i == 0 ? Type::k_b8 : made.step.type;
      made.in_bytes[i] = made.step.in[i] == nullptr ? uint8_t{0} : bytes(type);
      if (made.step.in[i] == nullptr || random_.below(6) != 0) continue;
      made.in_bytes[i] = 0;  // one of a place that no map writes
      made.step.in[i] = arena_ + 1024 + 8 * static_cast<size_t>(type);
    }
    const auto out = (reinterpret_cast<unsigned char*>(made.step.out) - arena_ - 2048) / 512;
    made.out_bytes = bytes(static_cast<Type>(out / kSlots));
    return made;
  }

  // To places of their own, from slots and from each other.
  void add_pieces() {
    const auto count = static_cast<int32_t>(random_.below(2) * random_.below(5));
    for (int32_t k = 0; k < count; ++k) {
      const Type type = any_type();
      unsigned char* const to = arena_ + 1536 + 8 * random_.below(6);
      const bool is_chained = k > 0 && random_.below(3) == 0;
      const void* const from = is_chained ? params_.pieces[k - 1].to : slot(type);
      const uint64_t size = is_chained ? params_.pieces[k - 1].size_bytes : bytes(type);
      if (to == from) continue;
      params_.pieces[params_.num_pieces++] = {to, from, size};
    }
    if (random_.below(4) != 0) return;
    params_.pieces[params_.num_pieces++] = {arena_ + 15000, arena_ + 1100, 300};
    has_large_ = true;
  }

  // Of one thread, of all; the counter is below 20.
  void add_rows() {
    using Piece = cuda::LoopCopyParams::Piece;
    for (const uint64_t size : {8, 16}) {
      if (random_.below(4) != 0) continue;
      unsigned char* const to = arena_ + (size == 8 ? 15'400 : 15'800);
      params_.pieces[params_.num_pieces++] = {
          to, arena_ + 1104, size, Piece::kToRow, word<int64_t>(4), size};
      has_rows_ = has_rows_ || size > cuda::kFirstThreadsBytes;
    }
  }

  void add_step() {
    using Step = cuda::LoopStepParams;
    const uint32_t kinds[] = {Step::kStart, Step::kAdvance, Step::kTest, Step::kStart | Step::kTest,
                              Step::kAdvance | Step::kTest};
    Step& step = params_.step;
    step.flags = kinds[random_.below(5)];
    step.counter = word<int64_t>(4);
    step.limit = word<int64_t>(5);
    step.predicate = slot(Type::k_b8);
    step.stop = word<uint32_t>(6);
    step.progress = word<int64_t>(7);
    step.handle = reinterpret_cast<uint64_t>(word<uint32_t>(9));
    step.asked_ns = random_.below(2) == 0 ? word<uint64_t>(10) : nullptr;
  }

  Random& random_;
  unsigned char* const arena_;
  cuda::LoopCopyParams params_{};
  bool is_guarded_ = false;
  bool has_rows_ = false;
  bool has_large_ = false;
};

// Numbers in all places, the same for a seed.
inline void fill_copy_arena(uint64_t seed, unsigned char* arena) {
  Random random(seed);
  std::memset(arena, 0, kCopyArenaBytes);
  // What pieces of many bytes and rows are copied from.
  for (size_t i = 1100; i < 1400; ++i) arena[i] = static_cast<unsigned char>(1 + random.below(255));
  const auto put = [&](unsigned char* at, size_t type) {
    const float number = random.uniform(-3.0f, 3.0f);
    const double wide = number;
    const auto integer = static_cast<int64_t>(random.below(100)) - 50;
    const auto half = static_cast<int32_t>(integer);
    const bool bit = random.below(2) == 0;
    if (type == 0) std::memcpy(at, &number, 4);
    if (type == 1) std::memcpy(at, &wide, 8);
    if (type == 2) std::memcpy(at, &half, 4);
    if (type == 3) std::memcpy(at, &integer, 8);
    if (type == 4) std::memcpy(at, &bit, 1);
  };
  constexpr size_t kBytes[] = {4, 8, 4, 8, 1};
  for (size_t type = 0; type < 5; ++type) {
    put(arena + 1024 + 8 * type, type);
    for (size_t s = 0; s < 5; ++s) {
      put(arena + 128 + 8 * (type * 5 + s), type);
      for (size_t i = 0; i < 512 / kBytes[type]; ++i) {
        put(arena + 2048 + 512 * (type * 5 + s) + i * kBytes[type], type);
      }
    }
  }
  const int64_t words[] = {0,
                           0,
                           0,
                           static_cast<int64_t>(random.below(3) != 0),
                           static_cast<int64_t>(random.below(20)),
                           10,
                           static_cast<int64_t>(random.below(3) == 0),
                           0,
                           0,
                           7,
                           0};
  std::memcpy(arena, words, sizeof(words));
}

}  // namespace eddy::testing
