// long: the whole interface, which a program reads and includes as one.
/* eddy.h: Eddy for programs in C and for other languages' runtimes. C11, no C++.
 *
 *   const eddy_api* e = eddy_get_api(EDDY_API_VERSION);
 *   e->context_create(NULL, 0, &context, NULL);
 *   e->library_create(context, &library, NULL);
 *   e->session_load(library, "model.onnx", NULL, 0, &session, &error);
 *   e->run_create(session, &run, NULL);
 *   e->run_bind_input(run, 0, x, &error);  e->run_execute(run, NULL, &error);
 *
 * One exported symbol; all else is reached through its table, which only ever grows at its end.
 * Objects: handles, counted: each *_create or out-parameter gives one reference, release() takes it
 * back, in any order. An object keeps alive what it needs. A handle that is null, released, foreign
 * or of another kind is refused with EDDY_INVALID_HANDLE; nothing is read through it.
 * Errors: a call returns a code; where `error` is not null, a failure (but EDDY_NOT_DONE, EDDY_END)
 * also makes an error object with one line, a path and a source location. Nothing else crosses:
 * no exception, no abort, no errno. Out-parameters are untouched by a failure.
 * Structs that are passed in begin with struct_size (sizeof, as the caller was compiled); what a
 * shorter one lacks has its default. eddy_tensor, eddy_type and eddy_value_id are frozen.
 * Threads: any call from any thread, unless an object says otherwise. Callbacks may make any call
 * but a wait for a run of their own session (EDDY_WOULD_DEADLOCK). What a function of a C++
 * caller's throws ends there: a call that Eddy waits for has failed with it.
 */
#ifndef EDDY_EDDY_H_
#define EDDY_EDDY_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EDDY_API_VERSION 1u

/* ---- Codes. Numbers are stable. ---- */
typedef int32_t eddy_code;
enum {
  EDDY_OK = 0,
  EDDY_INVALID_ARGUMENT = 1,   /* the caller's data, file or arguments are wrong */
  EDDY_NOT_FOUND = 2,          /* a named thing or file does not exist */
  EDDY_UNSUPPORTED = 3,        /* legal, but Eddy does not do it */
  EDDY_RESOURCE_EXHAUSTED = 4, /* memory, threads, descriptors, or a stated limit */
  EDDY_RUN_FAILED = 5,         /* a kernel or host function failed while running */
  EDDY_CANCELLED = 6,
  EDDY_DEADLINE_EXCEEDED = 7,
  EDDY_DEVICE_LOST = 8,
  EDDY_WOULD_DEADLOCK = 9,  /* waiting here could never end */
  EDDY_INTERNAL = 10,       /* a defect of Eddy */
  EDDY_INVALID_HANDLE = 11, /* null, released, foreign, or of another kind */
  EDDY_INVALID_STATE = 12,  /* the object is busy, finished, or has nothing to give yet */
  EDDY_NOT_DONE = 13,       /* a wait has timed out, a poll has found nothing */
  EDDY_END = 14,            /* a stream has no more values */
  EDDY_LATER = 15           /* only from custom operators and host functions: see eddy_pending */
};

/* ---- Handles ---- */
typedef struct eddy_error_s* eddy_error;     /* immutable */
typedef struct eddy_context_s* eddy_context; /* threads and logging, shared by what is made in it */
typedef struct eddy_library_s* eddy_library; /* operators and host functions; fixed once used */
typedef struct eddy_graph_s* eddy_graph;     /* built by one thread at a time, then immutable */
typedef struct eddy_session_s* eddy_session; /* a graph made ready to run; any thread */
typedef struct eddy_run_s* eddy_run;         /* one run, again and again; one thread at a time, but
                                                for run_wait, run_poll and run_cancel */
typedef struct eddy_value_s* eddy_value;     /* tensor, sequence or nothing; immutable */
typedef struct eddy_rows_s* eddy_rows;       /* values of an output while its loop runs */
typedef struct eddy_executor_s* eddy_executor; /* where callbacks run */
typedef struct eddy_stream_s* eddy_stream;     /* an order of runs; submitted to by one thread at a
                                                  time */
typedef struct eddy_pending_s* eddy_pending; /* an answer that is owed; consumed by completing it */

/* ---- Tensors ---- */
/* ONNX's numbers (TensorProto.DataType). */
typedef uint8_t eddy_element;
enum {
  EDDY_UNDEFINED = 0,
  EDDY_FLOAT = 1,
  EDDY_UINT8 = 2,
  EDDY_INT8 = 3,
  EDDY_UINT16 = 4,
  EDDY_INT16 = 5,
  EDDY_INT32 = 6,
  EDDY_INT64 = 7,
  EDDY_STRING = 8,
  EDDY_BOOL = 9,
  EDDY_FLOAT16 = 10,
  EDDY_DOUBLE = 11,
  EDDY_UINT32 = 12,
  EDDY_UINT64 = 13,
  EDDY_COMPLEX64 = 14,
  EDDY_COMPLEX128 = 15,
  EDDY_BFLOAT16 = 16,
  EDDY_FLOAT8E4M3FN = 17, /* from here on one element a byte, also those of fewer bits */
  EDDY_FLOAT8E4M3FNUZ = 18,
  EDDY_FLOAT8E5M2 = 19,
  EDDY_FLOAT8E5M2FNUZ = 20,
  EDDY_UINT4 = 21,
  EDDY_INT4 = 22,
  EDDY_FLOAT4E2M1 = 23,
  EDDY_FLOAT8E8M0 = 24,
  EDDY_UINT2 = 25,
  EDDY_INT2 = 26
};

