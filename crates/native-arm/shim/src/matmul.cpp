#include "arm_compute/runtime/NEON/functions/NEFullyConnectedLayer.h"
#include "arm_compute/runtime/NEON/functions/NEGEMM.h"
#include "arm_compute/runtime/NEON/functions/NEGEMMLowpMatrixMultiplyCore.h"
#include "info.hpp"
#ifdef KILIM_ACL_HAS_MATMUL
#include "arm_compute/function_info/MatMulInfo.h"
#include "arm_compute/runtime/NEON/functions/NEMatMul.h"
#endif
#ifdef KILIM_ACL_WITH_CL
#ifdef KILIM_ACL_HAS_MATMUL
#include "arm_compute/runtime/CL/functions/CLMatMul.h"
#endif
#include "arm_compute/runtime/CL/functions/CLFullyConnectedLayer.h"
#include "arm_compute/runtime/CL/functions/CLGEMM.h"
#include "arm_compute/runtime/CL/functions/CLGEMMLowpMatrixMultiplyCore.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(FullyConnectedLayer)
KILIM_ACL_FUNCTION(GEMM)
KILIM_ACL_FUNCTION(GEMMLowpMatrixMultiplyCore)

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

template <class T> static void integer_product(Call<T> &call, const kilim_acl_integer_product_info &) {
    Operand<T> *const nothing = nullptr;
    const GEMMInfo packing(false, false, call.input(1)->constant());
    call.template make<GEMMLowpMatrixMultiplyCoreOn<T>>(call.input(0), call.input(1), nothing, call.output(0), packing);
}

#ifdef KILIM_ACL_HAS_MATMUL
// The two targets are told of different settings.
template <class T> struct Settings;
template <> struct Settings<Neon> {
    static Status validate(const ITensorInfo *a, const ITensorInfo *b, const ITensorInfo *y, const MatMulInfo &info) {
        return NEMatMul::validate(a, b, y, info, CpuMatMulSettings());
    }
    static void configure(NEMatMul &function, ITensor *a, ITensor *b, ITensor *y, const MatMulInfo &info) {
        function.configure(a, b, y, info, CpuMatMulSettings());
    }
    using Function = NEMatMul;
};
KILIM_ACL_ON_CL(template <> struct Settings<Cl> {
    static Status validate(const ITensorInfo *a, const ITensorInfo *b, const ITensorInfo *y, const MatMulInfo &info) {
        return CLMatMul::validate(a, b, y, info);
    }
    static void configure(CLMatMul &function, ICLTensor *a, ICLTensor *b, ICLTensor *y, const MatMulInfo &info) {
        function.configure(a, b, y, info);
    }
    using Function = CLMatMul;
};)
#endif

template <class T> static void matmul(Call<T> &call, const kilim_acl_matmul_info &info) {
#ifdef KILIM_ACL_HAS_MATMUL
    auto a = call.input(0), b = call.input(1), y = call.output(0);
    const auto layer = MatMulInfo().adj_lhs(info.transpose_a).adj_rhs(info.transpose_b);
    call.check(Settings<T>::validate(&a->info, &b->info, &y->info, layer));
    if (!call.wanted()) return;
    call.init();
    auto function = std::make_unique<typename Settings<T>::Function>();
    Settings<T>::configure(*function, &a->tensor, &b->tensor, &y->tensor, layer);
    call.finish(std::move(function));
#else
    throw Refused("this release of ACL has no MatMul");
#endif
}

KILIM_ACL_ENTRY(fully_connected)
KILIM_ACL_ENTRY(gemm)
KILIM_ACL_ENTRY(matmul)
KILIM_ACL_ENTRY(integer_product)
