#include "operand.hpp"

#include <vector>

using namespace arm_compute;

namespace kilim_acl {

static DataType data_type(int32_t dtype) {
    switch (dtype) {
    case KILIM_ACL_F32: return DataType::F32;
    case KILIM_ACL_F16: return DataType::F16;
    case KILIM_ACL_S32: return DataType::S32;
    case KILIM_ACL_QASYMM8: return DataType::QASYMM8;
    case KILIM_ACL_QASYMM8_SIGNED: return DataType::QASYMM8_SIGNED;
    case KILIM_ACL_QSYMM8_PER_CHANNEL: return DataType::QSYMM8_PER_CHANNEL;
    default: throw std::invalid_argument("unknown element type");
    }
}

TensorInfo describe(const kilim_acl_tensor &tensor) {
    if (tensor.rank > KILIM_ACL_MAX_RANK) throw std::invalid_argument("too many dimensions");
    TensorShape shape;
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        if (tensor.dims[i] == 0) throw std::invalid_argument("a tensor without elements");
        shape.set(i, tensor.dims[i]);
    }
    if (tensor.rank == 0) shape.set(0, 1);
    TensorInfo info(shape, 1, data_type(tensor.dtype));
    switch (tensor.layout) {
    case KILIM_ACL_NHWC: info.set_data_layout(DataLayout::NHWC); break;
    default: info.set_data_layout(DataLayout::NCHW);
    }
    if (tensor.scale_count == 1 && tensor.dtype != KILIM_ACL_QSYMM8_PER_CHANNEL) {
        info.set_quantization_info(QuantizationInfo(tensor.scales[0], tensor.zero_point));
    } else if (tensor.scale_count > 0) {
        info.set_quantization_info(QuantizationInfo(std::vector<float>(tensor.scales, tensor.scales + tensor.scale_count)));
    }
#ifdef KILIM_ACL_SINCE_21
    info.set_are_values_constant(tensor.constant);
#endif
    return info;
}

void copy_rows(const ITensorInfo &info, uint8_t *padded, uint8_t *dense, bool to_padded) {
    const auto &shape = info.tensor_shape();
    const auto &strides = info.strides_in_bytes();
    const size_t row = shape[0] * info.element_size();
    size_t index[KILIM_ACL_MAX_RANK] = {};
    size_t offset = info.offset_first_element_in_bytes();
    while (true) {
        if (to_padded) {
            std::memcpy(padded + offset, dense, row);
        } else {
            std::memcpy(dense, padded + offset, row);
        }
        dense += row;
        size_t d = 1;
        for (; d < KILIM_ACL_MAX_RANK; ++d) {
            offset += strides[d];
            if (++index[d] < shape[d]) break;
            offset -= index[d] * strides[d];
            index[d] = 0;
        }
        if (d == KILIM_ACL_MAX_RANK) return;
    }
}

} // namespace kilim_acl
