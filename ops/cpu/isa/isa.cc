#include "ops/cpu/isa/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdlib>

#include "graph/base/check.h"

namespace eddy::cpu {
namespace {

#if defined(__x86_64__)
constexpr const char* kBaseline = "x86-64-v2";

// Products of bytes in matrix registers.
bool has_amx() {
  constexpr unsigned kTiles = 1u << 24, kBytes = 1u << 25;  // of leaf 7, in EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0 && (d & kBytes) != 0;
}

Instructions of_processor() {
  Instructions all;
  all.has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  all.has_avx512 = all.has_avx2 && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq");
  all.has_vnni = all.has_avx512 && __builtin_cpu_supports("avx512vnni");
  all.has_amx = all.has_vnni && has_amx();
  return all;
}
#else
constexpr const char* kBaseline = "the build's baseline";
Instructions of_processor() { return {}; }
#endif

}  // namespace

Instructions instructions_within(std::string_view limit) {
  Instructions all = of_processor();
  if (limit.empty() || limit == "amx") return all;
  all.has_amx = false;
  if (limit == "vnni") return all;
  all.has_vnni = false;
  if (limit == "avx512") return all;
  all.has_avx512 = false;
  if (limit == "avx2") return all;
  all.has_avx2 = false;
  all.is_known = limit == "baseline";
  return all;
}

const Instructions& instructions() {
  static const Instructions allowed = [] {
    const char* const limit = std::getenv("EDDY_INSTRUCTIONS");
    return instructions_within(limit == nullptr ? "" : limit);
  }();
  EDDY_DCHECK(allowed.has_avx2 || !allowed.has_avx512) << "sets of instructions without their own";
  return allowed;
}

bool may_use_amx() {
#if defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  static const bool is_permitted =
      instructions().has_amx && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return is_permitted;
#else
  return false;
#endif
}

std::string instructions_text() {
  const Instructions& all = instructions();
  std::string text = kBaseline;
  if (all.has_avx2) text += " avx2";
  if (all.has_avx512) text += " avx512";
  if (all.has_vnni) text += " vnni";
  if (all.has_amx) text += " amx";
  if (!all.is_known) {
    text += "; EDDY_INSTRUCTIONS has a value that is none of baseline, avx2, avx512, vnni, amx";
  }
  return text;
}

}  // namespace eddy::cpu
