#include "arm_compute/runtime/NEON/functions/NEDequantizationLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLDequantizationLayer.h"
#endif

using namespace kilim_acl;

KILIM_ACL_FUNCTION(DequantizationLayer)

template <class T> static void dequantize(Call<T> &call, const kilim_acl_dequantize_info &) {
    call.template make<DequantizationLayerOn<T>>(call.input(0), call.output(0));
}

KILIM_ACL_ENTRY(dequantize)
