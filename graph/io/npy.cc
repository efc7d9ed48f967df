// The .npy half of tensor_file.h. Source: NumPy's format description (NEP 1).
#include <charconv>
#include <cstring>
#include <string_view>

#include "graph/base/check.h"
#include "graph/io/tensor_file.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kHeaderAlignment = 64;

struct NpyType {
  std::string_view code;  // without the byte order
  ElementType element;
};
constexpr NpyType kTypes[] = {
    {"b1", ElementType::kBool},      {"i1", ElementType::kInt8},       {"i2", ElementType::kInt16},
    {"i4", ElementType::kInt32},     {"i8", ElementType::kInt64},      {"u1", ElementType::kUint8},
    {"u2", ElementType::kUint16},    {"u4", ElementType::kUint32},     {"u8", ElementType::kUint64},
    {"f2", ElementType::kFloat16},   {"f4", ElementType::kFloat},      {"f8", ElementType::kDouble},
    {"c8", ElementType::kComplex64}, {"c16", ElementType::kComplex128}};

struct NpyHeader {
  std::string_view descr;
  bool is_column_major = false;
  std::vector<int64_t> shape;
  bool has_descr = false, has_order = false, has_shape = false;
};

// The header is a Python dictionary of three known keys; this reads just that much Python.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  bool parse(NpyHeader* header) {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string_view key;
      if (!string(&key) || !take(':') || !value(key, header)) return false;
      if (!take(',') && !peek('}')) return false;
    }
    return header->has_descr && header->has_order && header->has_shape;
  }

 private:
  void skip_space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool peek(char c) {
    skip_space();
    return !text_.empty() && text_[0] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    skip_space();
    if (!text_.starts_with(w)) return false;
    text_.remove_prefix(w.size());
    return true;
  }
  bool string(std::string_view* value) {
    const char quote = peek('"') ? '"' : '\'';
    if (!take(quote)) return false;
    const size_t end = text_.find(quote);
    if (end == std::string_view::npos) return false;
    *value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool integer(int64_t* value) {
    skip_space();
    const auto [at, error] = std::from_chars(text_.data(), text_.data() + text_.size(), *value);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(at - text_.data()));
    (void)take('L');  // as Python 2 wrote them
    return true;
  }
  bool tuple(std::vector<int64_t>* values) {
    if (!take('(')) return false;
    while (!take(')')) {
      if (!integer(&values->emplace_back())) return false;
      if (!take(',') && !peek(')')) return false;
    }
    return true;
  }
  bool value(std::string_view key, NpyHeader* header) {
    if (key == "descr") return header->has_descr = string(&header->descr);
    if (key == "shape") return header->has_shape = tuple(&header->shape);
    if (key != "fortran_order") return false;
    header->is_column_major = word("True");
    return header->has_order = header->is_column_major || word("False");
  }

  std::string_view text_;
};

Result<ElementType> element_of(std::string_view descr) {
  const bool has_order =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string_view code = descr.substr(has_order ? 1 : 0);
  for (const NpyType& type : kTypes) {
    if (type.code != code) continue;
    if (descr[0] == '>' && element_size_bytes(type.element) > 1) {
      return unsupported(".npy arrays must be little-endian, this one is " + quoted(descr));
    }
    return type.element;
  }
  return unsupported(".npy element type " + quoted(is_clean_utf8(descr) ? descr : "?") +
                     " is not supported");
}

void to_row_major(HostValue& value) {
  const int rank = value.dims.rank();
  const size_t size = element_size_bytes(value.element);
  const std::vector<std::byte> columns = std::move(value.bytes);
  value.bytes.resize(columns.size());
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  for (size_t to = 0; to < value.bytes.size(); to += size) {
    size_t from = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      from = from * static_cast<size_t>(value.dims[axis]) +
             static_cast<size_t>(index[static_cast<size_t>(axis)]);
    }
    EDDY_DCHECK((from + 1) * size <= columns.size()) << "element " << from << " does not exist";
    std::memcpy(value.bytes.data() + to, columns.data() + from * size, size);
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < value.dims[axis]) break;
      index[static_cast<size_t>(axis)] = 0;
    }
  }
}

