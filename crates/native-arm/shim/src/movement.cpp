#include "arm_compute/runtime/NEON/functions/NEConcatenateLayer.h"
#include "arm_compute/runtime/NEON/functions/NEPermute.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLConcatenateLayer.h"
#include "arm_compute/runtime/CL/functions/CLPermute.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(ConcatenateLayer)
KILIM_ACL_FUNCTION(Permute)

template <class T> static void concatenate(Call<T> &call, const kilim_acl_concatenate_info &info) {
    std::vector<const ITensorInfo *> infos;
    std::vector<const typename T::ITensor *> tensors;
    for (size_t i = 0; i < call.inputs(); ++i) {
        infos.push_back(&call.input(i)->info);
        tensors.push_back(&call.input(i)->tensor);
    }
    call.check(ConcatenateLayerOn<T>::validate(infos, &call.output(0)->info, info.axis));
    if (!call.wanted()) return;
    call.init();
    auto function = std::make_unique<ConcatenateLayerOn<T>>();
    function->configure(tensors, &call.output(0)->tensor, info.axis);
    call.finish(std::move(function));
}

template <class T> static void permute(Call<T> &call, const kilim_acl_permute_info &info) {
    if (info.rank > 4) throw Refused("more than 4 dimensions are permuted");
    PermutationVector order;
    for (uint32_t i = 0; i < info.rank; ++i) order.set(i, info.order[i]);
    call.template make<PermuteOn<T>>(call.input(0), call.output(0), order);
}

KILIM_ACL_ENTRY(concatenate)
KILIM_ACL_ENTRY(permute)
