/* Claim: a program in C11 builds a loop, runs it, and reads results and errors, with nothing but
 * the header and the one symbol. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/c/eddy.h"

static const eddy_api* e;

static void check(eddy_code code, eddy_error error, const char* what) {
  if (code == EDDY_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, e->code_name(code), e->error_message(error));
  exit(1);
}
#define CHECK(call)            \
  do {                         \
    eddy_error error = NULL;   \
    eddy_code code = (call);   \
    check(code, error, #call); \
  } while (0)
#define REQUIRE(condition)                                        \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

static eddy_value_id op(eddy_graph graph, const char* name, eddy_value_id a, eddy_value_id b) {
  const eddy_value_id inputs[2] = {a, b};
  eddy_node node = {.struct_size = sizeof node,
                    .op = name,
                    .num_outputs = 1,
                    .inputs = inputs,
                    .num_inputs = b == 0 ? 1 : 2};
  eddy_value_id made = 0;
  CHECK(e->graph_node(graph, &node, &made, &error));
  return made;
}

static eddy_value_id constant(eddy_graph graph, double number) {
  const eddy_tensor tensor = {.data = &number, .element = EDDY_DOUBLE};
  eddy_value_id made = 0;
  CHECK(e->graph_constant(graph, &tensor, NULL, &made, &error));
  return made;
}

/* x = a; while |x x - a| > 1e-12: x = (x + a / x) / 2 */
static eddy_graph newton(eddy_library library) {
  eddy_graph graph = NULL;
  CHECK(e->graph_create(library, "newton", &graph, &error));
  const eddy_type scalar = {.struct_size = sizeof scalar, .element = EDDY_DOUBLE};
  eddy_value_id a = 0;
  CHECK(e->graph_input(graph, "a", &scalar, &a, &error));
  const eddy_while loop = {
      .struct_size = sizeof loop, .name = "newton", .initial = &a, .num_carried = 1};
  eddy_value_id before[2];
  CHECK(e->graph_begin_while(graph, &loop, before, &error));
  const eddy_value_id x = before[1];
  const eddy_value_id off = op(graph, "Abs", op(graph, "Sub", op(graph, "Mul", x, x), a), 0);
  const eddy_value_id more = op(graph, "Greater", off, constant(graph, 1e-12));
  eddy_value_id after[2];
  CHECK(e->graph_begin_after(graph, more, &x, 1, after, &error));
  const eddy_value_id sum = op(graph, "Add", after[1], op(graph, "Div", a, after[1]));
  const eddy_value_id next = op(graph, "Mul", sum, constant(graph, 0.5));
  eddy_value_id root = 0;
  CHECK(e->graph_end_while(graph, &next, 1, &root, 1, &error));
  CHECK(e->graph_output(graph, "root", root, &error));
  return graph;
}

int main(void) {
  e = eddy_get_api(EDDY_API_VERSION);
  REQUIRE(e != NULL && eddy_get_api(99) == NULL);
  eddy_context context = NULL;
  eddy_library library = NULL;
  eddy_session session = NULL;
  eddy_run run = NULL;
  CHECK(e->context_create(NULL, 0, &context, &error));
  CHECK(e->library_create(context, &library, &error));
  eddy_graph graph = newton(library);
  CHECK(e->session_create(graph, NULL, 0, &session, &error));
  CHECK(e->run_create(session, &run, &error));
  double a = 2;
  double root = 0;
  const eddy_tensor in = {.data = &a, .element = EDDY_DOUBLE};
  const eddy_tensor out = {.data = &root, .element = EDDY_DOUBLE};
  CHECK(e->run_bind_input_memory(run, 0, &in, &error));
  CHECK(e->run_bind_output_memory(run, 0, &out, &error));
  for (a = 1; a <= 10; a += 1) {
    CHECK(e->run_execute(run, NULL, &error));
    REQUIRE(fabs(root - sqrt(a)) < 1e-9);
  }
  eddy_error error = NULL;
  const eddy_code code = e->run_bind_input_memory(run, 1, &in, &error);
  REQUIRE(code == EDDY_INVALID_ARGUMENT && strstr(e->error_message(error), "no input 1") != NULL);
  REQUIRE(e->release(error) == EDDY_OK && e->release(error) == EDDY_INVALID_HANDLE);
  REQUIRE(e->release(context) == EDDY_OK && e->release(library) == EDDY_OK);
  REQUIRE(e->release(graph) == EDDY_OK && e->release(session) == EDDY_OK);
  REQUIRE(e->release(run) == EDDY_OK);
  printf("ok\n");
  return 0;
}
