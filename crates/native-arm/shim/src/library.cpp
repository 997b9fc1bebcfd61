// What is not about one operator: versions, starting a target, threads, running.
#include <cstdio>

#include "arm_compute/core/Version.h"
#include "arm_compute/runtime/NEON/NEScheduler.h"
#include "call.hpp"

namespace kilim_acl {

static void say(char *reason, size_t size, const char *text) {
    if (size > 0) std::snprintf(reason, size, "%s", text);
}

int32_t guarded(char *reason, size_t size, void (*body)(void *), void *state) {
    try {
        body(state);
        return KILIM_ACL_OK;
    } catch (const Refused &e) {
        say(reason, size, e.what());
        return KILIM_ACL_REFUSED;
    } catch (const std::exception &e) {
        say(reason, size, e.what());
    } catch (...) {
        say(reason, size, "an exception of an unknown type");
    }
    return KILIM_ACL_FAILED;
}

static void start_cl() {
#ifdef KILIM_ACL_WITH_CL
    if (!arm_compute::opencl_is_available()) throw Refused("no OpenCL library was found (libOpenCL.so, libGLES_mali.so, libmali.so)");
    cl_uint platforms = 0;
    if (clGetPlatformIDs(0, nullptr, &platforms) != CL_SUCCESS || platforms == 0) throw Refused("OpenCL has no platform");
    arm_compute::CLScheduler::get().default_init();
#else
    throw Refused("libkilim_acl was built without OpenCL");
#endif
}

} // namespace kilim_acl

using namespace kilim_acl;

uint32_t kilim_acl_abi(void) { return KILIM_ACL_ABI; }

const char *kilim_acl_build_info(void) {
    static const std::string text = arm_compute::build_information();
    return text.c_str();
}

int32_t kilim_acl_start(int32_t target, char *reason, size_t size) {
    return guard(reason, size, [&] {
        if (target == KILIM_ACL_CL) start_cl();
    });
}

void kilim_acl_set_threads(uint32_t threads) {
    char reason[1];
    guard(reason, 0, [&] { arm_compute::NEScheduler::get().set_num_threads(threads); });
}

int32_t kilim_acl_run(kilim_acl_operator *op, const void *const *inputs, void *const *outputs, char *reason, size_t size) {
    return guard(reason, size, [&] { op->run(inputs, outputs); });
}

size_t kilim_acl_bytes(const kilim_acl_operator *op) { return op->bytes(); }

void kilim_acl_destroy(kilim_acl_operator *op) {
    char reason[1];
    guard(reason, 0, [&] { delete op; });
}
