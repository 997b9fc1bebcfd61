/*
 * A backend in C: Relu, Add of equal shapes, and an operator of its own, com.example::Scale, which
 * multiplies by the attribute `factor`. All on float32, in host memory.
 *
 *     cc -shared -fPIC -I ../../include scale.c -o libbackend_scale.so
 *     kilim run model.onnx --backends scale,cpu --plugin-path .
 */
#include "kilim_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static KilimStatus refuse(KilimMessage *message, const char *text) {
    snprintf(message->text, message->capacity, "%s", text);
    return KILIM_UNSUPPORTED;
}

/* Nodes. */

typedef enum { RELU, ADD, SCALE, NONE } Kind;

static Kind kind_of(const KilimNode *node) {
    if (strcmp(node->domain, "com.example") == 0) return strcmp(node->op, "Scale") == 0 ? SCALE : NONE;
    if (strcmp(node->domain, "") != 0) return NONE;
    if (strcmp(node->op, "Relu") == 0) return RELU;
    if (strcmp(node->op, "Add") == 0) return ADD;
    return NONE;
}

static const KilimAttribute *attribute(const KilimNode *node, const char *name, int32_t kind) {
    for (size_t i = 0; i < node->attribute_count; i++) {
        const KilimAttribute *a = &node->attributes[i];
        if (strcmp(a->name, name) == 0 && a->kind == kind && a->count > 0) return a;
    }
    return NULL;
}

static float factor_of(const KilimNode *node) {
    const KilimAttribute *a = attribute(node, "factor", KILIM_FLOATS);
    return a ? (float)*(const double *)a->values : 1.0f;
}

static int same_shape(const KilimTensor *a, const KilimTensor *b) {
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)cost;
    Kind kind = kind_of(node);
    if (kind == NONE) return refuse(reason, "only Relu, Add and com.example::Scale");
    if (kind == ADD) {
        /* Kilim may have fused an activation into the sum. */
        const KilimAttribute *a = attribute(node, "activation", KILIM_TEXTS);
        if (a && strcmp(*(const char *const *)a->values, "None") != 0) return refuse(reason, "no fused activations");
    }
    size_t wanted = kind == ADD ? 2 : 1;
    if (node->input_count != wanted) return refuse(reason, "another number of inputs");
    for (size_t i = 0; i < wanted; i++) {
        if (node->inputs[i]->dtype != KILIM_FLOAT32) return refuse(reason, "only float32");
        if (!same_shape(node->inputs[i], node->outputs[0])) return refuse(reason, "no broadcasting");
    }
    return KILIM_OK;
}

/* Memory. Kilim plans it: a stage says where each tensor lies in a block, which is allocated here and shared by all stages. */

static KilimStatus allocate(void *self, size_t bytes, void **memory, KilimMessage *error) {
    (void)self;
    *memory = calloc(1, bytes);
    if (*memory) return KILIM_OK;
    snprintf(error->text, error->capacity, "out of memory");
    return KILIM_LIMIT;
}

static void release_memory(void *self, void *memory) {
    (void)self;
    free(memory);
}

/* Stages: the steps, and where their tensors are. */

typedef struct {
    Kind kind;
    float factor;
    size_t count;
    size_t a, b, out;
} Kernel;

/* In the place of an offset: the tensor is known, and its data stays where it is. */
#define KNOWN SIZE_MAX

typedef struct {
    size_t tensors;
    size_t *offsets;
    void **data;
    size_t *parts;
    Kernel *kernels;
} Program;

static void release(void *self, void *executable) {
    (void)self;
    Program *p = executable;
    free(p->offsets);
    free(p->data);
    free(p->parts);
    free(p->kernels);
    free(p);
}

