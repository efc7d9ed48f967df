// instructions: the vector instructions that kernels may use, by what the processor has and what
// the environment variable EDDY_INSTRUCTIONS allows:
//
//   baseline   none but those that the build takes for granted
//   avx2       AVX2 and fused multiply-adds
//   avx512     AVX-512 of F, BW, VL and DQ, too
//   vnni       its products of bytes, too
//   amx        products of bytes in matrix registers; the same as no limit
//
// For tests, and for processors that slow down with wide vectors. Results of different sets may
// differ in the last bits. Read once, by the first call; the processes of one run should agree.
//
// Errors: a limit of another name allows nothing but the baseline, and is_known is false.
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace eddy::cpu {

struct Instructions {
  bool has_avx2 = false;
  bool has_avx512 = false;
  bool has_vnni = false;
  bool has_amx = false;
  bool is_known = true;  // the name of the limit
};

const Instructions& instructions();

// Whether the system lets this process use matrix registers: asks it for them, once, where the
// processor has them. From then on the process's signal stacks must be 12 KB at least, so kernels
// ask when they are bound.
bool may_use_amx();

// The same by a limit given, empty: none; for tests.
Instructions instructions_within(std::string_view limit);

// "x86-64-v2 avx2 avx512"
std::string instructions_text();

}  // namespace eddy::cpu
