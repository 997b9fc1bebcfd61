/*
 * A backend with all that was added to the table after planned memory: options of its own, timers, work that is started
 * and waited for, tensors that stay on the device, a cache, a device that is lost. It runs Relu, writes its calls into the
 * file LOG, and shows a table without the additions where SHORT is defined. MISSING names a function that is left out,
 * SIZE how long the table is said to be.
 */
#include "kilim_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(const char *what, const char *more) {
    FILE *log = fopen(LOG, "a");
    if (!log) return;
    fprintf(log, "%s %s\n", what, more);
    fclose(log);
}

#ifndef SIZE
#define SIZE sizeof(KilimBackend)
#endif

static int lost = 0, opened = 1;

static void describe(void *self, KilimDescription *d) {
    (void)self;
    static const KilimDtypeGrade dtypes[] = {{KILIM_FLOAT32, KILIM_ARITHMETIC}};
    d->device = "a grown device";
    d->dtypes = dtypes;
    d->dtype_count = 1;
#ifndef SHORT
    static const int32_t layouts[] = {KILIM_NHWC, KILIM_NCHW};
    d->layouts = layouts;
    d->layout_count = 2;
    d->half = KILIM_HALF_CHOSEN;
    d->quantized = KILIM_QUANTIZED_NATIVE;
#endif
}

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)cost;
    (void)reason;
    return strcmp(node->op, "Relu") == 0 ? KILIM_OK : KILIM_UNSUPPORTED;
}

typedef struct {
    int timers, pending;
} Context;

static KilimStatus create_context(void *self, const KilimContextOptions *options, void **context, KilimMessage *error) {
    (void)self;
    (void)error;
    char text[256] = "";
#ifndef SHORT
    int at = snprintf(text, sizeof text, "sparing=%d layout=%d dynamic=%d half=%d quantized=%d timers=%d", options->spare_memory,
                      options->layout, options->dynamic_shapes, options->half, options->quantized, options->timers);
    for (size_t i = 0; i < options->setting_count; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at, " %s=%s", options->settings[i].name, options->settings[i].value);
    }
#else
    (void)options;
#endif
    tell("create_context", text);
    *context = calloc(1, sizeof(Context));
    return KILIM_OK;
}

static void release_context(void *self, void *context) {
    (void)self;
    tell("release_context", "");
    free(context);
}

/* A stage of one step; tensor 0 is read and tensor 1 written, whatever their order in the stage. */
typedef struct {
    Context *context;
    size_t in, out, bytes;
    int timing;
    float *data[2];
} Program;

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    (void)error;
    Program *p = calloc(1, sizeof *p);
    p->context = context;
    p->in = stage->steps[0].inputs[0];
    p->out = stage->steps[stage->step_count - 1].outputs[0];
    p->bytes = stage->tensors[p->out].tensor.bytes;
    p->data[0] = calloc(1, p->bytes + 1);
    p->data[1] = calloc(1, p->bytes + 1);
    *executable = p;
    return KILIM_OK;
}

static void release_executable(void *self, void *executable) {
    (void)self;
    Program *p = executable;
    free(p->data[0]);
    free(p->data[1]);
    free(p);
}

static float *of(Program *p, size_t tensor) { return p->data[tensor == p->out]; }

static KilimStatus write_tensor(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("write", "");
    memcpy(of(executable, tensor), data, bytes);
    return KILIM_OK;
}

static KilimStatus run(void *self, void *executable, size_t part, KilimMessage *error) {
    (void)self;
    (void)part;
    tell("run", "");
    if (lost) {
        snprintf(error->text, error->capacity, "the device is gone");
        return KILIM_DEVICE;
    }
    Program *p = executable;
    p->context->pending = 3;
    for (size_t i = 0; i < p->bytes / sizeof(float); i++) p->data[1][i] = p->data[0][i] > 0 ? p->data[0][i] : 0;
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("read", "");
    memcpy(data, of(executable, tensor), bytes);
    return KILIM_OK;
}

#ifndef SHORT

static unsigned char learnt[8] = "nothing";

static void set_timing(void *self, void *executable, int32_t on) {
    (void)self;
    ((Program *)executable)->timing = on;
}

static KilimStatus times(void *self, void *executable, double *seconds, size_t count, KilimMessage *error) {
    (void)self;
    (void)error;
    for (size_t i = 0; i < count; i++) seconds[i] = ((Program *)executable)->timing ? TIME : 1e9;
    return KILIM_OK;
}

