// long: every call of MPI stands in the one source that is compiled with its header.
//
// The table over the MPI that this file is compiled with: a shared object, which uses nothing of
// Eddy's.
//
// A large operation is several requests, its pieces. Blocks of more bytes than a piece has are
// gathered and exchanged by types of a piece's bytes whose extent is the block: MPI then skips to
// the same piece of the next block.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "runtime/mpi/mpi_table.h"

namespace eddy {

struct MpiCommunicator {
  MPI_Comm handle = MPI_COMM_NULL;
};

struct MpiRequests {
  struct Operation {
    uint64_t tag = 0;
    int num_pieces = 0;  // not yet complete; 0: the slot is free
    int32_t error = 0;
    bool is_receive_any = false;
    int32_t source = 0;
    int64_t bytes = 0;
  };

  int64_t max_piece_bytes = 0;
  std::vector<MPI_Request> requests;
  std::vector<uint32_t> operation_of;  // by request
  std::vector<Operation> operations;
  std::vector<uint32_t> free_operations;
  // Of test_some.
  std::vector<int> indices;
  std::vector<MPI_Status> statuses;
  std::vector<MpiCompletion> done;
};

namespace {

static_assert(MPI_SUCCESS == 0 && kMpiNoMemory < 0, "0 is success, and own errors are negative");

constexpr int kLabel = 0;
// Of messages that a collective is made of, which match no send or receive.
constexpr int kPartLabel = 1;

MPI_Datatype type_of(MpiType type) {
  switch (type) {
    case MpiType::kInt32:
      return MPI_INT32_T;
    case MpiType::kInt64:
      return MPI_INT64_T;
    case MpiType::kUint32:
      return MPI_UINT32_T;
    case MpiType::kUint64:
      return MPI_UINT64_T;
    case MpiType::kFloat:
      return MPI_FLOAT;
    case MpiType::kDouble:
      return MPI_DOUBLE;
    case MpiType::kBool:
      return MPI_C_BOOL;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op reduction_of(MpiReduction reduction) {
  switch (reduction) {
    case MpiReduction::kSum:
      return MPI_SUM;
    case MpiReduction::kProd:
      return MPI_PROD;
    case MpiReduction::kMin:
      return MPI_MIN;
    case MpiReduction::kMax:
      return MPI_MAX;
    case MpiReduction::kAnd:
      return MPI_LAND;
    case MpiReduction::kOr:
      return MPI_LOR;
  }
  return MPI_OP_NULL;
}

// One operation being posted: takes its slot, then its pieces' requests.
class Post {
 public:
  Post(MpiRequests& set, uint64_t tag) : set_(set) {
    if (set.free_operations.empty()) {
      set.operations.emplace_back();
      slot_ = static_cast<uint32_t>(set.operations.size() - 1);
      set.free_operations.reserve(set.operations.size());
    } else {
      slot_ = set.free_operations.back();
      set.free_operations.pop_back();
    }
    set.operations[slot_] = {};
    set.operations[slot_].tag = tag;
  }

  MpiRequests::Operation& operation() { return set_.operations[slot_]; }

  // call(&request) is one of MPI's non-blocking calls.
  template <typename Call>
  int32_t piece(const Call& call) {
    make_room(set_.requests);
    make_room(set_.operation_of);
    MPI_Request request = MPI_REQUEST_NULL;
    if (const int error = call(&request); error != MPI_SUCCESS) return error;
    set_.requests.push_back(request);
    set_.operation_of.push_back(slot_);
    ++operation().num_pieces;
    return 0;
  }

  // Pieces [first, first + count) of `total` units of `unit_bytes`: call(first, count, &request).
  // One empty piece where there is nothing: on a communicator all ranks post alike.
  template <typename Call>
  int32_t pieces(int64_t total, int64_t unit_bytes, const Call& call) {
    const int64_t most =
        std::clamp<int64_t>(set_.max_piece_bytes / std::max<int64_t>(unit_bytes, 1), 1, INT_MAX);
    int64_t first = 0;
    do {
      const int64_t count = std::min(most, total - first);
      const int32_t error = piece(
          [&](MPI_Request* request) { return call(first, static_cast<int>(count), request); });
      if (error != 0) return error;
      first += count;
    } while (first < total);
    return 0;
  }

 private:
  // For one more, so that nothing fails once MPI has started.
  template <typename T>
  static void make_room(std::vector<T>& list) {
    if (list.size() == list.capacity()) list.reserve(2 * list.size() + 16);
  }

  MpiRequests& set_;
  uint32_t slot_ = 0;
};

// `count` bytes, repeated each `extent_bytes`.
class SkippingType {
 public:
  SkippingType(int count, int64_t extent_bytes) {
    if (count == extent_bytes) {
      MPI_Type_contiguous(count, MPI_BYTE, &type_);
    } else {
      MPI_Datatype plain = MPI_DATATYPE_NULL;
      MPI_Type_contiguous(count, MPI_BYTE, &plain);
      MPI_Type_create_resized(plain, 0, static_cast<MPI_Aint>(extent_bytes), &type_);
      MPI_Type_free(&plain);
    }
    MPI_Type_commit(&type_);
  }
  // MPI keeps it as long as an operation needs it.
  ~SkippingType() { MPI_Type_free(&type_); }
  SkippingType(const SkippingType&) = delete;
  SkippingType& operator=(const SkippingType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

const char* at(const void* bytes, int64_t offset) {
  return static_cast<const char*>(bytes) + offset;
}
char* at(void* bytes, int64_t offset) { return static_cast<char*>(bytes) + offset; }

std::pair<int, int> place_in(MPI_Comm comm) {
  int place = 0, size = 1;
  MPI_Comm_rank(comm, &place);
  MPI_Comm_size(comm, &size);
  return {place, size};
}

// No exception leaves the shared object.
template <typename Body>
int32_t guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return kMpiNoMemory;
  }
}

int32_t open(int32_t* was_open) {
  int is_open = 0;
  int is_closed = 0;
  MPI_Finalized(&is_closed);
  if (is_closed != 0) return kMpiWasClosed;
  MPI_Initialized(&is_open);
  *was_open = is_open;
  int level = MPI_THREAD_SINGLE;
  if (is_open != 0) {
    MPI_Query_thread(&level);
  } else if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
             error != MPI_SUCCESS) {
    return error;
  }
  if (level < MPI_THREAD_SERIALIZED) return kMpiNoThreads;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return 0;
}

int32_t close() {
  int is_closed = 0;
  MPI_Finalized(&is_closed);
  return is_closed != 0 ? 0 : MPI_Finalize();
}

void abort_job(int32_t code) { MPI_Abort(MPI_COMM_WORLD, code); }

void world(int32_t* rank, int32_t* size) {
  int own = 0;
  int all = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  *rank = own;
  *size = all;
}

void copy_text(const char* from, char* text, size_t capacity) {
  if (capacity == 0) return;
  std::strncpy(text, from, capacity - 1);
  text[capacity - 1] = '\0';
}

void library_text(char* text, size_t capacity) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  copy_text(version, text, capacity);
}

void error_text(int32_t error, char* text, size_t capacity) {
  if (error == kMpiNoMemory) return copy_text("out of memory", text, capacity);
  if (error == kMpiNoThreads) {
    return copy_text("this MPI was built for programs of one thread", text, capacity);
  }
  if (error == kMpiWasClosed) {
    return copy_text("MPI was closed in this process, and starts once", text, capacity);
  }
  char message[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, message, &length);
  copy_text(message, text, capacity);
}

int32_t make_communicator(const int32_t* ranks, int32_t count, int32_t number,
                          MpiCommunicator** communicator) {
  return guarded([&]() -> int32_t {
    const std::vector<int> members(ranks, ranks + count);
    auto made = std::make_unique<MpiCommunicator>();
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int error = MPI_Group_incl(all, count, members.data(), &group);
    if (error == MPI_SUCCESS) {
      error = MPI_Comm_create_group(MPI_COMM_WORLD, group, number, &made->handle);
      MPI_Group_free(&group);
    }
    MPI_Group_free(&all);
    if (error != MPI_SUCCESS) return error;
    MPI_Comm_set_errhandler(made->handle, MPI_ERRORS_RETURN);
    *communicator = made.release();
    return 0;
  });
}

void free_communicator(MpiCommunicator* communicator) {
  MPI_Comm_free(&communicator->handle);
  delete communicator;
}

MpiRequests* make_requests(int64_t max_piece_bytes) {
  auto* const set = new (std::nothrow) MpiRequests;
  if (set != nullptr) set->max_piece_bytes = max_piece_bytes > 0 ? max_piece_bytes : INT64_MAX;
  return set;
}

void free_requests(MpiRequests* requests) { delete requests; }

// Drops completed requests; each hole takes the last request.
void close_holes(MpiRequests& set) {
  size_t count = 0;
  for (size_t i = 0; i < set.requests.size(); ++i) {
    if (set.requests[i] == MPI_REQUEST_NULL) continue;
    set.requests[count] = set.requests[i];
    set.operation_of[count] = set.operation_of[i];
    ++count;
  }
  set.requests.resize(count);
  set.operation_of.resize(count);
}

void take_piece(MpiRequests& set, uint32_t slot, const MPI_Status& status, int error) {
  MpiRequests::Operation& operation = set.operations[slot];
  if (error != MPI_SUCCESS && operation.error == 0) operation.error = error;
  if (operation.is_receive_any) {
    int is_cancelled = 0;
    MPI_Test_cancelled(&status, &is_cancelled);
    int bytes = 0;
    if (is_cancelled == 0) MPI_Get_count(&status, MPI_BYTE, &bytes);
    operation.source = is_cancelled != 0 ? -1 : status.MPI_SOURCE;
    operation.bytes = bytes;
  }
  if (--operation.num_pieces > 0) return;
  set.done.push_back({operation.tag, operation.bytes, operation.source, operation.error});
  set.free_operations.push_back(slot);
}

int32_t test_some(MpiRequests* requests, const MpiCompletion** done, int32_t* count) {
  return guarded([&]() -> int32_t {
    MpiRequests& set = *requests;
    set.done.clear();
    *done = set.done.data();
    *count = 0;
    const size_t num = set.requests.size();
    if (num == 0) return 0;
    set.indices.resize(num);
    set.statuses.resize(num);
    set.done.reserve(num);
    int num_done = 0;
    const int error = MPI_Testsome(static_cast<int>(num), set.requests.data(), &num_done,
                                   set.indices.data(), set.statuses.data());
    if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) return error;
    if (num_done == MPI_UNDEFINED || num_done == 0) return 0;
    for (int i = 0; i < num_done; ++i) {
      const MPI_Status& status = set.statuses[static_cast<size_t>(i)];
      const auto index = static_cast<size_t>(set.indices[static_cast<size_t>(i)]);
      take_piece(set, set.operation_of[index], status,
                 error == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS);
      set.requests[index] = MPI_REQUEST_NULL;
    }
    close_holes(set);
    *done = set.done.data();
    *count = static_cast<int32_t>(set.done.size());
    return 0;
  });
}

int64_t element_bytes(MpiType type) {
  int bytes = 1;
  MPI_Type_size(type_of(type), &bytes);
  return bytes;
}

int32_t all_reduce(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                   const void* in, void* out, int64_t count, MpiType type, MpiReduction reduction) {
  return guarded([&] {
    const int64_t unit = element_bytes(type);
    return Post(*requests, tag).pieces(count, unit, [&](int64_t first, int n, MPI_Request* r) {
      return MPI_Iallreduce(at(in, first * unit), at(out, first * unit), n, type_of(type),
                            reduction_of(reduction), communicator->handle, r);
    });
  });
}

int32_t all_gather(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                   const void* in, void* out, int64_t bytes) {
  return guarded([&] {
    return Post(*requests, tag).pieces(bytes, 1, [&](int64_t first, int n, MPI_Request* r) {
      if (n == bytes) {
        return MPI_Iallgather(in, n, MPI_BYTE, out, n, MPI_BYTE, communicator->handle, r);
      }
      const SkippingType block(n, bytes);
      return MPI_Iallgather(at(in, first), n, MPI_BYTE, at(out, first), 1, block.get(),
                            communicator->handle, r);
    });
  });
}

int32_t all_to_all(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag,
                   const void* in, void* out, int64_t bytes) {
  return guarded([&] {
    return Post(*requests, tag).pieces(bytes, 1, [&](int64_t first, int n, MPI_Request* r) {
      if (n == bytes) {
        return MPI_Ialltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, communicator->handle, r);
      }
      const SkippingType block(n, bytes);
      return MPI_Ialltoall(at(in, first), 1, block.get(), at(out, first), 1, block.get(),
                           communicator->handle, r);
    });
  });
}