/* Dense, row-major, aligned to its element; `data` may be null where there are no elements. Frozen.
 * A bool is a byte, 0 or 1.
 * Strings have no data here: see value_strings. */
typedef struct eddy_tensor {
  void* data;
  const int64_t* dims; /* `rank` sizes */
  int32_t rank;        /* at most EDDY_MAX_RANK */
  eddy_element element;
  uint8_t reserved[3]; /* 0 */
} eddy_tensor;
#define EDDY_MAX_RANK 8

/* ---- Types. Dimensions: a size, EDDY_UNKNOWN_DIM, or a symbol of graph_symbol(). ---- */
#define EDDY_UNKNOWN_DIM (-1)
#define EDDY_UNRANKED (-1)
typedef struct eddy_type {
  size_t struct_size;
  eddy_element element;
  uint8_t wrappers[4]; /* EDDY_WRAPPER_*, outermost first */
  int32_t rank;        /* or EDDY_UNRANKED */
  int64_t dims[EDDY_MAX_RANK];
} eddy_type;

typedef struct eddy_option {
  const char* key;
  const char* value;
} eddy_option;

/* Where in a program of the caller's something stands; empty strings and zeros: not known. */
typedef struct eddy_location {
  size_t struct_size;
  const char* file;
  uint32_t line;
  uint32_t column;
  const char* text; /* "while err > tol": how errors name a loop or branch */
} eddy_location;

/* ---- Errors ---- */
enum { EDDY_PART_NODE = 0, EDDY_PART_LOOP = 1, EDDY_PART_REGION = 2 };
typedef struct eddy_path_part {
  size_t struct_size;
  int32_t kind;
  const char* name;  /* valid as long as the error */
  int64_t iteration; /* of a loop; -1 where none is known */
} eddy_path_part;

/* ---- Callbacks ---- */
typedef void (*eddy_function)(void* user);
typedef void (*eddy_log)(void* user, const char* line); /* any thread, one line; must not block */
/* Called exactly once for each submitted run, after it has ended. */
typedef void (*eddy_run_callback)(void* user, eddy_run run, eddy_code code);
/* `value` is the callee's, to be released. */
typedef void (*eddy_row_callback)(void* user, eddy_value value);

enum {
  EDDY_EXECUTOR_INLINE = 0, /* on the thread that has the news (of a row, perhaps the caller's own,
                               inside run_execute or run_wait); must be quick */
  EDDY_EXECUTOR_THREAD = 1, /* on a thread of the executor's own, one after the other */
  EDDY_EXECUTOR_CALLER = 2  /* where the caller calls executor_run(): its own loop */
};

/* What a type is around its tensor: a sequence of what is inside, or that or nothing. */
enum { EDDY_WRAPPER_NONE = 0, EDDY_WRAPPER_SEQUENCE = 1, EDDY_WRAPPER_OPTIONAL = 2 };

/* What a value is. */
enum {
  EDDY_KIND_OMITTED = -1, /* of an operator's input */
  EDDY_KIND_NONE = 0,     /* an empty optional */
  EDDY_KIND_TENSOR = 1,
  EDDY_KIND_SEQUENCE = 2
};

/* ---- Graphs ---- */
/* A value of the graph under construction; 0: none (an omitted input). */
typedef uint32_t eddy_value_id;

enum {
  EDDY_ATTRIBUTE_INT = 0,
  EDDY_ATTRIBUTE_FLOAT = 1,
  EDDY_ATTRIBUTE_STRING = 2,
  EDDY_ATTRIBUTE_INTS = 3,
  EDDY_ATTRIBUTE_FLOATS = 4,
  EDDY_ATTRIBUTE_STRINGS = 5,
  EDDY_ATTRIBUTE_TENSOR = 6, /* not of strings */
  EDDY_ATTRIBUTE_TYPE = 7    /* without symbols */
};
typedef struct eddy_attribute {
  size_t struct_size;
  const char* name;
  int32_t kind;
  float f;
  int64_t i;
  const char* s;
  size_t count; /* of the lists */
  const int64_t* ints;
  const float* floats;
  const char* const* strings;
  const eddy_tensor* tensor;
  const eddy_type* type;
} eddy_attribute;

typedef struct eddy_node {
  size_t struct_size;
  const char* op;
  const char* domain; /* null or "": ONNX's own */
  int32_t opset;      /* 0: 22, in other domains than ONNX's 1; the newest is 28 */
  uint32_t num_outputs;
  const eddy_value_id* inputs;
  size_t num_inputs;
  const eddy_attribute* attributes;
  size_t num_attributes;
  const char* name;              /* null: made up */
  const eddy_location* location; /* null: none */
} eddy_node;