// The header's text; `data` becomes what follows it.
Result<std::string_view> split_header(std::span<const std::byte> bytes,
                                      std::span<const std::byte>* data) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10) {
    return invalid_argument("not a .npy file: it does not begin with its mark");
  }
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(bytes[i]); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) {
    return unsupported(".npy version " + std::to_string(version) + " is not supported");
  }
  const size_t start = version == 1 ? 10 : 12;
  if (text.size() < start) return invalid_argument("the .npy header is cut off");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start) return invalid_argument("the .npy header is cut off");
  *data = bytes.subspan(start + length);
  return text.substr(start, length);
}

}  // namespace

Result<HostValue> parse_npy(std::span<const std::byte> bytes, const ImportLimits& limits) {
  std::span<const std::byte> data;
  EDDY_ASSIGN_OR_RETURN(const std::string_view text, split_header(bytes, &data));
  NpyHeader header;
  if (!HeaderParser(text).parse(&header)) {
    return invalid_argument("the .npy header is not one of a plain array");
  }
  EDDY_ASSIGN_OR_RETURN(const ElementType element, element_of(header.descr));
  if (header.shape.size() > kMaxRank) {
    return unsupported("an array of rank " + std::to_string(header.shape.size()) +
                       " is not supported, at most " + std::to_string(kMaxRank));
  }
  for (int64_t dim : header.shape) {
    if (dim < 0) return invalid_argument("a dimension has size " + std::to_string(dim));
  }
  const Dims dims(header.shape);
  const std::optional<int64_t> count = dims.count();
  if (!count || *count > limits.max_elements) {
    return resource_exhausted("the array has too many elements: " + to_string(dims));
  }
  const size_t expected = static_cast<size_t>(*count) * element_size_bytes(element);
  if (data.size() != expected) {
    return invalid_argument("the data has " + std::to_string(data.size()) + " bytes, but " +
                            to_string(tensor_type(element, dims)) + " takes " +
                            std::to_string(expected));
  }
  HostValue value = HostValue::tensor(element, dims);
  if (!data.empty()) std::memcpy(value.bytes.data(), data.data(), data.size());
  if (header.is_column_major) to_row_major(value);
  if (element == ElementType::kBool) {
    for (std::byte& b : value.bytes) b = b == std::byte{0} ? b : std::byte{1};
  }
  return value;
}

Result<std::string> format_npy(const HostValue& value) {
  if (value.kind != HostValue::Kind::kTensor) {
    return unsupported("only tensors can be written as .npy; use .pb");
  }
  std::string_view code;
  for (const NpyType& type : kTypes) {
    if (type.element == value.element) code = type.code;
  }
  if (code.empty()) {
    return unsupported("NumPy has no type for " + std::string(element_type_name(value.element)) +
                       "; use .pb");
  }
  const char order = element_size_bytes(value.element) == 1 ? '|' : '<';
  std::string header = std::string("{'descr': '") + order + std::string(code) +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : value.dims.span()) header += std::to_string(dim) + ", ";
  if (value.dims.rank() > 1) header.resize(header.size() - 2);
  if (value.dims.rank() == 1) header.resize(header.size() - 1);
  header += "), }";
  const size_t used = kMagic.size() + 4 + header.size() + 1;
  header.append((kHeaderAlignment - used % kHeaderAlignment) % kHeaderAlignment, ' ');
  header += '\n';
  EDDY_CHECK(header.size() <= UINT16_MAX &&
             (kMagic.size() + 4 + header.size()) % kHeaderAlignment == 0)
      << "a header of " << header.size() << " bytes";
  EDDY_CHECK(value.bytes.size() == value.view().size_bytes())
      << value.bytes.size() << " bytes in a tensor of " << value.view().size_bytes();
  std::string result(kMagic);
  result +=
      {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  result += header;
  result.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  return result;
}

}  // namespace eddy
