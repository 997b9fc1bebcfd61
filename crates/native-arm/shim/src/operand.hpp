// A tensor of an operator: what ACL knows of it, and its memory.
#pragma once

#include <cstring>
#include <stdexcept>

#include "arm_compute/core/TensorInfo.h"
#include "kilim_acl.h"
#include "target.hpp"

namespace kilim_acl {

/// ACL's description of a dense tensor.
arm_compute::TensorInfo describe(const kilim_acl_tensor &tensor);

/// Copies between dense memory and ACL's, whose rows may have padding.
void copy_rows(const arm_compute::ITensorInfo &info, uint8_t *padded, uint8_t *dense, bool to_padded);

template <class T> class Operand {
  public:
    explicit Operand(const kilim_acl_tensor &tensor) : info(describe(tensor)), constant_(tensor.constant), data_(tensor.data) {}

    arm_compute::TensorInfo info;
    typename T::Tensor tensor;

    /// Before the function is configured.
    void init() { tensor.allocator()->init(info); }

    /// After the function is configured, which may have asked for padding.
    void allocate() {
        own_ = constant_ || !T::imports || tensor.info()->has_padding();
        if (!own_) return;
        tensor.allocator()->allocate();
        if (constant_) {
            if (!data_) throw std::invalid_argument("a constant has no data");
            copy(const_cast<void *>(data_), true);
            data_ = nullptr;
        }
    }

    /// Frees a constant that the function has packed into memory of its own.
    void release_unused() {
        if (!constant_ || tensor.is_used()) return;
        tensor.allocator()->free();
        own_ = false;
    }

    /// Gives the tensor the caller's memory for a run.
    void bind(void *memory) {
        if (constant_ || own_ || memory == bound_) return;
        T::import(tensor, memory);
        bound_ = memory;
    }

    void load(const void *memory) {
        if (own_ && !constant_) copy(const_cast<void *>(memory), true);
    }

    void store(void *memory) {
        if (own_) copy(memory, false);
    }

    bool constant() const { return constant_; }

    size_t bytes() const { return own_ ? tensor.info()->total_size() : 0; }

  private:
    void copy(void *dense, bool to_tensor) {
        T::open(tensor);
        copy_rows(*tensor.info(), tensor.buffer(), static_cast<uint8_t *>(dense), to_tensor);
        T::close(tensor);
    }

    bool constant_;
    const void *data_;
    bool own_ = false;
    void *bound_ = nullptr;
};

} // namespace kilim_acl