typedef struct eddy_while {
  size_t struct_size;
  const char* name;
  const eddy_value_id* initial;
  size_t num_carried;
  /* Null, or for each carried value one that is as wide or wider. Without, a type widens where the
   * loop makes it, and graph_type() knows that only when the loop has ended. */
  const eddy_type* types;
  eddy_value_id trip_limit; /* 0, or an int64 scalar */
  uint32_t num_rows;        /* outputs that stack one row of each iteration */
  const eddy_location* location;
} eddy_while;

typedef struct eddy_case {
  size_t struct_size;
  const char* name;
  eddy_value_id selector; /* one bool, int32 or int64; false is branch 0 */
  uint32_t num_branches;
  const eddy_value_id* pass_through; /* taken where the selector is out of range; may be null */
  size_t num_pass_through;
  int32_t default_branch; /* -1: none */
  const eddy_location* location;
} eddy_case;

/* ---- Runs ---- */
typedef struct eddy_run_options {
  size_t struct_size;
  int64_t timeout_ns; /* from the call on, waiting included; 0: none */
  int32_t priority;   /* -1, 0, 1 */
} eddy_run_options;

/* ---- Custom operators and host functions ---- */
/* What a kernel or host function is called with. Views are valid during the call, or until its
 * pending answer is complete. */
typedef struct eddy_call {
  size_t struct_size;
  const eddy_tensor* inputs; /* element EDDY_UNDEFINED: omitted */
  const eddy_tensor* outputs;
  uint32_t num_inputs;
  uint32_t num_outputs;
  void* state; /* of the node: what `bind` made */
  void* impl;
  /* Scratch memory of this thread, 64-byte aligned, until the next reserve or the end of the call;
   * null when memory is out. */
  void* (*reserve)(void* impl, size_t size_bytes);
  /* Says why the call fails, before it returns a failure. */
  void (*fail)(void* impl, const char* message);
  /* Before EDDY_LATER is returned: the answer that is owed. */
  eddy_pending (*defer)(void* impl);
  void* run_state; /* of the node in this run: what `begin_run` made */
} eddy_call;

/* What `run_values` is called with: inputs and outputs of any kind, and outputs whose shapes the
 * call finds. Elements are those that `shapes` gave. Views are valid during the call, whose thread
 * alone calls the functions. What one of them refuses fails the run, as does an output that was not
 * made. */
typedef struct eddy_value_call {
  size_t struct_size;
  uint32_t num_inputs;
  uint32_t num_outputs;
  void* state;     /* of the node: what `bind` made */
  void* run_state; /* of the node in this run: what `begin_run` made */
  void* impl;
  void* (*reserve)(void* impl, size_t size_bytes); /* as eddy_call's */
  void (*fail)(void* impl, const char* message);   /* as eddy_call's */
  int32_t (*kind)(void* impl, uint32_t input);     /* EDDY_KIND_* */
  size_t (*length)(void* impl, uint32_t input);    /* of a sequence; of a tensor 1 */
  /* The tensor at `position` (of a tensor 0); of strings without data. */
  eddy_code (*tensor)(void* impl, uint32_t input, size_t position, eddy_tensor* tensor);
  /* String `index` of such a tensor, without a zero at its end; null: there is none. */
  const char* (*string)(void* impl, uint32_t input, size_t position, int64_t index,
                        size_t* size_bytes);
  /* The output is nothing, an empty sequence, or input's value, whatever its kind. A sequence that
   * is shared may get more at its end, too, at the cost of what is new: so lists grow in loops. */
  eddy_code (*make_none)(void* impl, uint32_t output);
  eddy_code (*make_sequence)(void* impl, uint32_t output);
  eddy_code (*share)(void* impl, uint32_t output, uint32_t input);
  /* The output is this tensor, or, where it is a sequence already, ends with it: one of `*data` to
   * be filled, of strings as value_from_strings() takes them, or one of an input, shared. */
  eddy_code (*make_tensor)(void* impl, uint32_t output, const int64_t* dims, int32_t rank,
                           void** data);
  eddy_code (*make_strings)(void* impl, uint32_t output, const int64_t* dims, int32_t rank,
                            const int64_t* offsets, const char* bytes);
  eddy_code (*share_tensor)(void* impl, uint32_t output, uint32_t input, size_t position);
} eddy_value_call;

/* What a shape function is called with: sizes may be unknown while a graph is built. */
typedef struct eddy_shapes {
  size_t struct_size;
  const eddy_type* inputs; /* element EDDY_UNDEFINED: omitted */
  uint32_t num_inputs;
  uint32_t num_outputs;
  eddy_type* outputs; /* to be set */
  void* impl;
  int64_t (*attribute_int)(void* impl, const char* name, int64_t fallback);
  float (*attribute_float)(void* impl, const char* name, float fallback);
  const char* (*attribute_string)(void* impl, const char* name, const char* fallback);
  void (*fail)(void* impl, const char* message);
  /* Of any kind; what it points to is valid during the call. EDDY_NOT_FOUND: the node has none. */
  eddy_code (*attribute)(void* impl, const char* name, eddy_attribute* attribute);
} eddy_shapes;

