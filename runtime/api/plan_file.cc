#include "runtime/api/plan_file.h"

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>

#include "graph/io/wire_reader.h"
#include "graph/io/wire_writer.h"

namespace eddy {
namespace {

constexpr uint64_t kFormat = 3;
constexpr uint32_t kFactsField = 1000, kDataField = 1001;
constexpr std::string_view kMagic = "eddy plan\n";
constexpr size_t kSumDigits = 32;
constexpr uint64_t kAlignment = 64;
// The tag and the length in front of a field's bytes.
constexpr size_t kTagBytes = 2, kMostLengthBytes = 10;

enum FactField : uint32_t {
  kFormatFact = 1,
  kEddyFact,
  kCompilerFact,
  kKernelsFact,
  kSwitchesFact,
  kDimFact,
  kInputDimsFact,
  kGivenFact,
  kMadeFact,
  kGraphFact,
  kPackingFact,
  kModelBytesFact,
  kNotesFact,
  kProvedFact,
};
constexpr uint64_t kSimplify = 1, kFoldsNorms = 2, kBlocksChannels = 4;

// A fingerprint's state, which its text is made of.
static_assert(std::is_trivially_copyable_v<Fingerprint> && sizeof(Fingerprint) == 16);

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string sum_of(std::string_view facts) {
  Fingerprint sum;
  sum.add(facts);
  return sum.text();
}

Status spoilt(const char* what) {
  return invalid_argument(std::string("the saved plan is spoilt (") + what +
                          "); save it again from its model");
}

WireWriter packing_fact(const PlanFile::Packing& packing) {
  WireWriter fact;
  fact.varint(1, packing.constant);
  fact.bytes(2, packing.layout);
  fact.varint(3, packing.offset_bytes);
  fact.varint(4, packing.size_bytes);
  return fact;
}

void put_fingerprint(uint32_t field, const Fingerprint& fingerprint, WireWriter& facts) {
  const auto state = std::bit_cast<std::array<char, sizeof(Fingerprint)>>(fingerprint);
  facts.bytes(field, std::string_view(state.data(), state.size()));
}

std::string facts_of(const PlanFile& plan) {
  WireWriter facts;
  facts.varint(kFormatFact, kFormat);
  facts.bytes(kEddyFact, plan.eddy);
  facts.bytes(kCompilerFact, plan.compiler);
  facts.bytes(kKernelsFact, plan.kernels);
  facts.varint(kSwitchesFact, (plan.simplify ? kSimplify : 0) |
                                  (plan.folds_norms ? kFoldsNorms : 0) |
                                  (plan.blocks_channels ? kBlocksChannels : 0));
  for (const auto& [name, size] : plan.dims) {
    WireWriter fact;
    fact.bytes(1, name);
    fact.integer(2, size);
    facts.message(kDimFact, fact);
  }
  for (const auto& [name, dims] : plan.input_dims) {
    WireWriter fact;
    fact.bytes(1, name);
    fact.packed_integers(2, dims.span());
    facts.message(kInputDimsFact, fact);
  }
  facts.bytes(kGivenFact, plan.given);
  put_fingerprint(kMadeFact, plan.made, facts);
  put_fingerprint(kProvedFact, plan.proved, facts);
  facts.bytes(kGraphFact, plan.graph);
  for (const PlanFile::Packing& packing : plan.packings) {
    facts.message(kPackingFact, packing_fact(packing));
  }
  facts.varint(kModelBytesFact, plan.model_bytes);
  facts.bytes(kNotesFact, plan.notes);
  return facts.data();
}

// The fields of a fact: at most one text and a few numbers.
struct Fact {
  std::string text = {};
  std::array<uint64_t, 5> numbers = {};
  std::span<const std::byte> bytes = {};  // of field 2
};

std::optional<Fact> read_fact(std::span<const std::byte> bytes, uint32_t text_field) {
  Fact fact;
  WireReader reader(bytes);
  while (reader.next()) {
    const bool has_number = reader.type() != WireType::kBytes;
    if (has_number && reader.field() < fact.numbers.size()) {
      fact.numbers[reader.field()] = reader.number();
    } else if (!has_number && reader.field() == text_field) {
      fact.text = as_text(reader.bytes());
    } else if (!has_number) {
      fact.bytes = reader.bytes();
    }
  }
  return reader.is_ok() ? std::optional(std::move(fact)) : std::nullopt;
}

// What facts() has to say beside what stands in the plan.
class FactReader {
 public:
  explicit FactReader(PlanFile& plan) : plan_(plan) {}