int32_t swap_pieces(Post& post, MPI_Comm comm, int to, const void* in, int from, void* out,
                    int64_t bytes) {
  const int32_t error = post.pieces(bytes, 1, [&](int64_t first, int n, MPI_Request* r) {
    return MPI_Irecv(at(out, first), n, MPI_BYTE, from, kPartLabel, comm, r);
  });
  if (error != 0) return error;
  return post.pieces(bytes, 1, [&](int64_t first, int n, MPI_Request* r) {
    return MPI_Isend(at(in, first), n, MPI_BYTE, to, kPartLabel, comm, r);
  });
}

int32_t swap_all(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag, const void* in,
                 int64_t in_stride, void* out, int64_t bytes) {
  return guarded([&]() -> int32_t {
    Post post(*requests, tag);
    const auto [own, size] = place_in(communicator->handle);
    for (int k = 1; k < size; ++k) {
      const int to = (own + k) % size, from = (own + size - k) % size;
      const int32_t error = swap_pieces(post, communicator->handle, to, at(in, to * in_stride),
                                        from, at(out, from * bytes), bytes);
      if (error != 0) return error;
    }
    return 0;
  });
}

int32_t shift(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag, const void* in,
              void* out, int64_t bytes, int32_t distance) {
  return guarded([&] {
    Post post(*requests, tag);
    const auto [own, size] = place_in(communicator->handle);
    return swap_pieces(post, communicator->handle, (own + distance) % size, in,
                       (own + size - distance) % size, out, bytes);
  });
}

