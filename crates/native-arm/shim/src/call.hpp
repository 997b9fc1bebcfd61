// From a request to an answer of ACL and, where it is wanted, an operator that is ready to run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arm_compute/runtime/IFunction.h"
#include "operand.hpp"

struct kilim_acl_operator {
    virtual ~kilim_acl_operator() = default;
    virtual void run(const void *const *inputs, void *const *outputs) = 0;
    virtual size_t bytes() const = 0;
};

namespace kilim_acl {

/// Thrown where ACL does not run what was asked for.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class T> class Operator final : public kilim_acl_operator {
  public:
    using Operands = std::vector<std::unique_ptr<Operand<T>>>;

    Operator(std::unique_ptr<arm_compute::IFunction> function, Operands inputs, Operands outputs)
        : inputs_(std::move(inputs)), outputs_(std::move(outputs)), function_(std::move(function)) {
        bool constants = false;
        each([&](Operand<T> &operand) {
            operand.allocate();
            constants |= operand.constant();
        });
        if (!constants) return; // a preparation would read tensors that have no memory yet
        function_->prepare();
        T::finish();
        each([](Operand<T> &operand) { operand.release_unused(); });
    }

    void run(const void *const *inputs, void *const *outputs) override {
        for (size_t i = 0; i < inputs_.size(); ++i) {
            if (!inputs_[i]) continue;
            inputs_[i]->bind(const_cast<void *>(inputs[i]));
            inputs_[i]->load(inputs[i]);
        }
        for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i]->bind(outputs[i]);
        function_->run();
        T::finish();
        for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i]->store(outputs[i]);
    }

    size_t bytes() const override {
        size_t sum = 0;
        for (auto &operand : inputs_) sum += operand ? operand->bytes() : 0;
        for (auto &operand : outputs_) sum += operand->bytes();
        return sum;
    }

  private:
    template <class F> void each(F f) {
        for (auto &operand : inputs_) {
            if (operand) f(*operand);
        }
        for (auto &operand : outputs_) f(*operand);
    }

    Operands inputs_, outputs_;
    std::unique_ptr<arm_compute::IFunction> function_; // goes first: it refers to the tensors
};

/// A request on one target. A family calls `make` once, with the arguments that ACL's `validate` and
/// `configure` have in common.
template <class T> class Call {
  public:
    explicit Call(const kilim_acl_request &request) : make_(request.make) {
        take(request.inputs, request.input_count, inputs_);
        take(request.outputs, request.output_count, outputs_);
    }

    /// Input `i`, null where it is left out.
    Operand<T> *input(size_t i) { return i < inputs_.size() ? inputs_[i].get() : nullptr; }
    size_t inputs() const { return inputs_.size(); }
    Operand<T> *output(size_t i) { return outputs_.at(i).get(); }

    template <class F, class... Arguments> void make(Arguments... arguments) {
        check(F::validate(info_of(arguments)...));
        if (!make_) return;
        init();
        auto function = std::make_unique<F>();
        function->configure(tensor_of(arguments)...);
        finish(std::move(function));
    }

    /// For functions whose `validate` and `configure` do not have the same arguments.
    void check(const arm_compute::Status &status) {
        if (!bool(status)) throw Refused(status.error_description());
    }
    bool wanted() const { return make_; }
    void init() {
        for (auto &operand : inputs_) {
            if (operand) operand->init();
        }
        for (auto &operand : outputs_) operand->init();
    }
    void finish(std::unique_ptr<arm_compute::IFunction> function) {
        *make_ = new Operator<T>(std::move(function), std::move(inputs_), std::move(outputs_));
    }

  private:
    static void take(const kilim_acl_tensor *tensors, uint32_t count, typename Operator<T>::Operands &into) {
        for (uint32_t i = 0; i < count; ++i) {
            const bool absent = tensors[i].dtype == KILIM_ACL_ABSENT;
            if (tensors[i].dtype == KILIM_ACL_F16 && !T::has_half()) throw Refused("FP16 not supported by the device");
            into.push_back(absent ? nullptr : std::make_unique<Operand<T>>(tensors[i]));
        }
    }

    arm_compute::ITensorInfo *info_of(Operand<T> *operand) { return operand ? &operand->info : nullptr; }
    template <class V> const V &info_of(const V &value) { return value; }
    typename T::ITensor *tensor_of(Operand<T> *operand) { return operand ? &operand->tensor : nullptr; }
    template <class V> const V &tensor_of(const V &value) { return value; }

    kilim_acl_operator **make_;
    typename Operator<T>::Operands inputs_, outputs_;
};

/// Calls `body` and turns what it throws into a status and a reason; nothing may unwind into Rust.
int32_t guarded(char *reason, size_t reason_size, void (*body)(void *), void *state);

template <class F> int32_t guard(char *reason, size_t reason_size, F body) {
    return guarded(reason, reason_size, [](void *state) { (*static_cast<F *>(state))(); }, &body);
}

} // namespace kilim_acl

// The exported function of a family, from `template <class T> void family(Call<T> &, const info &)`.
#define KILIM_ACL_ENTRY(family)                                                                         \
    int32_t kilim_acl_##family(const kilim_acl_request *request, const kilim_acl_##family##_info *info) { \
        return kilim_acl::guard(request->reason, request->reason_size, [&] {                            \
            if (request->target == KILIM_ACL_NEON) {                                                    \
                kilim_acl::Call<kilim_acl::Neon> call(*request);                                        \
                return family(call, *info);                                                             \
            }                                                                                           \
            KILIM_ACL_ON_CL(if (request->target == KILIM_ACL_CL) {                                      \
                kilim_acl::Call<kilim_acl::Cl> call(*request);                                          \
                return family(call, *info);                                                             \
            })                                                                                          \
            throw kilim_acl::Refused("libkilim_acl was built without this target");                     \
        });                                                                                             \
    }
