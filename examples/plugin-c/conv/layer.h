/* Nodes of the device: which it takes, and what they are. */
#ifndef CONV_LAYER_H
#define CONV_LAYER_H

#include "kilim_backend.h"

#include <stdio.h>
#include <string.h>

static void tell(const char *what, const char *more) {
#ifdef LOG
    FILE *log = fopen(LOG, "a");
    if (!log) return;
    fprintf(log, "%s %s\n", what, more);
    fclose(log);
#else
    (void)what;
    (void)more;
#endif
}

static KilimStatus fail(KilimMessage *message, KilimStatus status, const char *text) {
    snprintf(message->text, message->capacity, "%s", text);
    return status;
}

static KilimStatus refuse(KilimMessage *message, const char *text) { return fail(message, KILIM_UNSUPPORTED, text); }

typedef struct {
    int64_t batch, in, out, groups;
    int64_t height, width, out_height, out_width;
    int64_t kernel[2], stride[2], dilation[2], before[2];
    int last, relu;
} Conv;

/* A node is one convolution or two. */
typedef struct {
    Conv conv[2];
    size_t count;
} Layer;

static const void *attribute(const KilimNode *node, const char *prefix, const char *name, int32_t kind, size_t count) {
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    for (size_t i = 0; i < node->attribute_count; i++) {
        const KilimAttribute *a = &node->attributes[i];
        if (strcmp(a->name, whole) == 0 && a->kind == kind && a->count == count) return a->values;
    }
    return NULL;
}

static const char *word(const KilimNode *node, const char *prefix, const char *name) {
    const char *const *text = attribute(node, prefix, name, KILIM_TEXTS, 1);
    return text ? *text : "";
}

/* The convolution that the attributes with a prefix say, of data of the sizes `x`. */
static KilimStatus conv_of(const KilimNode *node, const char *prefix, const int64_t *x, const KilimTensor *weights, Conv *c,
                           KilimMessage *reason) {
    const int64_t *last = attribute(node, prefix, "channels_last", KILIM_INTS, 1);
    const int64_t *strides = attribute(node, prefix, "strides", KILIM_INTS, 2);
    const int64_t *dilations = attribute(node, prefix, "dilations", KILIM_INTS, 2);
    const int64_t *groups = attribute(node, prefix, "groups", KILIM_INTS, 1);
    const int64_t *pads = attribute(node, prefix, "padding.value", KILIM_INTS, 4);
    const char *padding = word(node, prefix, "padding"), *activation = word(node, prefix, "activation");
    static const int64_t none[4] = {0, 0, 0, 0};
    if (!weights || weights->rank != 4 || !strides || !dilations || !groups) return refuse(reason, "only images");
    if (strcmp(padding, "Valid") == 0) pads = none;
    if (!pads) return refuse(reason, "only padding that is written out");
    c->relu = strcmp(activation, "Relu") == 0;
    if (!c->relu && strcmp(activation, "") != 0 && strcmp(activation, "None") != 0) return refuse(reason, "only Relu is merged");
    c->last = last && *last;
    int channel = c->last ? 3 : 1, first = c->last ? 1 : 2;
    c->batch = x[0];
    c->in = x[channel];
    c->out = weights->shape[0];
    c->groups = *groups;
    c->height = x[first];
    c->width = x[first + 1];
    if (c->groups < 1 || c->in != weights->shape[1] * c->groups || c->out % c->groups) return refuse(reason, "channels do not fit");
    int64_t size[2];
    for (int axis = 0; axis < 2; axis++) {
        c->kernel[axis] = weights->shape[2 + axis];
        c->stride[axis] = strides[axis];
        c->dilation[axis] = dilations[axis];
        c->before[axis] = pads[axis];
        int64_t room = x[first + axis] + pads[axis] + pads[axis + 2] - (c->kernel[axis] - 1) * dilations[axis] - 1;
        if (room < 0 || strides[axis] < 1) return refuse(reason, "the kernel is larger than the data");
        size[axis] = room / strides[axis] + 1;
    }
    c->out_height = size[0];
    c->out_width = size[1];
    return KILIM_OK;
}

