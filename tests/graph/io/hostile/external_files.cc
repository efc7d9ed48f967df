#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/graph/io/hostile/hostile_files.h"
#include "tests/graph/io/model_writer.h"

namespace eddy::hostile {
namespace {

using namespace test;  // NOLINT: the vocabulary of model_writer.h
namespace fs = std::filesystem;

struct External {
  std::string location = "w.bin";
  std::string offset = "0";
  std::string length = "16";
};

WireWriter external_tensor(const External& external, const std::string& name = "w",
                           int64_t elements = 4) {
  WireWriter proto;
  proto.integer(1, elements);
  proto.integer(2, 1);
  proto.bytes(8, name);
  const std::pair<const char*, const std::string&> entries[] = {
      {"location", external.location}, {"offset", external.offset}, {"length", external.length}};
  for (const auto& [key, value] : entries) {
    if (value.empty()) continue;
    WireWriter entry;
    entry.bytes(1, key);
    entry.bytes(2, value);
    proto.message(13, entry);
  }
  proto.integer(14, 1);
  return proto;
}

std::string with_external(const External& external) {
  return model(graph({.outputs = {untyped("w")}, .initializers = {external_tensor(external)}}));
}

void write_data(const fs::path& path, size_t size_bytes = 16) {
  std::ofstream(path, std::ios::binary) << std::string(size_bytes, '\x01');
}

void write_beside(const fs::path& folder) { write_data(folder / "w.bin"); }

// A file outside of the model's folder, and a link to it inside.
void write_secret(const fs::path& folder) { write_data(folder.parent_path() / "secret.bin"); }

void add_ways_out(HostileFiles& files) {
  const char* const out = "leads out of the model's folder";
  files.push_back({"external_parent", with_external({"../secret.bin"}), out, write_secret});
  files.push_back({"external_parent_by_way_of_child", with_external({"a/../../secret.bin"}), out,
                   [](const fs::path& folder) {
                     write_secret(folder);
                     fs::create_directory(folder / "a");
                   }});
  files.push_back({"external_absolute", with_external({"/etc/passwd"}), out});
  files.push_back({"external_proc_self", with_external({"/proc/self/environ"}), out});
  files.push_back({"external_symbolic_link", with_external({"link.bin"}), "symbolic link",
                   [](const fs::path& folder) {
                     write_secret(folder);
                     fs::create_symlink("../secret.bin", folder / "link.bin");
                   }});
  files.push_back({"external_link_to_neighbour", with_external({"link.bin"}), "symbolic link",
                   [](const fs::path& folder) {
                     write_beside(folder);
                     fs::create_symlink("w.bin", folder / "link.bin");
                   }});
  files.push_back({"external_linked_folder", with_external({"up/secret.bin"}), "symbolic link",
                   [](const fs::path& folder) {
                     write_secret(folder);
                     fs::create_directory_symlink("..", folder / "up");
                   }});
  files.push_back(
      {"external_magic_link", with_external({"fd/0"}), "symbolic link", [](const fs::path& folder) {
         fs::create_directory_symlink("/proc/self/fd", folder / "fd");
       }});
  files.push_back({"external_hard_link", with_external({"hard.bin"}), "more than one hard link",
                   [](const fs::path& folder) {
                     write_secret(folder);
                     fs::create_hard_link(folder.parent_path() / "secret.bin", folder / "hard.bin");
                   }});
}

void add_kinds(HostileFiles& files) {
  files.push_back({"external_missing", with_external({"gone.bin"}), "cannot open 'gone.bin'"});
  files.push_back({"external_folder", with_external({"sub"}), "not a regular file",
                   [](const fs::path& folder) { fs::create_directory(folder / "sub"); }});
  files.push_back({"external_pipe", with_external({"pipe"}), "not a regular file",
                   [](const fs::path& folder) { mkfifo((folder / "pipe").c_str(), 0600); }});
  files.push_back({"external_itself", with_external({"."}), "not a regular file"});
  files.push_back({"external_name_empty", with_external({""}), "external data names no file"});
  files.push_back(
      {"external_name_with_zero", with_external({std::string("w.bin\0x", 7)}), "not clean UTF-8"});
  files.push_back({"external_name_with_newline", with_external({"w\n.bin"}), "not clean UTF-8"});
  files.push_back(
      {"external_name_too_long", with_external({std::string(5000, 'w')}), "File name too long"});
}

void add_extents(HostileFiles& files) {
  const auto add = [&](const char* name, const External& external, const char* says) {
    files.push_back({name, with_external(external), says, write_beside});
  };
  add("external_past_the_end", {"w.bin", "8", "16"}, "wants 16 bytes at offset 8");
  add("external_offset_overflows", {"w.bin", "18446744073709551608", "16"}, "wants 16 bytes");
  add("external_offset_negative", {"w.bin", "-8", "16"}, "not a number of bytes");
  add("external_offset_of_65_bits", {"w.bin", "36893488147419103232", "16"},
      "not a number of bytes");
  add("external_length_wrong", {"w.bin", "0", "12"}, "has 12 bytes, but float[4] takes 16");
  add("external_length_text", {"w.bin", "0", "0x10"}, "not a number of bytes");
  add("external_length_huge", {"w.bin", "0", "18446744073709551615"}, "which has 16");
  files.push_back(
      {"external_claims_gigabytes",
       model(graph({.outputs = {untyped("w")},
                    .initializers = {external_tensor({"w.bin", "0", ""}, "w", int64_t{1} << 32)}})),
       "wants 17179869184 bytes", write_beside});
}

// One file that many tensors copy, each at an odd offset.
void add_copies(HostileFiles& files) {
  constexpr size_t kBytes = size_t{1} << 20;
  Messages tensors;
  for (int i = 0; i < 2000; ++i) {
    tensors.push_back(external_tensor({"w.bin", "1", std::to_string(kBytes)},
                                      "w" + std::to_string(i), kBytes / 4));
  }
  files.push_back({"external_copied_2000_times",
                   model(graph({.outputs = {untyped("w0")}, .initializers = tensors})),
                   "would take more than",
                   [](const fs::path& folder) { write_data(folder / "w.bin", kBytes + 1); }});
}

}  // namespace

HostileFiles external_files() {
  HostileFiles files;
  add_ways_out(files);
  add_kinds(files);
  add_extents(files);
  add_copies(files);
  return files;
}

}  // namespace eddy::hostile
