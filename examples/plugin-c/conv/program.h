/* Stages made ready to run, and tensors that outlive a run. */
#ifndef CONV_PROGRAM_H
#define CONV_PROGRAM_H

#include "context.h"
#include "kernels.h"

#include <time.h>

typedef struct {
    float *data;
    size_t bytes;
    /* The tensor that has the bytes. */
    size_t root;
    /* Whether the executable owns the bytes; weights are the context's. */
    int own;
} Tensor;

typedef struct {
    Layer layer;
    size_t inputs[5], output;
    int rows;
    double seconds;
    float *between;
} Step;

typedef struct {
    Context *context;
    size_t tensor_count, step_count, part_count;
    Tensor *tensors;
    Step *steps;
    size_t *parts;
    int timing;
} Program;

static void release_executable(void *self, void *executable) {
    (void)self;
    Program *p = executable;
    for (size_t i = 0; p->tensors && i < p->tensor_count; i++) {
        if (p->tensors[i].own) free(p->tensors[i].data);
    }
    for (size_t i = 0; p->steps && i < p->step_count; i++) free(p->steps[i].between);
    free(p->tensors);
    free(p->steps);
    free(p->parts);
    free(p);
}

static int64_t elements(const Conv *c) { return c->batch * c->out * c->out_height * c->out_width; }

static Program *program(Context *context, size_t tensors, size_t steps, size_t parts) {
    Program *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->context = context;
    p->tensor_count = tensors;
    p->step_count = steps;
    p->part_count = parts;
    p->tensors = calloc(tensors + 1, sizeof *p->tensors);
    p->steps = calloc(steps + 1, sizeof *p->steps);
    p->parts = calloc(parts + 1, sizeof *p->parts);
    if (p->tensors && p->steps && p->parts) return p;
    release_executable(NULL, p);
    return NULL;
}

static int make_step(Step *s, const KilimStage *stage, size_t i) {
    const KilimStep *from = &stage->steps[i];
    char reason[64];
    KilimMessage unheard = {reason, sizeof reason, -1};
    if (layer_of(from->node, &s->layer, &unheard) != KILIM_OK) return 0;
    for (size_t k = 0; k < 5; k++) s->inputs[k] = k < from->node->input_count ? from->inputs[k] : KILIM_ABSENT;
    s->output = from->outputs[0];
    const char *algorithm = stage->algorithms ? stage->algorithms[i] : NULL;
    s->rows = algorithm && strcmp(algorithm, "rows") == 0;
    if (s->layer.count == 2) {
        s->between = malloc((size_t)elements(&s->layer.conv[0]) * sizeof(float) + 1);
        tell("pair", from->node->name);
    }
    return s->layer.count < 2 || s->between;
}

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    Program *p = program(context, stage->tensor_count, stage->step_count, stage->part_count);
    if (!p) return fail(error, KILIM_LIMIT, "no memory");
    memcpy(p->parts, stage->parts, (stage->part_count + 1) * sizeof *p->parts);
    int fits = 1;
    for (size_t i = 0; i < stage->tensor_count; i++) {
        const KilimSlot *slot = &stage->tensors[i];
        Tensor *t = &p->tensors[i];
        t->bytes = slot->tensor.bytes;
        t->root = slot->place == KILIM_ALIAS ? slot->of : i;
        t->own = slot->place == KILIM_PLANNED || slot->place == KILIM_ARENA;
        if (slot->place == KILIM_CONSTANT) t->data = (float *)pack(context, slot);
        if (slot->place == KILIM_PLANNED) t->data = copy_of(slot->tensor.data, t->bytes);
        if (slot->place == KILIM_ARENA) t->data = malloc(t->bytes + 1);
        fits &= slot->place == KILIM_ALIAS || t->data != NULL;
    }
    for (size_t i = 0; i < stage->tensor_count; i++) {
        while (p->tensors[p->tensors[i].root].root != p->tensors[i].root) p->tensors[i].root = p->tensors[p->tensors[i].root].root;
    }
    for (size_t i = 0; i < stage->step_count; i++) fits &= make_step(&p->steps[i], stage, i);
    if (fits) {
        *executable = p;
        return KILIM_OK;
    }
    release_executable(NULL, p);
    return fail(error, KILIM_LIMIT, "no memory");
}

