// cached_model: where tools/demo puts what it fetches.
#pragma once

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace eddy::test {

// The path, whether there is such a file or not.
inline std::string cached_model(const std::string& name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const passwd* user = getpwuid(getuid());
  const std::string home = user != nullptr ? user->pw_dir : "";
  const bool has_cache = cache != nullptr && *cache != '\0';
  return (has_cache ? cache : home + "/.cache") + "/eddy/models/" + name;
}

}  // namespace eddy::test
