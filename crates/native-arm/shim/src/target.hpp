// What differs between ACL's two targets: the classes of tensors, and how their memory is reached.
#pragma once

#include "arm_compute/core/Error.h"
#include "arm_compute/core/Types.h"
#include "arm_compute/runtime/Tensor.h"

#ifdef KILIM_ACL_WITH_CL
#include "arm_compute/core/CL/CLKernelLibrary.h"
#include "arm_compute/runtime/CL/CLScheduler.h"
#include "arm_compute/runtime/CL/CLTensor.h"
#endif

namespace kilim_acl {

struct Neon {
    using Tensor = arm_compute::Tensor;
    using ITensor = arm_compute::ITensor;

    static constexpr bool on_cpu = true;
    // Operators work on the caller's memory where it has the layout that they want.
    static constexpr bool imports = true;
    static void import(Tensor &tensor, void *memory) {
        const auto status = tensor.allocator()->import_memory(memory);
        if (!bool(status)) throw std::runtime_error(status.error_description());
    }
    static void open(Tensor &) {}
    static void close(Tensor &) {}
    static void finish() {}
    // Each function answers for itself.
    static bool has_half() { return true; }
};

#ifdef KILIM_ACL_WITH_CL
struct Cl {
    using Tensor = arm_compute::CLTensor;
    using ITensor = arm_compute::ICLTensor;

    static constexpr bool on_cpu = false;
    static constexpr bool imports = false;
    static void import(Tensor &, void *) {}
    static void open(Tensor &tensor) { tensor.map(true); }
    static void close(Tensor &tensor) { tensor.unmap(); }
    static void finish() { arm_compute::CLScheduler::get().sync(); }
    // Not every function's `validate` asks the device.
    static bool has_half() { return arm_compute::CLKernelLibrary::get().fp16_supported(); }
};
#define KILIM_ACL_ON_CL(...) __VA_ARGS__
#else
#define KILIM_ACL_ON_CL(...)
#endif

} // namespace kilim_acl

// Names an ACL function `NEname`, `CLname` for both targets: `nameOn<T>`.
#define KILIM_ACL_FUNCTION(name) KILIM_ACL_FUNCTIONS(name, arm_compute::NE##name, arm_compute::CL##name)
#define KILIM_ACL_FUNCTIONS(name, neon, cl)                                          \
    template <class T> struct name##Of;                                              \
    template <> struct name##Of<kilim_acl::Neon> { using Type = neon; };             \
    KILIM_ACL_ON_CL(template <> struct name##Of<kilim_acl::Cl> { using Type = cl; };) \
    template <class T> using name##On = typename name##Of<T>::Type;
