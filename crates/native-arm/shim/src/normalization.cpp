#include "arm_compute/runtime/NEON/functions/NEBatchNormalizationLayer.h"
#include "arm_compute/runtime/NEON/functions/NENormalizationLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLBatchNormalizationLayer.h"
#include "arm_compute/runtime/CL/functions/CLNormalizationLayer.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(BatchNormalizationLayer)
KILIM_ACL_FUNCTION(NormalizationLayer)

template <class T> static void batch_normalization(Call<T> &call, const kilim_acl_batch_normalization_info &info) {
    call.template make<BatchNormalizationLayerOn<T>>(call.input(0), call.output(0), call.input(1), call.input(2), call.input(3), call.input(4),
                                                     info.epsilon);
}

template <class T> static void local_response_normalization(Call<T> &call, const kilim_acl_local_response_normalization_info &info) {
    const NormalizationLayerInfo layer(NormType::CROSS_MAP, info.size, info.alpha, info.beta, info.kappa, true);
    call.template make<NormalizationLayerOn<T>>(call.input(0), call.output(0), layer);
}

KILIM_ACL_ENTRY(batch_normalization)
KILIM_ACL_ENTRY(local_response_normalization)
