#include "arm_compute/runtime/NEON/functions/NEDequantizationLayer.h"
#include "arm_compute/runtime/NEON/functions/NEQuantizationLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLDequantizationLayer.h"
#include "arm_compute/runtime/CL/functions/CLQuantizationLayer.h"
#endif

using namespace kilim_acl;

KILIM_ACL_FUNCTION(DequantizationLayer)
KILIM_ACL_FUNCTION(QuantizationLayer)

template <class T> static void dequantize(Call<T> &call, const kilim_acl_dequantize_info &) {
    call.template make<DequantizationLayerOn<T>>(call.input(0), call.output(0));
}

template <class T> static void quantize(Call<T> &call, const kilim_acl_quantize_info &) {
    call.template make<QuantizationLayerOn<T>>(call.input(0), call.output(0));
}

KILIM_ACL_ENTRY(dequantize)
KILIM_ACL_ENTRY(quantize)