static void *copy(const void *from, size_t bytes) {
    void *to = malloc(bytes);
    if (to) memcpy(to, from, bytes);
    return to;
}

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)context;
    Program *p = calloc(1, sizeof *p);
    if (!p) return KILIM_LIMIT;
    p->tensors = stage->tensor_count;
    p->offsets = calloc(stage->tensor_count + 1, sizeof *p->offsets);
    p->data = calloc(stage->tensor_count + 1, sizeof *p->data);
    p->parts = copy(stage->parts, (stage->part_count + 1) * sizeof *p->parts);
    p->kernels = calloc(stage->step_count + 1, sizeof *p->kernels);
    if (!p->offsets || !p->data || !p->parts || !p->kernels) {
        release(self, p);
        snprintf(error->text, error->capacity, "out of memory");
        return KILIM_LIMIT;
    }
    for (size_t i = 0; i < stage->tensor_count; i++) {
        const KilimSlot *slot = &stage->tensors[i];
        while (slot->place == KILIM_ALIAS) slot = &stage->tensors[slot->of];
        p->offsets[i] = slot->place == KILIM_ARENA ? slot->offset : KNOWN;
        /* Known data stays valid as long as the executable; it is only read. */
        p->data[i] = (void *)slot->tensor.data;
    }
    for (size_t i = 0; i < stage->step_count; i++) {
        const KilimStep *step = &stage->steps[i];
        Kernel *k = &p->kernels[i];
        k->kind = kind_of(step->node);
        k->factor = factor_of(step->node);
        k->count = stage->tensors[step->outputs[0]].tensor.bytes / sizeof(float);
        k->a = step->inputs[0];
        k->b = k->kind == ADD ? step->inputs[1] : k->a;
        k->out = step->outputs[0];
    }
    *executable = p;
    return KILIM_OK;
}

static KilimStatus bind(void *self, void *executable, void *memory, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)bytes;
    (void)error;
    Program *p = executable;
    for (size_t i = 0; i < p->tensors; i++) {
        if (p->offsets[i] != KNOWN) p->data[i] = (unsigned char *)memory + p->offsets[i];
    }
    return KILIM_OK;
}

static KilimStatus write_tensor(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    if (bytes) memcpy(((Program *)executable)->data[tensor], data, bytes);
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    if (bytes) memcpy(data, ((Program *)executable)->data[tensor], bytes);
    return KILIM_OK;
}

static KilimStatus run(void *self, void *executable, size_t part, KilimMessage *error) {
    (void)self;
    (void)error;
    const Program *p = executable;
    for (size_t i = p->parts[part]; i < p->parts[part + 1]; i++) {
        const Kernel *k = &p->kernels[i];
        const float *a = p->data[k->a], *b = p->data[k->b];
        float *out = p->data[k->out];
        for (size_t j = 0; j < k->count; j++) {
            float x = a[j];
            /* Written so that Relu of NaN is NaN. */
            out[j] = k->kind == ADD ? x + b[j] : k->kind == SCALE ? x * k->factor : x < 0 ? 0 : x;
        }
    }
    return KILIM_OK;
}

/* The operator of its own: the output is like the input. */

static KilimStatus infer_scale(void *self, const KilimNode *node, KilimOutput *outputs, KilimMessage *error) {
    (void)self;
    if (node->input_count != 1 || !node->inputs[0] || node->inputs[0]->rank > KILIM_MAX_RANK) return refuse(error, "Scale has one input");
    const KilimTensor *x = node->inputs[0];
    outputs[0].dtype = x->dtype;
    outputs[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) outputs[0].shape[i] = x->shape[i];
    return KILIM_OK;
}

static const KilimOperator operators[] = {{.domain = "com.example", .name = "Scale", .infer = infer_scale}};

/* The backend. */

static void describe(void *self, KilimDescription *description) {
    (void)self;
    static const KilimDtypeGrade dtypes[] = {{KILIM_FLOAT32, KILIM_ARITHMETIC}};
    description->device = "a sample in C";
    description->dtypes = dtypes;
    description->dtype_count = 1;
}

static const KilimBackend backend = {
    .version = KILIM_BACKEND_VERSION,
    .size = sizeof(KilimBackend),
    .describe = describe,
    .supports = supports,
    .prepare = prepare,
    .release_executable = release,
    .write = write_tensor,
    .run = run,
    .read = read_tensor,
    .operator_count = 1,
    .operators = operators,
    .allocate = allocate,
    .release = release_memory,
    .bind = bind,
};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    if (host->version != KILIM_BACKEND_VERSION) return refuse(error, "built for another version of Kilim's interface");
    /* Nothing here runs in memory of its own. */
    if (host->size < offsetof(KilimBackend, bind) + sizeof backend.bind) return refuse(error, "this Kilim does not plan a backend's memory");
    *out = &backend;
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
}