static KilimStatus replicate(void *self, void *context, void *executable, void **made, KilimMessage *error) {
    (void)self;
    const Program *from = executable;
    Program *p = program(context, from->tensor_count, from->step_count, from->part_count);
    if (!p) return fail(error, KILIM_LIMIT, "no memory");
    memcpy(p->parts, from->parts, (from->part_count + 1) * sizeof *p->parts);
    int fits = 1;
    for (size_t i = 0; i < from->tensor_count; i++) {
        p->tensors[i] = from->tensors[i];
        if (p->tensors[i].own) fits &= (p->tensors[i].data = copy_of(from->tensors[i].data, from->tensors[i].bytes)) != NULL;
    }
    for (size_t i = 0; i < from->step_count; i++) {
        Step *s = &p->steps[i];
        *s = from->steps[i];
        if (s->between) fits &= (s->between = malloc((size_t)elements(&s->layer.conv[0]) * sizeof(float) + 1)) != NULL;
    }
    if (fits) {
        tell("replicate", "");
        *made = p;
        return KILIM_OK;
    }
    release_executable(NULL, p);
    return fail(error, KILIM_LIMIT, "no memory");
}

static Tensor *tensor(Program *p, size_t i) { return i == KILIM_ABSENT ? NULL : &p->tensors[p->tensors[i].root]; }

static KilimStatus write_tensor(void *self, void *executable, size_t i, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("write", "");
    memcpy(tensor(executable, i)->data, data, bytes);
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t i, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("read", "");
    memcpy(data, tensor(executable, i)->data, bytes);
    return KILIM_OK;
}

static void run_step(Program *p, Step *s) {
    const float *x = tensor(p, s->inputs[0])->data;
    for (size_t i = 0; i < s->layer.count; i++) {
        const Tensor *bias = tensor(p, s->inputs[2 + 2 * i]), *added = s->layer.count == 1 ? tensor(p, s->inputs[3]) : NULL;
        float *y = i + 1 < s->layer.count ? s->between : tensor(p, s->output)->data;
        const float *weights = tensor(p, s->inputs[1 + 2 * i])->data;
        (s->rows ? by_rows : by_points)(&s->layer.conv[i], x, weights, bias ? bias->data : NULL, added ? added->data : NULL, y);
        x = y;
    }
}

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static KilimStatus run(void *self, void *executable, size_t part, KilimMessage *error) {
    (void)self;
    Program *p = executable;
    if (p->context->lose >= 0 && device.runs++ == p->context->lose) device.lost = 1;
    if (device.lost) return fail(error, KILIM_DEVICE, "the device is lost");
    for (size_t i = p->parts[part]; i < p->parts[part + 1]; i++) {
        double start = p->timing ? now() : 0;
        run_step(p, &p->steps[i]);
        if (p->timing) p->steps[i].seconds = now() - start;
    }
    return KILIM_OK;
}

static void set_timing(void *self, void *executable, int32_t on) {
    (void)self;
    ((Program *)executable)->timing = on;
}

static KilimStatus times(void *self, void *executable, double *seconds, size_t count, KilimMessage *error) {
    (void)self;
    (void)error;
    for (size_t i = 0; i < count; i++) seconds[i] = ((Program *)executable)->steps[i].seconds;
    return KILIM_OK;
}

/* Tensors that stay. */

static KilimStatus keep(void *self, void *executable, size_t i, void **kept, KilimMessage *error) {
    (void)self;
    const Tensor *t = tensor(executable, i);
    Tensor *k = malloc(sizeof *k);
    float *data = copy_of(t->data, t->bytes);
    if (!k || !data) {
        free(k);
        free(data);
        return fail(error, KILIM_LIMIT, "no memory");
    }
    *k = (Tensor){data, t->bytes, 0, 1};
    tell("keep", "");
    *kept = k;
    return KILIM_OK;
}

static KilimStatus use(void *self, void *executable, size_t i, void *kept, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("use", "");
    memcpy(tensor(executable, i)->data, ((Tensor *)kept)->data, ((Tensor *)kept)->bytes);
    return KILIM_OK;
}

static KilimStatus read_kept(void *self, void *kept, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    memcpy(data, ((Tensor *)kept)->data, bytes);
    return KILIM_OK;
}

static void release_kept(void *self, void *kept) {
    (void)self;
    free(((Tensor *)kept)->data);
    free(kept);
}

#endif