  Status read(std::span<const std::byte> facts) {
    WireReader reader(facts);
    while (reader.next()) {
      const bool is_good = reader.type() == WireType::kBytes
                               ? text(reader)
                               : number(reader.field(), reader.number());
      if (!is_good) return spoilt("a fact has no sense");
    }
    if (!reader.is_ok()) return spoilt(reader.error());
    if (format_ == kFormat) return Status::ok();
    return unsupported("the saved plan is of form " + std::to_string(format_) +
                       ", and this Eddy reads form " + std::to_string(kFormat) +
                       "; save it again from its model");
  }

 private:
  bool number(uint32_t field, uint64_t value) {
    switch (field) {
      case kFormatFact:
        format_ = value;
        break;
      case kSwitchesFact:
        plan_.simplify = (value & kSimplify) != 0;
        plan_.folds_norms = (value & kFoldsNorms) != 0;
        plan_.blocks_channels = (value & kBlocksChannels) != 0;
        break;
      case kModelBytesFact:
        plan_.model_bytes = value;
        break;
      default:
        break;  // of another form, which is refused at the end
    }
    return true;
  }

  bool text(const WireReader& reader) {
    const std::span<const std::byte> bytes = reader.bytes();
    switch (reader.field()) {
      case kEddyFact:
        plan_.eddy = as_text(bytes);
        return true;
      case kCompilerFact:
        plan_.compiler = as_text(bytes);
        return true;
      case kKernelsFact:
        plan_.kernels = as_text(bytes);
        return true;
      case kGivenFact:
        plan_.given = as_text(bytes);
        return true;
      case kGraphFact:
        plan_.graph = as_text(bytes);
        return true;
      case kNotesFact:
        plan_.notes = as_text(bytes);
        return true;
      case kMadeFact:
        return fingerprint(bytes, plan_.made);
      case kProvedFact:
        return fingerprint(bytes, plan_.proved);
      case kDimFact:
        return dim(bytes);
      case kInputDimsFact:
        return input_dims(bytes);
      case kPackingFact:
        return packing(bytes);
      default:
        return true;
    }
  }

  static bool fingerprint(std::span<const std::byte> bytes, Fingerprint& to) {
    std::array<char, sizeof(Fingerprint)> words;
    if (bytes.size() != words.size()) return false;
    std::memcpy(words.data(), bytes.data(), words.size());
    to = std::bit_cast<Fingerprint>(words);
    return true;
  }

  bool dim(std::span<const std::byte> bytes) {
    std::optional<Fact> fact = read_fact(bytes, 1);
    if (fact) plan_.dims.emplace_back(std::move(fact->text), fact->numbers[2]);
    return fact.has_value();
  }

  bool input_dims(std::span<const std::byte> bytes) {
    std::optional<Fact> fact = read_fact(bytes, 1);
    if (!fact) return false;
    PackedReader sizes(fact->bytes);
    Dims dims;
    for (uint64_t size = 0; sizes.next(&size);) {
      if (dims.rank() == kMaxRank) return false;
      dims.push_back(static_cast<int64_t>(size));
    }
    plan_.input_dims.emplace_back(std::move(fact->text), dims);
    return sizes.is_ok();
  }

  bool packing(std::span<const std::byte> bytes) {
    std::optional<Fact> fact = read_fact(bytes, 2);
    if (!fact || fact->numbers[1] > UINT32_MAX) return false;
    plan_.packings.push_back({static_cast<uint32_t>(fact->numbers[1]), std::move(fact->text),
                              fact->numbers[3], fact->numbers[4]});
    return true;
  }

