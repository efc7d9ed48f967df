// MpiTable: every MPI call of Eddy, in one table of plain C types.
//
// Handles and constants of MPI differ from one library to the next, so whatever was compiled with
// mpi.h stands in a shared object of its own (mpi_shim.cc) behind this table, and is opened where
// ranks are asked for (mpi_library.h).
//
// An operation is posted to a set of requests with a tag of its caller's and completes when
// test_some names the tag: one MPI_Testsome over all of the set. On a communicator all ranks post
// the same collectives in one order; memory belongs to the operation until then. Counts are any:
// what MPI's int does not hold goes in pieces, which complete as one.
//
//   MpiRequests* set = mpi.make_requests(0);
//   mpi.all_gather(set, communicator, 7, x, all, x_bytes);
//   while (count == 0) mpi.test_some(set, &done, &count);       // done[0].tag == 7
//
// Errors: calls return 0, an error of MPI's (error_text) or one of kMpi…; after one of a post, how
// much of the operation is under way is unknown. What ranks put in is not compared: unequal order,
// kind or type gives wrong values, unequal sizes may never end.
// Threads: one at a time in all of the process. Progress: only in test_some.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy {

struct MpiCommunicator;  // a communicator
struct MpiRequests;      // operations under way

// Own errors, apart from MPI's, which are positive.
inline constexpr int32_t kMpiNoMemory = -1;
inline constexpr int32_t kMpiNoThreads = -2;  // the library was built for one thread
inline constexpr int32_t kMpiWasClosed = -3;  // MPI starts once in a process

enum class MpiType : int32_t { kInt32, kInt64, kUint32, kUint64, kFloat, kDouble, kBool };
enum class MpiReduction : int32_t { kSum, kProd, kMin, kMax, kAnd, kOr };

struct MpiCompletion {
  uint64_t tag = 0;
  int64_t bytes = 0;   // received, of receive_any
  int32_t source = 0;  // its sender
  int32_t error = 0;
};

struct MpiTable {
  // MPI_Init_thread (serialized) and MPI_Finalize, which waits for all ranks. 0.2 to 0.4 s.
  // `was_open`: the program had started MPI by itself.
  int32_t (*open)(int32_t* was_open);
  int32_t (*close)();
  // Ends the whole job with this code; does not return.
  void (*abort)(int32_t code);
  void (*world)(int32_t* rank, int32_t* size);
  // "Open MPI v4.1.4, ..."; may be asked before open.
  void (*library_text)(char* text, size_t capacity);
  void (*error_text)(int32_t error, char* text, size_t capacity);

  // A communicator of its own for these ranks of the world, called by all of them and waiting for
  // them; `number` (below 2^15) tells apart what is made at once of ranks that overlap. A rank's
  // place is its index in `ranks`.
  int32_t (*make_communicator)(const int32_t* ranks, int32_t count, int32_t number,
                               MpiCommunicator** communicator);
  // Once nothing is under way on it.
  void (*free_communicator)(MpiCommunicator* communicator);

  // A set. No piece has more bytes than `max_piece_bytes` (one element if that is more); 0: as many
  // as MPI takes. Null without memory.
  MpiRequests* (*make_requests)(int64_t max_piece_bytes);
  // With what is under way in it, which goes on.
  void (*free_requests)(MpiRequests* requests);
  // What has completed since the last call, valid up to the next one.
  int32_t (*test_some)(MpiRequests* requests, const MpiCompletion** done, int32_t* count);

  // Of `count` elements on each rank.
  int32_t (*all_reduce)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                        const void* in, void* out, int64_t count, MpiType type,
                        MpiReduction reduction);
  // `bytes` of each rank, by place.
  int32_t (*all_gather)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                        const void* in, void* out, int64_t bytes);
  // `bytes` from each rank to each.
  int32_t (*all_to_all)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                        const void* in, void* out, int64_t bytes);
  // The same two, of two places or more, by a message to each other place and from it, but for the
  // own part, which stays as it is: what is for place i begins `in_stride` i bytes behind `in`.
  int32_t (*swap_all)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                      const void* in, int64_t in_stride, void* out, int64_t bytes);
  // To the place `distance` behind the own one, round the ring, from the one as far before.
  int32_t (*shift)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                   const void* in, void* out, int64_t bytes, int32_t distance);
  int32_t (*broadcast)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                       void* bytes, int64_t count, int32_t root_place);
  int32_t (*barrier)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag);
  // Messages between two places come in the order in which they are sent.
  int32_t (*send)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                  const void* bytes, int64_t count, int32_t to_place);
  int32_t (*receive)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                     void* bytes, int64_t count, int32_t from_place);
  // One message of at most `capacity` bytes from the place that sends first; on communicators
  // without receive.
  int32_t (*receive_any)(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                         void* bytes, int32_t capacity);
  // The receives of receive_any in the set will match nothing more, and complete with 0 bytes from
  // source -1, unless a message has matched already.
  int32_t (*cancel_receives)(MpiRequests* requests);
};

// The symbol of the shared object: extern "C" const MpiTable* eddy_mpi_table();
inline constexpr const char* kMpiTableSymbol = "eddy_mpi_table";

}  // namespace eddy