/* Flags of operators and host functions. */
enum {
  EDDY_ANSWERS_LATER = 1, /* may return EDDY_LATER; an operator then has no tiles */
  EDDY_NON_BLOCKING = 2 /* a host function that returns within microseconds and waits for nothing */
};

typedef struct eddy_operator {
  size_t struct_size;
  const char* name;
  const char* domain; /* not "" */
  int32_t since_version;
  uint32_t flags;
  uint32_t min_inputs; /* those behind are optional */
  uint32_t max_inputs;
  uint32_t num_outputs;
  void* user;
  void (*destroy)(void* user); /* when the library goes; may be null */
  /* As any name here: its attributes; `attribute_kinds` has one EDDY_ATTRIBUTE_* for each. */
  const char* const* attribute_names;
  const int32_t* attribute_kinds;
  size_t num_attributes;
  eddy_code (*shapes)(void* user, const eddy_shapes* shapes);
  /* Once for each node of a session: *state is what its calls see. May be null. */
  eddy_code (*bind)(void* user, const eddy_shapes* node, void** state);
  void (*unbind)(void* user, void* state);
  /* Any thread, several calls at once. EDDY_OK, EDDY_LATER behind defer(), or a failure. */
  eddy_code (*run)(void* user, const eddy_call* call);
  /* Both or neither: how many parts a call has, by its shapes alone, and one part. */
  uint32_t (*count_tiles)(void* user, const eddy_call* call);
  eddy_code (*run_tile)(void* user, const eddy_call* call, uint32_t tile);
  /* On a GPU: enqueues the call on `stream` (a cudaStream_t) and returns, with the GPU's context
   * current; it waits for nothing and reads none of the tensors, which are in the GPU's memory, as
   * is what reserve() gives. The stream may be under capture: what was enqueued then runs again,
   * on the same memory, without a call. Null: the node runs on the CPU; `run` may be null then. */
  eddy_code (*enqueue)(void* user, const eddy_call* call, void* stream);
  /* State of a run, on the CPU: made before the node's first call in it, which fails where this
   * does, and ended before anyone learns of the run's end; end_run must be quick. Either may be
   * null. */
  eddy_code (*begin_run)(void* user, void* state, void** run_state);
  void (*end_run)(void* user, void* state, void* run_state);
  /* In place of `run`, alone and without flags: strings, sequences, optionals, and outputs of which
   * `shapes` leaves sizes open (EDDY_UNKNOWN_DIM, EDDY_UNRANKED). */
  eddy_code (*run_values)(void* user, const eddy_value_call* call);
} eddy_operator;

/* A predicate's 0 or 1, or a selector's branch; or EDDY_LATER behind call->defer(). */
typedef eddy_code (*eddy_decide)(void* user, const eddy_call* call, int64_t* decision);

/* ---- What a session says of itself ---- */
typedef struct eddy_metrics {
  size_t struct_size;
  uint64_t runs_succeeded;
  uint64_t runs_failed; /* without those cancelled or late */
  uint64_t runs_cancelled;
  uint64_t runs_late;
  uint64_t memory_bytes; /* of tensors, now */
  uint64_t memory_peak_bytes;
  int64_t plan_ns;         /* what planning took */
  uint64_t runs_in_flight; /* now */
  uint64_t runs_waiting;   /* now: for their turn, or behind their stream */
  uint64_t iterations;     /* of all loops, in runs that have ended */
} eddy_metrics;

/* Of all nodes of one operator in all runs, with option time_operators. Time is the wall's, from a
 * call to its end; nodes beside each other count both. */
typedef struct eddy_operator_metrics {
  size_t struct_size;
  const char* name; /* "MatMul", "com.microsoft.MatMulNBits"; valid as long as the session */
  uint64_t calls;
  uint64_t time_ns;
} eddy_operator_metrics;

struct DLManagedTensor;          /* eddy_dlpack.h */
struct DLManagedTensorVersioned; /* eddy_dlpack.h */

/* ---- Memory of the caller's ---- */
/* Any thread, several calls at once; they call nothing of Eddy's. */
typedef struct eddy_allocator {
  size_t struct_size;
  void* user;
  /* Aligned to `alignment`, a power of two. Null: there is no more; so is a block that is not
   * aligned, which is released at once. */
  void* (*allocate)(void* user, size_t size_bytes, size_t alignment);
  void (*release)(void* user, void* memory, size_t size_bytes);
  void (*destroy)(void* user); /* once, when nothing can call the others any more; may be null */
} eddy_allocator;

/* Where output `index` of a run that has succeeded goes: at least size_bytes (0: null will do),
 * aligned to its elements, the caller's. `shape` has no data, and is valid during the call. Null:
 * the run fails. Called once a run, by the thread that sees its end, before its callback; calls
 * nothing of the run. */
typedef void* (*eddy_output_place)(void* user, size_t index, const eddy_tensor* shape,
                                   size_t size_bytes);

