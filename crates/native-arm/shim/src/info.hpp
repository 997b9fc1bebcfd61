// From the structures of kilim_acl.h to ACL's own, for several families.
#pragma once

#include "call.hpp"

namespace kilim_acl {

inline arm_compute::ActivationLayerInfo activation_info(const kilim_acl_activation_info &info) {
    if (!info.enabled) return {};
    using Function = arm_compute::ActivationLayerInfo::ActivationFunction;
    if (info.function < KILIM_ACL_LOGISTIC || info.function > KILIM_ACL_GELU) throw std::invalid_argument("unknown activation");
#ifndef KILIM_ACL_SINCE_21
    if (info.function == KILIM_ACL_SWISH) throw Refused("this release of ACL has no SWISH");
    if (info.function == KILIM_ACL_GELU) throw Refused("this release of ACL has no GELU");
    if (info.function == KILIM_ACL_SQRT) throw Refused("this release of ACL makes NaN of the square root of infinity");
#endif
    return {static_cast<Function>(info.function), info.a, info.b};
}

inline arm_compute::PadStrideInfo pad_stride_info(const kilim_acl_window &w) {
    return {w.stride_x, w.stride_y, w.pad_left, w.pad_right, w.pad_top, w.pad_bottom, arm_compute::DimensionRoundingType::FLOOR};
}

inline arm_compute::Size2D dilation(const kilim_acl_window &w) { return {w.dilation_x, w.dilation_y}; }

} // namespace kilim_acl
