/* A convolution on floats, in two ways. */
#ifndef CONV_KERNELS_H
#define CONV_KERNELS_H

#include "layer.h"

/* Where a point of an axis begins to read. */
static int64_t at(const Conv *c, int axis, int64_t o, int64_t k) { return o * c->stride[axis] + k * c->dilation[axis] - c->before[axis]; }

static void by_points(const Conv *c, const float *x, const float *w, const float *bias, const float *added, float *y) {
    int64_t in = c->in / c->groups, out = c->out / c->groups;
    int64_t step = c->last ? c->in : 1, plane = c->last ? 1 : c->height * c->width;
    int64_t out_step = c->last ? c->out : 1, out_plane = c->last ? 1 : c->out_height * c->out_width;
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t m = 0; m < c->out; m++)
            for (int64_t oy = 0; oy < c->out_height; oy++)
                for (int64_t ox = 0; ox < c->out_width; ox++) {
                    int64_t place = n * c->out * c->out_height * c->out_width + m * out_plane + (oy * c->out_width + ox) * out_step;
                    float sum = (bias ? bias[m] : 0) + (added ? added[place] : 0);
                    for (int64_t i = 0; i < in; i++)
                        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
                            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                                int64_t iy = at(c, 0, oy, ky), ix = at(c, 1, ox, kx);
                                if (iy < 0 || iy >= c->height || ix < 0 || ix >= c->width) continue;
                                const float *image = x + n * c->in * c->height * c->width + (m / out * in + i) * plane;
                                sum += image[(iy * c->width + ix) * step] * w[((m * in + i) * c->kernel[0] + ky) * c->kernel[1] + kx];
                            }
                    y[place] = c->relu && sum < 0 ? 0 : sum;
                }
}

static void by_rows(const Conv *c, const float *x, const float *w, const float *bias, const float *added, float *y) {
    int64_t in = c->in / c->groups, out = c->out / c->groups, points = c->out_height * c->out_width;
    for (int64_t plane = 0; plane < c->batch * c->out; plane++, y += points) {
        int64_t n = plane / c->out, m = plane % c->out;
        for (int64_t i = 0; i < points; i++) y[i] = (bias ? bias[m] : 0) + (added ? added[plane * points + i] : 0);
        for (int64_t i = 0; i < in; i++)
            for (int64_t ky = 0; ky < c->kernel[0]; ky++)
                for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                    float factor = w[((m * in + i) * c->kernel[0] + ky) * c->kernel[1] + kx];
                    const float *image = x + ((n * c->in + m / out * in + i) * c->height) * c->width;
                    int64_t from = 0, to = c->out_width;
                    while (from < to && at(c, 1, from, kx) < 0) from++;
                    while (to > from && at(c, 1, to - 1, kx) >= c->width) to--;
                    for (int64_t oy = 0; oy < c->out_height; oy++) {
                        int64_t iy = at(c, 0, oy, ky);
                        if (iy < 0 || iy >= c->height) continue;
                        const float *row = image + iy * c->width + at(c, 1, 0, kx);
                        float *result = y + oy * c->out_width;
                        for (int64_t ox = from; ox < to; ox++) result[ox] += factor * row[ox * c->stride[1]];
                    }
                }
        for (int64_t i = 0; c->relu && i < points; i++) y[i] = y[i] < 0 ? 0 : y[i];
    }
}

#endif