  PlanFile& plan_;
  uint64_t format_ = 0;
};

// Where a field's bytes begin; 0: `file` does not begin with that field.
size_t payload_at(std::span<const std::byte> file, uint32_t field) {
  WireWriter empty;
  empty.bytes(field, "");
  const std::string_view tag = std::string_view(empty.data()).substr(0, kTagBytes);
  if (!as_text(file).starts_with(tag)) return 0;
  size_t at = kTagBytes;
  while (at < file.size() && at < kTagBytes + kMostLengthBytes &&
         (file[at] & std::byte{0x80}) != std::byte{0}) {
    ++at;
  }
  return at + 1;
}

uint64_t aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

Status check_packings(const PlanFile& plan, uint64_t size_bytes) {
  for (const PlanFile::Packing& each : plan.packings) {
    const bool is_inside =
        each.offset_bytes <= size_bytes && each.size_bytes <= size_bytes - each.offset_bytes;
    if (!is_inside || each.offset_bytes % kAlignment != 0) {
      return spoilt("packed weights stand outside of it");
    }
  }
  return Status::ok();
}

}  // namespace

uint64_t PlanData::add(std::span<const std::byte> bytes) {
  const auto [place, is_new] = places_.emplace(as_text(bytes), aligned(end_));
  if (is_new) end_ = place->second + bytes.size();
  return place->second;
}

void PlanData::copy_to(char* to) const {
  for (const auto& [bytes, offset] : places_) bytes.copy(to + offset, bytes.size());
}

bool is_plan_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) return false;
  std::array<std::byte, kTagBytes + kMostLengthBytes + kMagic.size()> bytes;
  const size_t size = std::fread(bytes.data(), 1, bytes.size(), file.get());
  return is_plan_bytes(std::span(bytes.data(), size));
}

bool is_plan_bytes(std::span<const std::byte> start) {
  const size_t at = payload_at(start, kFactsField);
  return at > 0 && at < start.size() && as_text(start.subspan(at)).starts_with(kMagic);
}

std::string format_plan_file(PlanFile& plan, std::string_view model, const PlanData& data) {
  const uint64_t end = data.size_bytes();
  plan.model_bytes = model.size();
  const std::string facts = facts_of(plan);
  WireWriter first;
  first.bytes(kFactsField, std::string(kMagic) + sum_of(facts) + facts);
  std::string file = first.data();
  file.append(model);
  // The last field's length has as many bytes as padding decides, so its place is found by trying.
  const uint64_t begin = aligned(file.size() + kTagBytes + kMostLengthBytes);
  for (size_t length_bytes = 1; length_bytes <= kMostLengthBytes; ++length_bytes) {
    const uint64_t padding = begin - file.size() - kTagBytes - length_bytes;
    WireWriter last;
    last.bytes(kDataField, "");
    std::string frame = last.data().substr(0, kTagBytes);
    uint64_t length = padding + end;
    for (; length >= 0x80; length >>= 7) frame.push_back(static_cast<char>(length | 0x80));
    frame.push_back(static_cast<char>(length));
    if (frame.size() != kTagBytes + length_bytes) continue;
    file.append(frame).append(padding, '\0');
    break;
  }
  file.resize(begin + end, '\0');
  data.copy_to(file.data() + begin);
  return file;
}

Result<OpenPlanFile> parse_plan_file(std::span<const std::byte> file) {
  WireReader reader(file);
  const bool has_facts = reader.next() && reader.field() == kFactsField &&
                         reader.type() == WireType::kBytes &&
                         as_text(reader.bytes()).starts_with(kMagic);
  if (!has_facts) return spoilt("it does not begin as one does, or is cut off");
  const std::span<const std::byte> payload = reader.bytes();
  if (payload.size() < kMagic.size() + kSumDigits) return spoilt("it is cut off");
  const std::span<const std::byte> facts = payload.subspan(kMagic.size() + kSumDigits);
  if (as_text(payload).substr(kMagic.size(), kSumDigits) != sum_of(as_text(facts))) {
    return spoilt("its facts have another fingerprint");
  }
  OpenPlanFile open;
  EDDY_RETURN_IF_ERROR(FactReader(open.plan).read(facts));
  const uint64_t model_at = reader.payload_offset() + payload.size();
  if (open.plan.model_bytes > file.size() - model_at) return spoilt("it is cut off");
  const uint64_t frame_at = model_at + open.plan.model_bytes;
  const size_t in_frame = payload_at(file.subspan(frame_at), kDataField);
  const uint64_t begin = aligned(frame_at + kTagBytes + kMostLengthBytes);
  if (in_frame == 0 || begin > file.size()) return spoilt("it is cut off");
  open.model = file.subspan(model_at, open.plan.model_bytes);
  open.data = file.subspan(begin);
  EDDY_RETURN_IF_ERROR(check_packings(open.plan, open.data.size()));
  return open;
}

}  // namespace eddy
