#include <sys/auxv.h>

#include "arm_compute/runtime/NEON/functions/NEArithmeticAddition.h"
#include "arm_compute/runtime/NEON/functions/NEArithmeticSubtraction.h"
#include "arm_compute/runtime/NEON/functions/NEElementwiseOperations.h"
#include "arm_compute/runtime/NEON/functions/NEElementwiseUnaryLayer.h"
#include "arm_compute/runtime/NEON/functions/NEFloor.h"
#include "arm_compute/runtime/NEON/functions/NEPReluLayer.h"
#include "arm_compute/runtime/NEON/functions/NEPixelWiseMultiplication.h"
#include "info.hpp"
#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/runtime/CL/functions/CLElementwiseOperations.h"
#if __has_include("arm_compute/runtime/CL/functions/CLElementwiseUnaryLayer.h")
#include "arm_compute/runtime/CL/functions/CLElementwiseUnaryLayer.h"
#else
#include "arm_compute/runtime/CL/functions/CLElementWiseUnaryLayer.h"
#endif
#include "arm_compute/runtime/CL/functions/CLFloor.h"
#include "arm_compute/runtime/CL/functions/CLPReluLayer.h"
#include "arm_compute/runtime/CL/functions/CLPixelWiseMultiplication.h"
#endif

using namespace arm_compute;
using namespace kilim_acl;

KILIM_ACL_FUNCTION(ArithmeticAddition)
KILIM_ACL_FUNCTION(ArithmeticSubtraction)
KILIM_ACL_FUNCTION(PixelWiseMultiplication)
KILIM_ACL_FUNCTIONS(Division, NEElementwiseDivision, CLArithmeticDivision)
KILIM_ACL_FUNCTION(ElementwiseMax)
KILIM_ACL_FUNCTION(ElementwiseMin)
KILIM_ACL_FUNCTION(PReluLayer)
KILIM_ACL_FUNCTION(ExpLayer)
KILIM_ACL_FUNCTION(NegLayer)
KILIM_ACL_FUNCTION(LogLayer)
KILIM_ACL_FUNCTION(AbsLayer)
KILIM_ACL_FUNCTION(RoundLayer)
KILIM_ACL_FUNCTION(Floor)

static const unsigned long HWCAP2_OF_SME = 1ul << 23; // not in older headers

// On an emulated processor with SME, 24.11 ends the process with a fault where it multiplies QASYMM8_SIGNED; without SME it does not.
template <class T> static void refuse_sme(Call<T> &call) {
#ifdef KILIM_ACL_SINCE_21
    const bool is_signed = call.input(0)->info.data_type() == DataType::QASYMM8_SIGNED;
    if (T::on_cpu && is_signed && (getauxval(AT_HWCAP2) & HWCAP2_OF_SME)) throw Refused("its product of int8 crashes on processors with SME");
#endif
}

template <class T> static void binary(Call<T> &call, const kilim_acl_binary_info &info) {
    auto a = call.input(0), b = call.input(1), y = call.output(0);
    switch (info.kind) {
    case KILIM_ACL_ADD: return call.template make<ArithmeticAdditionOn<T>>(a, b, y, ConvertPolicy::SATURATE);
    case KILIM_ACL_SUB: return call.template make<ArithmeticSubtractionOn<T>>(a, b, y, ConvertPolicy::SATURATE);
    case KILIM_ACL_MUL:
        refuse_sme(call);
        return call.template make<PixelWiseMultiplicationOn<T>>(a, b, y, 1.f, ConvertPolicy::SATURATE, RoundingPolicy::TO_ZERO);
    case KILIM_ACL_DIV: return call.template make<DivisionOn<T>>(a, b, y);
    case KILIM_ACL_MAX: return call.template make<ElementwiseMaxOn<T>>(a, b, y);
    case KILIM_ACL_MIN: return call.template make<ElementwiseMinOn<T>>(a, b, y);
    case KILIM_ACL_PRELU: return call.template make<PReluLayerOn<T>>(a, b, y);
    default: throw std::invalid_argument("unknown function of two inputs");
    }
}

template <class T> static void unary(Call<T> &call, const kilim_acl_unary_info &info) {
    auto x = call.input(0), y = call.output(0);
    switch (info.kind) {
    case KILIM_ACL_EXP: return call.template make<ExpLayerOn<T>>(x, y);
    case KILIM_ACL_NEG: return call.template make<NegLayerOn<T>>(x, y);
    case KILIM_ACL_LOG: return call.template make<LogLayerOn<T>>(x, y);
    case KILIM_ACL_ABSOLUTE: return call.template make<AbsLayerOn<T>>(x, y);
    case KILIM_ACL_ROUND: return call.template make<RoundLayerOn<T>>(x, y);
    case KILIM_ACL_FLOOR: return call.template make<FloorOn<T>>(x, y);
    default: throw std::invalid_argument("unknown function of one input");
    }
}

KILIM_ACL_ENTRY(binary)
KILIM_ACL_ENTRY(unary)
