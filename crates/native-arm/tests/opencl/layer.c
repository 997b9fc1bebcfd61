/* A libOpenCL.so for tests: PoCL, saying what ACL wants to hear.
 *
 * ACL starts only where work groups may be of uneven sizes, by OpenCL 2.0 or by an extension of Arm's.
 * This claims the extension, keeps its option from the compiler, and lets PoCL choose the size of
 * groups that do not divide their range. Functions of OpenCL are macros in PoCL's headers, which two things
 * in ACL's programs do not expect: names defined as themselves, and names put together from a function's.
 * It claims float16, too, for which each program begins with half.cl.
 * Everything else is the libOpenCL.so.1 that it is linked to. */
#define CL_TARGET_OPENCL_VERSION 220
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *below(const char *name) {
    static void *library;
    if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW);
    return dlsym(library, name);
}

static cl_int answer(const char *text, size_t room, void *value, size_t *size) {
    const size_t length = strlen(text) + 1;
    if (size) *size = length;
    if (!value) return CL_SUCCESS;
    if (room < length) return CL_INVALID_VALUE;
    memcpy(value, text, length);
    return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *value, size_t *size) {
    cl_int (*info)(cl_device_id, cl_device_info, size_t, void *, size_t *) = below("clGetDeviceInfo");
    char extensions[16384];
    if (what == CL_DEVICE_VERSION) return answer("OpenCL 1.2", room, value, size);
    if (what != CL_DEVICE_EXTENSIONS) return info(device, what, room, value, size);
    const cl_int status = info(device, what, sizeof extensions - 64, extensions, NULL);
    if (status != CL_SUCCESS) return status;
    strcat(extensions, " cl_arm_non_uniform_work_group_size cl_khr_fp16");
    return answer(extensions, room, value, size);
}

/* `#define NAME NAME` would undo that NAME is a macro of PoCL's. */
static void drop_definitions_as_themselves(char *text) {
    const char *define = "#define ";
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (strncmp(line, define, strlen(define))) continue;
        const char *name = line + strlen(define);
        const size_t size = strcspn(name, " \n");
        const char *value = name + size + strspn(name + size, " ");
        if (strcspn(value, " \n") == size && !strncmp(name, value, size)) memset(line, ' ', strcspn(line, "\n"));
    }
}

static const char *const HALF = "#include \"half.cl\"\n";

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts, const size_t *sizes, cl_int *error) {
    cl_program (*create)(cl_context, cl_uint, const char **, const size_t *, cl_int *) = below("clCreateProgramWithSource");
    cl_program program = NULL;
    char **copies = calloc(count + 1, sizeof *copies);
    if (copies) {
        copies[0] = strdup(HALF);
        for (cl_uint i = 0; i < count; i++) {
            char *copy = sizes && sizes[i] ? strndup(texts[i], sizes[i]) : strdup(texts[i]);
            if (copy) drop_definitions_as_themselves(copy);
            copies[i + 1] = copy;
        }
        program = create(context, count + 1, (const char **)copies, NULL, error);
        for (cl_uint i = 0; i <= count; i++) free(copies[i]);
        free(copies);
    }
    return program;
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                      void (*done)(cl_program, void *), void *data) {
    cl_int (*build)(cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *) =
        below("clBuildProgram");
    const char *unknown = "-cl-arm-non-uniform-work-group-size";
    char known[16384], *at;
    /* ACL puts `_op` behind the name of an activation, after PoCL has replaced that name by its own. Unoptimised,
     * programs are compiled in two thirds of the time. */
    const char *ours = "-w -cl-opt-disable -D_cl_abs_op=abs_op -D_cl_sqrt_op=sqrt_op -D_cl_tanh_op=tanh_op -I" HERE;
    snprintf(known, sizeof known, "%s %s", options ? options : "", ours);
    while ((at = strstr(known, unknown))) memset(at, ' ', strlen(unknown));
    return build(program, count, devices, known, done, data);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t *offset, const size_t *global,
                              const size_t *local, cl_uint waits, const cl_event *wait_for, cl_event *event) {
    cl_int (*enqueue)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,
                      const cl_event *, cl_event *) = below("clEnqueueNDRangeKernel");
    for (cl_uint i = 0; local && i < rank; i++) {
        if (!local[i] || global[i] % local[i]) local = NULL;
    }
    return enqueue(queue, kernel, rank, offset, global, local, waits, wait_for, event);
}