int32_t broadcast(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag, void* bytes,
                  int64_t count, int32_t root_place) {
  return guarded([&] {
    return Post(*requests, tag).pieces(count, 1, [&](int64_t first, int n, MPI_Request* r) {
      return MPI_Ibcast(at(bytes, first), n, MPI_BYTE, root_place, communicator->handle, r);
    });
  });
}

int32_t barrier(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag) {
  return guarded([&] {
    return Post(*requests, tag).piece([&](MPI_Request* r) {
      return MPI_Ibarrier(communicator->handle, r);
    });
  });
}

int32_t send(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag, const void* bytes,
             int64_t count, int32_t to_place) {
  return guarded([&] {
    return Post(*requests, tag).pieces(count, 1, [&](int64_t first, int n, MPI_Request* r) {
      return MPI_Isend(at(bytes, first), n, MPI_BYTE, to_place, kLabel, communicator->handle, r);
    });
  });
}

int32_t receive(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag, void* bytes,
                int64_t count, int32_t from_place) {
  return guarded([&] {
    return Post(*requests, tag).pieces(count, 1, [&](int64_t first, int n, MPI_Request* r) {
      return MPI_Irecv(at(bytes, first), n, MPI_BYTE, from_place, kLabel, communicator->handle, r);
    });
  });
}

