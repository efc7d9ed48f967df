#include "runtime/api/rank_values.h"

#include <cstring>
#include <utility>

#include "graph/base/check.h"
#include "runtime/net/byte_stream.h"
#include "runtime/net/gather.h"

namespace eddy {
namespace {

void write_tensor(const Tensor& tensor, ByteWriter& writer) {
  EDDY_CHECK(!tensor.is_on_device()) << "ranks hand over what lies in the host's memory";
  const TensorView view = tensor.view();
  writer.number(static_cast<uint64_t>(view.rank));
  for (const int64_t dim : view.shape()) writer.number(static_cast<uint64_t>(dim));
  if (view.element != ElementType::kString) {
    return writer.text({static_cast<const char*>(view.data), view.size_bytes()});
  }
  const auto* const texts = view.as<std::string>();
  for (int64_t i = 0; i < view.count(); ++i) writer.text(texts[i]);
}

void write_value(const Tensor& value, ByteWriter& writer) {
  writer.number(static_cast<uint64_t>(value.kind()));
  if (value.kind() == ValueKind::kNone) return;
  writer.number(static_cast<uint64_t>(value.element_type()));
  if (value.is_tensor()) return write_tensor(value, writer);
  writer.number(value.elements().size());
  for (const Tensor& element : value.elements()) write_tensor(element, writer);
}

Status spoilt() { return internal_error("values of another rank are spoilt"); }

Result<Tensor> read_tensor(ByteReader& reader, ElementType element) {
  Dims dims;
  const int rank = reader.number_up_to(kMaxRank);
  for (int d = 0; d < rank; ++d) dims.push_back(reader.number_up_to(INT64_MAX));
  const std::optional<int64_t> count = dims.count();
  if (!reader.is_good() || !count) return spoilt();
  if (element == ElementType::kString) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < *count && reader.is_good(); ++i) texts.push_back(reader.text());
    if (!reader.is_good()) return spoilt();
    return Tensor::copy_of({texts.data(), dims.data(), dims.rank(), element});
  }
  std::string bytes = reader.text();
  const size_t size = element_size_bytes(element);
  const bool is_whole = bytes.size() % size == 0;
  if (!reader.is_good() || !is_whole || bytes.size() / size != static_cast<size_t>(*count)) {
    return spoilt();
  }
  return Tensor::copy_of({bytes.data(), dims.data(), dims.rank(), element});
}

Result<Tensor> read_value(ByteReader& reader) {
  const auto kind = reader.number_up_to(static_cast<uint64_t>(ValueKind::kSequence));
  if (kind == static_cast<uint64_t>(ValueKind::kNone)) return Tensor();
  const int number = reader.number_up_to(kNumElementTypes - 1);
  const auto element = static_cast<ElementType>(number);
  if (element == ElementType::kUndefined) return spoilt();
  if (kind == static_cast<uint64_t>(ValueKind::kTensor)) return read_tensor(reader, element);
  std::vector<Tensor> elements;
  for (size_t left = reader.size(sizeof(uint64_t)); left > 0; --left) {
    EDDY_ASSIGN_OR_RETURN(elements.emplace_back(), read_tensor(reader, element));
  }
  return Tensor::sequence(element, std::move(elements));
}

Status status_of(const Result<NamedTensors>& own) {
  return own.is_ok() ? Status::ok() : own.status();
}

}  // namespace

std::string write_values(const NamedTensors& values) {
  ByteWriter writer;
  writer.number(values.size());
  for (const auto& [name, value] : values) {
    writer.text(name);
    write_value(value, writer);
  }
  const std::vector<std::byte> bytes = writer.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<NamedTensors> read_values(std::string_view bytes) {
  ByteReader reader(std::as_bytes(std::span(bytes)));
  NamedTensors values;
  for (size_t left = reader.size(sizeof(uint64_t)); left > 0; --left) {
    std::string name = reader.text();
    EDDY_ASSIGN_OR_RETURN(Tensor value, read_value(reader));
    values.emplace_back(std::move(name), std::move(value));
  }
  if (!reader.is_good() || !reader.is_at_end()) return spoilt();
  return values;
}

Result<NamedTensors> spread_values(World& world, const Result<NamedTensors>& own) {
  const bool has_values = own.is_ok() && world.rank() == 0;
  EDDY_ASSIGN_OR_RETURN(
      const std::string bytes,
      spread_from_first(world, status_of(own), has_values ? write_values(*own) : ""));
  return read_values(bytes);
}

Result<std::vector<NamedTensors>> gather_values(World& world, const Result<NamedTensors>& own) {
  EDDY_ASSIGN_OR_RETURN(
      const std::vector<std::string> parts,
      gather_at_first(world, status_of(own), own.is_ok() ? write_values(*own) : ""));
  std::vector<NamedTensors> values;
  for (const std::string& part : parts) {
    EDDY_ASSIGN_OR_RETURN(values.emplace_back(), read_values(part));
  }
  return values;
}

}  // namespace eddy
