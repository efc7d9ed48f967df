// Small blocks: operators new and delete that keep small blocks for the thread that freed them.
//
// Linked into the command, and so into all of it. Planning, proving and checking make thousands of
// small objects and free them at once, again for each graph; glibc keeps seven of a size for
// a thread and takes the long way with the rest, which was a third of all instructions of
// `eddy check`. Here a block of up to 2048 bytes goes to a list of its thread and size (steps of 16
// bytes), as long as the list holds less than 64 KiB; everything else goes to malloc and free. A
// block may be let go of by any thread. When a thread ends, its lists go back to malloc.
//
// Why not a library: mimalloc and jemalloc save as many instructions (326 and 338 million for 60
// seeds, this 297, glibc 431), but as Debian builds them they take over malloc, too, and with it
// the large blocks of tensors and of oneDNN, for which allocation and release to the system are
// measured elsewhere.
//
// Errors: std::bad_alloc, after the new-handler has run. Threads: any; nothing is shared.
// Sanitizers watch malloc's own blocks: in their builds this allocator is empty and kIsOn is false.
// Cost: some ten instructions each way; at most 8 MiB a thread.
#pragma once

#include <cstddef>

namespace eddy::small_blocks {

#ifdef EDDY_SANITIZER
inline constexpr bool kIsOn = false;
#else
inline constexpr bool kIsOn = true;
#endif

inline constexpr size_t kLargestBytes = 2048;
inline constexpr size_t kMaxKeptBytes = size_t{64} << 10;  // of one size and thread

// The blocks of so many bytes that the calling thread keeps, in bytes.
size_t kept_bytes(size_t size);

}  // namespace eddy::small_blocks
