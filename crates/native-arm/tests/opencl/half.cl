// float16 for PoCL, which has none on AArch64: the compiler's own type, and OpenCL's functions of it by way of float.
// Each result is rounded once, as a device's is.

#define half _Float16
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half3 __attribute__((ext_vector_type(3)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef half half16 __attribute__((ext_vector_type(16)));

// ACL puts names together from that of the element type, which is a macro here: they are those of `half`.
#define _Float161 half
#define _Float162 half2
#define _Float163 half3
#define _Float164 half4
#define _Float168 half8
#define _Float1616 half16
#define convert__Float16 convert_half
#define convert__Float16_sat convert_half
#define convert__Float161 convert_half
#define convert__Float161_sat convert_half
#define convert__Float162 convert_half2
#define convert__Float162_sat convert_half2
#define convert__Float163 convert_half3
#define convert__Float163_sat convert_half3
#define convert__Float164 convert_half4
#define convert__Float164_sat convert_half4
#define convert__Float168 convert_half8
#define convert__Float168_sat convert_half8
#define convert__Float1616 convert_half16
#define convert__Float1616_sat convert_half16
#define MIN_VALUE__Float16 MIN_VALUE_half
#define select_vec_dt__Float16 select_vec_dt_half
#define signed_int_vec_dt__Float16 signed_int_vec_dt_half
#define T_MMUL_NT_NT__Float16__Float16__Float16 T_MMUL_NT_NT_half_half_half
#define T_MMUL_NT_NT__Float16__Float16_float T_MMUL_NT_NT_half_half_float
#define T_MMUL_NT_T__Float16__Float16__Float16 T_MMUL_NT_T_half_half_half
#define T_MMUL_NT_T__Float16__Float16_float T_MMUL_NT_T_half_half_float
#define T_MMUL_T_NT__Float16__Float16__Float16 T_MMUL_T_NT_half_half_half
#define T_MMUL_T_NT__Float16__Float16_float T_MMUL_T_NT_half_half_float
#define T_MMUL_T_T__Float16__Float16__Float16 T_MMUL_T_T_half_half_half
#define T_MMUL_T_T__Float16__Float16_float T_MMUL_T_T_half_half_float

#define HALF_MAX ((half)65504.0f)

#define OVERLOAD static inline __attribute__((overloadable))
#define TO(T, v) __builtin_convertvector(v, T)

// In memory.
#define MEMORY(N, P)                                                       \
    OVERLOAD half##N vload##N(size_t i, const P half *p) {                 \
        half##N v;                                                         \
        for (int k = 0; k < N; k++) v[k] = p[N * i + k];                   \
        return v;                                                          \
    }
#define WRITABLE(N, P)                                                     \
    MEMORY(N, P)                                                           \
    OVERLOAD void vstore##N(half##N v, size_t i, P half *p) {              \
        for (int k = 0; k < N; k++) p[N * i + k] = v[k];                   \
    }
#define MEMORIES(N) WRITABLE(N, __global) WRITABLE(N, __local) WRITABLE(N, __private) MEMORY(N, __constant)
MEMORIES(2) MEMORIES(3) MEMORIES(4) MEMORIES(8) MEMORIES(16)

// Conversions.
#define FROM(N, T) OVERLOAD half##N convert_half##N(T##N v) { return TO(half##N, v); }
#define INTO(N, T) OVERLOAD T##N convert_##T##N(half##N v) { return TO(T##N, v); }
#define ONE(T)                                                             \
    OVERLOAD half convert_half(T v) { return (half)v; }                    \
    OVERLOAD T convert_##T(half v) { return (T)v; }
#define BOTH(N, T) FROM(N, T) INTO(N, T)
#define EACH(N)                                                            \
    FROM(N, half) BOTH(N, float) BOTH(N, int) BOTH(N, uint)                \
    BOTH(N, short) BOTH(N, ushort) BOTH(N, char) BOTH(N, uchar)
EACH(2) EACH(3) EACH(4) EACH(8) EACH(16)
ONE(float) ONE(int) ONE(uint) ONE(short) ONE(ushort) ONE(char) ONE(uchar)
OVERLOAD half convert_half(half v) { return v; }
OVERLOAD half convert_half_rte(half v) { return v; }
OVERLOAD half convert_half_rtz(half v) { return v; }
OVERLOAD half convert_half_rte(float v) { return (half)v; }
OVERLOAD half convert_half_rtz(float v) {
    const half near = (half)v;
    const ushort bits = __builtin_astype(near, ushort);
    return fabs((float)near) > fabs(v) ? __builtin_astype((ushort)(bits - 1), half) : near;
}
#define ROUNDED_FROM(N, T, HOW)                                            \
    OVERLOAD half##N convert_half##N##_##HOW(T##N v) {                     \
        half##N rounded;                                                   \
        for (int k = 0; k < N; k++) rounded[k] = convert_half_##HOW(v[k]); \
        return rounded;                                                    \
    }
#define ROUNDED(N)                                                         \
    ROUNDED_FROM(N, half, rte) ROUNDED_FROM(N, half, rtz)                  \
    ROUNDED_FROM(N, float, rte) ROUNDED_FROM(N, float, rtz)
ROUNDED(2) ROUNDED(3) ROUNDED(4) ROUNDED(8) ROUNDED(16)

// Functions.
#define UNARY_OF(N, F) OVERLOAD half##N F(half##N a) { return convert_half##N(F(convert_float##N(a))); }
#define BINARY_OF(N, F)                                                    \
    OVERLOAD half##N F(half##N a, half##N b) {                             \
        return convert_half##N(F(convert_float##N(a), convert_float##N(b))); \
    }
#define TERNARY_OF(N, F)                                                   \
    OVERLOAD half##N F(half##N a, half##N b, half##N c) {                  \
        return convert_half##N(F(convert_float##N(a), convert_float##N(b), convert_float##N(c))); \
    }
#define SIZES(OF, F) OF(, F) OF(2, F) OF(3, F) OF(4, F) OF(8, F) OF(16, F)
SIZES(UNARY_OF, exp) SIZES(UNARY_OF, log) SIZES(UNARY_OF, tanh) SIZES(UNARY_OF, erf)
SIZES(UNARY_OF, sqrt) SIZES(UNARY_OF, rsqrt) SIZES(UNARY_OF, native_exp) SIZES(UNARY_OF, native_log)
SIZES(UNARY_OF, sin) SIZES(UNARY_OF, fabs) SIZES(UNARY_OF, rint) SIZES(UNARY_OF, round)
SIZES(UNARY_OF, floor) SIZES(UNARY_OF, ceil)
SIZES(BINARY_OF, max) SIZES(BINARY_OF, min) SIZES(BINARY_OF, fmax) SIZES(BINARY_OF, fmin) SIZES(BINARY_OF, pow)
SIZES(TERNARY_OF, fma) SIZES(TERNARY_OF, mad) SIZES(TERNARY_OF, clamp)

#define SELECT(N)                                                          \
    OVERLOAD half##N select(half##N a, half##N b, short##N c) {            \
        half##N v;                                                         \
        for (int k = 0; k < N; k++) v[k] = c[k] < 0 ? b[k] : a[k];         \
        return v;                                                          \
    }
SELECT(2) SELECT(3) SELECT(4) SELECT(8) SELECT(16)
OVERLOAD half select(half a, half b, short c) { return c ? b : a; }
