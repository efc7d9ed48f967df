// Claim: a library that was opened stays in the process after its last use, so that what it keeps
// for itself is never lost; one that cannot be opened is an error that names it.
#include "ops/cuda/libraries/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>

namespace eddy {
namespace {

constexpr const char* kOfNobody = "libBrokenLocale.so.1";  // of glibc, and used by no program

bool is_loaded(const char* name) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

TEST(Library, StaysWhenItsTableHasGone) {
  ASSERT_FALSE(is_loaded(kOfNobody));
  {
    constexpr std::array kNames = {"libeddy_of_nowhere.so.1", kOfNobody};
    const auto library = DynamicLibrary::open(kNames);
    ASSERT_TRUE(library.is_ok()) << library.status().to_string();
    EXPECT_EQ(library->name(), kOfNobody);
  }
  EXPECT_TRUE(is_loaded(kOfNobody));
}

TEST(Library, ThatIsNowhereIsNamed) {
  constexpr std::array kNames = {"libeddy_of_nowhere.so.1"};
  const auto library = DynamicLibrary::open(kNames);
  ASSERT_FALSE(library.is_ok());
  EXPECT_NE(library.status().message().find("libeddy_of_nowhere.so.1"), std::string::npos);
}

}  // namespace
}  // namespace eddy
