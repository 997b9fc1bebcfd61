/*
 * A device in C that convolves: Conv on float32 images, with a bias and Relu where Kilim has merged them. It takes two
 * convolutions that follow each other as one node of its own, com.example::ConvPair, has two algorithms to choose from,
 * keeps its weights in a form of its own, and its tensors on the device from stage to stage. It shares weights between
 * runs at the same time, times its nodes, has its work done before that of others, and may lose its device.
 *
 *     cc -O2 -shared -fPIC -I ../../../include conv.c -o libbackend_conv.so
 *     kilim bench model.onnx --backends conv,cpu --plugin-path .
 *
 * LOG names a file for calls. With POINTWISE_LAST, convolutions of 1x1 are wanted on channels-last data.
 */
#include "graph.h"
#include "program.h"

static int32_t is_lost(void *self, void *context) {
    (void)self;
    (void)context;
    return device.lost;
}

static KilimStatus reopen(void *self, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("reopen", "");
    device.lost = 0;
    return KILIM_OK;
}

static void describe(void *self, KilimDescription *d) {
    (void)self;
    static const KilimDtypeGrade dtypes[] = {{KILIM_FLOAT32, KILIM_ARITHMETIC}};
    static const int32_t layouts[] = {KILIM_NCHW, KILIM_NHWC};
    d->device = "a device that convolves, in C";
    d->dtypes = dtypes;
    d->dtype_count = 1;
    d->layouts = layouts;
#ifdef POINTWISE_LAST
    d->layout_count = 2;
#else
    d->layout_count = 1;
#endif
}

static const KilimOption options[] = {
    {.name = "lose", .kind = KILIM_OPTION_INTEGER, .initial = "-1", .meaning = "the run in which the device is lost, to try that out"},
};

static const KilimBackend backend = {
    .version = KILIM_BACKEND_VERSION,
    .size = sizeof(KilimBackend),
    .describe = describe,
    .supports = supports,
    .create_context = create_context,
    .release_context = release_context,
    .prepare = prepare,
    .release_executable = release_executable,
    .write = write_tensor,
    .run = run,
    .read = read_tensor,
    .operator_count = 1,
    .operators = operators,
    .option_count = 1,
    .options = options,
    .set_timing = set_timing,
    .times = times,
    .keep = keep,
    .use = use,
    .read_kept = read_kept,
    .release_kept = release_kept,
    .is_lost = is_lost,
    .reopen = reopen,
    .optimise = optimise,
#ifdef POINTWISE_LAST
    .node_layout = node_layout,
#endif
    .choice = choice,
    .schedule = schedule,
    .replica = replica,
    .replicate = replicate,
    .is_packed = is_packed,
};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    if (!KILIM_HOST_HAS(host, is_packed)) return refuse(error, "this Kilim is too old for the library");
    *out = &backend;
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
    tell("destroy", "");
}
