#include "arm_compute/runtime/NEON/functions/NEConvolutionLayer.h"
#include "arm_compute/runtime/NEON/functions/NEDeconvolutionLayer.h"
#include "arm_compute/runtime/NEON/functions/NEDepthwiseConvolutionLayer.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLConvolutionLayer.h"
#include "arm_compute/runtime/CL/functions/CLDeconvolutionLayer.h"
#include "arm_compute/runtime/CL/functions/CLDepthwiseConvolutionLayer.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(ConvolutionLayer)
KILIM_ACL_FUNCTION(DepthwiseConvolutionLayer)
KILIM_ACL_FUNCTION(DeconvolutionLayer)

template <class T> static void convolution(Call<T> &call, const kilim_acl_convolution_info &info) {
    const bool fast_math = false;
    call.template make<ConvolutionLayerOn<T>>(call.input(0), call.input(1), call.input(2), call.output(0), pad_stride_info(info.window),
                                              WeightsInfo(), dilation(info.window), activation_info(info.activation), fast_math, info.groups);
}

template <class T> static void depthwise_convolution(Call<T> &call, const kilim_acl_depthwise_convolution_info &info) {
    call.template make<DepthwiseConvolutionLayerOn<T>>(call.input(0), call.input(1), call.input(2), call.output(0),
                                                       pad_stride_info(info.window), info.multiplier, activation_info(info.activation),
                                                       dilation(info.window));
}

template <class T> static void deconvolution(Call<T> &call, const kilim_acl_deconvolution_info &info) {
    call.template make<DeconvolutionLayerOn<T>>(call.input(0), call.input(1), call.input(2), call.output(0), pad_stride_info(info.window));
}

KILIM_ACL_ENTRY(convolution)
KILIM_ACL_ENTRY(depthwise_convolution)
KILIM_ACL_ENTRY(deconvolution)
