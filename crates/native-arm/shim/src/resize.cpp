#include "arm_compute/core/KernelDescriptors.h"
#include "arm_compute/runtime/NEON/functions/NEScale.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLScale.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(Scale)

template <class T> static void resize(Call<T> &call, const kilim_acl_resize_info &info) {
    const auto policy = info.bilinear ? InterpolationPolicy::BILINEAR : InterpolationPolicy::NEAREST_NEIGHBOR;
    const auto sampling = info.center ? SamplingPolicy::CENTER : SamplingPolicy::TOP_LEFT;
#ifdef KILIM_ACL_SINCE_21
    const bool use_padding = false;
#else
    const bool use_padding = true; // replicates the border there
#endif
    const ScaleKernelInfo scale(policy, BorderMode::REPLICATE, PixelValue(), sampling, use_padding, info.align_corners);
    call.template make<ScaleOn<T>>(call.input(0), call.output(0), scale);
}

KILIM_ACL_ENTRY(resize)
