#include "ops/cuda/images/copy_source.h"

#include <string>
#include <vector>

#include "graph/base/fingerprint.h"

namespace eddy::cuda {
namespace {

struct Range {
  uintptr_t begin;
  uint64_t size;
  bool overlaps(const Range& other) const {
    return begin < other.begin + other.size && other.begin < begin + size;
  }
  bool operator==(const Range&) const = default;
};
Range range_of(const void* at, uint64_t size) { return {reinterpret_cast<uintptr_t>(at), size}; }

struct NamedOp {
  const char* name;
  int arity;
};
NamedOp named(ScalarOp op) {
  switch (op) {
#define EDDY_SCALAR_TWO(op) \
  case ScalarOp::k##op:     \
    return {#op, 2};
#define EDDY_SCALAR_ONE(op) \
  case ScalarOp::k##op:     \
    return {#op, 1};
    EDDY_SCALAR_BINARY(EDDY_SCALAR_TWO)
    EDDY_SCALAR_COMPARE(EDDY_SCALAR_TWO)
    EDDY_SCALAR_LOGIC(EDDY_SCALAR_TWO)
    EDDY_SCALAR_TWO(Div)
    EDDY_SCALAR_TWO(Equal)
    EDDY_SCALAR_UNARY(EDDY_SCALAR_ONE)
    EDDY_SCALAR_REAL(EDDY_SCALAR_ONE)
    EDDY_SCALAR_ONE(Not)
    EDDY_SCALAR_ONE(Cast)
#undef EDDY_SCALAR_TWO
#undef EDDY_SCALAR_ONE
    case ScalarOp::kWhere:
      return {"Where", 3};
    case ScalarOp::kSet:
      return {"Set", 0};
  }
  return {"", 0};
}

struct NamedType {
  std::string name;
  uint64_t size;
  bool operator==(const NamedType&) const = default;
};
NamedType named(ScalarType type) {
  switch (type) {
#define EDDY_SCALAR_NAMED(type, size) \
  case ScalarType::k_##type:          \
    return {#type, size};
    EDDY_SCALAR_TYPES(EDDY_SCALAR_NAMED)
#undef EDDY_SCALAR_NAMED
  }
  return {"", 0};
}
const NamedType kBool = {"b8", 1};

NamedType type_in(const ScalarStepParams& step, int i) {
  return step.op == ScalarOp::kWhere && i == 0 ? kBool : named(step.type);
}
NamedType type_out(const ScalarStepParams& step) {
  switch (step.op) {
#define EDDY_SCALAR_IS_BOOL(op) case ScalarOp::k##op:
    EDDY_SCALAR_COMPARE(EDDY_SCALAR_IS_BOOL)
    EDDY_SCALAR_IS_BOOL(Equal)
#undef EDDY_SCALAR_IS_BOOL
    return kBool;
    case ScalarOp::kCast:
      return named(step.to);
    case ScalarOp::kSet:  // a byte as it is, which need not be a bool's
      return step.type == ScalarType::k_b8 ? NamedType{"u8", 1} : named(step.type);
    default:
      return named(step.type);
  }
}

std::string call(const ScalarStepParams& step, const std::string (&in)[3]) {
  const NamedOp op = named(step.op);
  switch (step.op) {
    case ScalarOp::kNot:
      return "!" + in[0];
    case ScalarOp::kCast:
      return "convert<" + named(step.to).name + ">(" + in[0] + ")";
    case ScalarOp::kWhere:
      return in[0] + " ? " + in[1] + " : " + in[2];
    default:
      break;
  }
  const std::string rest = op.arity == 2 ? in[1] : "0, 0";
  return std::string(op.name) + "::apply(" + in[0] + ", " + rest + ")";
}

// What a step has made, and where it stands.
struct Made {
  Range range;
  NamedType type;
  std::string name;
};

class Writer {
 public:
  explicit Writer(const LoopCopyParams& params) : p_(params) {}

  Result<std::string> body() {
    EDDY_RETURN_IF_ERROR(scalars());
    pieces();
    if (!waits()) step();
    const std::string first = loads_ + call_off() + steps_;
    loads_ = steps_ = "";
    if (waits()) late_step();
    const std::string last = steps_;
    steps_ = "";
    EDDY_RETURN_IF_ERROR(maps());
    return "struct Body {\n  static constexpr bool kTells = " +
           std::string(p_.told != nullptr ? "true" : "false") +
           ";\n  static constexpr bool kWaits = " + (waits() ? "true" : "false") +
           ";\n  template <typename Set, typename Now>\n  EDDY_HD static void last("
           "[[maybe_unused]] const LoopCopyParams& p, [[maybe_unused]] Set set, "
           "[[maybe_unused]] Now now) {\n" +
           last +
           "  }\n  template <typename Set, typename Now>\n  EDDY_HD static void first("
           "[[maybe_unused]] const LoopCopyParams& p, [[maybe_unused]] Set set, "
           "[[maybe_unused]] Now now) {\n" +
           first +
           "  }\n  EDDY_HD static void each([[maybe_unused]] const LoopCopyParams& p, "
           "[[maybe_unused]] uint64_t thread, [[maybe_unused]] uint64_t step) {\n" +
           steps_ + "  }\n};\n";
  }

 private:
  // The step comes behind all threads.
  bool waits() const { return (p_.flags & LoopStepParams::kBehindAll) != 0 && p_.step.flags != 0; }
  void late_step() {
    steps_ += call_off() + step_words() + "    loop_step(loop, read_words(loop), set, now);\n";
  }
  std::string step_words() const {
    return "    LoopStepParams loop = p.step;\n    loop.flags = " + std::to_string(p_.step.flags) +
           ";\n";
  }
  // Loads may come first: they have no effect.
  std::string call_off() const {
    if ((p_.flags & LoopStepParams::kGuarded) == 0 &&
        (p_.step.flags & LoopStepParams::kGuarded) == 0) {
      return "";
    }
    const bool is_copy = (p_.flags & LoopStepParams::kGuarded) != 0;
    return std::string("    if (is_called_off(LoopStepParams::kGuarded, p.") +
           (is_copy ? "" : "step.") + "go_on)) return;\n";
  }

  static std::string at(const std::string& list, int64_t k) {
    return "p." + list + "[" + std::to_string(k) + "]";
  }

  // The latest that has made what stands there; an error where one has made a part of it.
  Result<const Made*> find(const std::vector<Made>& made, const Range& range,
                           const NamedType& type) const {
    for (size_t j = made.size(); j-- > 0;) {
      if (!made[j].range.overlaps(range)) continue;
      if (made[j].range != range || made[j].type != type) {
        return unsupported("steps of one launch share memory in part");
      }
      return &made[j];
    }
    return nullptr;
  }

  // What is read before and written now has one type, so that no compiler takes them for apart.
  static Status check_read(const std::vector<Made>& read, const Range& range,
                           const NamedType& type) {
    for (const Made& each : read) {
      if (each.range.overlaps(range) && (each.range != range || each.type != type)) {
        return unsupported("steps of one launch share memory in part");
      }
    }
    return Status::ok();
  }

  // Each reads what stands in memory at first, or what an earlier one has made.
  Status scalars() {
    std::string stores;
    std::vector<Made> read;
    for (int64_t k = 0; k < p_.num_scalars; ++k) {
      const ScalarStepParams& step = p_.scalars[k];
      const std::string number = std::to_string(k), params = at("scalars", k);
      std::string in[3];
      for (int i = 0; i < named(step.op).arity; ++i) {
        const NamedType type = type_in(step, i);
        EDDY_ASSIGN_OR_RETURN(const Made* const made,
                              find(made_, range_of(step.in[i], type.size), type));
        in[i] = made != nullptr ? made->name : "v" + number + "_" + std::to_string(i);
        if (made != nullptr) continue;
        read.push_back({range_of(step.in[i], type.size), type, ""});
        loads_ += "    const " + type.name + " " + in[i] + " = *static_cast<const " + type.name +
                  "*>(" + params + ".in[" + std::to_string(i) + "]);\n";
      }
      const NamedType type = type_out(step);
      const Range range = range_of(step.out, type.size);
      EDDY_RETURN_IF_ERROR(find(made_, range, type).status());
      EDDY_RETURN_IF_ERROR(check_read(read, range, type));
      const std::string value =
          step.op == ScalarOp::kSet
              ? "static_cast<" + type.name + ">(reinterpret_cast<uint64_t>(" + params + ".in[0]))"
              : call(step, in);
      steps_ += "    const " + type.name + " r" + number + " = " + value + ";\n";
      stores += "    *static_cast<" + type.name + "*>(" + params + ".out) = r" + number + ";\n";
      made_.push_back({range, type, "r" + number});
    }
    steps_ += stores;
    return Status::ok();
  }

  // The small ones, in order.
  void pieces() {
    for (int64_t k = 0; k < p_.num_pieces; ++k) {
      const LoopCopyParams::Piece& piece = p_.pieces[k];
      if (piece.size_bytes > kFirstThreadsBytes) continue;
      const std::string params = at("pieces", k);
      const uint64_t size = piece.size_bytes;
      const auto address =
          reinterpret_cast<uintptr_t>(piece.to) | reinterpret_cast<uintptr_t>(piece.from);
      const bool is_word = piece.kind == LoopCopyParams::Piece::kWhole &&
                           (size == 1 || size == 4 || size == 8) && address % size == 0;
      steps_ += is_word ? "    copy_bytes<" + std::to_string(size) + ">(" + params + ".to, " +
                              params + ".from);\n"
                        : "    copy_piece(" + params + ", 0, 1);\n";
    }
  }

  // Pieces may write what it reads, and steps its predicate.
  void step() {
    if (p_.step.flags == 0) return;
    const std::string words = step_words();
    if (p_.num_pieces > 0) {
      steps_ += words + "    loop_step(loop, read_words(loop), set, now);\n";
      return;
    }
    loads_ += words + "    LoopStepWords of_loop = read_words(loop);\n";
    const bool tests = (p_.step.flags & LoopStepParams::kTest) != 0;
    for (const Made& made : made_) {
      if (tests && made.range == range_of(p_.step.predicate, 1)) {
        steps_ += "    of_loop.predicate = " + made.name + " != 0;\n";
      }
    }
    steps_ += "    loop_step(loop, of_loop, set, now);\n";
  }

  // Element by element: all loads, then all steps, then all stores. Only elements of one place
  // meet.
  Status maps() {
    std::vector<Made> made, read;
    std::string loads, steps, stores, most;
    for (int64_t k = 0; k < p_.num_maps; ++k) {
      const MapParams& map = p_.maps[k];
      const std::string number = std::to_string(k), params = at("maps", k);
      steps += "      const bool is" + number + " = i < " + params + ".count;\n";
      std::string in[3];
      for (int j = 0; j < named(map.step.op).arity; ++j) {
        const NamedType type = type_in(map.step, j);
        const bool is_single = map.in_bytes[j] == 0;
        const Range range = range_of(map.step.in[j], is_single ? type.size : map.count * type.size);
        EDDY_ASSIGN_OR_RETURN(const Made* const from, find(made, range, type));
        in[j] = from != nullptr ? from->name : "v" + number + "_" + std::to_string(j);
        if (from != nullptr) continue;
        read.push_back({range, type, ""});
        loads += "      const " + type.name + " " + in[j] + " = i < " + params +
                 ".count ? static_cast<const " + type.name + "*>(" + params + ".step.in[" +
                 std::to_string(j) + "])[" + (is_single ? "0" : "i") + "] : " + type.name + "{};\n";
      }
      const NamedType type = type_out(map.step);
      const Range range = range_of(map.step.out, map.count * type.size);
      EDDY_RETURN_IF_ERROR(find(made, range, type).status());
      EDDY_RETURN_IF_ERROR(check_read(read, range, type));
      if (map.step.op == ScalarOp::kSet) return unsupported("many elements are set");
      steps += "      const " + type.name + " r" + number + " = " + call(map.step, in) + ";\n";
      stores += "      if (is" + number + ") static_cast<" + type.name + "*>(" + params +
                ".step.out)[i] = r" + number + ";\n";
      most += "    if (" + params + ".count > most) most = " + params + ".count;\n";
      made.push_back({range, type, "r" + number});
    }
    std::string large;
    for (int64_t k = 0; k < p_.num_pieces; ++k) {
      if (p_.pieces[k].size_bytes <= kFirstThreadsBytes) continue;
      large += "    copy_piece(" + at("pieces", k) + ", thread, step);\n";
    }
    if (p_.num_maps == 0 && large.empty()) return Status::ok();
    if ((p_.flags & LoopStepParams::kGuarded) != 0) steps_ += call_off();
    if (p_.num_maps > 0) {
      steps_ += "    uint64_t most = 0;\n" + most +
                "    for (uint64_t i = thread; i < most; i += step) {\n" + loads + steps + stores +
                "    }\n";
    }
    steps_ += large;
    return Status::ok();
  }

  const LoopCopyParams& p_;
  std::vector<Made> made_;  // by steps over single elements
  std::string loads_, steps_;
};

}  // namespace

Result<KernelSource> loop_copy_source(const LoopCopyParams& params) {
  EDDY_ASSIGN_OR_RETURN(const std::string body, Writer(params).body());
  Fingerprint fingerprint;
  fingerprint.add(body);
  const std::string space = "eddy::cuda::copy_" + fingerprint.text();
  KernelSource source;
  source.name = "eddy_loop_copy_" + fingerprint.text();
  source.text = "// loop copy\n#include \"ops/cuda/images/loop_copy_inl.h\"\n\nnamespace " + space +
                " {\n\n" + body + "\n}\n\nEDDY_LOOP_COPY_KERNEL(" + source.name + ", " + space +
                "::Body)\n";
  source.decides = true;
  return source;
}

}  // namespace eddy::cuda
