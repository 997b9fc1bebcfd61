#include "arm_compute/runtime/NEON/functions/NESoftmaxLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLSoftmaxLayer.h"
#endif

using namespace kilim_acl;

KILIM_ACL_FUNCTION(SoftmaxLayer)
KILIM_ACL_FUNCTION(LogSoftmaxLayer)

template <class T> static void softmax(Call<T> &call, const kilim_acl_softmax_info &info) {
    const int32_t axis = info.axis;
    if (info.logarithm) return call.template make<LogSoftmaxLayerOn<T>>(call.input(0), call.output(0), info.beta, axis);
    call.template make<SoftmaxLayerOn<T>>(call.input(0), call.output(0), info.beta, axis);
}

KILIM_ACL_ENTRY(softmax)
