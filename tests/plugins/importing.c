/*
 * An importer of files that begin with `mine`, which does what CASE says: what a library may do, and what it must not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kilim_importer.h"

#ifndef CASE
#define CASE WEIGHTS
#endif
#ifndef VERSION
#define VERSION KILIM_IMPORTER_VERSION
#endif
#ifndef SIZE
#define SIZE sizeof(KilimImporter)
#endif

/* Libraries that are older than bodies know the table up to here. */
_Static_assert(offsetof(KilimGraph, model) == 6 * sizeof(void *), "order");
_Static_assert(offsetof(KilimGraph, begin_body) == 7 * sizeof(void *), "order");
/* Libraries that are older than metadata know it up to here. */
_Static_assert(offsetof(KilimGraph, metadata) == 9 * sizeof(void *), "order");

enum {
    /* y = x + w, the elements of w from the file itself, behind 8 bytes. */
    WEIGHTS,
    /* y = x + w, those of w from the file `w.bin` beside it. */
    BESIDE,
    /* A file that leads out of the model's folder. */
    OUTSIDE,
    /* What stands behind 8 bytes is a file of another format. */
    WRAPPED,
    TWO_MODELS,
    TWICE,
    UNKNOWN,
    DANGLING,
    CYCLE,
    NAMELESS,
    OVERFLOWING,
    NEGATIVE,
    NO_SHAPE,
    RANK,
    SHORT,
    NO_DATA,
    TYPE,
    TEXT,
    KIND,
    AGAIN,
    MANY,
    /* Fails without a word, and gives nothing. */
    SILENT,
    NOTHING,
    /* Goes on after a call that failed, and says that all is well. */
    LYING,
    /* Tells whether the host has a function that it does not have. */
    NEWER,
    /* Says something of itself, and something else; and what it must not. */
    DESCRIBED,
    NO_KEY,
    NO_TEXTS,
    NO_METADATA,
    /* y = 2 x where c holds, else x and 3 x more by a loop in the branch. */
    CONTROL,
    /* Bodies that cannot be. */
    BODY_DANGLING,
    BODY_TWICE,
    BODY_AGAIN,
    BODY_ENDLESS,
    BODY_WITHOUT_END,
    BODY_WITHOUT_NODE,
    BODY_WITHOUT_BEGINNING,
    BODY_WITHOUT_NAME,
    BODY_OF_NO_BODY,
    UNTYPED,
};

static int32_t probe(void *self, const void *head, size_t byte_count, const char *name) {
    (void)self, (void)name;
    return byte_count >= 4 && memcmp(head, "mine", 4) == 0;
}

static KilimStatus fail(KilimMessage *error, KilimStatus status, const char *what) {
    if (error) snprintf(error->text, error->capacity, "%s", what);
    return status;
}

static KilimStatus add(const KilimGraph *g, const char *op, const char *a, const char *b, const char *y, KilimMessage *error) {
    const char *inputs[] = {a, b};
    const KilimOperation told = {.op = op, .input_count = b ? 2 : 1, .inputs = inputs, .output_count = 1, .outputs = &y};
    return g->node(g->self, &told, error);
}

static KilimStatus constant(const KilimGraph *g, int32_t dtype, int32_t rank, const int64_t *shape, const void *data, size_t bytes,
                            KilimMessage *error) {
    const KilimTensor told = {.name = "w", .dtype = dtype, .rank = rank, .shape = shape, .data = data, .bytes = bytes};
    return g->constant(g->self, &told, error);
}

static KilimStatus control(const KilimGraph *g, KilimMessage *error) {
    const KilimInput c = {.name = "c", .dtype = KILIM_BOOL};
    const KilimInput formals[] = {{.name = "step"}, {.name = "going"}, {.name = "before"}};
    const float two = 2;
    const int64_t three = 3, one[] = {1};
    const KilimTensor value = {.dtype = KILIM_FLOAT32, .rank = 1, .shape = one, .data = &two, .bytes = sizeof two};
    const KilimAttribute attribute = {.name = "value", .kind = KILIM_TENSORS, .count = 1, .values = &value};
    const char *name = "two", *sum = "sum", *loop[] = {"trips", NULL, "x"};
    const KilimOperation constant = {.op = "Constant", .attribute_count = 1, .attributes = &attribute, .output_count = 1, .outputs = &name};
    const KilimTensor trips = {.name = "trips", .dtype = KILIM_INT64, .rank = 0, .data = &three, .bytes = sizeof three};
    const KilimOperation repeat = {.op = "Loop", .input_count = 3, .inputs = loop, .output_count = 1, .outputs = &sum};
    if (!KILIM_IMPORTER_HAS(g, KilimGraph, end_body)) return fail(error, KILIM_UNSUPPORTED, "this Kilim has no bodies");
    g->input(g->self, &c, error);
    g->node(g->self, &constant, error);
    g->begin_body(g->self, "then_branch", error);
    add(g, "Mul", "x", "two", "doubled", error);
    g->output(g->self, "doubled", error);
    g->end_body(g->self, error);
    g->begin_body(g->self, "else_branch", error);
    g->constant(g->self, &trips, error);
    g->begin_body(g->self, "body", error);
    for (int i = 0; i < 3; i++) g->input(g->self, &formals[i], error);
    add(g, "Identity", "going", NULL, "on", error);
    add(g, "Add", "before", "x", "after", error);
    g->output(g->self, "on", error);
    g->output(g->self, "after", error);
    g->end_body(g->self, error);
    g->node(g->self, &repeat, error);
    g->output(g->self, "sum", error);
    g->end_body(g->self, error);
    return add(g, "If", "c", NULL, "y", error);
}

