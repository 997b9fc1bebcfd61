#include "arm_compute/runtime/NEON/functions/NEActivationLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLActivationLayer.h"
#endif

using namespace kilim_acl;

KILIM_ACL_FUNCTION(ActivationLayer)

template <class T> static void activation(Call<T> &call, const kilim_acl_activation_info &info) {
    call.template make<ActivationLayerOn<T>>(call.input(0), call.output(0), activation_info(info));
}

KILIM_ACL_ENTRY(activation)
