#include "ops/cuda/compiled/code_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "graph/base/fingerprint.h"

namespace eddy {
namespace {

// A file is a header, the key and the code.
struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t code_bytes;
  char check[32];  // fingerprint of key and code
};
constexpr char kMagic[8] = {'E', 'D', 'D', 'Y', 'C', 'O', 'D', '1'};

std::string fingerprint_text(std::string_view a, std::string_view b) {
  Fingerprint fingerprint;
  fingerprint.add(a);
  fingerprint.add(b);
  return fingerprint.text();
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

  bool read_all(void* to, size_t bytes) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t count = read(descriptor_, at, bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      at += count;
      bytes -= static_cast<size_t>(count);
    }
    return true;
  }
  bool write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = write(descriptor_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

 private:
  int descriptor_;
};

// Whether no other user may write the file or folder.
bool is_own(const struct stat& facts) {
  return facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_own_folder(const std::string& path) {
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && is_own(facts);
}

}  // namespace

std::string CodeCache::default_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/eddy/kernels";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/eddy/kernels";
  return "";
}

std::string CodeCache::path_of(std::string_view key) const {
  return folder_ + "/" + fingerprint_text(key, "") + ".code";
}

std::optional<std::string> CodeCache::find(std::string_view key) const {
  if (folder_.empty() || !is_own_folder(folder_)) return std::nullopt;
  const File file(open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  Header header{};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      !is_own(facts) || !file.read_all(&header, sizeof(header))) {
    return std::nullopt;
  }
  const bool is_plausible = std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
                            header.key_bytes == key.size() && header.code_bytes > 0 &&
                            header.code_bytes <= kMaxCodeBytes;
  if (!is_plausible || static_cast<uint64_t>(facts.st_size) !=
                           sizeof(header) + header.key_bytes + header.code_bytes) {
    return std::nullopt;
  }
  std::string found_key(key.size(), '\0');
  std::string code(header.code_bytes, '\0');
  if (!file.read_all(found_key.data(), found_key.size()) || found_key != key ||
      !file.read_all(code.data(), code.size()) ||
      fingerprint_text(key, code) != std::string_view(header.check, sizeof(header.check))) {
    return std::nullopt;
  }
  return code;
}

std::string CodeCache::write_beside(std::string_view key, std::string_view code) const {
  if (folder_.empty() || code.empty() || code.size() > kMaxCodeBytes) return "";
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path(), error);
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return "";
  if (!is_own_folder(folder_)) return "";
  std::string beside = folder_ + "/making-XXXXXX";
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.key_bytes = key.size();
  header.code_bytes = code.size();
  std::memcpy(header.check, fingerprint_text(key, code).data(), sizeof(header.check));
  const File file(mkostemp(beside.data(), O_CLOEXEC));
  if (file.get() < 0) return "";
  if (file.write_all({reinterpret_cast<const char*>(&header), sizeof(header)}) &&
      file.write_all(key) && file.write_all(code)) {
    return beside;
  }
  unlink(beside.c_str());
  return "";
}

void CodeCache::store(std::string_view key, std::string_view code) const {
  const std::string beside = write_beside(key, code);
  if (beside.empty()) return;
  if (rename(beside.c_str(), path_of(key).c_str()) != 0) unlink(beside.c_str());
}

// A link is refused where its name is taken; a file there that is worthless gives way.
void CodeCache::store_first(std::string_view key, std::string_view code) const {
  const std::string beside = write_beside(key, code);
  if (beside.empty()) return;
  const std::string path = path_of(key);
  const bool is_taken = link(beside.c_str(), path.c_str()) != 0;
  if (is_taken && !find(key) && rename(beside.c_str(), path.c_str()) == 0) return;
  unlink(beside.c_str());
}

}  // namespace eddy