/* A branch that gives `from` negated as `to`. */
static KilimStatus branch(const KilimGraph *g, const char *name, const char *from, const char *to, KilimMessage *error) {
    g->begin_body(g->self, name, error);
    add(g, "Neg", from, NULL, to, error);
    g->output(g->self, to, error);
    return g->end_body(g->self, error);
}

static KilimStatus body(const KilimGraph *g, KilimMessage *error) {
    const KilimInput c = {.name = "c", .dtype = KILIM_BOOL}, untyped = {.name = "u"};
    g->input(g->self, &c, error);
    switch (CASE) {
        case BODY_DANGLING:
            branch(g, "then_branch", "x", "a", error);
            /* What one body names another does not see. */
            branch(g, "else_branch", "a", "b", error);
            break;
        case BODY_TWICE:
            g->begin_body(g->self, "then_branch", error);
            add(g, "Neg", "x", NULL, "a", error);
            add(g, "Abs", "x", NULL, "a", error);
            return g->end_body(g->self, error);
        case BODY_AGAIN:
            branch(g, "then_branch", "x", "a", error);
            branch(g, "then_branch", "x", "b", error);
            break;
        case BODY_ENDLESS:
            for (;;) {
                const KilimStatus status = g->begin_body(g->self, "then_branch", error);
                if (status) return status;
            }
        case BODY_WITHOUT_END: return g->begin_body(g->self, "then_branch", error);
        case BODY_WITHOUT_NODE: return branch(g, "then_branch", "x", "a", error);
        case BODY_WITHOUT_BEGINNING: return g->end_body(g->self, error);
        case BODY_WITHOUT_NAME: return g->begin_body(g->self, NULL, error);
        case BODY_OF_NO_BODY:
            branch(g, "body", "x", "a", error);
            return add(g, "Neg", "x", NULL, "y", error);
        default: g->input(g->self, &untyped, error);
    }
    return add(g, "If", "c", NULL, "y", error);
}

static KilimStatus describe(const KilimGraph *g, KilimMessage *error) {
    const KilimMetadata before = {.name = "another", .domain = "com.example"};
    const char *keys[] = {"classes", CASE == NO_KEY ? "" : "note", "classes"}, *texts[] = {"cat, dog", NULL, "bird"};
    const KilimMetadata told = {.name = "mine", .description = "a sample", .producer = "by hand", .version = "7", .entry_count = 3,
                                .keys = keys, .texts = CASE == NO_TEXTS ? NULL : texts};
    if (!KILIM_IMPORTER_HAS(g, KilimGraph, metadata)) return fail(error, KILIM_UNSUPPORTED, "this Kilim has no metadata");
    if (CASE == NO_METADATA) return g->metadata(g->self, NULL, error);
    g->metadata(g->self, &before, error);
    return g->metadata(g->self, &told, error);
}

