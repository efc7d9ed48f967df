/* A server's event loop that awaits Eddy's runs: several searches for roots at once, each a run of
 * one session with a different number of iterations, and one loop whose values come while it runs.
 * The program has one thread of its own and never blocks but in epoll_wait.
 *
 *   run_fd     readable once a submitted run has ended
 *   rows_fd    readable while a row of a loop waits
 *
 * Prints each root when its run has ended, and each of Collatz' numbers when it was found. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "runtime/api/c/eddy.h"

#define NUM_ROOTS 4

static const eddy_api* e;

/* A program's own way with errors: here, the line and the end. */
static void must(eddy_code code, eddy_error error) {
  if (code == EDDY_OK) return;
  fprintf(stderr, "epoll: %s: %s\n", e->code_name(code), e->error_message(error));
  exit(1);
}
#define MUST(call)           \
  do {                       \
    eddy_error error = NULL; \
    eddy_code code = (call); \
    must(code, error);       \
  } while (0)

static eddy_value_id op(eddy_graph graph, const char* name, eddy_value_id a, eddy_value_id b) {
  const eddy_value_id inputs[2] = {a, b};
  const eddy_node node = {.struct_size = sizeof node,
                          .op = name,
                          .num_outputs = 1,
                          .inputs = inputs,
                          .num_inputs = b == 0 ? 1 : 2};
  eddy_value_id made = 0;
  MUST(e->graph_node(graph, &node, &made, &error));
  return made;
}

static eddy_value_id number(eddy_graph graph, double value) {
  const eddy_tensor tensor = {.data = &value, .element = EDDY_DOUBLE};
  eddy_value_id made = 0;
  MUST(e->graph_constant(graph, &tensor, NULL, &made, &error));
  return made;
}

static eddy_value_id scalar_input(eddy_graph graph, const char* name) {
  const eddy_type scalar = {.struct_size = sizeof scalar, .element = EDDY_DOUBLE};
  eddy_value_id made = 0;
  MUST(e->graph_input(graph, name, &scalar, &made, &error));
  return made;
}

/* x = a; while |x x - a| > 1e-9 a: x = (x + a / x) / 2 */
static eddy_session make_roots(eddy_library library) {
  eddy_graph graph = NULL;
  MUST(e->graph_create(library, "roots", &graph, &error));
  const eddy_value_id a = scalar_input(graph, "a");
  const eddy_while loop = {
      .struct_size = sizeof loop, .name = "newton", .initial = &a, .num_carried = 1};
  eddy_value_id before[2];
  MUST(e->graph_begin_while(graph, &loop, before, &error));
  const eddy_value_id x = before[1];
  const eddy_value_id off = op(graph, "Abs", op(graph, "Sub", op(graph, "Mul", x, x), a), 0);
  const eddy_value_id more = op(graph, "Greater", off, op(graph, "Mul", a, number(graph, 1e-9)));
  eddy_value_id after[2];
  MUST(e->graph_begin_after(graph, more, &x, 1, after, &error));
  const eddy_value_id sum = op(graph, "Add", after[1], op(graph, "Div", a, after[1]));
  const eddy_value_id next = op(graph, "Mul", sum, number(graph, 0.5));
  eddy_value_id root = 0;
  MUST(e->graph_end_while(graph, &next, 1, &root, 1, &error));
  MUST(e->graph_output(graph, "root", root, &error));
  eddy_session session = NULL;
  MUST(e->session_create(graph, NULL, 0, &session, &error));
  e->release(graph);
  return session;
}

/* n; while n > 1: n = n even ? n / 2 : 3 n + 1, and each n is a row. */
static eddy_session make_collatz(eddy_library library) {
  eddy_graph graph = NULL;
  MUST(e->graph_create(library, "collatz", &graph, &error));
  const eddy_value_id start = scalar_input(graph, "n");
  const eddy_while loop = {.struct_size = sizeof loop,
                           .name = "collatz",
                           .initial = &start,
                           .num_carried = 1,
                           .num_rows = 1};
  eddy_value_id before[2];
  MUST(e->graph_begin_while(graph, &loop, before, &error));
  const eddy_value_id more = op(graph, "Greater", before[1], number(graph, 1));
  eddy_value_id after[2];
  MUST(e->graph_begin_after(graph, more, &before[1], 1, after, &error));
  const eddy_value_id n = after[1];
  const eddy_value_id half = op(graph, "Mul", n, number(graph, 0.5));
  const eddy_value_id is_even = op(graph, "Equal", half, op(graph, "Floor", half, 0));
  const eddy_case choice = {.struct_size = sizeof choice,
                            .name = "parity",
                            .selector = is_even,
                            .num_branches = 2,
                            .default_branch = -1};
  MUST(e->graph_begin_case(graph, &choice, &error));
  MUST(e->graph_begin_branch(graph, &error));
  const eddy_value_id odd =
      op(graph, "Add", op(graph, "Mul", n, number(graph, 3)), number(graph, 1));
  MUST(e->graph_end_branch(graph, &odd, 1, &error));
  MUST(e->graph_begin_branch(graph, &error));
  MUST(e->graph_end_branch(graph, &half, 1, &error));
  eddy_value_id next[2] = {0, n};
  MUST(e->graph_end_case(graph, next, 1, &error));
  eddy_value_id outputs[2];
  MUST(e->graph_end_while(graph, next, 2, outputs, 2, &error));
  MUST(e->graph_output(graph, "last", outputs[0], &error));
  MUST(e->graph_output(graph, "numbers", outputs[1], &error));
  eddy_session session = NULL;
  MUST(e->session_create(graph, NULL, 0, &session, &error));
  e->release(graph);
  return session;
}

