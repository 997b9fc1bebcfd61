#include "arm_compute/runtime/NEON/functions/NEFullyConnectedLayer.h"
#include "arm_compute/runtime/NEON/functions/NEGEMM.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLFullyConnectedLayer.h"
#include "arm_compute/runtime/CL/functions/CLGEMM.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(FullyConnectedLayer)
KILIM_ACL_FUNCTION(GEMM)

template <class T> static void fully_connected(Call<T> &call, const kilim_acl_fully_connected_info &info) {
    FullyConnectedLayerInfo layer;
    layer.activation_info = activation_info(info.activation);
    call.template make<FullyConnectedLayerOn<T>>(call.input(0), call.input(1), call.input(2), call.output(0), layer);
}

template <class T> static void gemm(Call<T> &call, const kilim_acl_gemm_info &info) {
    Operand<T> *const nothing = nullptr;
    const GEMMInfo every_run(false, false, false); // b is computed: it is packed anew in every run
    call.template make<GEMMOn<T>>(call.input(0), call.input(1), nothing, call.output(0), info.alpha, 0.f, every_run);
}

KILIM_ACL_ENTRY(fully_connected)
KILIM_ACL_ENTRY(gemm)
