/* Operators of one's own over texts and lists, whose sizes only their calls know: one that takes a
 * text apart into words, and one that, in a loop over the words, puts each that is new at the end
 * of a list. Prints the words of its argument, each once.
 *
 *   run_values   sees values of any kind, and makes its outputs itself
 *   share        a list that is handed on and gets more at its end: nothing of it is copied */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/c/eddy.h"

static const eddy_api* e;

/* A program's own way with errors: here, the line and the end. */
static void must(eddy_code code, eddy_error error) {
  if (code == EDDY_OK) return;
  fprintf(stderr, "words: %s: %s\n", e->code_name(code), e->error_message(error));
  exit(1);
}
#define MUST(call)           \
  do {                       \
    eddy_error error = NULL; \
    eddy_code code = (call); \
    must(code, error);       \
  } while (0)

static const eddy_type kText = {.struct_size = sizeof kText, .element = EDDY_STRING};
static const eddy_type kTexts = {
    .struct_size = sizeof kTexts, .element = EDDY_STRING, .wrappers = {EDDY_WRAPPER_SEQUENCE}};

/* Puts a text of `size` bytes at the end of the list that output 0 is. */
static eddy_code append(const eddy_value_call* call, const char* text, size_t size) {
  const int64_t offsets[2] = {0, (int64_t)size};
  return call->make_strings(call->impl, 0, NULL, 0, offsets, text);
}

/* ---- Words: a text as the list of what stands between spaces ---- */
static eddy_code shapes_of_words(void* user, const eddy_shapes* shapes) {
  (void)user;
  shapes->outputs[0] = kTexts;
  return EDDY_OK;
}

static eddy_code run_words(void* user, const eddy_value_call* call) {
  (void)user;
  size_t size = 0;
  const char* const text = call->string(call->impl, 0, 0, 0, &size);
  call->make_sequence(call->impl, 0);
  for (size_t at = 0, end = 0; end < size; at = end + 1) {
    for (end = at; end < size && text[end] != ' '; ++end) continue;
    if (end > at) append(call, text + at, end - at);
  }
  return EDDY_OK; /* what append() was refused fails the run all the same */
}

/* ---- AddNew: a list, and behind it word number i of another one, if it lacks that ---- */
static eddy_code shapes_of_add_new(void* user, const eddy_shapes* shapes) {
  (void)user;
  shapes->outputs[0] = shapes->inputs[0];
  return EDDY_OK;
}

static bool has(const eddy_value_call* call, uint32_t input, const char* word, size_t size) {
  for (size_t i = 0; i < call->length(call->impl, input); ++i) {
    size_t found_size = 0;
    const char* const found = call->string(call->impl, input, i, 0, &found_size);
    if (found_size == size && memcmp(found, word, size) == 0) return true;
  }
  return false;
}

static eddy_code run_add_new(void* user, const eddy_value_call* call) {
  (void)user;
  eddy_tensor number = {0};
  call->tensor(call->impl, 2, 0, &number);
  size_t size = 0;
  const char* const word =
      call->string(call->impl, 1, (size_t) * (const int64_t*)number.data, 0, &size);
  if (word == NULL) {
    call->fail(call->impl, "there are not so many words");
    return EDDY_RUN_FAILED;
  }
  call->share(call->impl, 0, 0);
  if (!has(call, 0, word, size)) append(call, word, size);
  return EDDY_OK;
}

static void add_operator(eddy_library library, const char* name, uint32_t num_inputs,
                         eddy_code (*shapes)(void*, const eddy_shapes*),
                         eddy_code (*run)(void*, const eddy_value_call*)) {
  const eddy_operator op = {.struct_size = sizeof op,
                            .name = name,
                            .domain = "words",
                            .since_version = 1,
                            .min_inputs = num_inputs,
                            .max_inputs = num_inputs,
                            .num_outputs = 1,
                            .shapes = shapes,
                            .run_values = run};
  MUST(e->library_add_operator(library, &op, &error));
}