static void watch(int loop, int fd, uint32_t number) {
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
  if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) != 0) {
    perror("epoll: epoll_ctl");
    exit(1);
  }
}

static void unwatch(int loop, int fd) { epoll_ctl(loop, EPOLL_CTL_DEL, fd, NULL); }

/* Takes the rows that wait. Whether there may be more. */
static int take_rows(eddy_rows rows) {
  for (;;) {
    eddy_value row = NULL;
    eddy_error error = NULL;
    const eddy_code code = e->rows_next(rows, 0, &row, &error);
    if (code == EDDY_NOT_DONE) return 1;
    if (code == EDDY_END) return 0;
    must(code, error);
    eddy_tensor view;
    MUST(e->value_tensor(row, &view, &error));
    printf("collatz %.0f\n", *(const double*)view.data);
    e->release(row);
  }
}

int main(void) {
  e = eddy_get_api(EDDY_API_VERSION);
  if (e == NULL) {
    fprintf(stderr, "epoll: libeddy.so has another API version\n");
    return 1;
  }
  eddy_context context = NULL;
  eddy_library library = NULL;
  MUST(e->context_create(NULL, 0, &context, &error));
  MUST(e->library_create(context, &library, &error));
  eddy_session roots = make_roots(library);
  eddy_session collatz = make_collatz(library);

  const int loop = epoll_create1(EPOLL_CLOEXEC);
  eddy_run runs[NUM_ROOTS + 1];
  int files[NUM_ROOTS + 2];
  double numbers[NUM_ROOTS] = {2, 1e3, 1e9, 1e300};
  for (int i = 0; i < NUM_ROOTS; ++i) {
    const eddy_tensor a = {.data = &numbers[i], .element = EDDY_DOUBLE};
    MUST(e->run_create(roots, &runs[i], &error));
    MUST(e->run_bind_input_memory(runs[i], 0, &a, &error));
    MUST(e->run_fd(runs[i], &files[i], &error));
    watch(loop, files[i], (uint32_t)i);
    MUST(e->run_submit(runs[i], NULL, NULL, NULL, NULL, &error));
  }
  double first = 6;
  const eddy_tensor n = {.data = &first, .element = EDDY_DOUBLE};
  eddy_rows rows = NULL;
  MUST(e->rows_create(4, NULL, NULL, NULL, &rows, &error));
  MUST(e->run_create(collatz, &runs[NUM_ROOTS], &error));
  MUST(e->run_bind_input_memory(runs[NUM_ROOTS], 0, &n, &error));
  MUST(e->run_stream_output(runs[NUM_ROOTS], 1, rows, &error));
  MUST(e->run_fd(runs[NUM_ROOTS], &files[NUM_ROOTS], &error));
  MUST(e->rows_fd(rows, &files[NUM_ROOTS + 1], &error));
  watch(loop, files[NUM_ROOTS], NUM_ROOTS);
  watch(loop, files[NUM_ROOTS + 1], NUM_ROOTS + 1);
  MUST(e->run_submit(runs[NUM_ROOTS], NULL, NULL, NULL, NULL, &error));

  for (int open = NUM_ROOTS + 2; open > 0;) {
    struct epoll_event events[8];
    const int count = epoll_wait(loop, events, 8, -1);
    if (count < 0 && errno != EINTR) {
      perror("epoll: epoll_wait");
      exit(1);
    }
    for (int i = 0; i < count; ++i) {
      const uint32_t which = events[i].data.u32;
      if (which == NUM_ROOTS + 1) {
        if (take_rows(rows)) continue;
      } else {
        MUST(e->run_poll(runs[which], &error));
        if (which < NUM_ROOTS) {
          eddy_tensor root;
          MUST(e->run_output_memory(runs[which], 0, &root, &error));
          printf("root of %g is %.9g\n", numbers[which], *(const double*)root.data);
        }
      }
      unwatch(loop, files[which]);
      --open;
    }
  }
  for (int i = 0; i <= NUM_ROOTS; ++i) e->release(runs[i]);
  e->release(rows);
  e->release(roots);
  e->release(collatz);
  e->release(library);
  e->release(context);
  return 0;
}