static void result_of(const Conv *c, int64_t *y) {
    int channel = c->last ? 3 : 1, first = c->last ? 1 : 2;
    y[0] = c->batch;
    y[channel] = c->out;
    y[first] = c->out_height;
    y[first + 1] = c->out_width;
}

static int is_pair(const KilimNode *node) { return strcmp(node->domain, "com.example") == 0 && strcmp(node->op, "ConvPair") == 0; }

/* Inputs of one are data, weights, bias and what is added before the Relu; those of a pair data, weights, bias, weights, bias. */
static KilimStatus layer_of(const KilimNode *node, Layer *layer, KilimMessage *reason) {
    int pair = is_pair(node);
    if (!pair && (strcmp(node->domain, "") != 0 || strcmp(node->op, "Conv") != 0)) return refuse(reason, "only Conv");
    layer->count = pair ? 2 : 1;
    for (size_t i = 0; i < node->input_count; i++) {
        const KilimTensor *input = node->inputs[i];
        if (!input) continue;
        if (i > layer->count + 2) return refuse(reason, "another number of inputs");
        if (input->dtype != KILIM_FLOAT32) return refuse(reason, "only float32");
    }
    if (node->input_count < 2 * layer->count || !node->inputs[0] || node->inputs[0]->rank != 4) return refuse(reason, "only images");
    int64_t between[4];
    const int64_t *x = node->inputs[0]->shape;
    for (size_t i = 0; i < layer->count; i++) {
        const char *prefix = !pair ? "" : i == 0 ? "first." : "second.";
        KilimStatus status = conv_of(node, prefix, x, node->inputs[1 + 2 * i], &layer->conv[i], reason);
        if (status != KILIM_OK) return status;
        result_of(&layer->conv[i], between);
        x = between;
    }
    return KILIM_OK;
}

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)cost;
    Layer layer;
    KilimStatus status = layer_of(node, &layer, reason);
    if (status == KILIM_OK) {
        char names[256];
        snprintf(names, sizeof names, "%s: %s -> %s", node->name, node->inputs[0]->name, node->outputs[0]->name);
        tell("supports", names);
    }
    return status;
}

static KilimStatus infer_pair(void *self, const KilimNode *node, KilimOutput *outputs, KilimMessage *error) {
    (void)self;
    Layer layer;
    KilimStatus status = layer_of(node, &layer, error);
    if (status != KILIM_OK) return status;
    outputs[0].dtype = KILIM_FLOAT32;
    outputs[0].rank = 4;
    result_of(&layer.conv[1], outputs[0].shape);
    return KILIM_OK;
}

static const KilimOperator operators[] = {{"com.example", "ConvPair", NULL, infer_pair}};

#ifdef POINTWISE_LAST
static int32_t node_layout(void *self, const KilimNode *node) {
    (void)self;
    const KilimTensor *weights = node->input_count > 1 ? node->inputs[1] : NULL;
    if (strcmp(node->op, "Conv") != 0 || !weights || weights->rank != 4) return 0;
    return weights->shape[2] == 1 && weights->shape[3] == 1 ? KILIM_NHWC : KILIM_NCHW;
}
#endif

/* Algorithms: by rows of the output, which needs channels first, or point by point. */

static const char *const algorithms[] = {"points", "rows"};

static size_t choice(void *self, const KilimNode *node, const char *const **names, KilimMessage *class_name) {
    (void)self;
    Layer layer;
    char reason[64];
    KilimMessage unheard = {reason, sizeof reason, -1};
    if (layer_of(node, &layer, &unheard) != KILIM_OK || layer.conv[0].last) return 0;
    const Conv *c = &layer.conv[0];
    *names = algorithms;
    snprintf(class_name->text, class_name->capacity, "%s %dx%d, %d to %d channels in %d groups, %dx%d", node->op, (int)c->kernel[0],
             (int)c->kernel[1], (int)c->in, (int)c->out, (int)c->groups, (int)c->height, (int)c->width);
    return 2;
}

#endif