static KilimStatus load(void *self, const KilimFile *file, const KilimGraph *g, KilimMessage *error) {
    (void)self;
    const KilimDim dims[] = {{.size = -1, .symbol = "n"}, {.size = 2, .symbol = NULL}};
    const KilimInput x = {.name = "x", .dtype = KILIM_FLOAT32, .rank = CASE == CONTROL ? 1 : 2, .dims = dims};
    const int64_t two[] = {2};
    const float half[] = {0.5f, 0.5f};
    const void *bytes;
    size_t count;
    KilimStatus status = KILIM_OK;
    if (CASE == SILENT) return 77;
    if (CASE == NOTHING) return KILIM_OK;
    if (CASE == WRAPPED || CASE == TWO_MODELS) {
        const char *inner = (const char *)file->bytes + 8;
        status = g->model(g->self, inner, file->byte_count - 8, error);
        return CASE == TWO_MODELS ? g->model(g->self, inner, file->byte_count - 8, error) : status;
    }
    g->input(g->self, &x, error);
    switch (CASE) {
        case WEIGHTS:
            if (file->byte_count != 16) return fail(error, KILIM_INVALID_VALUE, "the file is cut off");
            constant(g, KILIM_FLOAT32, 1, two, (const char *)file->bytes + 8, 8, error);
            add(g, "Add", "x", "w", "y", error);
            break;
        case BESIDE:
            status = file->beside(file->self, "w.bin", &bytes, &count, error);
            if (status) return status;
            constant(g, KILIM_FLOAT32, 1, two, bytes, count, error);
            add(g, "Add", "x", "w", "y", error);
            break;
        case OUTSIDE: return file->beside(file->self, "../w.bin", &bytes, &count, error);
        case TWICE: status = add(g, "Neg", "x", NULL, "x", error); break;
        case UNKNOWN: add(g, "Twist", "x", NULL, "y", error); break;
        case DANGLING: add(g, "Add", "x", "nothing", "y", error); break;
        case CYCLE: add(g, "Add", "x", "y", "a", error), add(g, "Neg", "a", NULL, "y", error); break;
        case NAMELESS: status = add(g, "", "x", NULL, "y", error); break;
        case OVERFLOWING: {
            const int64_t large[] = {INT64_MAX, INT64_MAX};
            status = constant(g, KILIM_FLOAT32, 2, large, half, 8, error);
            break;
        }
        case NEGATIVE: {
            const int64_t less[] = {-2};
            status = constant(g, KILIM_FLOAT32, 1, less, half, 8, error);
            break;
        }
        case NO_SHAPE: status = constant(g, KILIM_FLOAT32, 1, NULL, half, 8, error); break;
        case RANK: status = constant(g, KILIM_FLOAT32, -1, two, half, 8, error); break;
        case SHORT: status = constant(g, KILIM_FLOAT32, 1, two, half, 7, error); break;
        case NO_DATA: status = constant(g, KILIM_FLOAT32, 1, two, NULL, 8, error); break;
        case TYPE: status = constant(g, 99, 1, two, half, 8, error); break;
        case TEXT: status = add(g, "Neg", "x", NULL, "\xff", error); break;
        case KIND:
        case AGAIN: {
            const int64_t axis = 1;
            const KilimAttribute attribute = {.name = "axis", .kind = CASE == KIND ? 9 : KILIM_INTS, .count = 1, .values = &axis};
            const KilimAttribute both[] = {attribute, attribute};
            const char *from = "x", *to = "y";
            const KilimOperation told = {.op = "Softmax", .attribute_count = CASE == KIND ? 1 : 2, .attributes = both,
                                         .input_count = 1, .inputs = &from, .output_count = 1, .outputs = &to};
            status = g->node(g->self, &told, error);
            break;
        }
        case MANY:
            for (int i = 0; !status; i++) {
                char name[32];
                snprintf(name, sizeof name, "v%d", i);
                status = add(g, "Neg", "x", NULL, name, error);
            }
            break;
        case LYING:
            constant(g, KILIM_FLOAT32, 1, two, half, 7, NULL);
            add(g, "Add", "x", "w", "y", error);
            break;
        case NEWER: {
            struct Later {
                KilimGraph known;
                void *later;
            };
            if (KILIM_IMPORTER_HAS(g, struct Later, later)) return fail(error, KILIM_DEVICE, "what came later is there");
            add(g, "Neg", "x", NULL, "y", error);
            break;
        }
        case DESCRIBED:
        case NO_KEY:
        case NO_TEXTS:
        case NO_METADATA:
            add(g, "Neg", "x", NULL, "y", error);
            status = describe(g, error);
            break;
        case CONTROL: status = control(g, error); break;
        default: break;
    }
    if (CASE > CONTROL) status = body(g, error);
    if (status) return status;
    g->output(g->self, "y", error);
    return KILIM_OK;
}

const KilimImporter *kilim_importer(const KilimHost *host) {
    (void)host, (void)probe, (void)load;
#ifdef CRASH
    abort();
#endif
#ifdef REFUSE
    return NULL;
#endif
    static const KilimImporter table = {
        .version = VERSION,
        .size = SIZE,
        .probe = probe,
#ifndef WITHOUT_LOAD
        .load = load,
#endif
    };
    return &table;
}