static KilimStatus submit(void *self, void *executable, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)error;
    tell("submit", "");
    return KILIM_OK;
}

static KilimStatus wait_for(void *self, void *context, int32_t block, int32_t *done, KilimMessage *error) {
    (void)self;
    (void)error;
    Context *c = context;
    tell("wait", block ? "blocks" : "tries");
    if (block) c->pending = 0;
    *done = c->pending == 0;
    return KILIM_OK;
}

static KilimStatus copy(void *self, void *executable, size_t from, size_t to, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("copy", "");
    memcpy(of(executable, to), of(executable, from), ((Program *)executable)->bytes);
    return KILIM_OK;
}

typedef struct {
    size_t bytes;
    float data[];
} Kept;

static KilimStatus keep(void *self, void *executable, size_t tensor, void **kept, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("keep", "");
    Program *p = executable;
    Kept *k = malloc(sizeof *k + p->bytes);
    k->bytes = p->bytes;
    memcpy(k->data, of(p, tensor), p->bytes);
    *kept = k;
    return KILIM_OK;
}

static KilimStatus use(void *self, void *executable, size_t tensor, void *kept, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("use", "");
    memcpy(of(executable, tensor), ((Kept *)kept)->data, ((Kept *)kept)->bytes);
    return KILIM_OK;
}

static KilimStatus read_kept(void *self, void *kept, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("read_kept", "");
    memcpy(data, ((Kept *)kept)->data, bytes);
    return KILIM_OK;
}

static void release_kept(void *self, void *kept) {
    (void)self;
    tell("release_kept", "");
    free(kept);
}

static size_t save_cache(void *self, void *data, size_t capacity) {
    (void)self;
    if (capacity >= sizeof learnt) memcpy(data, learnt, sizeof learnt);
    return sizeof learnt;
}

static KilimStatus load_cache(void *self, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    if (bytes != sizeof learnt) return KILIM_INVALID_VALUE;
    tell("load_cache", data);
    return KILIM_OK;
}

static int32_t is_lost(void *self, void *context) {
    (void)self;
    (void)context;
    FILE *loss = fopen(LOG ".lost", "r");
    if (loss) fclose(loss);
    lost = loss != NULL;
    return lost;
}

static KilimStatus reopen(void *self, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("reopen", "");
    remove(LOG ".lost");
    lost = 0;
    opened++;
    return KILIM_OK;
}

static KilimStatus replica(void *self, void *context, void **made, KilimMessage *error) {
    (void)self;
    (void)context;
    (void)made;
    (void)error;
    tell("replica", "");
    return KILIM_UNSUPPORTED;
}

static KilimStatus replicate(void *self, void *context, void *executable, void **made, KilimMessage *error) {
    (void)executable;
    return replica(self, context, made, error);
}

static const char *const modes[] = {"fast", "exact"};
static const KilimOption options[] = {
    {.name = "cores", .kind = KILIM_OPTION_INTEGER, .initial = INITIAL, .meaning = "cores of the device that compute"},
    {.name = "mode", .kind = KILIM_OPTION_CHOICE, .initial = "fast", .meaning = "what counts more", .choice_count = 2, .choices = modes},
    {.name = "firmware", .kind = KILIM_OPTION_TEXT, .initial = "", .meaning = "a file with the device's program"},
};

#endif

static const KilimBackend backend = {
    .version = KILIM_BACKEND_VERSION,
    .self = NULL,
    .describe = describe,
    .supports = supports,
    .create_context = create_context,
    .release_context = release_context,
    .prepare = prepare,
    .release_executable = release_executable,
    .write = write_tensor,
    .run = run,
    .read = read_tensor,
#ifdef SHORT
    .size = offsetof(KilimBackend, option_count),
#else
    .size = SIZE,
    .option_count = 3,
    .options = options,
    .set_timing = set_timing,
    .times = times,
    .submit = submit,
    .wait = wait_for,
    .copy = copy,
    .keep = keep,
    .use = use,
    .read_kept = read_kept,
    .release_kept = release_kept,
    .save_cache = save_cache,
    .load_cache = load_cache,
    .is_lost = is_lost,
    .reopen = reopen,
    .replica = replica,
    .replicate = replicate,
#endif
};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    (void)error;
    if (!KILIM_HOST_HAS(host, reopen)) return KILIM_UNSUPPORTED;
#ifdef MISSING
    static KilimBackend less;
    less = backend;
    less.MISSING = NULL;
    *out = &less;
#else
    *out = &backend;
#endif
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
    tell("destroy", opened > 1 ? "opened again" : "");
}
