/*
 * A backend with all that a table may leave out but planned memory. It writes every call of a session's into the file LOG,
 * and describes itself and its costs as it is told when it is compiled. It runs Relu, and com.example::Zeros, whose output
 * has the shape that its input holds.
 */
#include "kilim_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FLOPS_PER_SECOND
#define FLOPS_PER_SECOND 1e12
#endif

static void tell(const char *what, size_t number) {
    FILE *log = fopen(LOG, "a");
    if (!log) return;
    fprintf(log, "%s %zu\n", what, number);
    fclose(log);
}

static void describe(void *self, KilimDescription *d) {
    (void)self;
    static const KilimDtypeGrade dtypes[] = {{KILIM_FLOAT32, KILIM_ARITHMETIC}, {KILIM_FLOAT16, KILIM_FAST}};
    d->device = "a talker";
    d->dtypes = dtypes;
    d->dtype_count = 2;
    d->alignment = 256;
    d->max_tensor_bytes = 4096;
    d->max_arena_bytes = 6000;
    d->flops_per_second = FLOPS_PER_SECOND;
    d->bytes_per_second = 1e15;
    d->kernel_start = 0;
    d->transfer_start = 0;
    d->transfer_bytes_per_second = 1e15;
}

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)reason;
#ifdef FLOPS
    cost->flops = FLOPS;
#else
    (void)cost;
#endif
    return strcmp(node->op, "Relu") == 0 || strcmp(node->op, "Zeros") == 0 ? KILIM_OK : KILIM_UNSUPPORTED;
}

static KilimStatus create_context(void *self, const KilimContextOptions *options, void **context, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("create_context", options->threads);
    *context = malloc(1);
    return KILIM_OK;
}

#ifdef NO_RELEASE_CONTEXT
__attribute__((unused))
#endif
static void release_context(void *self, void *context) {
    (void)self;
    tell("release_context", 0);
    free(context);
}

/* One step on one tensor after the other, each 1024 floats at most. */
typedef struct {
    size_t elements;
    float data[2][1024];
} Program;

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("prepare", stage->step_count);
#ifdef STATUS
    return STATUS;
#endif
    Program *p = context ? calloc(1, sizeof *p) : NULL;
    if (!p) return KILIM_LIMIT;
    const size_t out = stage->steps[0].outputs[0];
    p->elements = stage->tensors[out].tensor.bytes / sizeof(float);
    *executable = p;
    return KILIM_OK;
}

static void release_executable(void *self, void *executable) {
    (void)self;
    tell("release_executable", 0);
    free(executable);
}

static KilimStatus begin(void *self, void *executable, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)error;
    tell("begin", 0);
    return KILIM_OK;
}

static KilimStatus end(void *self, void *executable, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)error;
    tell("end", 0);
    return KILIM_OK;
}

static KilimStatus write_tensor(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)tensor;
    (void)error;
    tell("write", bytes);
    memcpy(((Program *)executable)->data[0], data, bytes);
    return KILIM_OK;
}

static KilimStatus run(void *self, void *executable, size_t part, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("run", part);
    Program *p = executable;
    for (size_t i = 0; i < p->elements; i++) p->data[1][i] = p->data[0][i] > 0 ? p->data[0][i] : 0;
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)tensor;
    (void)error;
    tell("read", bytes);
    memcpy(data, ((Program *)executable)->data[1], bytes);
    return KILIM_OK;
}

static size_t bytes(void *self, void *executable) {
    (void)self;
    (void)executable;
    return sizeof(Program);
}

static KilimStatus infer_zeros(void *self, const KilimNode *node, KilimOutput *outputs, KilimMessage *error) {
    (void)self;
    (void)error;
    const KilimTensor *shape = node->inputs[0];
    outputs[0].dtype = KILIM_FLOAT32;
    outputs[0].rank = 1;
    outputs[0].shape[0] = shape->data ? *(const int64_t *)shape->data : -1;
    return KILIM_OK;
}

static const KilimOperator operators[] = {{.domain = "com.example", .name = "Zeros", .infer = infer_zeros}};

static const KilimBackend backend = {
    .version = KILIM_BACKEND_VERSION,
    .size = sizeof(KilimBackend),
    .describe = describe,
    .supports = supports,
    .create_context = create_context,
#ifndef NO_RELEASE_CONTEXT
    .release_context = release_context,
#endif
    .prepare = prepare,
    .release_executable = release_executable,
    .write = write_tensor,
    .run = run,
    .read = read_tensor,
    .begin = begin,
    .end = end,
    .bytes = bytes,
    .operator_count = 1,
    .operators = operators,
};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    (void)host;
    (void)error;
    *out = &backend;
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
}