int32_t receive_any(MpiRequests* requests, MpiCommunicator* communicator, uint64_t tag, void* bytes,
                    int32_t capacity) {
  return guarded([&] {
    Post post(*requests, tag);
    post.operation().is_receive_any = true;
    return post.piece([&](MPI_Request* r) {
      return MPI_Irecv(bytes, capacity, MPI_BYTE, MPI_ANY_SOURCE, kLabel, communicator->handle, r);
    });
  });
}

int32_t cancel_receives(MpiRequests* requests) {
  for (size_t i = 0; i < requests->requests.size(); ++i) {
    if (!requests->operations[requests->operation_of[i]].is_receive_any) continue;
    if (const int error = MPI_Cancel(&requests->requests[i]); error != MPI_SUCCESS) return error;
  }
  return 0;
}

constexpr MpiTable kTable = {
    .open = open,
    .close = close,
    .abort = abort_job,
    .world = world,
    .library_text = library_text,
    .error_text = error_text,
    .make_communicator = make_communicator,
    .free_communicator = free_communicator,
    .make_requests = make_requests,
    .free_requests = free_requests,
    .test_some = test_some,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .all_to_all = all_to_all,
    .swap_all = swap_all,
    .shift = shift,
    .broadcast = broadcast,
    .barrier = barrier,
    .send = send,
    .receive = receive,
    .receive_any = receive_any,
    .cancel_receives = cancel_receives,
};

}  // namespace
}  // namespace eddy

extern "C" __attribute__((visibility("default"))) const eddy::MpiTable* eddy_mpi_table() {
  return &eddy::kTable;
}
