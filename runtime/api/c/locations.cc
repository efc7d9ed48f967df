#include "runtime/api/c/locations.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>

#include "graph/io/text.h"
#include "graph/io/wire_reader.h"
#include "graph/io/wire_writer.h"
#include "runtime/api/c/convert.h"

namespace eddy::c {

std::string Location::start_of_line() const {
  const std::string number = column > 0 ? ":" + std::to_string(column) : "";
  return file + ":" + std::to_string(line) + number + ": ";
}

std::vector<PathPart> split_path(std::string_view path) {
  std::vector<PathPart> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    std::string_view name = path.substr(0, end);
    PathPart part;
    const size_t bracket = name.rfind('[');
    if (bracket != std::string_view::npos && name.back() == ']') {
      const char* const last = name.data() + name.size() - 1;
      const auto [stop, error] = std::from_chars(name.data() + bracket + 1, last, part.iteration);
      if (error == std::errc() && stop == last) {
        name = name.substr(0, bracket);
      } else {
        part.iteration = -1;
      }
    }
    part.name = name;
    parts.push_back(std::move(part));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::string join_path(const std::vector<PathPart>& parts, size_t count) {
  std::string path;
  for (size_t i = 0; i < std::min(count, parts.size()); ++i) {
    path += (i == 0 ? "" : "/") + parts[i].name;
  }
  return path;
}

Refusal read_location(const eddy_location* given, std::optional<Location>& location) {
  if (given == nullptr) return {};
  eddy_location read;
  EDDY_C_TRY(read_struct(given, EDDY_C_UPTO(eddy_location, line), "a location", read));
  const auto text = [](const char* from) {
    return from == nullptr ? "" : as_clean_utf8(one_line(from));
  };
  location = Location{text(read.file), read.line, read.column, text(read.text)};
  return {};
}

const Location* Locations::at_or_null(const std::vector<PathPart>& parts, size_t count) const {
  const auto it = by_path_.find(join_path(parts, count));
  return it == by_path_.end() ? nullptr : &it->second;
}

const Location* Locations::find_or_null(const std::vector<PathPart>& parts) const {
  for (size_t count = parts.size(); count > 0; --count) {
    const Location* const found = at_or_null(parts, count);
    if (found != nullptr && !found->file.empty()) return found;
  }
  return nullptr;
}

namespace {

enum Field : uint32_t { kEntry = 1, kPath = 1, kFile, kLine, kColumn, kText };

}  // namespace

std::string Locations::as_text() const {
  WireWriter writer;
  for (const auto& [path, at] : std::map(by_path_.begin(), by_path_.end())) {
    WireWriter entry;
    entry.bytes(kPath, path);
    entry.bytes(kFile, at.file);
    entry.varint(kLine, at.line);
    entry.varint(kColumn, at.column);
    entry.bytes(kText, at.text);
    writer.message(kEntry, entry);
  }
  return writer.data();
}

Locations Locations::of_text(std::string_view text) {
  Locations made;
  WireReader reader(std::as_bytes(std::span(text)));
  while (reader.next()) {
    if (reader.type() != WireType::kBytes || reader.field() != kEntry) continue;
    std::string path;
    Location at;
    WireReader entry(reader.bytes());
    while (entry.next()) {
      if (entry.type() == WireType::kBytes) {
        const std::span<const std::byte> bytes = entry.bytes();
        std::string& to = entry.field() == kPath   ? path
                          : entry.field() == kFile ? at.file
                                                   : at.text;
        to = one_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      } else if (entry.field() == kLine || entry.field() == kColumn) {
        (entry.field() == kLine ? at.line : at.column) = static_cast<uint32_t>(entry.number());
      }
    }
    if (entry.is_ok()) made.set(std::move(path), std::move(at));
  }
  return made;
}

std::string Locations::line(const std::vector<PathPart>& parts, const std::string& reason) const {
  std::string line;
  if (const Location* at = find_or_null(parts)) line = at->start_of_line();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].iteration < 0) continue;
    const Location* const loop = at_or_null(parts, i + 1);
    const std::string& name = loop == nullptr || loop->text.empty() ? parts[i].name : loop->text;
    line += "in iteration " + std::to_string(parts[i].iteration) + " of '" + name + "'";
    line += i + 1 < parts.size() ? ": " : "";
  }
  if (!parts.empty() && parts.back().iteration < 0) line += parts.back().name;
  return line + (parts.empty() ? "" : ": ") + reason;
}

}  // namespace eddy::c
