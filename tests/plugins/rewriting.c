/*
 * A backend that looks at connected nodes: it merges Neg and Relu behind it into an operator of its own, com.example::Part, gives
 * Abs back, and computes constants. It computes in host memory in place where HOST is defined. WRONG has it put a node into the
 * graph that is none of its operators.
 */
#include "kilim_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(const char *what) {
    FILE *log = fopen(LOG, "a");
    if (!log) return;
    fprintf(log, "%s\n", what);
    fclose(log);
}

static int is(const KilimNode *node, const char *op) { return strcmp(node->op, op) == 0; }

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)cost;
    (void)reason;
    return is(node, "Neg") || is(node, "Relu") || is(node, "Abs") || is(node, "Part") ? KILIM_OK : KILIM_UNSUPPORTED;
}

static float part(const char *op, float x) {
    if (strcmp(op, "Neg") == 0) return -x;
    if (strcmp(op, "Abs") == 0) return x < 0 ? -x : x;
    if (strcmp(op, "Relu") == 0) return x > 0 ? x : 0;
    return -x > 0 ? -x : 0;
}

static KilimStatus optimise(void *self, const KilimSubgraph *subgraph, const KilimRewrite *rewrite, KilimMessage *error) {
    (void)self;
    (void)error;
    for (size_t i = 0; i < subgraph->step_count; i++) {
        const KilimStep *step = &subgraph->steps[i];
        if (is(step->node, "Abs")) rewrite->refuse(rewrite->self, i, "not worth it");
        for (size_t j = i + 1; is(step->node, "Neg") && j < subgraph->step_count; j++) {
            const KilimStep *next = &subgraph->steps[j];
            if (!is(next->node, "Relu") || next->inputs[0] != step->outputs[0] || subgraph->escapes[step->outputs[0]]) continue;
            const int64_t seven = 7;
            const KilimAttribute attributes[] = {{.name = "seven", .kind = KILIM_INTS, .count = 1, .values = &seven}};
            const KilimNode node = {
                .name = "merged",
                .domain = "com.example",
#ifdef WRONG
                .op = "Nobody",
#else
                .op = "Part",
#endif
                .attribute_count = 1,
                .attributes = attributes,
                .input_count = 1,
                .output_count = 1,
            };
            const size_t steps[] = {i, j};
            const KilimStep with = {.node = &node, .inputs = step->inputs, .outputs = next->outputs};
            rewrite->replace(rewrite->self, steps, 2, &with);
        }
    }
    return KILIM_OK;
}

static KilimStatus evaluate(void *self, const KilimNode *node, void *const *outputs, KilimMessage *error) {
    (void)self;
    (void)error;
    if (supports(NULL, node, NULL, NULL) != KILIM_OK) return KILIM_UNSUPPORTED;
    tell("evaluate");
    const float *x = node->inputs[0]->data;
    for (size_t i = 0; i < node->inputs[0]->bytes / sizeof *x; i++) ((float *)outputs[0])[i] = part(node->op, x[i]);
    return KILIM_OK;
}

#define MOST 16

typedef struct {
    size_t steps, in[MOST], out[MOST], root[MOST];
    size_t bytes[MOST];
    char op[MOST][16];
    void *data[MOST];
    void *own[MOST];
} Program;

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    (void)context;
    (void)error;
    if (stage->tensor_count > MOST || stage->step_count > MOST) return KILIM_LIMIT;
    Program *p = calloc(1, sizeof *p);
    p->steps = stage->step_count;
    for (size_t i = 0; i < stage->tensor_count; i++) {
        size_t root = i;
        while (stage->tensors[root].place == KILIM_ALIAS) root = stage->tensors[root].of;
        p->root[i] = root;
        p->bytes[i] = stage->tensors[i].tensor.bytes;
        const int32_t place = stage->tensors[i].place;
        if (place == KILIM_INPUT || place == KILIM_OUTPUT) continue;
        p->data[i] = p->own[i] = calloc(1, p->bytes[i] + 1);
        if (stage->tensors[i].tensor.data) memcpy(p->data[i], stage->tensors[i].tensor.data, p->bytes[i]);
    }
    for (size_t i = 0; i < stage->step_count; i++) {
        p->in[i] = stage->steps[i].inputs[0];
        p->out[i] = stage->steps[i].outputs[0];
        snprintf(p->op[i], sizeof p->op[i], "%s", stage->steps[i].node->op);
    }
    *executable = p;
    return KILIM_OK;
}

static void release_executable(void *self, void *executable) {
    (void)self;
    Program *p = executable;
    for (size_t i = 0; i < MOST; i++) free(p->own[i]);
    free(p);
}

static KilimStatus write_tensor(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("write");
    Program *p = executable;
    memcpy(p->data[p->root[tensor]], data, bytes);
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("read");
    Program *p = executable;
    memcpy(data, p->data[p->root[tensor]], bytes);
    return KILIM_OK;
}

static KilimStatus run(void *self, void *executable, size_t which, KilimMessage *error) {
    (void)self;
    (void)which;
    (void)error;
    Program *p = executable;
    for (size_t i = 0; i < p->steps; i++) {
        tell(p->op[i]);
        const float *x = p->data[p->root[p->in[i]]];
        float *y = p->data[p->root[p->out[i]]];
        for (size_t j = 0; j < p->bytes[p->out[i]] / sizeof *y; j++) y[j] = part(p->op[i], x[j]);
    }
    return KILIM_OK;
}

#ifdef HOST
static KilimStatus attach(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)bytes;
    if ((size_t)data % 8) {
        snprintf(error->text, error->capacity, "this lies nowhere");
        return KILIM_DEVICE;
    }
    tell("attach");
    ((Program *)executable)->data[tensor] = data;
    return KILIM_OK;
}
#endif

static void describe(void *self, KilimDescription *d) {
    (void)self;
    d->device = "a device that rewrites";
#ifdef HOST
    d->memory = KILIM_MEMORY_HOST;
#endif
}

static KilimStatus infer_part(void *self, const KilimNode *node, KilimOutput *outputs, KilimMessage *error) {
    (void)self;
    (void)error;
    outputs[0].dtype = node->inputs[0]->dtype;
    outputs[0].rank = node->inputs[0]->rank;
    for (int32_t i = 0; i < outputs[0].rank; i++) outputs[0].shape[i] = node->inputs[0]->shape[i];
    return KILIM_OK;
}

static const KilimOperator operators[] = {{.domain = "com.example", .name = "Part", .infer = infer_part}};

static const KilimBackend backend = {
    .version = KILIM_BACKEND_VERSION,
    .size = sizeof(KilimBackend),
    .describe = describe,
    .supports = supports,
    .prepare = prepare,
    .release_executable = release_executable,
    .write = write_tensor,
    .run = run,
    .read = read_tensor,
    .operator_count = 1,
    .operators = operators,
    .optimise = optimise,
    .evaluate = evaluate,
#ifdef HOST
    .attach = attach,
#endif
};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    (void)error;
    if (!KILIM_HOST_HAS(host, attach)) return KILIM_UNSUPPORTED;
    *out = &backend;
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
}
