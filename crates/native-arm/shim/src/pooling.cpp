#include "arm_compute/runtime/NEON/functions/NEPoolingLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLPoolingLayer.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(PoolingLayer)

template <class T> static void pooling(Call<T> &call, const kilim_acl_pooling_info &info) {
    const auto type = info.max ? PoolingType::MAX : PoolingType::AVG;
    const PoolingLayerInfo layer(type, Size2D(info.kernel_x, info.kernel_y), call.input(0)->info.data_layout(), pad_stride_info(info.window),
                                 info.exclude_padding);
    call.template make<PoolingLayerOn<T>>(call.input(0), call.output(0), layer);
}

KILIM_ACL_ENTRY(pooling)
