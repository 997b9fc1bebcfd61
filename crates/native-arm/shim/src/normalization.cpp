#include "arm_compute/runtime/NEON/functions/NEBatchNormalizationLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLBatchNormalizationLayer.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(BatchNormalizationLayer)

template <class T> static void batch_normalization(Call<T> &call, const kilim_acl_batch_normalization_info &info) {
    call.template make<BatchNormalizationLayerOn<T>>(call.input(0), call.output(0), call.input(1), call.input(2), call.input(3), call.input(4),
                                                     info.epsilon);
}

KILIM_ACL_ENTRY(batch_normalization)
