#include "graph/io/file_bytes.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "graph/base/check.h"
#include "graph/io/text.h"

namespace eddy {
namespace {

constexpr size_t kMapFromBytes = size_t{1} << 20;
constexpr size_t kAlignment = 64;
static_assert(kMapFromBytes > 0, "nothing can't be mapped");
static_assert((kAlignment & (kAlignment - 1)) == 0, "aligned_alloc wants a power of two");

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

Status system_error(const std::string& name, int error, const std::string& hint = "") {
  const std::string what = "cannot open " + quoted_path(name) + ": " + std::strerror(error) + hint;
  return error == ENOENT || error == ENOTDIR ? not_found(what) : invalid_argument(what);
}

// The kernel's own guarantee, where it has one (Linux 5.6); -1 and errno otherwise.
int open_resolved(int folder, const char* location) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, location, &how, sizeof(how)));
}

// The same by hand, one component after another, never up and never through a link.
int open_step_by_step(int folder, std::string_view location) {
  Descriptor at(dup(folder));
  while (at.get() >= 0) {
    const size_t slash = location.find('/');
    const std::string part(location.substr(0, slash));
    if (part == ".." || location.starts_with('/')) {
      errno = EXDEV;
      return -1;
    }
    const bool is_last = slash == std::string_view::npos;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const int next =
        openat(at.get(), part.empty() ? "." : part.c_str(), is_last ? flags : flags | O_DIRECTORY);
    if (is_last || next < 0) return next;
    at.reset(next);
    location.remove_prefix(slash + 1);
    while (location.starts_with('/')) location.remove_prefix(1);
  }
  return -1;
}

}  // namespace

FileBytes::~FileBytes() {
  void* data = const_cast<std::byte*>(data_);
  if (is_mapped_) {
    munmap(data, size_);
  } else {
    std::free(data);
  }
}

void FileBytes::evict() {
  if (is_mapped_) madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

Status FileBytes::allocate(size_t size) {
  EDDY_CHECK(data_ == nullptr && !is_mapped_) << "the bytes of a file are made once";
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, std::max(rounded, kAlignment)));
  if (data_ == nullptr) return resource_exhausted("out of memory for a file's content");
  size_ = size;
  return Status::ok();
}

std::unique_ptr<FileBytes> FileBytes::copy_of(std::span<const std::byte> bytes) {
  std::unique_ptr<FileBytes> result(new FileBytes());
  if (!result->allocate(bytes.size()).is_ok()) return nullptr;
  if (!bytes.empty()) {
    std::memcpy(const_cast<std::byte*>(result->data_), bytes.data(), bytes.size());
  }
  return result;
}

namespace {

Status check_file(const struct stat& info, const std::string& name, uint64_t max_bytes,
                  bool refuse_links) {
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument(quoted_path(name) + " is not a regular file; name one that is");
  }
  if (refuse_links && info.st_nlink != 1) {
    return invalid_argument(quoted_path(name) +
                            " has more than one hard link; copy it beside the model");
  }
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    return resource_exhausted(quoted_path(name) + " has " + std::to_string(info.st_size) +
                              " bytes, at most " + std::to_string(max_bytes) + " are allowed");
  }
  return Status::ok();
}

Status read_all(int fd, std::byte* to, size_t size, const std::string& name) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(fd, to + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(name, errno);
    if (got == 0) return invalid_argument(quoted_path(name) + " became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<FileBytes>> FileBytes::from_descriptor(int descriptor,
                                                              const std::string& name,
                                                              uint64_t max_bytes,
                                                              bool refuse_links) {
  const Descriptor file(descriptor);
  EDDY_CHECK(file.get() >= 0) << name << " is not open";
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return system_error(name, errno);
  EDDY_RETURN_IF_ERROR(check_file(info, name, max_bytes, refuse_links));
  std::unique_ptr<FileBytes> result(new FileBytes());
  const size_t size = static_cast<size_t>(info.st_size);
  if (size < kMapFromBytes) {
    EDDY_RETURN_IF_ERROR(result->allocate(size));
    EDDY_RETURN_IF_ERROR(read_all(file.get(), const_cast<std::byte*>(result->data_), size, name));
    return result;
  }
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED)
    return resource_exhausted("cannot map " + quoted_path(name) + ": " + std::strerror(errno));
  result->data_ = static_cast<const std::byte*>(mapped);
  result->size_ = size;
  result->is_mapped_ = true;
  return result;
}

Result<std::unique_ptr<FileBytes>> read_file(const std::string& path, uint64_t max_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return system_error(path, errno, "; name a file that is there and may be read");
  return FileBytes::from_descriptor(fd, path, max_bytes, false);
}

Result<std::unique_ptr<FileBytes>> open_beneath(const std::string& folder,
                                                const std::string& location, uint64_t max_bytes) {
  if (location.empty() || location.find('\0') != std::string::npos) {
    return invalid_argument("the name of an external file is empty or holds a zero byte");
  }
  const Descriptor base(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (base.get() < 0) return system_error(folder, errno);
  Descriptor file(open_resolved(base.get(), location.c_str()));
  // Old kernels and some sandboxes do not offer the call.
  if (file.get() < 0 && (errno == ENOSYS || errno == EPERM)) {
    file.reset(open_step_by_step(base.get(), location));
  }
  if (file.get() < 0 && (errno == EXDEV || errno == ELOOP)) {
    return invalid_argument(quoted(location) +
                            " leads out of the model's folder or through a "
                            "symbolic link; keep external data beside the model");
  }
  if (file.get() < 0) {
    return system_error(location, errno,
                        "; it was looked for in folder " + quoted_path(folder) +
                            ": external data lies beside the model");
  }
  return FileBytes::from_descriptor(file.release(), location, max_bytes, true);
}

Status write_file(const std::string& path, std::string_view content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return invalid_argument("cannot write " + quoted_path(path) + ": " + std::strerror(errno) +
                            "; name a file in a folder that may be written to");
  }
  const bool is_written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (std::fclose(file) != 0 || !is_written) {
    return run_failed("cannot write all of " + quoted_path(path) + ": " + std::strerror(errno) +
                      "; make room or name a file elsewhere");
  }
  return Status::ok();
}

}  // namespace eddy