typedef struct eddy_api {
  size_t struct_size;
  uint32_t version;
  const char* (*version_text)(void);

  /* -- every object -- */
  eddy_code (*retain)(void* handle);
  eddy_code (*release)(void* handle);

  /* -- errors; strings are valid as long as the error -- */
  eddy_code (*error_code)(eddy_error error);
  const char* (*error_message)(eddy_error error); /* one line, with path and location */
  const char* (*error_reason)(eddy_error error);  /* without them */
  size_t (*error_num_parts)(eddy_error error);
  eddy_code (*error_part)(eddy_error error, size_t index, eddy_path_part* part);
  eddy_code (*error_location)(eddy_error error, eddy_location* location); /* EDDY_NOT_FOUND: none */
  const char* (*code_name)(eddy_code code);

  /* -- contexts: options "threads" (0: one for each processor) -- */
  eddy_code (*context_create)(const eddy_option* options, size_t num_options, eddy_context* context,
                              eddy_error* error);
  eddy_code (*context_set_log)(eddy_context context, eddy_log log, void* user, eddy_error* error);

  /* -- executors -- */
  /* When the last handle of one of the caller goes, what waits is called by that thread, and what
   * comes later inline. */
  eddy_code (*executor_create)(int32_t kind, eddy_executor* executor, eddy_error* error);
  /* EDDY_EXECUTOR_CALLER: readable while callbacks wait, and behind them until executor_run() has
   * called none, so that no system call is made for each: a loop that is woken by edges calls it
   * until then. The executor's, do not close it. */
  eddy_code (*executor_fd)(eddy_executor executor, int* fd, eddy_error* error);
  /* Calls what waits now, at most `max`; says how many that were (may be 0). Where several threads
   * drain one executor, callbacks of a run or of rows come at once and in any order. */
  eddy_code (*executor_run)(eddy_executor executor, size_t max, size_t* num_called,
                            eddy_error* error);

  /* -- libraries -- */
  eddy_code (*library_create)(eddy_context context, eddy_library* library, eddy_error* error);
  eddy_code (*library_add_operator)(eddy_library library, const eddy_operator* op,
                                    eddy_error* error);
  /* For nodes of operator HostPredicate in domain "eddy" with attribute name = `name`: one bool,
   * or, with attribute type = {EDDY_INT64, rank 0}, one int64, for a case's selector. A refusal of
   * either leaves `user` with the caller: `destroy` is not called. */
  eddy_code (*library_add_host_function)(eddy_library library, const char* name, uint32_t flags,
                                         eddy_decide function, void* user,
                                         void (*destroy)(void* user), eddy_error* error);

  /* -- graphs: what the graph itself refuses (types, regions) sticks: further calls fail with it --
   */
  eddy_code (*graph_create)(eddy_library library, const char* name, eddy_graph* graph,
                            eddy_error* error);
  eddy_code (*graph_symbol)(eddy_graph graph, const char* name, int64_t* dim, eddy_error* error);
  eddy_code (*graph_input)(eddy_graph graph, const char* name, const eddy_type* type,
                           eddy_value_id* value, eddy_error* error);
  eddy_code (*graph_output)(eddy_graph graph, const char* name, eddy_value_id value,
                            eddy_error* error);
  /* Copies. */
  eddy_code (*graph_constant)(eddy_graph graph, const eddy_tensor* tensor, const char* name,
                              eddy_value_id* value, eddy_error* error);
  /* Borrows until `release` is called, once, by any thread; also after a failure. */
  eddy_code (*graph_borrow_constant)(eddy_graph graph, const eddy_tensor* tensor, const char* name,
                                     eddy_function release, void* user, eddy_value_id* value,
                                     eddy_error* error);
  /* `outputs` has node->num_outputs places. */
  eddy_code (*graph_node)(eddy_graph graph, const eddy_node* node, eddy_value_id* outputs,
                          eddy_error* error);
  /* Loops and branches use values of what is around them as they are; what is made inside leaves by
   * the outputs alone. Nodes go to the innermost one that is open. */
  /* Opens the part before the test. `parameters`: the iteration's number (an int64 scalar, from 0),
   * then num_carried. */
  eddy_code (*graph_begin_while)(eddy_graph graph, const eddy_while* loop,
                                 eddy_value_id* parameters, eddy_error* error);
  /* The test, and what the part after it gets. `parameters`: the iteration's number, then
   * num_forwarded. */
  eddy_code (*graph_begin_after)(eddy_graph graph, eddy_value_id predicate,
                                 const eddy_value_id* forwarded, size_t num_forwarded,
                                 eddy_value_id* parameters, eddy_error* error);
  /* The next carried values, then the rows. `outputs`: num_forwarded, then the stacked rows. */
  eddy_code (*graph_end_while)(eddy_graph graph, const eddy_value_id* next, size_t num_next,
                               eddy_value_id* outputs, size_t num_outputs, eddy_error* error);
  eddy_code (*graph_begin_case)(eddy_graph graph, const eddy_case* choice, eddy_error* error);
  eddy_code (*graph_begin_branch)(eddy_graph graph, eddy_error* error);
  eddy_code (*graph_end_branch)(eddy_graph graph, const eddy_value_id* results, size_t num_results,
                                eddy_error* error);
  eddy_code (*graph_end_case)(eddy_graph graph, eddy_value_id* outputs, size_t num_outputs,
                              eddy_error* error);
  eddy_code (*graph_type)(eddy_graph graph, eddy_value_id value, eddy_type* type,
                          eddy_error* error);
  /* No more is added; sessions may be made, as many as one likes. */
  eddy_code (*graph_finish)(eddy_graph graph, eddy_error* error);
  eddy_code (*graph_import_file)(eddy_library library, const char* path, eddy_graph* graph,
                                 eddy_error* error);
  eddy_code (*graph_import_bytes)(eddy_library library, const void* bytes, size_t num_bytes,
                                  eddy_graph* graph, eddy_error* error);
  eddy_code (*graph_export_file)(eddy_graph graph, const char* path, eddy_error* error);
  /* Bytes of the file, or text, as a value of uint8 elements. */
  eddy_code (*graph_export_bytes)(eddy_graph graph, eddy_value* bytes, eddy_error* error);
  eddy_code (*graph_print)(eddy_graph graph, eddy_value* text, eddy_error* error);

  /* -- sessions: options in README.md, installed as share/doc/eddy/README.md; an unknown one is
   * refused with the nearest; session_load() takes models and saved plans -- */
  eddy_code (*session_create)(eddy_graph graph, const eddy_option* options, size_t num_options,
                              eddy_session* session, eddy_error* error);
  eddy_code (*session_load)(eddy_library library, const char* path, const eddy_option* options,
                            size_t num_options, eddy_session* session, eddy_error* error);
  eddy_code (*session_num_inputs)(eddy_session session, size_t* count, eddy_error* error);
  eddy_code (*session_num_outputs)(eddy_session session, size_t* count, eddy_error* error);
  /* The name is valid as long as the session. Symbols come as EDDY_UNKNOWN_DIM. */
  eddy_code (*session_input)(eddy_session session, size_t index, const char** name, eddy_type* type,
                             eddy_error* error);
  eddy_code (*session_output)(eddy_session session, size_t index, const char** name,
                              eddy_type* type, eddy_error* error);
  eddy_code (*session_find_input)(eddy_session session, const char* name, size_t* index,
                                  eddy_error* error);
  eddy_code (*session_find_output)(eddy_session session, const char* name, size_t* index,
                                   eddy_error* error);
  /* By names; outputs: as many values as num_outputs, each to be released. */
  eddy_code (*session_run)(eddy_session session, const char* const* input_names,
                           const eddy_value* inputs, size_t num_inputs,
                           const char* const* output_names, eddy_value* outputs, size_t num_outputs,
                           const eddy_run_options* options, eddy_error* error);
  eddy_code (*session_cancel_all)(eddy_session session, eddy_error* error);
  /* Cancels, waits, and refuses new runs. EDDY_NOT_DONE: a run goes on, as it waits for an answer
   * that is owed, or as it calls this. */
  eddy_code (*session_close)(eddy_session session, eddy_error* error);
  eddy_code (*session_trim)(eddy_session session, eddy_error* error);
  eddy_code (*session_metrics)(eddy_session session, eddy_metrics* metrics, eddy_error* error);
  /* As Prometheus reads them, with label session="NAME"; a value of uint8 elements. */
  eddy_code (*session_metrics_text)(eddy_session session, const char* name, eddy_value* text,
                                    eddy_error* error);
  eddy_code (*session_plan_text)(eddy_session session, eddy_value* text, eddy_error* error);

  /* -- runs: bind by index, then run in any way, again and again -- */
  eddy_code (*run_create)(eddy_session session, eddy_run* run, eddy_error* error);
  /* The run keeps the value until it is bound anew. */
  eddy_code (*run_bind_input)(eddy_run run, size_t index, eddy_value value, eddy_error* error);
  /* Borrows the caller's memory until it is bound anew; read by every run. */
  eddy_code (*run_bind_input_memory)(eddy_run run, size_t index, const eddy_tensor* tensor,
                                     eddy_error* error);
  /* The output is made there; exactly its shape. */
  eddy_code (*run_bind_output_memory)(eddy_run run, size_t index, const eddy_tensor* tensor,
                                      eddy_error* error);
  /* The rows of output `index` go there, too, in the runs to come; null rows: no more. */
  eddy_code (*run_stream_output)(eddy_run run, size_t index, eddy_rows rows, eddy_error* error);
  /* Here; the run's result. */
  eddy_code (*run_execute)(eddy_run run, const eddy_run_options* options, eddy_error* error);
  /* Begins it and returns; one of a µs or two, less than to wake a thread takes, is run before
   * that. A failure: there is no run, and no callback. `executor` null: inline. A run with a
   * callback goes on when its last handle is released; one without is cancelled. Where the process
   * ends first no callback comes: nothing here waits for those of EDDY_EXECUTOR_THREAD. */
  eddy_code (*run_submit)(eddy_run run, const eddy_run_options* options, eddy_executor executor,
                          eddy_run_callback callback, void* user, eddy_error* error);
  /* Until it has ended, at most for so long (negative: without end): EDDY_NOT_DONE, or its result.
   * EDDY_INVALID_STATE before the first. */
  eddy_code (*run_wait)(eddy_run run, int64_t timeout_ns, eddy_error* error);
  eddy_code (*run_poll)(eddy_run run, eddy_error* error);
  /* Readable once a submitted run has ended, until the next one is submitted; asked for before the
   * first one is. The run's, do not close it. */
  eddy_code (*run_fd)(eddy_run run, int* fd, eddy_error* error);
  eddy_code (*run_cancel)(eddy_run run, eddy_error* error);
  /* Of the last run, which has succeeded. */
  eddy_code (*run_output)(eddy_run run, size_t index, eddy_value* value, eddy_error* error);
  /* Its memory, valid until the next run. */
  eddy_code (*run_output_memory)(eddy_run run, size_t index, eddy_tensor* tensor,
                                 eddy_error* error);

  /* -- values of an output while its loop runs -- */
  /* The loop waits while `max_waiting` rows wait (0 counts as 1). With a callback rows are called
   * for, in order; else rows_next takes them. `executor` null: on a thread of the session's.
   * EDDY_EXECUTOR_INLINE: in the loop, by the thread that has made the row, which wakes no other,
   * so none waits and the first comes as soon as its iteration has made it. The loop, a deadline
   * and a cancel wait for the callback; where the host drives the loop, so do other sessions of
   * the context, for whose runs it may not wait either (EDDY_WOULD_DEADLOCK). On a thread of the
   * session's and inline, all rows come before the run's own callback; on other executors some may
   * come behind it. */
  eddy_code (*rows_create)(size_t max_waiting, eddy_executor executor, eddy_row_callback callback,
                           void* user, eddy_rows* rows, eddy_error* error);
  /* EDDY_NOT_DONE: none came in time; EDDY_END: the run has ended and all are taken. */
  eddy_code (*rows_next)(eddy_rows rows, int64_t timeout_ns, eddy_value* value, eddy_error* error);
  /* Readable while a row waits or the run has ended. */
  eddy_code (*rows_fd)(eddy_rows rows, int* fd, eddy_error* error);
  /* No more are wanted, of runs to come either; their loops go on without. So it is once the last
   * handle of rows without a callback is released, and once a callback throws. */
  eddy_code (*rows_close)(eddy_rows rows, eddy_error* error);

  /* -- values -- */
  eddy_code (*value_copy)(const eddy_tensor* tensor, eddy_value* value, eddy_error* error);
  /* `release` is called once, by any thread, when nothing reads the memory any more; also after a
   * failure. May be null. */
  eddy_code (*value_borrow)(const eddy_tensor* tensor, eddy_function release, void* user,
                            eddy_value* value, eddy_error* error);
  /* String i is bytes[offsets[i], offsets[i + 1]); offsets has one more than the shape elements. */
  eddy_code (*value_from_strings)(const int64_t* dims, int32_t rank, const int64_t* offsets,
                                  const char* bytes, eddy_value* value, eddy_error* error);
  eddy_code (*value_sequence)(eddy_element element, const eddy_value* values, size_t count,
                              eddy_value* value, eddy_error* error);
  eddy_code (*value_none)(eddy_value* value, eddy_error* error);
  eddy_code (*value_kind)(eddy_value value, int32_t* kind, eddy_error* error); /* EDDY_KIND_* */
  /* Valid as long as the value; of strings, and of what is in a GPU's memory, without data. */
  eddy_code (*value_tensor)(eddy_value value, eddy_tensor* tensor, eddy_error* error);
  /* With null `offsets` and `bytes`: how many bytes there are. */
  eddy_code (*value_strings)(eddy_value value, int64_t* offsets, char* bytes, size_t* num_bytes,
                             eddy_error* error);
  eddy_code (*value_length)(eddy_value value, size_t* length, eddy_error* error);
  eddy_code (*value_at)(eddy_value value, size_t index, eddy_value* element, eddy_error* error);
  /* Takes the tensor over when it succeeds. */
  eddy_code (*value_from_dlpack)(struct DLManagedTensor* managed, eddy_value* value,
                                 eddy_error* error);
  eddy_code (*value_from_dlpack_versioned)(struct DLManagedTensorVersioned* managed,
                                           eddy_value* value, eddy_error* error);
  eddy_code (*value_to_dlpack)(eddy_value value, struct DLManagedTensor** managed,
                               eddy_error* error);
  eddy_code (*value_to_dlpack_versioned)(eddy_value value,
                                         struct DLManagedTensorVersioned** managed,
                                         eddy_error* error);

  /* -- answers that are owed: from any thread, once; the handle is consumed by a success. One that
   * is released counts as a failure. A run that is cancelled or late waits for them, as they may be
   * writing, for session option answer_limit_ms: then its caller has its result, with the node that
   * owes, and memory that was bound stays in use until the answer comes; then run_wait waits for
   * the end, as ever -- */
  /* EDDY_OK: the outputs are there, or `decision` is the host function's. Else the run fails with
   * `message`. */
  eddy_code (*pending_complete)(eddy_pending pending, eddy_code code, int64_t decision,
                                const char* message, eddy_error* error);
  /* Calls `function` when the run has been stopped, so that the answer may come early. It must be
   * quick: deadlines of all sessions of its context wait for it. */
  eddy_code (*pending_on_stop)(eddy_pending pending, eddy_function function, void* user,
                               eddy_error* error);

  /* -- where the caller's program stands: errors of all calls that add to the graph begin with it,
   * and nodes, loops and branches without a location have it; null: nowhere any more -- */
  eddy_code (*graph_set_location)(eddy_graph graph, const eddy_location* location,
                                  eddy_error* error);

  /* -- sessions: more of what they say -- */
  /* The plan as a picture (SVG), a value of uint8 elements. */
  eddy_code (*session_plan_svg)(eddy_session session, eddy_value* svg, eddy_error* error);
  /* 1 where run_stream_output() takes the output; 0 where no loop of the graph stacks it. */
  eddy_code (*session_can_stream)(eddy_session session, size_t index, int32_t* can,
                                  eddy_error* error);

  /* -- streams: a run begins when all that was issued to its stream before has run, and what is
   * issued afterwards runs after it has ended, however it ends -- */
  eddy_code (*session_create_stream)(eddy_session session, eddy_stream* stream, eddy_error* error);
  /* A driver's stream (a cudaStream_t), which stays the caller's, outlives the handle and its runs,
   * and is issued to by run_submit_on() alone meanwhile. Refused on a device without. */
  eddy_code (*session_adopt_stream)(eddy_session session, void* native, eddy_stream* stream,
                                    eddy_error* error);
  /* As run_submit(). A stream of the run's session; the run keeps it until it has ended. */
  eddy_code (*run_submit_on)(eddy_run run, eddy_stream stream, const eddy_run_options* options,
                             eddy_executor executor, eddy_run_callback callback, void* user,
                             eddy_error* error);

  /* -- traces: what ran when in the runs between start and stop, as Chrome's and Perfetto's viewers
   * read it (JSON, a value of uint8 elements). Such runs stream no outputs. run_output() gives
   * those of runs since the last start or stop -- */
  eddy_code (*run_start_trace)(eddy_run run, eddy_error* error);
  eddy_code (*run_stop_trace)(eddy_run run, eddy_value* json, eddy_error* error);

  /* As rows_create(). `destroy` (may be null) is called once, by any thread, when `callback` is
   * called no more; also after a failure. */
  eddy_code (*rows_create_with)(size_t max_waiting, eddy_executor executor,
                                eddy_row_callback callback, void* user, eddy_function destroy,
                                eddy_rows* rows, eddy_error* error);

  /* -- saved plans: what making a session of a graph with these options decides and packs, with the
   * caller's places, in a file that session_load() and session_load_bytes() take in a model's
   * place, in a fraction of the time. They refuse it with EDDY_UNSUPPORTED and the reason where
   * Eddy, its compiler, its kernels or the processor is another, and for options that make another
   * graph; the library has to have the operators and host functions -- */
  /* Replaces the file; sessions of the old one keep it. */
  eddy_code (*graph_save_plan)(eddy_graph graph, const eddy_option* options, size_t num_options,
                               const char* path, eddy_error* error);
  /* 0 also where there is no such file. */
  eddy_code (*is_plan)(const char* path, int32_t* is, eddy_error* error);
  /* As session_load(), of a model's or a saved plan's bytes, which are copied. */
  eddy_code (*session_load_bytes)(eddy_library library, const void* bytes, size_t num_bytes,
                                  const eddy_option* options, size_t num_options,
                                  eddy_session* session, eddy_error* error);

  /* -- memory of the caller's -- */
  /* Tensors of sessions that are made with the context from now on stand there, constants and
   * packed weights excepted; null: in the system's memory again. Copies the struct; after a
   * failure `destroy` is not called. Blocks are kept for reuse until session_trim() or the end. */
  eddy_code (*context_set_allocator)(eddy_context context, const eddy_allocator* allocator,
                                     eddy_error* error);
  /* Output `index`, whose shape may be found in the run, is copied to where `place` says when the
   * run has succeeded; run_output_memory() then names that memory. Null: no more. Refused for one
   * that has memory bound, and for strings, sequences and optionals. */
  eddy_code (*run_place_output)(eddy_run run, size_t index, eddy_output_place place, void* user,
                                eddy_error* error);

  /* -- time by operator, which sessions with option time_operators ("true") count -- */
  /* Of the graph as it runs, in the order of their names; 0 without the option. */
  eddy_code (*session_num_operators)(eddy_session session, size_t* count, eddy_error* error);
  eddy_code (*session_operator_metrics)(eddy_session session, size_t index,
                                        eddy_operator_metrics* metrics, eddy_error* error);

  /* -- GPUs: sessions with option device ("cuda", "cuda:1") of the library that has them; a value
   * that came by DLPack from such a GPU is an input there, without a copy -- */
  /* Where the value is, in DLPack's numbers: 1 the host's memory, 2 that of GPU *device_id; of the
   * latter value_to_dlpack() shows the address. */
  eddy_code (*value_device)(eddy_value value, int32_t* device_type, int32_t* device_id,
                            eddy_error* error);
  /* As run_bind_output_memory(), in the memory of the session's GPU. */
  eddy_code (*run_bind_output_device)(eddy_run run, size_t index, const eddy_tensor* tensor,
                                      eddy_error* error);
} eddy_api;

/* Null where this library does not have that version. Never changes, never freed. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const eddy_api*
eddy_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif /* EDDY_EDDY_H_ */
