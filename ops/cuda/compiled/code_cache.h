// CodeCache: compiled kernels on disk, found by everything that went into them.
//
// A file is named by a fingerprint of its key and holds the key itself, so that two keys never
// stand for each other; what is cut short, has another key or fails its check sum is as if it
// were not there, and is written anew. Files are written beside their place and renamed, so
// readers see all of one or none, and writers need no coordination.
//
// A process that may write into the folder decides what the GPU runs. So a folder that is not the
// user's own, or that others may write to, is not used; links are not followed.
// Contract: the cache may be lost at any time. Threads and processes: any. Errors: none; a cache
// that cannot be used finds nothing and stores nothing. Cost: a few system calls; files are some
// ten KiB each and are never removed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eddy {

class CodeCache {
 public:
  static constexpr size_t kMaxCodeBytes = size_t{16} << 20;

  // `folder` is made when something is first stored; "": nothing is cached.
  explicit CodeCache(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::string> find(std::string_view key) const;
  void store(std::string_view key, std::string_view code) const;
  // The same, where none is found for the key; of several writers at once the first one counts.
  void store_first(std::string_view key, std::string_view code) const;

  // Where the user's caches are: $XDG_CACHE_HOME or ~/.cache, and "/eddy/kernels"; "" without.
  static std::string default_folder();

 private:
  // A whole file beside its place; "": it could not be written.
  std::string write_beside(std::string_view key, std::string_view code) const;
  std::string path_of(std::string_view key) const;

  const std::string folder_;
};

}  // namespace eddy