static eddy_value_id node(eddy_graph graph, const char* domain, const char* name,
                          const eddy_value_id* inputs, size_t num_inputs) {
  const eddy_node of = {.struct_size = sizeof of,
                        .op = name,
                        .domain = domain,
                        .num_outputs = 1,
                        .inputs = inputs,
                        .num_inputs = num_inputs};
  eddy_value_id made = 0;
  MUST(e->graph_node(graph, &of, &made, &error));
  return made;
}

/* new = []; while i < length(words): new = AddNew(new, words, i) */
static eddy_session make_session(eddy_library library) {
  eddy_graph graph = NULL;
  MUST(e->graph_create(library, "words", &graph, &error));
  eddy_value_id text = 0, none = 0;
  MUST(e->graph_input(graph, "text", &kText, &text, &error));
  MUST(e->graph_input(graph, "none", &kTexts, &none, &error));
  const eddy_value_id words = node(graph, "words", "Words", &text, 1);
  const eddy_while loop = {
      .struct_size = sizeof loop, .name = "each word", .initial = &none, .num_carried = 1};
  eddy_value_id before[2], after[2], new = 0;
  MUST(e->graph_begin_while(graph, &loop, before, &error));
  const eddy_value_id length = node(graph, NULL, "SequenceLength", &words, 1);
  const eddy_value_id goes_on = node(graph, NULL, "Less", (eddy_value_id[]){before[0], length}, 2);
  MUST(e->graph_begin_after(graph, goes_on, &before[1], 1, after, &error));
  const eddy_value_id next =
      node(graph, "words", "AddNew", (eddy_value_id[]){after[1], words, after[0]}, 3);
  MUST(e->graph_end_while(graph, &next, 1, &new, 1, &error));
  MUST(e->graph_output(graph, "new", new, &error));
  eddy_session session = NULL;
  MUST(e->session_create(graph, NULL, 0, &session, &error));
  e->release(graph);
  return session;
}

static void print_words(eddy_value list) {
  size_t count = 0;
  MUST(e->value_length(list, &count, &error));
  for (size_t i = 0; i < count; ++i) {
    eddy_value word = NULL;
    size_t size = 0;
    MUST(e->value_at(list, i, &word, &error));
    MUST(e->value_strings(word, NULL, NULL, &size, &error));
    char* const bytes = malloc(size + 1);
    MUST(e->value_strings(word, NULL, bytes, NULL, &error));
    printf("%.*s\n", (int)size, bytes);
    free(bytes);
    e->release(word);
  }
}

int main(int argc, char** argv) {
  e = eddy_get_api(EDDY_API_VERSION);
  if (e == NULL || argc != 2) {
    fprintf(stderr,
            e == NULL ? "words: libeddy.so has another API version\n" : "usage: words TEXT\n");
    return 2;
  }
  eddy_context context = NULL;
  eddy_library library = NULL;
  MUST(e->context_create(NULL, 0, &context, &error));
  MUST(e->library_create(context, &library, &error));
  add_operator(library, "Words", 1, shapes_of_words, run_words);
  add_operator(library, "AddNew", 3, shapes_of_add_new, run_add_new);
  const eddy_session session = make_session(library);

  eddy_value inputs[2] = {NULL, NULL}, list = NULL;
  const int64_t offsets[2] = {0, (int64_t)strlen(argv[1])};
  MUST(e->value_from_strings(NULL, 0, offsets, argv[1], &inputs[0], &error));
  MUST(e->value_sequence(EDDY_STRING, NULL, 0, &inputs[1], &error));
  MUST(e->session_run(session, (const char*[]){"text", "none"}, inputs, 2, (const char*[]){"new"},
                      &list, 1, NULL, &error));
  print_words(list);

  void* const all[] = {list, inputs[0], inputs[1], session, library, context};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) e->release(all[i]);
  return 0;
}
